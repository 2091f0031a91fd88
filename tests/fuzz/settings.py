"""Settings, compilation databases, response files and directives that nobody should write.

    python tests/fuzz/settings.py --seconds 900 [--first 0] [--only NUMBER]

Each number is one case. Either one bad line stands among good ones: then exactly one mistake is told, on that
line, and the good ones hold. Or the bytes are anything: then nothing raises or hangs, what is told lies in
the file, and the kernel beside it is analysed. Prints counts and the numbers that failed; exits with 1 if
there are any. ``SEEDS`` are the numbers that failed once.
"""

from __future__ import annotations

import json
import random
import re
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from campaign import arguments, search
from mutation import CHARACTERS, NUMBERS
from sources import Child

SEEDS: tuple[int, ...] = (6, 377, 443, 10186)
_MOST_SECONDS = 10.0  # of CPU
_KERNEL = """__global__ void k(int* o) {
    __shared__ int s[256];
    s[threadIdx.x] = 1;
    o[threadIdx.x] = s[255 - threadIdx.x];
}
void run(int* o) { k<<<1, 256>>>(o); }
"""
_GOOD = {
    "arch": '"sm_90"', "banks": "32", "default-block": "[128]", "enumeration-budget": "100",
    "solver": "false", "solver-budget": "900", "min-bank-ways": "4", "detail": '"flags"',
    "all-blocks": "true", "watch-all": "true", "inlay-hints": "false", "code-lens": "false",
    "defines": '["A=1", "B"]', "include-dirs": '["include", "../other"]', "std": '"c++17"',
    "grid-dim": "[4, 4]", "program-arguments": '["1", "two"]', "program-memory": "1024",
    "gpu-memory": "512",
}  # fmt: skip
_BAD_VALUES = (
    "true", "-1", "0", "1e400", "nan", "99999999999999999999", "9" * 400, '""', '"x"', '"sm_"',
    '"sm_9999"', "[]", "[1, 2, 3, 4]", "[-1]", "[1025]", "[[[[1]]]]", "{}", "{ a = { b = 1 } }",
    '"\\u0000"', "1979-05-27", "[2147483648, 2147483648, 2147483648]", '["a", 1]', "'''x'''",
    "0x7fffffffffffffff",
)  # fmt: skip
_BROKEN_LINES = (
    "arch = ", "= 1", "[", "]", "arch == 1", "a.b.c", 'x = "', "x = 'y", "x = [1,", "x = 08", "\x00",
    "x = 1 2", "[a]]", "x = \ud800", "é = 1", '"\\q" = 1',
)  # fmt: skip
_DIRECTIVES = (
    "launch block=(64) grid=(4)", "launch block=(16,16) shared=4096", "args n=5", "assume n > 0",
    "warp-synchronous", "ignore[bank-conflict] measured",
)  # fmt: skip
_BAD_DIRECTIVES = (
    "", "launch", "launch block", "launch block=()", "launch block=(0)", "launch block=(a,b)",
    "launch blck=(1)", "launch block=(1,2,3,4)", "args", "args n", "args n=", "args n=x", "assume",
    "ignore", "ignore[nothing]", "ignore[bank-conflict", "fly", "ignore-file", "launch shared=x",
    "launch grid=(-1)",
)  # fmt: skip
_FLAGS = (
    "-I", "-Iinclude", "-DN=64", "-D", "-DN=(", "-U", "-std=c++17", "-std=c++99", "-std=", "-arch=sm_90",
    "-arch=", "-gencode", "arch=compute_80,code=sm_80", "-include", "nothing.h", "-isystem", "@flags.rsp",
    "@", "@/dev/null", "@.", "--options-file", "flags.rsp", "-Xcompiler", "-Xcompiler=-Wall,-DX", "-x",
    "cu", "-rdc=true", "-expt-relaxed-constexpr", "-o", "\\", "'", '"', "-D=\"", "", "\u00df",
    "-DA=\\\"x\\\"", "--", "-c", "k.cu",
)  # fmt: skip


def tried(number: int) -> str | None:
    """What is wrong with how a case was taken; None: nothing."""
    chance = random.Random(number)
    began = time.process_time()
    with tempfile.TemporaryDirectory() as name:
        try:
            problem = chance.choice(_KINDS)(Path(name), chance)
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            return f"{type(error).__name__}: {error}"
    seconds = time.process_time() - began
    return problem or (f"{seconds:.1f} s of CPU" if seconds > _MOST_SECONDS else None)


# ---------------------------------------------------------------------------------- settings files


