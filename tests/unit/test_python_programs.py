"""Python programs that compile kernels as they run: from their own calls to findings in their own lines."""

from __future__ import annotations

import ctypes
import io
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from emulated_card import EmulatedCard
from python_programs import BINDINGS, CALLS, CORE, DRIVER, LINKED, NUMBA, NVJITLINK, NVRTC, made
from toolkit import needs_nvcc

from cuda_lsp.config import Settings
from cuda_lsp.confirm import CheckOptions
from cuda_lsp.confirm_program import ProgramOptions, check_script
from cuda_lsp.dynamic.compilation.compile import CompileOptions
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.job import EngineKind
from cuda_lsp.dynamic.programs.build import build_library
from cuda_lsp.dynamic.programs.job import ProgramJob
from cuda_lsp.dynamic.programs.on_gpu import Task
from cuda_lsp.dynamic.programs.scripts.builds import Builds
from cuda_lsp.dynamic.programs.scripts.extensions import Extensions
from cuda_lsp.dynamic.programs.scripts.gpu_process import ScriptHosted, _Shape
from cuda_lsp.dynamic.programs.scripts.places import places_in
from cuda_lsp.dynamic.programs.scripts.run import IN_FRONT
from cuda_lsp.dynamic.runner import Runner
from cuda_lsp.model import FileReport, Verdict

pytestmark = [needs_nvcc, pytest.mark.skipif(shutil.which("gcc") is None, reason="no gcc here")]

SHIFT = '''
SHIFT = r"""
extern "C" __global__ void shift(int* out, const int* in) {
    __shared__ int s[65];
    s[threadIdx.x] = in[threadIdx.x];
    BARRIER
    out[threadIdx.x] = s[(threadIdx.x + 1) % 64];
}
"""
'''


@pytest.fixture(scope="module")
def runner() -> Iterator[Runner]:
    made_runner = Runner()
    yield made_runner
    made_runner.close()


def checked(
    runner: Runner, folder: Path, text: str, *names: str
) -> tuple[dict[str, Verdict], list[FileReport], Any]:
    script = folder / "script.py"
    script.write_text(text)
    nvrtc = made(folder, "libnvrtc.so.99", NVRTC)
    options = CheckOptions(EngineKind.EMULATOR)
    how = ProgramOptions((str(nvrtc),), folder=folder, deadline=100.0)
    reports, result = check_script(script, sys.executable, Settings(), runner, options, how, names)
    return {k.name: k.verdict for r in reports for k in r.kernels}, reports, result


def test_a_race_is_told_on_the_lines_of_the_literal(runner: Runner, tmp_path: Path) -> None:
    text = f"""{CALLS}{SHIFT}
a, b = memory(256), memory(256)
(ctypes.c_int * 64).from_address(b.value)[:] = range(64)
racy = module_of(SHIFT.replace("BARRIER", ""))
for _ in range(3):
    ok(launch(racy, "shift", 64, a, b))
print((ctypes.c_int * 64).from_address(a.value)[:3])
"""
    verdicts, reports, result = checked(runner, tmp_path, text)
    assert result.problem is None, result
    assert result.status == 0, result.output
    assert "[1, 2, 3]" in result.output
    assert verdicts == {"shift": Verdict.RACY}
    lines = text.splitlines()
    (finding,) = reports[0].findings
    assert finding.site.range.path == (tmp_path / "script.py").resolve()
    places = {finding.site.range.start.line, finding.related[0].site.range.start.line}
    assert {lines[line - 1].strip() for line in places} == {
        "s[threadIdx.x] = in[threadIdx.x];", "out[threadIdx.x] = s[(threadIdx.x + 1) % 64];",
    }  # fmt: skip
    assert not finding.missed
    assert "launched 3 times" in result.runs[0].told


def test_a_correct_kernel_has_no_race_and_the_same_name_in_two_modules_is_two_codes(
    runner: Runner, tmp_path: Path
) -> None:
    text = f"""{CALLS}{SHIFT}
a, b = memory(256), memory(256)
calm = module_of(SHIFT.replace("BARRIER", "__syncthreads();"))
COUNT = "__device__ int counter = 5; extern \\"C\\" __global__ void shift(int* p) {{ p[0] += counter++; }}"
other, again = module_of(COUNT), module_of(COUNT)
ok(launch(calm, "shift", 64, a, b))
ok(launch(other, "shift", 1, a))
ok(launch(other, "shift", 1, a))
ok(launch(again, "shift", 1, a))
print(ctypes.c_int.from_address(a.value).value)
"""
    verdicts, reports, result = checked(runner, tmp_path, text)
    assert result.output.splitlines()[0] == "16"  # 5 + 6, and 5 of the other module's own variable
    assert result.launches == 4
    assert not [
        finding for report in reports for finding in report.findings if finding.code.value.endswith("race")
    ]
    assert set(verdicts.values()) == {Verdict.UNDECIDED}


