"""Generated kernels and functions, compiled, with what the emulator makes of them: to be compared with a
GPU.

A bundle is made of plain Python values (format 1), so that it can be read anywhere: ``inputs`` name →
(dtype, bytes); ``kernels`` and ``functions``: rows with ``module`` (index), ``name``, ``block``, ``grid``,
``kinds`` and ``out``, ``pool``: compressed bytes; ``modules``: rows with ``level``, ``ptx``, ``cubin``.
"""

from __future__ import annotations

import subprocess
import tempfile
import zlib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import generated_functions as functions
import numpy as np
from generated_kernels import GRID, GeneratedKernel
from generated_runs import ARCH, OPTIONS, Arrays, compared, emulated, given_to, inputs, source

from cuda_lsp.dynamic.compilation.compile import compile_module
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.engine import EmulatorEngine
from cuda_lsp.dynamic.runs import Level

FORMAT = 1
PER_MODULE = 20
Execute = Callable[[dict[str, Any], dict[str, Any], Arrays], Arrays]
"""(module, row, arrays) → the arrays after the kernel."""


def made(
    kernels: Sequence[GeneratedKernel], levels: Sequence[Level], told: Callable[[str], None]
) -> dict[str, Any]:
    """Compile, emulate, pack. Raises CompileError, EngineUnavailable, RuntimeError."""
    given = inputs()
    bundle: dict[str, Any] = {
        "format": FORMAT,
        "arch": ARCH,
        "inputs": {name: (array.dtype.str, array.tobytes()) for name, array in given.items()},
        "modules": [],
        "kernels": [],
        "functions": [],
    }
    with tempfile.TemporaryDirectory() as folder:
        for level in levels:
            for first in range(0, len(kernels), PER_MODULE):
                part = kernels[first : first + PER_MODULE]
                module = _module(bundle, source(part), level, Path(folder))
                for k in part:
                    row = {"module": module, "name": k.name, "block": k.block, "grid": GRID, "kinds": k.kinds}
                    bundle["kernels"].append(_emulated(bundle, row, given_to(k, given)))
                told(f"{level.value}: {first + len(part)} of {len(kernels)} kernels")
            module = _module(bundle, functions.source(), level, Path(folder))
            for k in range(len(functions.FUNCTIONS)):
                row = {"module": module, "name": f"fn{k}", "block": functions.COUNT, "grid": 1, "function": k}
                bundle["functions"].append(_emulated(bundle, row, function_arrays(k)))
    return bundle


def _module(bundle: dict[str, Any], text: str, level: Level, folder: Path) -> int:
    path = folder / "module.cu"
    path.write_text(text)
    ptx = compile_module(path, text, OPTIONS, level, find_toolkit(), folder / "cache").ptx
    (folder / "module.ptx").write_text(ptx)
    ptxas = find_toolkit().nvcc.with_name("ptxas")
    cubin = folder / "module.cubin"
    subprocess.run([ptxas, f"-arch={ARCH}", folder / "module.ptx", "-o", cubin], check=True, timeout=280)
    bundle["modules"].append({"level": level.value, "ptx": ptx, "cubin": cubin.read_bytes()})
    return len(bundle["modules"]) - 1


def _emulated(bundle: dict[str, Any], row: dict[str, Any], arrays: Arrays) -> dict[str, Any]:
    after = on_emulator(EmulatorEngine(keep_results=True))(bundle["modules"][row["module"]], row, arrays)
    return row | {name: zlib.compress(after[name].tobytes()) for name in ("out", "pool") if name in after}


def function_arrays(k: int) -> Arrays:
    x, y = functions.arguments(k)
    return {"out": np.zeros_like(x), "x": x, "y": y}


def on_emulator(engine: EmulatorEngine) -> Execute:
    """The emulator once more: what a comparison of equals looks like."""
    return lambda module, row, arrays: emulated(
        engine, module["ptx"], row["name"], row["block"], row["grid"], arrays
    )


