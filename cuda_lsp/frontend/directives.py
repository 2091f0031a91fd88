"""``// cuda-lsp:`` comments: what the source tells us that CUDA cannot.

    // cuda-lsp: launch block=(16,16) grid=(64,64) shared=4096
    // cuda-lsp: args n=1024 stride=1
    // cuda-lsp: assume n % 32 == 0 && n > 0
    // cuda-lsp: warp-synchronous
    // cuda-lsp: ignore[bank-conflict] measured, does not matter
    // cuda-lsp: ignore-file[uncoalesced-access] reason
    //--blockDim=[16,16] --gridDim=64 --warp-sync=32

The first four hold for the next kernel below; ``ignore`` for its own line or, alone on a line, for the
next line of code. The last, which is how GPUVerify is told a launch, holds for all kernels below that have
no launch directive of their own. Independent of libclang: works on text, so it survives broken code.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

from cuda_lsp.model import Code, Dim3, Position, SourceRange, ToolError

_DIRECTIVE = re.compile(r"//\s*cuda-lsp:\s*")
_IGNORE = re.compile(r"\A(?P<word>ignore(?:-file)?)\s*\[(?P<codes>[^\]]*)\]\s*(?P<reason>.*)\Z")
_OPTION = re.compile(r"--(?P<name>blockDim|gridDim|warp-sync)=(?P<value>\[[^\]]{0,99}\]|\([^)]{0,99}\)|\S+)")
_SETTING = re.compile(r"(?<!\w)(?P<name>\w+)\s*=\s*(?P<value>\([^)]{0,99}\)|[^\s,]+)[\s,]*")
_WORD = re.compile(r"\A[\w-]*")


@frozen
class KernelDirective:
    """What the directives above one kernel say; ``line`` is that of the last of them."""

    line: int
    block: Dim3 | None = None
    grid: Dim3 | None = None
    dynamic_shared: int | None = None
    arguments: Mapping[str, int] = field(factory=dict[str, int])
    assumptions: tuple[tuple[int, str], ...] = ()  # (line, C expression)
    warp_synchronous: bool = False


@frozen
class Suppression:
    """``codes`` are silenced on ``line``; ``range`` is the comment (for 'unused' reports)."""

    line: int
    codes: frozenset[Code]
    reason: str
    range: SourceRange


@frozen
class FileDirectives:
    """All directives of one file."""

    kernels: tuple[KernelDirective, ...] = ()
    suppressions: tuple[Suppression, ...] = ()
    file_suppressions: tuple[Suppression, ...] = ()
    errors: tuple[ToolError, ...] = ()
    below: tuple[KernelDirective, ...] = ()  # each for all kernels behind it

    def for_kernel(self, first_line: int, previous_end: int) -> KernelDirective | None:
        """The directives between the kernel above (``previous_end``) and this one's first line, merged."""
        merged: KernelDirective | None = None
        for directive in self.kernels:
            if previous_end < directive.line <= first_line:
                merged = _merge(merged, directive)
        if merged is None or merged.block is None:
            for directive in self.below[::-1]:
                if directive.line <= first_line:
                    return directive if merged is None else _merge(directive, merged)
        return merged


def parse_directives(path: Path, text: str) -> FileDirectives:
    """Every directive of ``text``; mistakes become ToolErrors that say what is expected."""
    parser = _Parser(path)
    if "cuda-lsp:" not in text and "--blockDim=" not in text:
        return FileDirectives()
    lines = text.splitlines()
    next_line = _NextCodeLine(lines)
    for number, line in enumerate(lines, 1):
        if "cuda-lsp:" in line and (match := _DIRECTIVE.search(line)):
            alone = not line[: match.start()].strip()
            body = line[match.end() :].rstrip()
            target = next_line(number) if alone else number
            parser.directive(number, match.start(), match.end() + len(body), body, target)
        elif "--blockDim=" in line.partition("//")[2]:
            parser.verifier_options(number, line)
    return FileDirectives(
        kernels=tuple(parser.kernels),
        suppressions=tuple(parser.suppressions),
        file_suppressions=tuple(parser.file_suppressions),
        errors=tuple(parser.errors),
        below=tuple(parser.below),
    )


class _NextCodeLine:
    """Which line the next code stands on, for lines in ascending order; the line itself when none follows."""

    def __init__(self, lines: list[str]) -> None:
        self._lines = lines
        self._found = 0

    def __call__(self, number: int) -> int:
        if self._found <= number:
            below = range(number, len(self._lines))
            self._found = next((n + 1 for n in below if self._is_code(n)), len(self._lines) + 1)
        return self._found if self._found <= len(self._lines) else number

    def _is_code(self, index: int) -> bool:
        stripped = self._lines[index].strip()
        return bool(stripped) and not stripped.startswith("//")


