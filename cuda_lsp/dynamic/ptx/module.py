"""PTX as data: a module, its functions, their statements.

The words follow the PTX ISA manual (chapters 4 "Syntax", 5 "State spaces, types and variables" and
11 "Directives").  Instructions keep their operands as text and split them on demand, so that reading a
large module is cheap and writing it back loses nothing; ``operands`` takes an operand apart.
``reader.read_module`` makes a module, ``writer.write_module`` prints it.  Nothing here knows what
an instruction does.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property, lru_cache

from attrs import evolve, field, frozen


@frozen
class PtxLocation:
    """What a ``.loc`` directive says: file number (see ``PtxModule.files``), 1-based line, column.

    ``inlined_at`` is the place of the call through which the compiler inlined the code, its own
    ``inlined_at`` the next outer one; ``function`` names the inlined function when the module says so.
    """

    file: int
    line: int
    column: int
    inlined_at: PtxLocation | None = None
    function: str | None = None

    def chain(self) -> tuple[PtxLocation, ...]:
        """This place and the calls around it, innermost first."""
        links: list[PtxLocation] = [self]
        while (outer := links[-1].inlined_at) is not None and len(links) < 256:
            links.append(outer)
        return tuple(links)


@frozen
class PtxVariable:
    """A declared variable or parameter.

    ``type`` is the PTX type without its dot (``b8``); ``count`` the number of elements over all
    dimensions (1 for a scalar, None for an array of unknown extent, ``[]``), vector types counted in.
    ``initialiser`` is the text between ``=`` and ``;``. ``text`` is the declaration as written.
    """

    name: str
    space: str  # reg, shared, global, const, local, param, tex
    type: str
    align: int = 0  # 0: the natural alignment of the type
    count: int | None = 1
    initialiser: str | None = None
    linkage: str = ""  # visible, extern, weak, common
    text: str = ""

    @property
    def size(self) -> int:
        """Bytes; 0 when the extent is unknown."""
        return type_size(self.type) * (self.count or 0)

    @property
    def alignment(self) -> int:
        """Bytes; what the declaration says, else that of the type."""
        return self.align or max(1, type_size(self.type))


_SIZES: Mapping[str, int] = {"pred": 1, "f16x2": 4, "bf16x2": 4, "bf16": 2, "tf32": 4, "f16": 2}


@lru_cache(1024)
def type_size(name: str) -> int:
    """Bytes of a fundamental PTX type (``u32`` → 4); opaque types count 8."""
    if name in _SIZES:
        return _SIZES[name]
    digits = name.lstrip("busf")
    return int(digits) // 8 if digits.isdigit() else 8


ELEMENT_BITS: Mapping[str, int] = {
    "f16": 16, "bf16": 16, "tf32": 32, "f32": 32, "f64": 64, "s32": 32, "s8": 8, "u8": 8, "s4": 4, "u4": 4,
    "b1": 1, "e4m3": 8, "e5m2": 8,
}  # fmt: skip
"""Bits of one element of a matrix, by type; several elements share a register."""


# ------------------------------------------------------------------------------- body statements


@lru_cache(4096)
def _words(opcode: str) -> tuple[str, ...]:
    return tuple(opcode.replace("::", "__").split("."))


@frozen
class Instruction:
    """One instruction: ``@guard opcode operands;``.

    ``guard`` is ``"%p1"`` or ``"!%p1"`` or None. ``opcode`` carries all modifiers
    (``ld.shared.v2.u32``). ``operands`` is the text between opcode and semicolon. ``index`` counts the
    instructions of one function from 0: with the function's name it identifies the site.
    """

    opcode: str
    operands: str = ""
    guard: str | None = None
    location: PtxLocation | None = None
    index: int = -1

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The opcode's words, itself the first; ``::`` reads ``__`` (``shared__cta``)."""
        return _words(self.opcode)

    @property
    def base(self) -> str:
        """The opcode without modifiers (``ld``)."""
        return self.opcode.partition(".")[0]

    @property
    def arguments(self) -> tuple[str, ...]:
        """Operands split at top-level commas, in order."""
        return split_operands(self.operands)


@frozen
class Label:
    """``name:`` in front of a statement."""

    name: str