def on_device() -> Execute:
    """The GPU of this machine through PyCUDA, the code as it is. Raises ImportError, pycuda's errors."""
    import pycuda.autoinit  # noqa: F401
    import pycuda.driver as cuda  # type: ignore[import-not-found]

    loaded: dict[int, Any] = {}

    def execute(module: dict[str, Any], row: dict[str, Any], arrays: Arrays) -> Arrays:
        code = loaded.setdefault(row["module"], None) or cuda.module_from_buffer(module["cubin"])
        loaded[row["module"]] = code
        after = {name: array.copy() for name, array in arrays.items()}
        given = [cuda.InOut(array) for array in after.values()]
        code.get_function(row["name"])(*given, block=(row["block"], 1, 1), grid=(row["grid"], 1))
        return after

    return execute


def checked(bundle: dict[str, Any], execute: Execute) -> dict[str, Any]:
    """Execute everything and compare it with what the emulator computed."""
    if bundle["format"] != FORMAT:
        raise ValueError(f"a bundle of format {bundle['format']}, not {FORMAT}: make it anew")
    given = {name: np.frombuffer(data, kind) for name, (kind, data) in bundle["inputs"].items()}
    rows: list[str] = []
    equal = 0
    for row in bundle["kernels"]:
        size = row["grid"] * row["block"] * len(row["kinds"])
        arrays = {"out": np.zeros(size, np.uint64)} | given
        try:
            after = execute(bundle["modules"][row["module"]], row, arrays)
        except Exception as error:  # noqa: BLE001  a device has errors of its own
            rows.append(f"{row['name']}: {type(error).__name__}: {error}; nothing more was executed")
            return _report(bundle, equal, rows, [])
        kept = {
            name: np.frombuffer(zlib.decompress(row[name]), arrays[name].dtype) for name in ("out", "pool")
        }
        level = bundle["modules"][row["module"]]["level"]
        different = compared(f"{level} {row['name']}", row["kinds"], kept, after)
        equal += not different
        rows += different
    return _report(bundle, equal, rows, [_function_row(bundle, row, execute) for row in bundle["functions"]])


def _report(
    bundle: dict[str, Any], equal: int, different: list[str], of_functions: list[dict[str, Any]]
) -> dict[str, Any]:
    return {
        "kernels": len({row["name"] for row in bundle["kernels"]}),
        "executions": len(bundle["kernels"]),
        "bit-equal": equal,
        "different": different[:100],
        "functions": of_functions,
    }


def _function_row(bundle: dict[str, Any], row: dict[str, Any], execute: Execute) -> dict[str, Any]:
    """Both errors of a function, and how far the two are apart (units in the last place → how often)."""
    k = row["function"]
    module, function, arrays = bundle["modules"][row["module"]], functions.FUNCTIONS[k], function_arrays(k)
    here = execute(module, row, arrays)["out"]
    emulator = np.frombuffer(zlib.decompress(row["out"]), here.dtype)
    (ours, ours_hold), (theirs, theirs_hold) = functions.error(k, emulator), functions.error(k, here)
    apart = np.abs(_ordered(here) - _ordered(emulator))
    return {
        "function": function.name,
        "kind": function.kind,
        "level": module["level"],
        "emulator ulps": round(float(ours.max()), 2),
        "executed ulps": round(float(theirs.max()), 2),
        "within the documented bound": [int(ours_hold.sum()), int(theirs_hold.sum()), len(here)],
        "apart": {str(n): count for n, count in sorted(Counter(apart.tolist()).items())[:12]},
    }


def _ordered(values: np.ndarray) -> np.ndarray:
    """Floats as integers in the same order, one for each."""
    bits = values.view(f"i{values.itemsize}").astype(np.int64)
    return np.where(bits < 0, np.iinfo(f"i{values.itemsize}").min - bits, bits)
