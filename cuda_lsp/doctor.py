"""What works on this machine: one line a part, each with the next step when it does not."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from cuda_lsp.cache_folder import cache_folder


@frozen
class Examination:
    """One part of the set-up. ``required``: nothing works without it."""

    name: str
    works: bool
    message: str
    required: bool = True


def examine() -> Iterator[Examination]:
    """Examine the parts in the order in which a check needs them."""
    yield _libclang()
    yield _solver()
    yield _cache()
    yield _analysis()
    yield _toolkit()
    yield _emulator()
    yield _gpu()


def _libclang() -> Examination:
    try:
        importlib.import_module("cuda_lsp.frontend")  # sees to what is loaded with it
        cindex = importlib.import_module("clang.cindex")
        cindex.Index.create()
    except Exception as error:  # noqa: BLE001 - whatever loading a shared library raises is the answer
        return Examination("libclang", False, f"{error}; reinstall with `pip install libclang==18.1.1`")
    return Examination("libclang", True, str(cindex.conf.get_filename()))


def _solver() -> Examination:
    try:
        z3 = importlib.import_module("z3")
        version = z3.get_version_string()
    except Exception as error:  # noqa: BLE001 - as above
        return Examination("Z3", False, f"{error}; reinstall with `pip install z3-solver`")
    return Examination("Z3", True, version)


def _cache() -> Examination:
    folder = cache_folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        message = f"{folder}: {error.strerror}; checks work, but each start is slower (set CUDA_LSP_CACHE)"
        return Examination("cache folder", False, message, required=False)
    return Examination("cache folder", True, str(folder))


_PROBE = """__global__ void k(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
"""


def _analysis() -> Examination:
    from cuda_lsp.model import Code
    from cuda_lsp.static.analyze import check_text

    try:
        report = check_text(Path("probe.cu"), _PROBE)
    except Exception as error:  # noqa: BLE001 - the doctor reports, it does not fail
        return Examination("analysis", False, f"a probe kernel failed with {error!r}: please report this")
    found = any(finding.code is Code.SHARED_RACE for finding in report.findings)
    message = (
        "finds the race of a probe kernel"
        if found
        else "missed the race of a probe kernel: please report this"
    )
    return Examination("analysis", found, message)


# Dynamic checks are extras: what is missing here costs nothing else.


def _toolkit() -> Examination:
    from cuda_lsp.dynamic.compilation.toolkit import ToolkitMissing, find_toolkit

    try:
        toolkit = find_toolkit()
    except ToolkitMissing as problem:
        return Examination("CUDA compiler", False, f"{problem} (for dynamic checks)", required=False)
    return Examination(
        "CUDA compiler",
        True,
        f"nvcc {toolkit.version}, {toolkit.nvcc} (from {toolkit.origin})",
        required=False,
    )


def _emulator() -> Examination:
    from cuda_lsp.dynamic.compilation.compile import CompileError, Interrupted
    from cuda_lsp.dynamic.compilation.toolkit import ToolkitMissing
    from cuda_lsp.dynamic.job import EngineKind

    try:
        seen = _confirmed_race(EngineKind.EMULATOR)
    except (ToolkitMissing, CompileError, Interrupted, OSError) as problem:
        return Examination("CPU emulator", False, f"not tried: {problem}", required=False)
    message = f"confirms the race of the probe kernel, {_emulator_engine()}" if seen is None else seen
    return Examination("CPU emulator", seen is None, message, required=False)


def _emulator_engine() -> str:
    """What executes its kernels; what is missing for that is made."""
    from cuda_lsp.dynamic.emulator.native.library import LIBRARY, NoLibrary

    try:
        LIBRARY.get()
    except NoLibrary as problem:
        return f"in NumPy alone, several times slower than in C: {problem}"
    return "in C"


def _confirmed_race(engine: object) -> str | None:
    """None when a dynamic check confirms the probe's race, else what happened."""
    from cuda_lsp.config import Settings
    from cuda_lsp.confirm import CheckOptions, job_for
    from cuda_lsp.dynamic.job import EngineKind
    from cuda_lsp.dynamic.runner import Runner
    from cuda_lsp.static.analyze import Analyzer

    assert isinstance(engine, EngineKind)
    path, text = Path("probe.cu"), f"{_PROBE}void run(int *o) {{ k<<<1, 64>>>(o); }}\n"
    analyzer, runner = Analyzer(), Runner()
    try:
        (report,) = analyzer.update(path, text).kernels
        kernel = analyzer.kernel(path, report.name)
        assert kernel is not None
        result = runner.run(job_for(path, text, kernel, report, Settings(), CheckOptions(engine)))
    finally:
        analyzer.shutdown()
        runner.close()
    if result.problem:
        return result.problem
    seen = any(trial.races.races for trial in result.results)
    return None if seen else "missed the race of a probe kernel: please report this"


def _gpu() -> Examination:
    from cuda_lsp.dynamic.job import EngineKind

    problem = _confirmed_race(EngineKind.GPU)
    message = "confirms the race of the probe kernel" if problem is None else problem
    return Examination("GPU", problem is None, message, required=False)
