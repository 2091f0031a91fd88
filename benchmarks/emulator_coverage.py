"""Which kernels of real code the CPU emulator can run: ``python benchmarks/emulator_coverage.py FOLDER…``.

Every ``.cu`` file with a kernel is compiled to PTX (O0), folders named ``Common``, ``common`` and ``include``
nearby being on the include path; files that nvcc refuses are counted. Each entry is then translated.
Prints the share, and what is missing by how many kernels it keeps out.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.emulator.translate import translate
from cuda_lsp.dynamic.ptx.flatten import Untranslatable
from cuda_lsp.dynamic.ptx.reader import PtxSyntaxError, read_module

_NEARBY = ("Common", "common", "include", "inc", "../include", "../common", "../../common/inc", "../Common")


def includes(source: Path, root: Path) -> list[str]:
    folders = [source.parent, root, *(root / n for n in _NEARBY), *(source.parent / n for n in _NEARBY)]
    return [f"-I{folder}" for folder in dict.fromkeys(folders) if folder.is_dir()]


def compiled(source: Path, root: Path, nvcc: Path, folder: Path) -> str | None:
    """Its PTX; None when nvcc refuses it. What is in ``folder`` is not made again."""
    output = folder / (str(source).replace("/", "+") + ".ptx")
    if output.exists():
        return output.read_text() or None
    output.write_text("")
    command = [str(nvcc), "-ptx", "-arch=sm_80", "-Xcicc", "-O0", *includes(source, root), str(source)]
    try:
        done = subprocess.run([*command, "-o", str(output)], capture_output=True, timeout=90, check=False)
    except subprocess.TimeoutExpired:
        return None
    if done.returncode:
        return None
    return output.read_text()


def main() -> None:
    limit = float(sys.argv.pop(1)[2:]) if sys.argv[1].startswith("-t") else 1e9
    nvcc, started = find_toolkit().nvcc, time.monotonic()
    kernels = translated = refused = files = 0
    missing: Counter[str] = Counter()
    kept = sys.argv.pop(1)[2:] if sys.argv[1].startswith("-k") else None
    with tempfile.TemporaryDirectory() as temporary:
        folder = kept or temporary
        for root in map(Path, sys.argv[1:]):
            for source in sorted(root.rglob("*.cu")):
                if time.monotonic() - started > limit:
                    break
                if "__global__" not in source.read_text(errors="replace"):
                    continue
                files += 1
                ptx = compiled(source, root, nvcc, Path(folder))
                if ptx is None:
                    refused += 1
                    continue
                try:
                    module = read_module(ptx)
                except PtxSyntaxError as problem:
                    missing[f"not read: {problem}"] += 1
                    continue
                for entry in module.entries:
                    kernels += 1
                    try:
                        translate(module, entry)
                        translated += 1
                    except Untranslatable as problem:
                        parts = str(problem).replace(", which", " which").split(", ")
                        missing.update({part.split(".")[0][:60] for part in parts})
    report = {
        "files": files,
        "not compiled by nvcc": refused,
        "kernels": kernels,
        "translated": translated,
        "missing": missing.most_common(),
    }
    print(json.dumps(report, indent=1))


if __name__ == "__main__":
    main()