def test_templates_are_compiled_for_the_instances_that_are_asked_for(runner: Runner, tmp_path: Path) -> None:
    text = f"""{CALLS}
TEXT = "template <class T> __global__ void same(T* p) {{ p[0] = threadIdx.x; }}"
m = module_of(TEXT, ("-DUNUSED=1",), ("same<float>",))
ok(launch(m, "_Z4sameIfEvPT_", 32, memory(64)))
"""
    verdicts, _, result = checked(runner, tmp_path, text)
    assert verdicts == {"same<float>": Verdict.RACY}, result


def test_what_has_no_source_or_does_not_compile_is_named(runner: Runner, tmp_path: Path) -> None:
    text = f"""{CALLS}
unknown = ctypes.c_void_p()
print(cuda.cuModuleLoadData(ctypes.byref(unknown), b"who knows"))
broken = module_of('extern "C" __global__ void k(int* p) {{ p[0] = nothing; }}')
function = ctypes.c_void_p()
print(cuda.cuModuleGetFunction(ctypes.byref(function), broken, b"k"))
"""
    _, reports, result = checked(runner, tmp_path, text)
    assert result.output.split()[:2] == ["209", "801"]
    told = " ".join(error.message for error in reports[0].errors)
    assert "only machine code is there" in told
    assert "k: its source does not compile for the check" in told


PTX = """.version 8.0
.target sm_75
.address_size 64
.file 1 "SCRIPT"
.visible .entry same(.param .u64 p) {
    .reg .b64 %rd<3>;
    .reg .b32 %r<2>;
    .loc 1 1 0
    ld.param.u64 %rd1, [p];
    cvta.to.global.u64 %rd2, %rd1;
    mov.u32 %r1, %tid.x;
    .loc 1 2 1
    st.global.u32 [%rd2], %r1;
    ret;
}
"""


def test_ptx_that_tells_lines_is_checked_as_it_is(runner: Runner, tmp_path: Path) -> None:
    text = f"""import sys  # line 1
UNKNOWN = "line 2"
{CALLS}
text = {PTX!r}.replace("SCRIPT", sys.argv[0])
for told in (text, "".join(line + "\\n" for line in text.splitlines() if ".loc" not in line)):
    module = ctypes.c_void_p()
    ok(cuda.cuModuleLoadData(ctypes.byref(module), told.encode()))
    ok(launch(module, "same", 32, memory(64)))
"""
    verdicts, reports, result = checked(runner, tmp_path, text)
    assert verdicts == {"same": Verdict.RACY}, (result, result.output)
    assert {f.site.range.start.line for f in reports[0].findings} == {2}
    assert [run.counts.checked for run in result.runs] == [1, 0]
    assert any("does not say where it comes from" in why for run in result.runs for why in run.counts.reasons)


@pytest.mark.parametrize(
    ("option", "kind", "inputs", "known"),
    [("-arch=sm_75", 2, 1, True), ("-lto", 3, 1, True), ("-lto", 3, 2, True), ("-arch=sm_75", 2, 2, False)],
    ids=["one PTX", "optimised as it is linked", "several optimised", "several PTX"],
)
def test_what_is_linked_from_ptx_is_checked(
    runner: Runner, tmp_path: Path, option: str, kind: int, inputs: int, known: bool
) -> None:
    linker = made(tmp_path, "libnvJitLink.so.99", NVJITLINK)
    text = f"""import sys  # line 1
UNKNOWN = "line 2"
{CALLS}
jit, link, size = ctypes.CDLL({str(linker)!r}), ctypes.c_void_p(), ctypes.c_size_t()
code = {PTX!r}.replace("SCRIPT", sys.argv[0]).encode()
ok(jit.nvJitLinkCreate(ctypes.byref(link), 1, (ctypes.c_char_p * 1)({option.encode()!r})))
for part in [code, b"// more"][:{inputs}]:
    ok(jit.nvJitLinkAddData(link, {kind}, part, ctypes.c_size_t(len(part)), b"part"))
ok(jit.nvJitLinkComplete(link))
ok(jit.nvJitLinkGetLinkedCubinSize(link, ctypes.byref(size)))
image, module = ctypes.create_string_buffer(size.value + 1), ctypes.c_void_p()
ok(jit.nvJitLinkGetLinkedCubin(link, image))
ok(jit.nvJitLinkDestroy(ctypes.byref(link)))
ok(cuda.cuModuleLoadData(ctypes.byref(module), image))
ok(launch(module, "same", 32, memory(64)))
"""
    verdicts, reports, result = checked(runner, tmp_path, text)
    assert (result.status == 0) == known, (result, result.output)
    assert verdicts == ({"same": Verdict.RACY} if known else {}), result
    told = " ".join(error.message for report in reports for error in report.errors)
    assert ("only machine code is there" in told) != known, told