def _merge(first: KernelDirective | None, second: KernelDirective) -> KernelDirective:
    if first is None:
        return second
    return KernelDirective(
        line=second.line,
        block=second.block or first.block,
        grid=second.grid or first.grid,
        dynamic_shared=second.dynamic_shared if second.dynamic_shared is not None else first.dynamic_shared,
        arguments={**first.arguments, **second.arguments},
        assumptions=first.assumptions + second.assumptions,
        warp_synchronous=first.warp_synchronous or second.warp_synchronous,
    )


class _Parser:
    def __init__(self, path: Path) -> None:
        self.path = path
        self.kernels: list[KernelDirective] = []
        self.suppressions: list[Suppression] = []
        self.file_suppressions: list[Suppression] = []
        self.errors: list[ToolError] = []
        self.below: list[KernelDirective] = []

    def verifier_options(self, number: int, line: str) -> None:
        """Take the options of a race checker's own comment (``//--blockDim=64 --gridDim=1``)."""
        start = line.index("//") + 1
        extent = SourceRange(self.path, Position(number, start), Position(number, len(line) + 1))
        options = {match["name"]: match["value"] for match in _OPTION.finditer(line)}
        self.below.append(
            KernelDirective(
                number,
                block=self._extents(options.get("blockDim"), extent),
                grid=self._extents(options.get("gridDim"), extent),
                warp_synchronous="warp-sync" in options,
            )
        )

    def directive(self, number: int, begin: int, end: int, body: str, target: int) -> None:
        """Take what stands between two columns (from 0); suppressions are for line ``target``."""
        extent = SourceRange(self.path, Position(number, begin + 1), Position(number, end + 1))
        word = _WORD.match(body)
        name = word[0] if word else ""
        rest = body[len(name) :].strip()
        if name in ("ignore", "ignore-file"):
            self._ignore(body, target, extent)
        elif name == "launch":
            self._launch(number, rest, extent)
        elif name == "args":
            self._args(number, rest, extent)
        elif name == "assume" and rest:
            self.kernels.append(KernelDirective(number, assumptions=((number, rest),)))
        elif name == "warp-synchronous":
            self.kernels.append(KernelDirective(number, warp_synchronous=True))
        else:
            expected = "launch, args, assume, warp-synchronous or ignore[code]"
            self._error(extent, f"unknown directive {body!r}: use {expected}")

    def _ignore(self, body: str, target: int, extent: SourceRange) -> None:
        match = _IGNORE.match(body)
        if not match:
            self._error(extent, "write `ignore[code] reason`, for example `ignore[bank-conflict] measured`")
            return
        codes: set[Code] = set()
        for name in match["codes"].split(","):
            try:
                codes.add(Code(name.strip()))
            except ValueError:
                self._error(extent, f"no diagnostic code {name.strip()!r}; `cuda-lsp explain` lists them")
        suppression = Suppression(target, frozenset(codes), match["reason"], extent)
        (self.file_suppressions if match["word"] == "ignore-file" else self.suppressions).append(suppression)

    def _launch(self, number: int, rest: str, extent: SourceRange) -> None:
        settings = self._settings(rest, extent)
        unknown = settings.keys() - {"block", "grid", "shared"}
        if unknown or not settings:
            self._error(extent, "a launch directive takes block=(x,y,z), grid=(x,y,z) and shared=BYTES")
            return
        shared = settings.get("shared")
        self.kernels.append(
            KernelDirective(
                number,
                block=self._extents(settings.get("block"), extent),
                grid=self._extents(settings.get("grid"), extent),
                dynamic_shared=self._integer(shared, extent) if shared else None,
            )
        )

    def _args(self, number: int, rest: str, extent: SourceRange) -> None:
        if not rest:
            self._error(extent, "an args directive takes values of parameters, like n=1024")
        arguments: dict[str, int] = {}
        for name, text in self._settings(rest, extent).items():
            value = self._integer(text, extent)
            if value is not None:
                arguments[name] = value
        self.kernels.append(KernelDirective(number, arguments=arguments))

    def _settings(self, text: str, extent: SourceRange) -> dict[str, str]:
        settings: dict[str, str] = {}
        position = 0
        while position < len(text):
            match = _SETTING.match(text, position)
            if not match:
                self._error(extent, f"expected name=value, found {text[position:]!r}")
                break
            settings[match["name"]] = match["value"]
            position = match.end()
        return settings

    def _extents(self, text: str | None, extent: SourceRange) -> Dim3 | None:
        if text is None:
            return None
        numbers = [self._integer(part, extent) for part in text.strip("()[]").split(",")]
        if not 1 <= len(numbers) <= 3 or any(n is None or n < 1 for n in numbers):
            self._error(extent, f"expected up to three positive numbers like (16,16), found {text}")
            return None
        x, y, z = [*(n or 1 for n in numbers), 1, 1][:3]
        return (x, y, z)

    def _integer(self, text: str, extent: SourceRange) -> int | None:
        try:
            return int(text.strip(), 0)
        except ValueError:
            self._error(extent, f"expected a number, found {text.strip()!r}")
            return None

    def _error(self, extent: SourceRange, message: str) -> None:
        self.errors.append(ToolError(message, extent))
