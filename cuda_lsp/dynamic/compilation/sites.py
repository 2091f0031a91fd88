"""Which PTX instructions touch memory or order threads, and where they stand in the source.

A device function that was not inlined has one site per instruction. Where the instruction is in a system
header (atomics, cooperative groups), the user's place is the call, so there is one site per way to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache

from attrs import evolve, field, frozen

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.expressions import Expressions, Stretch
from cuda_lsp.dynamic.compilation.tokens import Token
from cuda_lsp.dynamic.ptx.flatten import FlatInstruction, Untranslatable, access_bytes, flatten
from cuda_lsp.dynamic.ptx.module import Instruction, PtxLocation, PtxModule, type_size
from cuda_lsp.dynamic.ptx.opcodes import STRONG, Role, asserts, row_of
from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.model import Mode, Scope, Site, SourceRange, Space

_STRONG = {Mode.READ: Mode.ATOMIC_READ, Mode.WRITE: Mode.ATOMIC, Mode.ATOMIC: Mode.ATOMIC}
_SPACES = {"shared": Space.SHARED, "global": Space.GLOBAL}
_PRIVATE = {"param", "local", "const"}
_KINDS: Mapping[Role, SiteKind] = {
    Role.ACCESS: SiteKind.ACCESS,
    Role.COPY: SiteKind.ACCESS,
    Role.MATRIX: SiteKind.MATRIX,
    Role.IMAGE: SiteKind.IMAGE,
    Role.BARRIER: SiteKind.BARRIER,
    Role.WARP_BARRIER: SiteKind.WARP_SYNC,
    Role.EXCHANGE: SiteKind.WARP_SYNC,
    Role.PRODUCT: SiteKind.WARP_SYNC,
    Role.CLUSTER: SiteKind.OTHER,
    Role.TRAP: SiteKind.TRAP,
    Role.UNCOVERED: SiteKind.OTHER,
    Role.UNKNOWN: SiteKind.OTHER,
}


def sites_of(compiled: CompiledModule, entry: str) -> tuple[PtxSite, ...]:
    """The sites of one kernel and all it calls. Raises KeyError for an unknown entry."""
    return _sites_of(_Code(compiled.ptx, tuple(compiled.tokens.tokens), entry, compiled))


@frozen
class _Code:
    """A kernel, told apart by all that its sites are made of."""

    ptx: str
    tokens: tuple[Token, ...]
    entry: str
    compiled: CompiledModule = field(eq=False)


@lru_cache(16)  # a click again asks for the same
def _sites_of(code: _Code) -> tuple[PtxSite, ...]:
    return tuple(_Finder(code.compiled, code.compiled.module).sites(code.entry))


class _Finder:
    def __init__(self, compiled: CompiledModule, module: PtxModule) -> None:
        self.compiled = compiled
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
            if self.compiled.token_at(place) is not None:
                outer = [self._call_range(p) for p in reversed(chain[k + 1 :])]
                return place.line - 1, tuple(r for r in outer if r is not None)
        return None, ()

    def _call_range(self, place: PtxLocation) -> SourceRange | None:
        if self.compiled.token_at(place) is None:
            return None
        return self.expressions.site(self.expressions.call(place.line - 1)).range

    def _caller(self, calls: Sequence[tuple[str, int]]) -> tuple[int | None, tuple[SourceRange, ...]]:
        for function, index in reversed(calls):
            token, around = self._token(self.code[function][index].location)
            if token is not None:
                return token, around
        return None, ()

    def _named(self, index: int, calls: tuple[SourceRange, ...], made: PtxSite) -> Site:
        if made.kind is SiteKind.TRAP and made.opcode != "trap":  # not what the macro is made of
            return evolve(self.expressions.site(self.expressions.call(index), calls), text="assert(…)")
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
    row, words = row_of(code), {word.partition("__")[0] for word in code.modifiers}
    kind = SiteKind.TRAP if asserts(code) else _KINDS.get(row.role)
    if kind is None or (row.role is Role.ACCESS and (words & _PRIVATE or "%SP" in code.operands)):
        return None
    if row.role is Role.ACCESS and "shared__cluster" in code.modifiers:  # memory of another block
        kind = SiteKind.OTHER
    site = PtxSite(flat.function, flat.index, kind, code.opcode, None)
    if kind not in (SiteKind.ACCESS, SiteKind.MATRIX, SiteKind.IMAGE):
        return site
    space = next((_SPACES[w] for w in _SPACES if w in words), None)
    match row.role:
        case Role.COPY:
            return evolve(site, mode=row.mode, space=Space.SHARED, bytes=int(code.arguments[2], 0))
        case Role.IMAGE:
            return evolve(site, mode=row.mode, space=Space.GLOBAL)
        case Role.MATRIX:
            return evolve(site, mode=row.mode, space=space, bytes=_element_bytes(code))
        case _:
            assert row.mode is not None
            strong = bool(words & STRONG)
            mode = _STRONG[row.mode] if strong else row.mode
            scope = Scope.BLOCK if "cta" in words else Scope.SYSTEM if "sys" in words else Scope.DEVICE
            scoped = scope if mode.atomic else None
            return evolve(site, mode=mode, space=space, bytes=access_bytes(code), scope=scoped)


def _element_bytes(code: Instruction) -> int:
    """Bytes of one element of a matrix; 1 for several of one byte."""
    kind = code.modifiers[-1]
    return type_size(kind) if kind in ("f16", "bf16", "b16", "tf32", "f32", "s32", "f64") else 1
