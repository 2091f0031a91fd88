"""Every PTX opcode once: what it does with threads and memory, whoever asks.

A row is named by as many words of the opcode as decide what it is: ``wmma.load`` touches memory, ``wmma.mma``
does not. ``row_of`` finds the longest one that fits. The emulator's tables of semantics, the sites, who takes
part in a synchronisation and which probe stands where all read the same row; what it computes is in
``emulator/``. An opcode without a row is ``UNKNOWN``: no engine may pass over it in silence.
Source: PTX ISA 9.0, chapter 9.7, in the order of its sections.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator
from functools import lru_cache

from attrs import frozen

from cuda_lsp.dynamic.ptx.module import Instruction
from cuda_lsp.model import Mode


class Role(enum.Enum):
    """What an instruction is to those who watch or execute it."""

    VALUE = "registers in, a register out"
    JUMP = "goes on elsewhere"
    LEAVE = "ends the thread, or the function"
    TRAP = "ends the launch"
    CALL = "calls a function"
    ACCESS = "each thread touches memory at its own address"
    COPY = "each thread begins a copy into shared memory"
    COPY_WAIT = "groups asynchronous copies, or waits for them"
    MBARRIER = "an object in shared memory that threads and copies meet at"
    FENCE = "orders accesses of its thread"
    BARRIER = "threads of a block wait for one another"
    CLUSTER = "blocks of a cluster wait for one another"
    WARP_BARRIER = "the lanes that its operand names wait for one another"
    EXCHANGE = "the lanes that its last operand names meet, and each gets a result"
    PRODUCT = "the lanes of a warp meet, and compute together"
    MATRIX = "the lanes of a warp meet, and touch memory together"
    IMAGE = "each thread touches a texture or surface"
    HINT = "changes nothing that a program can see"
    UNCOVERED = "touches memory in a way that no engine watches"
    UNKNOWN = "not in the manual that we have read"


@frozen
class Opcode:
    """One row. ``name``: the words it begins with. ``mode``: what a weak access does to memory.

    ``executed``: the emulator knows what it computes, in some of its forms at least.
    """

    name: str
    role: Role
    mode: Mode | None = None
    executed: bool = True

    @property
    def base(self) -> str:
        """The first word, by which the emulator's table of semantics knows it."""
        return self.name.partition(".")[0]

    @property
    def ends_block(self) -> bool:
        """Whether what follows it in the text may be reached without it, or not at all."""
        return self.role in (Role.JUMP, Role.LEAVE, Role.TRAP)


def _rows(role: Role, names: str, mode: Mode | None = None) -> Iterator[Opcode]:
    return (Opcode(name, role, mode) for name in names.split())


def _refused(role: Role, names: str) -> Iterator[Opcode]:
    """Opcodes that the emulator does not execute."""
    return (Opcode(name, role, executed=False) for name in names.split())


ROWS: tuple[Opcode, ...] = (
    # 9.7.1 to 9.7.2: integers
    *_rows(Role.VALUE, "add sub mul mad mul24 mad24 sad div rem abs neg min max addc subc madc dp4a dp2a"),
    *_rows(Role.VALUE, "popc clz bfind fns brev bfe bfi bmsk szext"),
    # 9.7.3 to 9.7.5: floating point
    *_rows(Role.VALUE, "testp copysign fma rcp sqrt rsqrt sin cos lg2 ex2 tanh"),
    # 9.7.6 to 9.7.8: comparison, logic and shift
    *_rows(Role.VALUE, "set setp selp slct and or xor not cnot lop3 shf shl shr"),
    # 9.7.9: data movement
    *_rows(Role.VALUE, "mov prmt isspacep cvta cvt createpolicy"),
    *_rows(Role.VALUE, "getctarank"),
    *_refused(Role.VALUE, "istypep"),
    *_rows(Role.EXCHANGE, "shfl.sync vote.sync match.any.sync match.all.sync redux.sync elect.sync"),
    *_refused(Role.VALUE, "shfl vote"),  # of older machines: among the lanes that happen to be there
    *_rows(Role.ACCESS, "ld ldu", Mode.READ),
    *_rows(Role.ACCESS, "st", Mode.WRITE),
    *_rows(Role.UNCOVERED, "st.async"),
    *_refused(Role.UNCOVERED, "st.bulk multimem"),
    *_rows(Role.UNCOVERED, "mapa"),  # an address in another block's shared memory
    *_rows(Role.HINT, "prefetch prefetchu applypriority"),
    *_rows(Role.UNCOVERED, "discard"),  # a write of nobody knows what
    *_rows(Role.COPY, "cp.async.ca cp.async.cg", Mode.WRITE),
    *_rows(Role.COPY_WAIT, "cp.async.commit_group cp.async.wait_group cp.async.wait_all cp.async.mbarrier"),
    *_rows(Role.UNCOVERED, "cp.async.bulk"),
    *_refused(Role.UNCOVERED, "cp tensormap"),
    # 9.7.10 to 9.7.11: textures and surfaces
    *_rows(Role.IMAGE, "tex tld4 suld", Mode.READ),
    *_rows(Role.IMAGE, "sust", Mode.WRITE),
    *_rows(Role.IMAGE, "sured", Mode.ATOMIC),
    *_rows(Role.VALUE, "txq suq"),
    # 9.7.12: control flow
    *_rows(Role.JUMP, "bra brx"),
    *_rows(Role.LEAVE, "ret exit"),
    *_rows(Role.CALL, "call"),
    # 9.7.13: synchronisation and communication
    *_rows(Role.BARRIER, "bar barrier"),
    *_rows(Role.WARP_BARRIER, "bar.warp"),
    *_rows(Role.CLUSTER, "barrier.cluster"),
    *_rows(Role.FENCE, "membar fence"),
    *_rows(Role.HINT, "membar.proxy fence.proxy fence.mbarrier_init"),  # of other proxies, or of no access
    *_rows(Role.ACCESS, "atom red", Mode.ATOMIC),
    *_rows(Role.UNCOVERED, "red.async"),
    *_refused(Role.UNCOVERED, "clusterlaunchcontrol"),
    *_rows(Role.VALUE, "activemask"),
    *_rows(Role.HINT, "griddepcontrol"),
    *_rows(Role.MBARRIER, "mbarrier"),
    # 9.7.14 to 9.7.16: matrices
    *_rows(Role.PRODUCT, "mma movmatrix wmma.mma"),
    *_rows(Role.MATRIX, "ldmatrix wmma.load", Mode.READ),
    *_rows(Role.MATRIX, "stmatrix wmma.store", Mode.WRITE),
    *_refused(Role.UNCOVERED, "wgmma tcgen05"),
    # 9.7.17 to 9.7.20: the stack, video, the rest
    *_refused(Role.VALUE, "alloca stacksave"),
    *_refused(Role.HINT, "stackrestore"),
    *_rows(Role.VALUE, "vabsdiff2 vabsdiff4"),
    *_refused(Role.VALUE, "vadd vsub vabsdiff vmin vmax vshl vshr vmad vset"),
    *_refused(Role.VALUE, "vadd2 vsub2 vavrg2 vmin2 vmax2 vset2 vadd4 vsub4 vavrg4 vmin4 vmax4 vset4"),
    *_rows(Role.HINT, "brkpt nanosleep pmevent setmaxnreg"),
    *_rows(Role.TRAP, "trap"),
)

