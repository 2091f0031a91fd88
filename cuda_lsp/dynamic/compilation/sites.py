"""Which PTX instructions touch memory or order threads, and where they stand in the source.

A device function that was not inlined has one site per instruction. Where the instruction is in a system
header (atomics, cooperative groups), the user's place is the call, so there is one site per way to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence

from attrs import evolve

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.expressions import Expressions, Stretch
from cuda_lsp.dynamic.emulator.flatten import FlatInstruction, Untranslatable, access_bytes, flatten
from cuda_lsp.dynamic.ptx.module import Instruction, PtxLocation, PtxModule, type_size
from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.model import Mode, Scope, Site, SourceRange, Space

_MODES: Mapping[str, Mode] = {
    "ld": Mode.READ, "ldu": Mode.READ, "st": Mode.WRITE, "atom": Mode.ATOMIC, "red": Mode.ATOMIC,
}  # fmt: skip
_STRONG = {Mode.READ: Mode.ATOMIC_READ, Mode.WRITE: Mode.ATOMIC, Mode.ATOMIC: Mode.ATOMIC}
_SPACES = {"shared": Space.SHARED, "global": Space.GLOBAL}
_PRIVATE = ("param", "local", "const")
_WARP = ("shfl", "vote", "match", "redux", "elect")
_UNCOVERED = (
    "wgmma",
    "tcgen05",
    "multimem",
)
_IMAGES = {"tex": Mode.READ, "tld4": Mode.READ, "suld": Mode.READ, "sust": Mode.WRITE, "sured": Mode.ATOMIC}
_PRODUCTS = ("mma", "movmatrix")  # of registers only
Reached = tuple[FlatInstruction, Instruction]


def sites_of(compiled: CompiledModule, entry: str) -> tuple[PtxSite, ...]:
    """The sites of one kernel and all it calls. Raises KeyError for an unknown entry."""
    module = compiled.module
    finder = _Finder(compiled, module)
    return tuple(finder.sites(entry))


class _Finder:
    def __init__(self, compiled: CompiledModule, module: PtxModule) -> None:
        self.table = compiled.tokens
        self.expressions = Expressions(compiled.tokens.tokens)
        self.code = {
            name: tuple(f.instructions()) for name, f in module.functions.items() if f.body is not None
        }
        self.module = module

    def sites(self, entry: str) -> Iterable[PtxSite]:
        found: dict[tuple[object, ...], PtxSite] = {}
        shared: dict[tuple[object, ...], list[tuple[tuple[object, ...], Mode]]] = defaultdict(list)
        tokens: dict[tuple[object, ...], int] = {}
        for flat in self._reached(entry):
            made = _classified(self.code[flat.function][flat.index], flat)
            if made is None:
                continue
            index, calls = self._token(self.code[flat.function][flat.index].location)
            key: tuple[object, ...] = (flat.function, flat.index, ())
            if index is None:
                index, calls = self._caller(flat.calls)
                if index is not None:
                    site = self.expressions.site(self.expressions.call(index), calls)
                    key = (flat.function, flat.index, flat.calls)
                    found.setdefault(key, evolve(made, site=site, via=flat.calls))
                    continue
                found.setdefault(key, made)
                continue
            if key in found:
                continue
            found[key] = evolve(made, site=self._named(index, calls, made))
            if made.kind is SiteKind.ACCESS and made.mode is not None:
                tokens[key] = index
                shared[flat.function, index, calls].append((key, made.mode))
        for group in shared.values():
            self._resolve(group, tokens, found)
        return found.values()

    def _reached(self, entry: str) -> Sequence[FlatInstruction]:
        try:
            return flatten(self.module, entry).instructions
        except Untranslatable:  # indirect calls, deep recursion: each function by itself
            return [
                FlatInstruction(code, name, k)
                for name, body in self.code.items()
                for k, code in enumerate(body)
                if name == entry or not self.module.functions[name].entry
            ]

    def _token(self, location: PtxLocation | None) -> tuple[int | None, tuple[SourceRange, ...]]:
        """The innermost token of the user's in a chain of inlined places, and the calls around it."""
        chain = location.chain() if location is not None else ()
        for k, place in enumerate(chain):
            if self.table[place.line] is not None and self._is_numbered(place):
                outer = [self._call_range(p) for p in reversed(chain[k + 1 :])]
                return place.line - 1, tuple(r for r in outer if r is not None)
        return None, ()

    def _is_numbered(self, place: PtxLocation) -> bool:
        """Whether the place's file is one whose lines were made tokens."""
        token = self.table[place.line]
        name = self.module.files.get(place.file)
        return token is not None and (name is None or str(token.path).endswith(name.rsplit("/", 1)[-1]))

    def _call_range(self, place: PtxLocation) -> SourceRange | None:
        if not self._is_numbered(place):
            return None
        return self.expressions.site(self.expressions.call(place.line - 1)).range

    def _caller(self, calls: Sequence[tuple[str, int]]) -> tuple[int | None, tuple[SourceRange, ...]]:
        for function, index in reversed(calls):
            token, around = self._token(self.code[function][index].location)
            if token is not None:
                return token, around
        return None, ()

    def _named(self, index: int, calls: tuple[SourceRange, ...], made: PtxSite) -> Site:
        if made.kind is SiteKind.ACCESS and not made.atomic:
            return self.expressions.site(self.expressions.around(index)[0], calls)
        return self.expressions.site(self.expressions.call(index), calls)

    def _resolve(
        self,
        group: list[tuple[tuple[object, ...], Mode]],
        tokens: Mapping[tuple[object, ...], int],
        found: dict[tuple[object, ...], PtxSite],
    ) -> None:
        """Accesses that name one token: loads take its expressions from the inside out, stores the target."""
        plain = [(key, mode) for key, mode in group if not mode.atomic]
        if not plain:
            return
        choices = self.expressions.around(tokens[plain[0][0]])
        loads = [key for key, mode in plain if mode is Mode.READ]
        for k, key in enumerate(loads):
            self._place(found, key, choices[min(k, len(choices) - 1)])
        targets = [c for c in choices if c.assigned]
        if not targets:
            other = self.expressions.assigned_in(tokens[plain[0][0]])
            targets = [other] if other is not None else choices[-1:]
        for k, key in enumerate([key for key, mode in plain if mode is Mode.WRITE]):
            self._place(found, key, targets[min(k, len(targets) - 1)])

    def _place(
        self, found: dict[tuple[object, ...], PtxSite], key: tuple[object, ...], stretch: Stretch
    ) -> None:
        site = found[key].site
        calls = site.calls if site is not None else ()
        found[key] = evolve(found[key], site=self.expressions.site(stretch, calls))


