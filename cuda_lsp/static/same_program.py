"""Whether two texts of a kernel are one program: but for places, and for what is computed and never used.

Who types a declaration has not used it yet, and an edit elsewhere changes what a kernel may depend on and
mostly not what it does. What was found of the one program then holds of the other.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field, fields

from cuda_lsp.ir import program as ir
from cuda_lsp.ir.program import Kernel
from cuda_lsp.ir.walk import stored, variables, walk
from cuda_lsp.ir.walk import used as used_by
from cuda_lsp.model import Site
from cuda_lsp.static.structure import Structure

_NOT = ("range", "name_range", "digest", "followed", "computed", "said", "errors")
_PLAIN = (
    ir.Assign, ir.Load, ir.Store, ir.Atomic, ir.Copy, ir.AwaitCopies, ir.Barrier, ir.If, ir.Loop, ir.Assume,
    ir.Within, ir.Block, ir.Leave,
)  # fmt: skip
"""Statements of which it is known what they read."""


@define(eq=False)
class Program:
    """A kernel, what clang ``complains`` of in it, and the digest by which it is compared."""

    kernel: Kernel
    complaints: frozenset[str] = frozenset()
    _digest: str = ""
    _outline: tuple[type, ...] = ()

    def is_broken(self, before: Program | None) -> bool:
        """Whether clang complains of other things than in the program ``before``, if it does of anything."""
        known = before.complaints if before is not None else frozenset[str]()
        return bool(self.kernel.errors) and not (before is not None and self.complaints <= known)

    def is_like(self, newer: Program, followed: Callable[[], Kernel]) -> bool:
        """Whether they are one program, in what they compute of floats too where one has looked at that.

        ``followed``: makes the newer one with the values of floats.
        """
        before = self.kernel
        if before.computed is not None or self._errors != newer._errors or self.outline != newer.outline:
            return False
        if self.digest != newer.digest:
            return False
        return before.followed is None or Program(before.followed).digest == Program(followed()).digest

    @property
    def _errors(self) -> frozenset[str] | None:
        return self.complaints if self.kernel.errors else None

    @property
    def outline(self) -> tuple[type, ...]:
        """What programs of one digest have in common, quickly: the kinds of their statements."""
        if not self._outline:
            self._outline = tuple(type(s) for s in walk(self.kernel.body) if not isinstance(s, ir.Assign))
        return self._outline

    @property
    def digest(self) -> str:
        """Of all but names of places."""
        if not self._digest:
            self._digest = _digest(self.kernel)
        return self._digest


def _digest(kernel: Kernel) -> str:
    said = [kernel.said_of(launch) for launch in kernel.launches]
    structure = _Everything(unused=_unused(kernel))
    structure.text((*(getattr(kernel, each.name) for each in fields(Kernel) if each.name not in _NOT), said))
    return structure.digest.hexdigest()


def _unused(kernel: Kernel) -> set[int]:
    """Variables that nothing but their own assignments reads."""
    used: set[int] = set()
    assigned: set[int] = set()
    for s in walk(kernel.body):
        if not isinstance(s, _PLAIN) or (isinstance(s, ir.Block) and s.lock is not None):
            return set()
        own = s.var.id if isinstance(s, ir.Assign) else None
        assigned |= set() if own is None else {own}
        parts = stored(s) if isinstance(s, ir.Store) else ()
        used |= {v.id for e in (*used_by(s), *parts) for v in variables(e) if v.id != own}
    return assigned - used


@define(eq=False)
class _Everything(Structure):
    unused: set[int] = field(kw_only=True)

    def place(self, site: Site) -> str:
        return f"{len(site.calls)} {site.guess}"

    def is_dropped(self, part: object) -> bool:
        return isinstance(part, ir.Assign) and part.var.id in self.unused
