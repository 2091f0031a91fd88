"""Launches of a whole program as the GPU's process checks them, on an emulated card and its memory."""

from __future__ import annotations

import ctypes
import io
import pickle
import struct
import sys
from pathlib import Path

import numpy as np
import pytest
from attrs import define, evolve, field

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import Allocation, EmulatedCard
from programs import HISTOGRAM
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.job import Parameter, Piece
from cuda_lsp.dynamic.programs import on_gpu
from cuda_lsp.dynamic.programs.gpu_process import Hosted
from cuda_lsp.dynamic.programs.instances import Tally
from cuda_lsp.dynamic.programs.job import ProgramJob, ProgramKernel, ProgramResult
from cuda_lsp.dynamic.programs.on_gpu import Said, Task
from cuda_lsp.dynamic.runs import EngineUnavailable, Level
from cuda_lsp.model import Position, SourceRange

pytestmark = needs_nvcc
BLOCKS, N = 6, 6 * 64


@define
class Program:
    """What the loaded program tells of its memory, and the calls that it makes."""

    card: EmulatedCard
    allocations: dict[str, tuple[Allocation, int]] = field(factory=dict)
    variables: dict[str, tuple[Allocation, int]] = field(factory=dict)

    def allocate(self, where: dict, name: str, data: np.ndarray) -> None:
        memory = self.card.allocate(data.nbytes)
        self.card.upload(int(memory), data)
        where[name] = memory, data.nbytes

    def read(self, where: dict, name: str) -> list[int]:
        memory, size = where[name]
        data = np.zeros(size // 4, np.int32)
        self.card.download(int(memory), data)
        return data.tolist()

    def clsp_allocation(self, number: int, start, size) -> int:
        if number >= len(self.allocations):
            return 0
        memory, size._obj.value = list(self.allocations.values())[number]
        start._obj.value = int(memory)
        return 1

    def clsp_variable(self, number: int, name, start, size) -> int:
        if number >= len(self.variables):
            return 0
        name._obj.value = list(self.variables)[number].encode()
        memory, size._obj.value = list(self.variables.values())[number]
        start._obj.value = int(memory)
        return 1


def hosted(folder: Path, barrier: str) -> tuple[Hosted, Program, str]:
    text, path = HISTOGRAM.replace("BARRIER", barrier), folder / "program.cu"
    path.write_text(text)
    lines = text.splitlines()
    last = next(n for n, line in enumerate(lines, 1) if "int main" in line) - 1
    first = next(n for n, line in enumerate(lines, 1) if "__global__" in line)
    extent = SourceRange(path, Position(first, 1), Position(last, 2))
    pointers = tuple(Parameter(name, (Piece(name, 0, 8, pointer=True),), 8) for name in ("bins", "data"))
    options = CompileOptions(arch="sm_75")
    job = ProgramJob(path, text, (ProgramKernel("count", "count", "", extent, pointers),), options,
                     folder / "cache", folder, all_blocks=True)  # fmt: skip
    toolkit = find_toolkit()
    plain, optimised = (
        compile_module(path, text, options, level, toolkit, folder / "cache")
        for level in (Level.O0, Level.O3)
    )
    card = EmulatedCard()
    program = Program(card)
    program.allocate(program.allocations, "bins", np.zeros(64, np.int32))
    program.allocate(program.allocations, "data", np.arange(N, dtype=np.int32) * 7)
    values = {"launches": [0], "step": [2], "weights": [1, 10]}
    for name, variable in plain.module.variables.items():
        for known, data in values.items():
            if known in name and variable.space in ("global", "const"):
                program.allocate(program.variables, name, np.array(data, np.int32))
    task = Task(job, path, ((plain, optimised),), toolkit)
    made = Hosted(task, card, program, io.BytesIO(), no_other)  # type: ignore[arg-type]
    return made, program, next(iter(plain.module.entries))


def no_other(number: int) -> EmulatedCard:
    raise EngineUnavailable(f"there is no device {number}")


def launch(
    host: Hosted, program: Program, entry: str, reason: int = 0, together: int = 0, device: int = 0
) -> int:
    shape = (ctypes.c_uint * 13)(BLOCKS, 1, 1, 64, 1, 1, 0, reason, 1, 1, 1, together, device)
    values = [ctypes.c_ulonglong(int(program.allocations[name][0])) for name in ("bins", "data")]
    held = [*values, ctypes.c_int(N)]
    pointers = (ctypes.c_void_p * 3)(*(ctypes.addressof(one) for one in held))
    return host.launch(entry.encode(), shape, pointers)


def said(host: Hosted) -> list[Said]:
    data, messages = host.answers.getvalue(), []  # type: ignore[attr-defined]
    while data:
        (length,) = struct.unpack_from("<Q", data)
        messages.append(pickle.loads(data[8 : 8 + length]))
        data = data[8 + length :]
    return messages


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_a_program_s_launches_are_checked_on_its_own_memory(tmp_path: Path, barrier, racy) -> None:
    host, program, entry = hosted(tmp_path, barrier)
    assert [launch(host, program, entry) for _ in range(4)] == [
        1,
        1,
        1,
        0,
    ]  # races, banks, races, not checked
    messages = [message for message in said(host) if message.checked or message.problem]
    assert [message.problem for message in messages] == [None] * 3
    races, banks, again = (message.checked for message in messages)
    assert races and banks and again
    assert racy == bool(races.races and races.races.races)
    assert banks.banks is not None and banks.banks.banks
    assert races.races is not None and not races.races.faults and not races.races.failure
    if not racy:
        assert program.read(program.allocations, "bins") == three_times_counted()
        name = next(name for name in program.variables if "launches" in name)
        assert program.read(program.variables, name) == [6]


def three_times_counted() -> list[int]:
    bins = np.zeros(64, np.int64)
    np.add.at(bins, np.arange(N) * 7 % 64, np.where(np.arange(N) % 2, 10, 1))
    return (3 * bins).tolist()


def test_launches_are_counted_and_each_that_is_not_checked_has_its_reason(tmp_path: Path) -> None:
    host, program, entry = hosted(tmp_path, "__syncthreads();")
    assert launch(host, program, entry, reason=1) == 0  # in a graph
    assert [launch(host, program, entry) for _ in range(3)] == [1, 1, 0]
    host.end(None)
    counts = said(host)[-1].counts[entry]
    assert (counts.launches, counts.checked) == (4, 2)
    assert counts.reasons == {
        "in a graph, which is launched as a whole": 1,
        "only launches 1, 2, 3, 8 and 32 of each kernel are": 1,
    }


def test_a_launch_whose_check_was_cut_short_is_counted_and_told(tmp_path: Path) -> None:
    host, program, entry = hosted(tmp_path, "")
    launch(host, program, entry)
    begun, ended = said(host)
    assert begun.counts[entry].launches == 1 and begun.checked is None
    seen = on_gpu._Seen(Tally(host.tally.instances, on_gpu.SAMPLED))
    seen.take(begun)
    (run,) = seen.runs()
    assert run.counts.reasons == {"the program was ended while it was checked": 1}
    seen.take(ended)
    (run,) = seen.runs()
    assert (run.counts.checked, run.counts.reasons) == (1, {})


def test_after_a_kernel_that_ends_the_program_it_runs_again_and_the_others_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host, _, entry = hosted(tmp_path, "")
    tasks: list[Task] = []

    def once(task: Task, progress: object, end: float, earlier=None):
        tasks.append(task)
        seen = on_gpu._Seen(host.tally)
        seen.take(Said(device="card"))
        if not task.skipped:
            seen.take(Said(entry, problem="launch 1, watched for races, failed on the GPU"))
            return ProgramResult(status=on_gpu.FAULT), seen
        seen.keep(earlier)
        return ProgramResult(status=0, notes=tuple(seen.problems.values())), seen

    monkeypatch.setattr(on_gpu, "_run", once)
    task = host.task
    result = on_gpu.run_on_gpu(task.job, task.library, task.modules, task.toolkit, lambda stage: None)
    assert [task.skipped for task in tasks] == [frozenset(), {entry}]
    assert result.status == 0
    assert result.notes == ("launch 1, watched for races, failed on the GPU",)
    again = Hosted(tasks[1], host.device, host.library, io.BytesIO(), no_other)  # type: ignore[arg-type]
    shape = (ctypes.c_uint * 13)(1, 1, 1, 64, 1, 1, 0, 0, 1, 1, 1, 0, 0)
    assert again.launch(entry.encode(), shape, None) == 0
    assert again.tally.counts[entry].reasons == {on_gpu.SKIPPED: 1}


def test_an_instance_that_nobody_analysed_is_checked_under_any_hash(tmp_path: Path) -> None:
    host, program, entry = hosted(tmp_path, "")
    job = evolve(host.task.job, kernels=())
    host = Hosted(evolve(host.task, job=job), host.device, host.library, io.BytesIO(), no_other)  # type: ignore[arg-type]
    assert launch(host, program, entry) == 1
    _, message = said(host)
    assert message.checked is not None and message.checked.races is not None
    assert message.checked.races.races
    assert host.tally.instances.name_of(entry) == "count"


def test_a_launch_on_another_gpu_is_checked_there(tmp_path: Path) -> None:
    host, program, entry = hosted(tmp_path, "")
    # The second card has the same memory, as cards that reach one another's have.
    second = EmulatedCard(heap=program.card.heap)
    host.open = {1: second}.__getitem__
    assert launch(host, program, entry, device=1) == 1
    assert second.context.push.called and second.context.pop.called
    assert not program.card.context.push.called
    checked = said(host)[-1].checked
    assert checked is not None and checked.races is not None and checked.races.races


def test_a_launch_on_a_gpu_that_cannot_be_had_says_so(tmp_path: Path) -> None:
    host, program, entry = hosted(tmp_path, "")
    host.open = no_other  # type: ignore[assignment]
    assert launch(host, program, entry, device=1) == 0
    host.end(None)
    assert said(host)[-1].counts[entry].reasons == {"there is no device 1": 1}


def test_a_cooperative_launch_is_made_as_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    host, program, entry = hosted(tmp_path, "__syncthreads();")
    loaded: list[bool] = []
    load = EmulatedCard.load

    def told(card: EmulatedCard, ptx: str, architecture: str, together: bool):
        loaded.append(together)
        return load(card, ptx, architecture, together)

    monkeypatch.setattr(EmulatedCard, "load", told)
    assert [launch(host, program, entry, together=1), launch(host, program, entry)] == [1, 1]
    assert loaded == [True, False]
