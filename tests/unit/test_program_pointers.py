"""Function pointers of whole programs on a GPU: in memory are the program's, whoever wrote them there."""

from __future__ import annotations

import ctypes
import io
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from attrs import define, evolve
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import EmulatedCard
from no_gpu import ran_on_no_gpu
from pointer_programs import POINTERS, total
from test_gpu_program_on_emulator import Program, no_other, said
from toolkit import needs_nvcc

from cuda_lsp.cli import main
from cuda_lsp.dynamic.compilation.compile import CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.instrumentation.detector import assembled
from cuda_lsp.dynamic.instrumentation.program_pointers import with_program_pointers
from cuda_lsp.dynamic.programs.build import build, told_by
from cuda_lsp.dynamic.programs.function_tables import table_name, told_functions
from cuda_lsp.dynamic.programs.gpu_process import Hosted
from cuda_lsp.dynamic.programs.job import Library, ProgramJob, Unit
from cuda_lsp.dynamic.programs.on_gpu import Task
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.ptx.writer import write_module
from cuda_lsp.dynamic.runs import Level

pytestmark = needs_nvcc
SOMEWHERE = 0x7F12_3456_7000  # where the program's functions lie, and no function of ours


@define
class Run:
    """A program's launches, and its memory."""

    host: Hosted
    card: EmulatedCard
    program: Program
    functions: dict[str, int]  # by a part of their names
    kept: list[Any]

    def memory(self, *words: int) -> int:
        """Memory of the program with these contents."""
        data = np.array(words, np.uint64)
        self.program.allocate(self.program.allocations, f"memory {len(self.program.allocations)}", data)
        return int(list(self.program.allocations.values())[-1][0])

    def words(self, start: int, count: int, kind: type = np.uint64) -> list[int]:
        data = np.zeros(count, kind)
        self.card.download(start, data)
        return data.tolist()

    def launch(self, name: str, *values: int, blocks: int = 1) -> int:
        (entry,) = [e for e in self.host.task.modules[0][0].module.entries if name in e]
        shape = (ctypes.c_uint * 13)(blocks, 1, 1, 64, 1, 1, 0, 0, 1, 1, 1, 0, 0)
        held = [ctypes.c_ulonglong(value) for value in values]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(one) for one in held))
        taken = self.host.launch(entry.encode(), shape, pointers)
        print(name, self.host.tally.counts[entry].reasons)
        return taken

    def races(self, name: str) -> bool:
        """What was seen of its last launch."""
        seen = [m.checked.races for m in said(self.host) if m.checked is not None and name in m.entry]
        assert seen[-1] is not None and seen[-1].failure is None and not seen[-1].faults, seen
        return bool(seen[-1].races)


def started(folder: Path, barrier: str, tells: bool = True, extra: tuple[str, ...] = ()) -> Run:
    """The program when it has been loaded. ``tells``: where its functions lie; ``extra``: of nvcc."""
    text, path = POINTERS.replace("BARRIER", barrier).replace("ROUNDS", "1"), folder / "program.cu"
    path.write_text(text)
    options, toolkit = CompileOptions(arch="sm_75", extra=extra), find_toolkit()
    job = ProgramJob(path, text, (), options, folder / "cache", folder, all_blocks=True)
    pair = tuple(
        compile_module(path, text, options, level, toolkit, folder / "cache")
        for level in (Level.O0, Level.O3)
    )
    module = pair[1].module
    names = told_functions(module)
    functions = {n: SOMEWHERE + 256 * k for k, n in enumerate(n for n in names if n in module.functions)}
    card = EmulatedCard()
    program = Program(card)
    places: dict[str, int] = {}

    def variable(name: str, *words: int) -> int:
        program.allocate(program.variables, name, np.array(words, np.uint64))
        places[name] = int(program.variables[name][0])
        return places[name]

    def of(part: str) -> int:
        return next(at for name, at in functions.items() if part in name)

    variable("first", of("turned"))
    variable("both", of("twice"), of("turned"))
    table = variable("_ZTV4More", 0, 0, of("2of"))
    variable("object", table + 16)
    told = [functions.get(name, places.get(name, 0)) for name in names]
    variable(table_name(0), *told)
    kept = [program.variables.pop("_ZTV4More")]  # the runtime does not know it
    known = {name: (table_name(0), k) for k, name in enumerate(names)} if tells else {}
    task = Task(job, path, (pair,), toolkit, functions=(known,))  # type: ignore[arg-type]
    host = Hosted(task, card, program, io.BytesIO(), no_other)  # type: ignore[arg-type]
    return Run(host, card, program, {"turned": of("turned"), "twice": of("twice"), "table": table}, kept)


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_a_pointer_that_the_host_got_from_a_variable_is_followed(tmp_path: Path, barrier, racy) -> None:
    run = started(tmp_path, barrier)
    out = run.memory(*[0] * 32)
    assert run.launch("given", out, run.functions["turned"]) == 1
    assert run.races("given") == racy
    if not racy:
        assert run.words(out, 64, np.int32) == [163 - k for k in range(64)]
        assert run.launch("given", out, run.functions["twice"]) == 1
        assert run.words(out, 64, np.int32) == [2 * k for k in range(64)]


def test_blocks_that_are_not_checked_follow_it_too(tmp_path: Path) -> None:
    run = started(tmp_path, "__syncthreads();")
    run.host.task = evolve(run.host.task, job=evolve(run.host.task.job, all_blocks=False))
    out = run.memory(*[0] * 32)
    assert run.launch("given", out, run.functions["turned"], blocks=300) == 1
    assert run.words(out, 64, np.int32) == [163 - k for k in range(64)]
    (seen,) = [m.checked.races for m in said(run.host) if m.checked is not None]
    assert seen is not None and seen.blocks_checked < 300
    assert "code behind a function pointer is executed but not watched" in seen.not_covered