def _one_bad_line(folder: Path, chance: random.Random) -> str | None:
    """A settings file with one mistake, known by its line."""
    from cuda_lsp.settings_file import load

    names = chance.sample(sorted(_GOOD), chance.randrange(1, 6))
    lines = [f"{_spelt(name, chance)} = {_GOOD[name]}" for name in names]
    key, bad = _bad_line(names, chance)
    at = chance.randrange(len(lines) + 1)
    lines.insert(at, bad)
    lines = [part for line in lines for part in (*[""] * chance.choice((0, 0, 1)), line)]
    line = lines.index(bad) + 1
    shared = chance.random() < 0.3
    head = "[tool.cuda-lsp]\n" if shared else ""
    path = folder / ("pyproject.toml" if shared else "cuda-lsp.toml")
    path.write_bytes((head + "\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
    settings, problems = load(folder)
    if shared and key is None:  # another tool's mistake, unless the table is ours
        return None if len(problems) <= 1 else f"{len(problems)} mistakes are told"
    if len(problems) != 1:
        return f"{len(problems)} mistakes are told, and one was made: {bad!r}: {problems}"
    if problems[0].path != path:
        return f"told of {problems[0].path}"
    if key is not None:
        expected = line + bool(shared)
        if problems[0].line != expected:
            return f"told on line {problems[0].line}, made on {expected}: {bad!r}"
        return _good_ones_hold(settings, names)
    return None


def _spelt(name: str, chance: random.Random) -> str:
    return chance.choice((name, name.replace("-", "_"), f'"{name}"'))


def _bad_line(names: list[str], chance: random.Random) -> tuple[str | None, str]:
    """A mistake, and its key; None: the file is no TOML."""
    kind = chance.random()
    if kind < 0.3:
        return None, chance.choice(_BROKEN_LINES)
    if kind < 0.5:
        key = chance.choice(("arc", "no-such", "x" * 300, "solver-workers", "ärger", "a b"))
        return key, f'"{key}" = 1'
    free = [name for name in _GOOD if name not in names]
    from cuda_lsp.config import Settings, merge

    while True:
        key, value = chance.choice(free), chance.choice(_BAD_VALUES)
        if merge(Settings(), {key: _parsed(value)}, "")[1]:
            return key, f"{key} = {value}"


def _parsed(value: str) -> Any:
    from cuda_lsp.settings_file import tomllib

    return tomllib.loads(f"x = {value}")["x"]


def _good_ones_hold(settings: Any, names: Iterable[str]) -> str | None:
    from cuda_lsp.config import Settings, merge

    wanted, _ = merge(Settings(), {name: _parsed(_GOOD[name]) for name in names}, "")
    for name in names:
        field = name.replace("-", "_")
        if field != "include_dirs" and getattr(settings, field) != getattr(wanted, field):
            return f"{name} does not hold: {getattr(settings, field)!r}"
    return None


def _any_bytes(folder: Path, chance: random.Random) -> str | None:
    """A settings file that was changed byte by byte, read with and without trust."""
    from cuda_lsp.settings_file import load

    text = "".join(f"{name} = {value}\n" for name, value in _GOOD.items() if chance.random() < 0.5)
    shared = chance.random() < 0.5
    text = ("[tool.cuda-lsp]\n" if shared else "") + text + "[severity]\nbank-conflict = 'off'\n"
    content = _noisy(text, chance)
    path = folder / ("pyproject.toml" if shared else "cuda-lsp.toml")
    path.write_bytes(content)
    lines = content.count(b"\n") + content.count(b"\r") + 1
    for trusted in (True, False):
        settings, problems = load(folder, trusted=trusted)
        if any(not 1 <= p.line <= lines or p.path != path for p in problems):
            return f"told outside the file of {lines} lines: {problems}"
        if not trusted and (settings.defines or settings.include_dirs or settings.program_arguments):
            return "a folder that is not trusted set flags"
        str(problems)
    return None


def _noisy(text: str, chance: random.Random) -> bytes:
    content = bytearray(text.encode())
    for _ in range(chance.choice((1, 1, 2, 3, 8, 30))):
        at = chance.randrange(len(content) + 1)
        piece = chance.choice((
            bytes([chance.randrange(256)]), chance.choice(CHARACTERS).encode("utf-8", "surrogatepass"),
            chance.choice(NUMBERS).encode(), b"[" * chance.choice((1, 50, 20_000)), b"{a=" * 3000, b'"""',
            b"\r", b"\xff\xfe", b"a." * 5000,
        ))  # fmt: skip
        content[at : at + chance.choice((0, 0, 1, 5, 40))] = piece
    return bytes(content)


def _editor(folder: Path, chance: random.Random) -> str | None:
    """What a client sends as settings: any JSON."""
    from cuda_lsp.config import Settings, merge

    names = [*_GOOD, "severity", "nvcc", "noSuch", "solverWorkers", "programFolder", "", "a" * 10_000]
    values = {chance.choice(names): _json(chance, 4) for _ in range(chance.randrange(8))}
    good = "solverBudget" not in values and "solver-budget" not in values
    settings, problems = merge(Settings(), {**values, **({"solverBudget": 77} if good else {})}, "editor")
    if good and settings.solver_budget != 77:
        return "a good setting among bad ones does not hold"
    if len(problems) > len(values):
        return f"{len(problems)} mistakes in {len(values)} values"
    return "a message of many lines" if any("\n" in str(problem)[:200] for problem in problems) else None


def _json(chance: random.Random, depth: int) -> Any:
    kind = chance.randrange(10 if depth else 7)
    if kind < 7:
        plain = (
            None,
            True,
            False,
            0,
            -1,
            1 << 70,
            1.5,
            float("inf"),
            float("nan"),
            "",
            "x",
            "\ud800",
            "\0",
            "off",
        )
        return chance.choice(plain)
    if kind < 9:
        return [_json(chance, depth - 1) for _ in range(chance.randrange(5))]
    return {str(_json(chance, 0)): _json(chance, depth - 1) for _ in range(chance.randrange(4))}


# -------------------------------------------------------------------- databases and response files


def _database(folder: Path, chance: random.Random) -> str | None:
    """A compilation database of any flags or bytes, and the kernel that it governs."""
    words = ["nvcc", *chance.choices(_FLAGS, k=chance.randrange(12)), "k.cu"]
    entry: dict[str, Any] = {"directory": str(folder), "file": "k.cu"}
    entry |= {"arguments": words} if chance.random() < 0.5 else {"command": " ".join(words)}
    if chance.random() < 0.3:
        entry[chance.choice(("directory", "file", "arguments", "command"))] = _json(chance, 2)
    document: Any = [entry, *([_json(chance, 3)] if chance.random() < 0.2 else [])]
    text = json.dumps(document if chance.random() < 0.9 else _json(chance, 3))
    content = text.encode() if chance.random() < 0.7 else _noisy(text, chance)
    (folder / "compile_commands.json").write_bytes(content)
    flags = " ".join(chance.choices(_FLAGS, k=chance.randrange(20)))
    (folder / "flags.rsp").write_bytes(_noisy(flags, chance) if chance.random() < 0.5 else flags.encode())
    return _analysed(folder, _KERNEL)


def _analysed(folder: Path, text: str) -> str | None:
    """What is wrong with the report of a kernel."""
    from cuda_lsp.config import Settings
    from cuda_lsp.static.analyze import Analyzer

    analyzer = Analyzer(Settings(solver=False), quick=True)
    try:
        report = analyzer.update(folder / "k.cu", text, 1)
    finally:
        analyzer.shutdown()
    said = [error.message for error in report.errors]
    said += [reason for kernel in report.kernels for reason in kernel.reasons]
    if wrong := next((words for words in said if "internal error" in words), None):
        return wrong
    if not (report.kernels or report.errors):
        return "nothing is told of the kernel"
    return None


# --------------------------------------------------------------------------------------- directives


def _one_bad_directive(folder: Path, chance: random.Random) -> str | None:
    """Good directives and a bad one, known by its line; or one that was changed anyhow."""
    from cuda_lsp.frontend.directives import parse_directives

    lines = [f"// cuda-lsp: {one}" for one in chance.sample(_DIRECTIVES, chance.randrange(4))]
    wild = chance.random() < 0.4
    bad = chance.choice(_BAD_DIRECTIVES)
    if wild:
        bad = re.sub(
            r"[\r\n\f\v\x1c-\x1e\x85\u2028\u2029]", " ", _noisy(bad, chance).decode(errors="replace")
        )
    at = chance.randrange(len(lines) + 1)
    lines.insert(at, f"// cuda-lsp: {bad}")
    text = "\n".join([*lines, _KERNEL])
    found = parse_directives(folder / "k.cu", text).errors
    if not wild and {error.range.start.line for error in found if error.range} != {at + 1}:
        return f"told on {[error.range for error in found]}, made on line {at + 1}: {bad!r}"
    return _analysed(folder, text)


Kind = Callable[[Path, random.Random], "str | None"]
_KINDS: tuple[Kind, ...] = (
    _one_bad_line, _one_bad_line, _any_bytes, _editor, _database, _database, _one_bad_directive,
)  # fmt: skip


def failures(numbers: Iterable[int]) -> Iterator[tuple[int, str]]:
    """The cases that fail, and how."""
    child = Child(tried)
    for number in numbers:
        problem = child.ask(number)
        if problem is not None:
            yield number, problem
    child.end()


def main() -> None:
    given = arguments(__doc__)
    if given.only is not None:
        print(tried(given.only) or "nothing wrong")
        return
    search(given, "cases", failures, 500)


if __name__ == "__main__":
    main()
