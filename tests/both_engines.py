"""The dynamic engines that run without a GPU: the emulator, and the GPU's probes on an emulated card."""

from __future__ import annotations

from emulated_card import emulated_engine

from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import KernelRun, RunOutcome

ENGINES = ("emulator", "card", "card backwards")


def outcome_on(engine: str, run: KernelRun) -> RunOutcome:
    """Of a run that comes to its end and leaves nothing out."""
    on_card = engine != "emulator"
    made = (
        emulated_engine(find_toolkit(), "backwards" in engine)
        if on_card
        else EmulatorEngine(keep_results=True)
    )
    outcome = made.run(run, lambda stage: None)
    assert (outcome.failure, outcome.not_covered) == (None, ())
    return outcome