def test_the_program_keeps_its_arguments_and_status(runner: Runner, tmp_path: Path) -> None:
    _, _, result = checked(runner, tmp_path, f"{CALLS}\nprint(len(sys.argv))\nsys.exit(7)\n")
    assert result.status == 7
    assert result.output.startswith("2")


# ------------------------------------------------------------- packages, where a Python has them installed

PYTHON = os.environ.get("CUDA_LSP_TEST_PYTHON", sys.executable)


PACKAGES = {
    "bindings": ("cuda.bindings.nvrtc, nvidia.cu13", BINDINGS),
    "linked": ("cuda.bindings.nvrtc, nvidia.cu13", LINKED),
    "core": ("cuda.core, nvidia.cu13", CORE),
    "numba": ("numba_cuda", NUMBA),
}


@pytest.mark.parametrize(("package", "text"), PACKAGES.values(), ids=PACKAGES)
def test_kernels_of_a_package_are_checked(runner: Runner, tmp_path: Path, package: str, text: str) -> None:
    if subprocess.run([PYTHON, "-c", f"import {package}"], capture_output=True, check=False).returncode:
        pytest.skip(f"{PYTHON} has no {package}: CUDA_LSP_TEST_PYTHON names one that has it")
    script = tmp_path / "script.py"
    script.write_text(text)
    how = ProgramOptions(folder=tmp_path, deadline=100.0)
    options = CheckOptions(EngineKind.EMULATOR)
    reports, result = check_script(script, PYTHON, Settings(), runner, options, how, ())
    assert result.status == 0, result
    verdicts = {kernel.name: kernel.verdict for report in reports for kernel in report.kernels}
    assert verdicts == {"racy": Verdict.RACY, "calm": Verdict.UNDECIDED}
    assert {f.site.range.path for report in reports for f in report.findings} == {script.resolve()}


# ------------------------------------------------------------------ in front of a driver that is there


HOOKED = """
hooks = ctypes.CDLL(sys.argv[2])
COMPILED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_ulonglong)
LOADED = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_ulonglong)
LAUNCHED = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p, ctypes.c_void_p)


def compiled(message, size):
    print("compiled", b"out[0]" in ctypes.string_at(message, size))


def loaded(module, image, size):
    print("loaded", image.decode()[:8], size == len(image))


def launched(module, name, shape, arguments):
    numbers = (ctypes.c_uint * 11).from_address(shape)
    print("launched", name.decode(), numbers[0], numbers[3], "reason", numbers[7])
    launch(mine, "inner", 1)  # what the check does itself passes through
    return int(numbers[3] == 64)


mine = module_of("void inner() {}")
kept = COMPILED(compiled), LOADED(loaded), LAUNCHED(launched)
hooks.clsp_attach(*kept)
m = module_of("k(int* out) { out[0] = 1; }")
start, size = ctypes.c_ulonglong(), ctypes.c_ulonglong()
print("allocations", hooks.clsp_allocation(0, ctypes.byref(start), ctypes.byref(size)))
p = memory(100)
print("allocations", hooks.clsp_allocation(0, ctypes.byref(start), ctypes.byref(size)), size.value)
print("variable", hooks.clsp_variable(m, b"counter", ctypes.byref(start), ctypes.byref(size)), start.value)
sys.stdout.flush()
launch(m, "k", 64, p)
launch(m, "k", 32, p)
found = ctypes.c_void_p()
ok(cuda.cuGetProcAddress_v2(b"cuLaunchKernel", ctypes.byref(found), 12000, ctypes.c_ulonglong(0), None))
types = [ctypes.c_void_p] + [ctypes.c_uint] * 7 + [ctypes.c_void_p] * 3
call = ctypes.CFUNCTYPE(ctypes.c_int, *types)(found.value)
f = ctypes.c_void_p()
ok(cuda.cuModuleGetFunction(ctypes.byref(f), m, b"again"))
call(f, 3, 1, 1, 96, 1, 1, 0, 7, None, None)
ok(cuda.cuMemFree_v2(p))
print("allocations", hooks.clsp_allocation(0, ctypes.byref(start), ctypes.byref(size)))
limit = ctypes.CFUNCTYPE(None, ctypes.c_int)(lambda pinned: print("refused", pinned))
hooks.clsp_limit(ctypes.c_ulonglong(1000), ctypes.c_ulonglong(1000), limit)
print(cuda.cuMemAlloc_v2(ctypes.byref(start), ctypes.c_size_t(2000)))
"""


