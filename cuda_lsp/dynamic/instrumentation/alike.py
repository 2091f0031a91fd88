"""Accesses that stand together: in one basic block, through one register that nothing changes between them.

Their addresses differ by constants, the same lanes carry them out. So one look at their bounds is enough, and
one count of what their wavefronts cost: moving all addresses by whole words changes none of it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping

from attrs import define, frozen

from cuda_lsp.dynamic.instrumentation.probe_operands import address_of
from cuda_lsp.dynamic.ptx.module import Instruction, Label, ScopeClose, ScopeOpen, Statement
from cuda_lsp.dynamic.ptx.opcodes import Role, results_of, row_of
from cuda_lsp.dynamic.ptx.operands import AddressOperand, RegisterOperand
from cuda_lsp.dynamic.runs import PtxSite, SiteKind
from cuda_lsp.model import Mode, Space

_REGISTER = re.compile(r"%[\w$]+")
LOADS = (Mode.READ, Mode.ATOMIC_READ)


@define
class Group:
    """Accesses of ``bytes`` each; ``first``: the site of the first. ``low``, ``high``: what they reach, bytes
    from that one's address."""

    number: int
    first: int
    bytes: int
    offset: int
    low: int = 0
    high: int = 0
    count: int = 0

    @property
    def predicate(self) -> str:
        """The register that says whether all of it lies in the block's memory."""
        return f"%clsp_g{self.number}"

    @property
    def cell(self) -> str:
        """The register that holds where the shadow of the first access is."""
        return f"%clsp_c{self.number}"

    def take(self, offset: int) -> None:
        """One more access."""
        self.count += 1
        self.low = min(self.low, offset - self.offset)
        self.high = max(self.high, offset - self.offset + self.bytes)


@frozen
class Member:
    """An access of a group. ``delta``: bytes from the first one's address."""

    group: Group
    delta: int
    leads: bool


def groups_of(
    body: Iterable[Statement], place: Callable[[int], tuple[int, PtxSite] | None], start: int = 0
) -> Mapping[int, Member]:
    """By instruction: the groups of two and more accesses to shared memory. ``start``: their first number."""
    open_groups: dict[tuple[str, int, bool, int], Group] = {}
    members: dict[int, Member] = {}
    number = start
    for statement in body:
        if isinstance(statement, Label | ScopeOpen | ScopeClose):
            open_groups.clear()
        if not isinstance(statement, Instruction):
            continue
        found = place(statement.index)
        key = _key(statement, found)
        if key is not None and found is not None:
            address = _offset(statement)
            leads = key not in open_groups
            if leads:
                open_groups[key] = Group(number, found[0], key[1], address)
                number += 1
            group = open_groups[key]
            group.take(address)
            members[statement.index] = Member(group, address - group.offset, leads)
        if row_of(statement).ends_block or row_of(statement).role not in _QUIET:
            open_groups.clear()
        changed = {r for part in results_of(statement) for r in _REGISTER.findall(part)}
        for key in [key for key in open_groups if key[0] in changed]:
            del open_groups[key]
    return {index: member for index, member in members.items() if member.group.count > 1}


_QUIET = (Role.VALUE, Role.ACCESS, Role.HINT)


def _key(code: Instruction, found: tuple[int, PtxSite] | None) -> tuple[str, int, bool, int] | None:
    """What accesses of one group have in common."""
    if found is None or code.guard is not None:
        return None
    site, address = found[1], address_of(code)
    if site.kind is not SiteKind.ACCESS or site.space is not Space.SHARED or not site.bytes or not site.mode:
        return None
    if row_of(code).role is not Role.ACCESS or not isinstance(address, AddressOperand):
        return None
    if not isinstance(address.base, RegisterOperand):
        return None
    unit = max(4, site.bytes)
    return address.base.name, site.bytes, site.mode in LOADS, address.offset % unit


def _offset(code: Instruction) -> int:
    address = address_of(code)
    return address.offset if address is not None else 0