@frozen
class Loc:
    """A ``.loc`` directive; ``text`` as written."""

    location: PtxLocation
    text: str


@frozen
class Registers:
    """``.reg .b32 %r<10>;`` or ``.reg .pred p, q;``: names to one type."""

    type: str
    names: tuple[str, ...]
    text: str


@frozen
class Declaration:
    """A variable declared in a body: shared, local, const, or a call's ``.param``."""

    variable: PtxVariable


@frozen
class ScopeOpen:
    """``{`` of a nested scope."""


@frozen
class ScopeClose:
    """``}`` of a nested scope."""


@frozen
class TargetList:
    """``name: .branchtargets a, b;`` or ``.calltargets``; ``kind`` without the dot."""

    name: str
    kind: str
    targets: tuple[str, ...]
    text: str


@frozen
class Prototype:
    """``name: .callprototype (…) _ (…);`` for an indirect call."""

    name: str
    returns: tuple[PtxVariable, ...]
    params: tuple[PtxVariable, ...]
    text: str


@frozen
class Verbatim:
    """Text that is passed through as it is: pragmas, and whatever a rewriter wants to insert."""

    text: str


Statement = (
    Instruction
    | Label
    | Loc
    | Registers
    | Declaration
    | ScopeOpen
    | ScopeClose
    | TargetList
    | Prototype
    | Verbatim
)


# -------------------------------------------------------------------------- functions and modules


@frozen
class PtxFunction:
    """An ``.entry`` or ``.func``. ``body`` is None for a declaration.

    ``directives`` are those between the parameter list and the body (``.maxntid 256, 1, 1``).
    """

    name: str
    entry: bool
    params: tuple[PtxVariable, ...] = ()
    returns: tuple[PtxVariable, ...] = ()
    linkage: str = ""
    directives: tuple[str, ...] = ()
    body: tuple[Statement, ...] | None = None

    def instructions(self) -> Iterator[Instruction]:
        """The body's instructions, in order."""
        return (s for s in self.body or () if isinstance(s, Instruction))

    def variables(self, space: str) -> Iterator[PtxVariable]:
        """Variables of one state space that the body declares."""
        return (
            s.variable for s in self.body or () if isinstance(s, Declaration) and s.variable.space == space
        )

    def with_body(self, body: tuple[Statement, ...]) -> PtxFunction:
        """The function with other statements."""
        return evolve(self, body=body)


@frozen
class PtxModule:
    """One PTX file. ``items`` keep the order of the text; ``Verbatim`` items are what is not modelled."""

    version: str
    target: str
    address_size: int
    items: tuple[PtxFunction | PtxVariable | Verbatim, ...]
    files: Mapping[int, str] = field(factory=dict[int, str])  # number → path of the .file directives

    @cached_property
    def functions(self) -> Mapping[str, PtxFunction]:
        """By name; a definition wins over a declaration."""
        table: dict[str, PtxFunction] = {}
        for item in self.items:
            if isinstance(item, PtxFunction) and (item.body is not None or item.name not in table):
                table[item.name] = item
        return table

    @cached_property
    def entries(self) -> Mapping[str, PtxFunction]:
        """The kernels, by mangled name."""
        return {name: f for name, f in self.functions.items() if f.entry}

    @cached_property
    def variables(self) -> Mapping[str, PtxVariable]:
        """Module-scope variables by name; a definition wins over an ``extern`` declaration."""
        table: dict[str, PtxVariable] = {}
        for item in self.items:
            if isinstance(item, PtxVariable) and (item.linkage != "extern" or item.name not in table):
                table[item.name] = item
        return table


@lru_cache(1 << 14)  # each instruction is asked several times, and many are alike
def split_operands(text: str) -> tuple[str, ...]:
    """Split at commas outside brackets: ``"%r1, {%f1, %f2}, [a+4]"`` → three operands."""
    if not any(c in text for c in "{[("):
        return tuple(part.strip() for part in text.split(",")) if text.strip() else ()
    parts: list[str] = []
    depth = start = 0
    for i, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and depth == 0:
            parts.append(text[start:i].strip())
            start = i + 1
    parts.append(text[start:].strip())
    return tuple(parts)