_BY_NAME = {row.name: row for row in ROWS}
_LONGEST = max(name.count(".") for name in _BY_NAME) + 1


def row_of(code: Instruction) -> Opcode:
    """The row of an instruction: the longest name that its opcode begins with, word by word."""
    return row_named(code.opcode)


def asserts(code: Instruction) -> bool:
    """Whether it is what a failed ``assert`` calls: it ends the launch as a trap does."""
    return row_of(code).role is Role.CALL and "__assertfail" in code.operands


@lru_cache(4096)
def row_named(opcode: str) -> Opcode:
    """``row_of`` an instruction with this opcode, modifiers and all (``ld.shared.v2.u32``)."""
    words = opcode.split(".")
    for count in range(min(len(words), _LONGEST), 0, -1):
        if row := _BY_NAME.get(".".join(words[:count])):
            return row
    return Opcode(words[0], Role.UNKNOWN, executed=False)


def bases(*roles: Role) -> list[str]:
    """First words of the executed opcodes that have one of these roles."""
    return [row.base for row in ROWS if row.executed and row.role in roles]


# ----------------------------------------------------------------- what a row and the other words say

_SILENT = (
    Role.JUMP, Role.LEAVE, Role.TRAP, Role.COPY_WAIT, Role.FENCE, Role.WARP_BARRIER, Role.CLUSTER, Role.HINT,
)  # fmt: skip
_MEETINGS = (Role.WARP_BARRIER, Role.EXCHANGE, Role.PRODUCT, Role.MATRIX)


def results_of(code: Instruction) -> tuple[str, ...]:
    """The operands that it writes, as written: ``%r1``, ``%r1|%p1``, ``{%r1, %r2}``, ``(result)``."""
    row, arguments = row_of(code), code.arguments
    if row.role in _SILENT or not arguments or arguments[0].startswith("["):
        return ()
    if row.role is Role.CALL:
        return arguments[:1] if arguments[0].startswith("(") else ()
    if row.role is Role.BARRIER:
        return arguments[:1] if "red" in code.modifiers else ()
    count = len(arguments) // 2 if row.name == "mov" else 1  # flattening moves several registers at once
    return arguments[:count]


def meets_lanes(code: Instruction) -> bool:
    """Whether lanes of a warp wait for one another there."""
    return row_of(code).role in _MEETINGS


_WIDE = frozenset({"gl", "sys", "gpu", "cluster"})  # scopes that other blocks are in
ORDERED = frozenset({"acquire", "release", "acq_rel"})
STRONG = ORDERED | {"relaxed"}
"""Words of accesses as strong as an atomic: those do not race with one another. ``volatile`` ones do."""


def is_fence(code: Instruction) -> bool:
    """Whether it orders memory accesses of its thread: not those of other proxies."""
    return row_of(code).role is Role.FENCE and not (_WIDE | {"cta"}).isdisjoint(code.modifiers)


def fences_blocks(code: Instruction) -> bool:
    """Whether it is a fence that other blocks may see."""
    return is_fence(code) and "cta" not in code.modifiers
