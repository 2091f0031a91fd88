"""What works on this machine: one line a part, each with the next step when it does not."""

from __future__ import annotations

import importlib
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import platformdirs
from attrs import frozen


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


def _libclang() -> Examination:
    try:
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


def cache_folder() -> Path:
    """Where the precompiled header and builds are kept (``CUDA_LSP_CACHE`` overrides)."""
    return Path(os.environ.get("CUDA_LSP_CACHE") or platformdirs.user_cache_dir("cuda-lsp"))


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
