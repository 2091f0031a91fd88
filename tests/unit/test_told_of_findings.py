"""Every finding says what to do next; its numbers and names are of its witness, its launch or the source."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from attrs import evolve

from cuda_lsp.config import Settings
from cuda_lsp.model import (
    CODES,
    Code,
    Finding,
    LaunchConfig,
    LaunchSource,
    Position,
    Site,
    SourceRange,
    Status,
)
from cuda_lsp.static.analyze import check_text
from cuda_lsp.static.findings import conditions as c
from cuda_lsp.static.findings import words
from cuda_lsp.static.findings.diagnosis import Diagnosis
from cuda_lsp.static.findings.steps import Remedy, of_doubt, of_finding

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PLACE = Site(SourceRange(Path("k.cu"), Position(1, 1), Position(1, 9)), "a[i]")
DOUBTS: tuple[c.Doubt, ...] = (
    *c.Open, c.OnData("the contents of `a`"), c.OnData("the arguments `n`", arguments=True), c.Uneven("n", 4),
    c.Untiled(("n",), "t"), c.Unordered("a"), c.Repeated("a"), c.Overfull("a", 4), c.Unconfirmed(()),
    c.UpToLibrary("wait()"),
)  # fmt: skip


@pytest.mark.parametrize("code", Code)
def test_every_code_has_a_step_for_every_cause(code: Code) -> None:
    assert CODES[code].step
    for remedy in (None, *Remedy):
        for conditions in ((), (c.Needs.RETURNED,), (c.Compared("n", ">", 1),)):
            assert of_finding(code, remedy, conditions, None, same=False)
    assert of_finding(code, Remedy.AT_ONCE, (), None, same=True)


@pytest.mark.parametrize("doubt", DOUBTS, ids=str)
def test_every_doubt_has_a_step_and_is_told_in_a_sentence(doubt: c.Doubt) -> None:
    assert of_doubt(doubt)
    told = words.ending((), doubt, race=True, met=False, same=False, under=c.Setting())
    assert told.startswith(("; whether they meet depends on ", "; whether they meet is not decided: "))


def test_the_step_of_arguments_is_an_assertion_and_of_contents_a_run() -> None:
    assert "assume" in of_doubt(c.OnData("the arguments `n`", arguments=True))
    assert "--program" in of_doubt(c.OnData("the contents of `a`"))


def test_what_the_host_never_passes_may_be_asserted_instead() -> None:
    step = of_finding(Code.SHARED_RACE, Remedy.IN_A_BLOCK, (c.Compared("n", ">", 1),), None, same=False)
    assert step.startswith("put a `__syncthreads()`") and step.endswith("`assert` it")


# ------------------------------------------------------------------------------------- the setting

FOUND = Diagnosis(Code.SHARED_OUT_OF_BOUNDS, Status.PROVED, "thread 3 reads a[i]", "k", PLACE)
TOLD = LaunchConfig((32, 16, 1), source=LaunchSource.FILE)


@pytest.mark.parametrize(
    ("launch", "under", "told"),
    [
        (TOLD, c.Setting(), ""),
        (TOLD, c.Setting(several=True), " (in blocks of 32x16)"),
        (evolve(TOLD, source=LaunchSource.DEFAULT), c.Setting(), " (blocks of 32x16 are assumed)"),
        (evolve(TOLD, source=LaunchSource.SIZES), c.Setting(), " (blocks of 32x16 are made by sizes)"),
        (TOLD, c.Setting(guessed="float, 4"), " (`<float, 4>` is guessed)"),
        (TOLD, c.Setting(guessed="a::VeryLongName<float>, 4"), " (the template's arguments are guessed)"),
        (
            evolve(TOLD, source=LaunchSource.DEFAULT), c.Setting(guessed="4"),
            " (blocks of 32x16 are assumed; `<4>` is guessed)",
        ),
    ],
)  # fmt: skip
def test_numbers_say_which_launch_and_which_guess_they_are_of(
    launch: LaunchConfig, under: c.Setting, told: str
) -> None:
    found = evolve(FOUND, launch=launch, under=under)
    assert found.message == f"thread 3 reads a[i]{told}"
    doubted = found.doubted(c.OnData("`b`", in_story=False)).message
    assert doubted == f"thread 3 reads a[i] (depends on `b`{told.replace(' (', '; ').rstrip(')')})"


def test_what_has_no_numbers_says_nothing_of_the_launch() -> None:
    launch = evolve(TOLD, source=LaunchSource.DEFAULT)
    maybe = evolve(FOUND, code=Code.BARRIER_DIVERGENCE, launch=launch, status=Status.POSSIBLE)
    assert maybe.message == FOUND.message


LAUNCHES = """
__global__ void k(int* out, int n) {
    __shared__ int s[1024];
    s[threadIdx.x] = n;
    out[threadIdx.x] = s[(threadIdx.x + 1) % blockDim.x];
}
void run(int* a, int n) { k<<<1, 64>>>(a, n); SECOND }
"""


def test_of_several_launches_the_one_that_is_meant_is_told() -> None:
    def told(text: str) -> str:
        (kernel,) = check_text(Path("k.cu"), text).kernels
        return next(f.message for f in kernel.findings if f.kind)

    assert "in blocks of" not in told(LAUNCHES.replace("SECOND", ""))
    assert "in blocks of" not in told(LAUNCHES.replace("SECOND", "k<<<2, 64>>>(a, n);"))
    assert told(LAUNCHES.replace("SECOND", "k<<<1, 128>>>(a, n);")).endswith("(in blocks of 64)")


# ------------------------------------------------------------------- numbers and names, over fixtures

_NUMBER = re.compile(r"(?<![\w.…])\d+(?![\w.]*[A-Za-z_…])")
_NAME = re.compile(r"`([A-Za-z_]\w*)")


def _numbers(finding: Finding) -> Iterator[int]:
    """Those that the finding holds as data."""
    launch, witness, bank = finding.launch, finding.witness, finding.bank
    yield from map(int, _NUMBER.findall(f"{finding.condition} {finding.reason}"))
    for place in finding.places:
        yield from (place.start.line, place.end.line)
    if launch is not None:
        yield from (*launch.block, *(launch.grid or ()), *launch.arguments.values())
    if witness is not None:
        yield from (*witness.index, *witness.values.values(), *witness.arguments.values())
        yield from (x for of in (witness.threads, witness.blocks or ()) for at in of for x in at)
        yield from (x for cell in witness.contents for x in cell[1:])
    if bank is not None:
        yield from (bank.ways, bank.wavefronts, bank.ideal, *range(32))


_COMPUTED = {Code.UNCOALESCED_ACCESS, Code.BANK_CONFLICT, Code.SHARED_OUT_OF_BOUNDS, Code.BARRIER_DIVERGENCE,
             Code.SHARED_UNINITIALISED, Code.MISALIGNED_ACCESS, Code.LAUNCH_LIMIT}  # fmt: skip
"""Costs, extents of arrays and threads that miss a barrier are told, and not held as data."""


READ = [
    *sorted(FIXTURES.glob("*.cu")),
    *sorted(FIXTURES.glob("demo/*.cu")),
    *sorted(FIXTURES.glob("labelled/*.cu"))[::6],
]


@pytest.mark.parametrize("path", READ, ids=lambda path: path.stem)
def test_messages_say_what_the_witness_the_launch_or_the_source_says(path: Path) -> None:
    text = path.read_text()
    in_source = set(map(int, _NUMBER.findall(text)))
    for kernel in check_text(path, text, Settings(solver_budget=0)).kernels:
        for finding in kernel.findings:
            assert finding.next_step and len(finding.message) <= words.LONGEST
            named = set(_NAME.findall(finding.message)) - {"check", "cuda"}  # which are commands
            assert all(name in text for name in named), finding.message
            if finding.code not in _COMPUTED:
                told = set(map(int, _NUMBER.findall(finding.message)))
                assert told <= in_source | set(_numbers(finding)) | {0, 1, 32}, finding.message