def _classified(code: Instruction, flat: FlatInstruction) -> PtxSite | None:
    """The site of an instruction without its place; None: it is of no interest."""
    words = {word.partition("__")[0] for word in code.modifiers}
    base = code.base
    place = (flat.function, flat.index)
    if base == "mapa" or (base in _MODES and "shared__cluster" in code.modifiers):
        return PtxSite(*place, SiteKind.OTHER, code.opcode, None)  # shared memory of another block
    if base in _MODES:
        if words & set(_PRIVATE) or "%SP" in code.operands:
            return None
        space = next((_SPACES[w] for w in _SPACES if w in words), None)
        strong = bool(words & {"relaxed", "acquire", "release"})
        mode = _STRONG[_MODES[base]] if strong else _MODES[base]
        scope = Scope.BLOCK if "cta" in words else Scope.SYSTEM if "sys" in words else Scope.DEVICE
        return PtxSite(
            *place, SiteKind.ACCESS, code.opcode, None, mode, space,
            access_bytes(code), scope if strong or base in ("atom", "red") else None, "volatile" in words,
        )  # fmt: skip
    if base in ("bar", "barrier"):
        if "cluster" in words:
            return PtxSite(*place, SiteKind.OTHER, code.opcode, None)
        return PtxSite(*place, SiteKind.WARP_SYNC if "warp" in words else SiteKind.BARRIER, code.opcode, None)
    if base in _WARP and "sync" in words:
        return PtxSite(*place, SiteKind.WARP_SYNC, code.opcode, None)
    if base in _PRODUCTS or (base == "wmma" and "mma" in code.modifiers):
        return PtxSite(*place, SiteKind.WARP_SYNC, code.opcode, None)
    if base in ("wmma", "ldmatrix", "stmatrix"):
        mode = Mode.WRITE if base == "stmatrix" or "store" in words else Mode.READ
        space = next((_SPACES[w] for w in _SPACES if w in words), None)
        return PtxSite(*place, SiteKind.MATRIX, code.opcode, None, mode, space, _element_bytes(code))
    if base == "cp" and "async" in words:
        if "bulk" in words:
            return PtxSite(*place, SiteKind.OTHER, code.opcode, None)
        if "shared" in words and "mbarrier" not in words:
            size = int(code.arguments[2], 0)
            return PtxSite(*place, SiteKind.ACCESS, code.opcode, None, Mode.WRITE, Space.SHARED, size)
        return None
    if base in _IMAGES:
        return PtxSite(*place, SiteKind.IMAGE, code.opcode, None, _IMAGES[base], Space.GLOBAL)
    if base in _UNCOVERED:
        return PtxSite(*place, SiteKind.OTHER, code.opcode, None)
    return None


def _element_bytes(code: Instruction) -> int:
    """Bytes of one element of a matrix; 1 for several of one byte."""
    kind = code.modifiers[-1]
    return type_size(kind) if kind in ("f16", "bf16", "b16", "tf32", "f32", "s32", "f64") else 1