@pytest.mark.parametrize(("which", "name"), [(0, "twice"), (1, "turned")])
def test_pointers_that_a_checked_kernel_stores_are_the_program_s(
    tmp_path: Path, which: int, name: str
) -> None:
    run = started(tmp_path, "__syncthreads();")
    place = run.memory(0)
    assert run.launch("stores", place, which) == 1
    assert run.words(place, 1) == [run.functions[name]]
    # Nor does the variable hold one of ours, which the kernel changed.
    both, _ = run.program.variables["both"]
    assert run.words(int(both), 2) == [run.functions["turned"], run.functions["turned"]]
    out = run.memory(*[0] * 32)
    assert run.launch("stored", out, place) == 1
    expected = [163 - k for k in range(64)] if which else [2 * k for k in range(64)]
    assert run.words(out, 64, np.int32) == expected


@pytest.mark.parametrize(("barrier", "racy"), [("__syncthreads();", False), ("", True)])
def test_tables_and_objects_are_the_program_s_and_calls_through_them_are_watched(
    tmp_path: Path, barrier, racy
) -> None:
    run = started(tmp_path, barrier)
    out, room, objects = run.memory(*[0] * 32), run.memory(0), run.memory(0)
    assert run.launch("table", out, 1) == 1
    assert run.races("table") == racy
    assert run.launch("makes", objects, room) == 1
    assert run.words(room, 1) == [run.functions["table"] + 16]
    assert run.words(objects, 1) == [room]
    assert run.launch("uses", out, objects) == 1
    assert run.races("uses") == racy
    if not racy:
        assert run.words(out, 64, np.int32) == [170 - k for k in range(64)]


def test_without_the_program_s_addresses_such_kernels_are_not_checked(tmp_path: Path) -> None:
    run = started(tmp_path, "", tells=False)
    out = run.memory(*[0] * 32)
    names = ("given", "stores", "makes")
    assert [run.launch(n, out, out) for n in names] == [0, 0, 0]
    counts = {name: next(c for e, c in run.host.tally.counts.items() if name in e) for name in names}
    assert {name: list(of.reasons) for name, of in counts.items()} == {
        "given": ["it calls functions through pointers from memory"],
        "stores": ["it keeps addresses of functions"],
        "makes": ["it keeps addresses of functions"],
    }


def test_what_is_changed_is_ptx_that_the_assembler_takes(tmp_path: Path) -> None:
    run = started(tmp_path, "__syncthreads();")
    for compiled in run.host.task.modules[0]:
        names = told_functions(compiled.module)
        addresses = {name: SOMEWHERE + 8 * k for k, name in enumerate(names)}
        module = evolve(with_program_pointers(compiled.module, addresses), target="sm_90")
        text = write_module(module)
        assert assembled(text, run.host.task.toolkit, "sm_90")[:4] == b"\x7fELF"
        assert with_program_pointers(read_module(text), {}) == read_module(text)


def test_what_runs_is_ptx_that_the_assembler_takes_of_linked_programs_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[str] = []
    load = EmulatedCard.load

    def kept(card: EmulatedCard, ptx: str, architecture: str, together: bool) -> Any:
        loaded.append(ptx)
        return load(card, ptx, architecture, together)

    monkeypatch.setattr(EmulatedCard, "load", kept)
    run = started(tmp_path, "__syncthreads();", extra=("-rdc=true",))
    assert run.launch("given", run.memory(*[0] * 32), run.functions["turned"]) == 1
    (ptx,) = loaded
    assert ".visible .func" in write_module(run.host.task.modules[0][0].module)
    assert assembled(ptx, run.host.task.toolkit, "sm_90")[:4] == b"\x7fELF"


@pytest.mark.parametrize("relocatable", [False, True])
def test_a_program_s_objects_tell_where_their_functions_lie(tmp_path: Path, relocatable: bool) -> None:
    text, path, beside = POINTERS, tmp_path / "program.cu", tmp_path / "beside.cpp"
    text = text.replace("BARRIER", "").replace("ROUNDS", "1")
    path.write_text(text)
    beside.write_text("int beside;\n")
    own = Unit(path, CompileOptions(), relocatable=relocatable)
    other = Unit(beside, CompileOptions(), tmp_path, host=Path("/usr/bin/g++"), device=False, library=1)
    job = ProgramJob(
        path, text, (), CompileOptions(), tmp_path / "cache", tmp_path, built=(own, other),
        libraries=(Library(tmp_path / "libbeside.so"),),  # with one the runtime is not part of the program
    )  # fmt: skip
    program = build(job, find_toolkit(), architecture=90, telling=frozenset({0}))
    names = told_by(program)[0]
    assert {"first", "both", "object", "_ZTV4More", "_Z6turnedi", "_Z5twicei"} <= set(names)
    said = ran_on_no_gpu(tmp_path, program, ())
    assert f"variable clsp_functions0 {8 * len(names)}" in said
    assert "launch _Z5givenPiPFiiE 1 64" in said
    assert "launch _Z5tablePii 1 64" in said  # a name of the program, whatever we add


@pytest.mark.usefixtures("own_cache")
def test_the_same_program_runs_on_the_emulator(tmp_path: Path) -> None:
    path = tmp_path / "program.cu"
    path.write_text(POINTERS.replace("BARRIER", "").replace("ROUNDS", "2"))
    done = CliRunner().invoke(main, ["run", str(path), "--program", "--engine", "emulator"])
    assert f"total {total(2)}, no error" in done.stderr, done.output
    assert "[confirmed]" in done.stdout