def test_the_library_in_front_of_a_driver_tells_sources_modules_and_launches(tmp_path: Path) -> None:
    hooks = build_library(
        tmp_path / "cache",
        find_toolkit(),
        "libcuda-lsp.so",
        IN_FRONT,
    )
    nvrtc, driver = made(tmp_path, "libnvrtc.so.99", NVRTC), made(tmp_path, "libcuda.so.1", DRIVER)
    (tmp_path / "script.py").write_text(CALLS + HOOKED)
    done = subprocess.run(
        [sys.executable, "-u", "script.py", str(nvrtc), str(hooks)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
        env={"LD_PRELOAD": str(hooks), "LD_LIBRARY_PATH": str(driver.parent)},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "compiled True", "loaded // image True",
        "allocations 0", "allocations 1 100", "variable 1 4096",
        "launched k 1 64 reason 0", "driver: inner <<<1, 1>>>",
        "launched k 1 32 reason 0", "driver: inner <<<1, 1>>>", "driver: k <<<1, 32>>>",
        "launched again 3 96 reason 1", "driver: inner <<<1, 1>>>", "driver: again <<<3, 96>>>",
        "allocations 0", "refused 0", "2",
    ]  # fmt: skip


# ------------------------------------------------------------------------------------ on an emulated card


class NoLibrary:
    """A program without allocations of its own that are known, and without variables."""

    def clsp_allocation(self, *unused: object) -> int:
        return 0

    def clsp_variable(self, *unused: object) -> int:
        return 0


def message(image: bytes, text: str, options: tuple[str, ...] = ()) -> bytes:
    def field(part: bytes) -> bytes:
        return struct.pack("<I", len(part)) + part

    def fields(*parts: str) -> bytes:
        return struct.pack("<I", len(parts)) + b"".join(field(part.encode()) for part in parts)

    said = field(b"source") + field(image) + field(text.encode())
    return said + field(b"made.cu") + fields() + fields(*options) + fields()


def load(host: ScriptHosted, module: int, image: bytes, said: bytes) -> None:
    """As the library in front of the driver tells a source, and a module of its image."""
    source, held = ctypes.create_string_buffer(said), ctypes.create_string_buffer(image)
    host.compiled(ctypes.addressof(source), len(said))
    host.loaded(module, ctypes.addressof(held), len(image))


def test_launches_of_modules_are_checked_on_a_card(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SHIFT)
    text = SHIFT.split('"""')[1]
    job = ProgramJob(
        script, "", (), CompileOptions(), tmp_path / "cache", tmp_path, interpreter=sys.executable,
        all_blocks=True,
    )  # fmt: skip
    card, toolkit = EmulatedCard(), find_toolkit()
    builds = Builds(toolkit, job.cache, "sm_75", places_in(script), float("inf"))
    host = ScriptHosted(
        Task(job, script, (), toolkit),
        card,
        NoLibrary(),
        io.BytesIO(),
        lambda number: card,
        builds=builds,  # type: ignore[arg-type]
        extensions=Extensions(tmp_path, job.cache),
    )
    images = {
        1: (b"racy", text.replace("BARRIER", "")),
        2: (b"calm", text.replace("BARRIER", "__syncthreads();")),
    }
    for module, (image, made_of) in images.items():
        load(host, module, image, message(image, made_of))
    out, given = card.allocate(256), card.allocate(256)
    card.upload(int(given), np.arange(64, dtype=np.int32))
    packed = ctypes.create_string_buffer(struct.pack("<QQ", int(out), int(given)))
    shape = _Shape(packed_size=16, packed=ctypes.addressof(packed))
    shape.numbers[:] = [1, 1, 1, 64, 1, 1, 0, 0, 1, 1, 1, 0, 0]
    for module in (1, 2):
        assert host.launched(module, b"shift", ctypes.pointer(shape), None) == 1
    assert host.launched(3, b"unknown", ctypes.pointer(shape), None) == 0
    theirs = message(
        b"theirs", 'extern "C" __global__ void theirs(int* p) {}', ("-I/x/site-packages/cupy/include",)
    )
    load(host, 4, b"theirs", theirs)
    assert host.launched(4, b"theirs", ctypes.pointer(shape), None) == 0
    assert list(host.tally.counts["theirs"].reasons) == [
        "no line of its source stands in the program's files: cupy made it"
    ]
    data = np.zeros(64, np.int32)
    card.download(int(out), data)
    assert data.tolist() == [*range(1, 64), 0]
    counts = host.tally.counts
    (racy, calm), unknown = [key for key in counts if key.startswith("shift ")], counts["unknown"]
    assert [counts[racy].checked, counts[calm].checked, unknown.checked] == [1, 1, 0]
    assert list(unknown.reasons) == ["its source was not compiled by NVRTC in this program"]
    from test_gpu_program_on_emulator import said as messages_of

    races = {m.entry: m.checked.races for m in messages_of(host) if m.checked is not None}
    assert races[racy] is not None
    assert races[racy].races
    assert races[calm] is not None
    assert not races[calm].races
