"""Where the detector keeps what it knows of a block, and the first statements of a function, which find it.

``detector/detector.cu`` explains cells and stamps. Behind the kernel's own shared memory lie one stamp a
thread and, where they fit, one cell a granule; blocks whose shadow does not fit have it in global memory.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from attrs import frozen

CELL_BYTES = 32  # of global memory
WHERE_WORDS = 33  # of each warp: where each of its threads waits, and where all of them do
STAMP_BYTES = 8
EPOCH = 1 << 16  # of a stamp's high word, in units of its lowest bit
OF_WARP = 1 << 11
OF_LANE = 1 << 26  # of the low word
COPY = 1 << 11  # of the low word: an asynchronous copy wrote


@frozen
class ShadowLayout:
    """Where the detector keeps a block's state, and how fine it looks.

    Behind the kernel's own shared memory (``user_dynamic`` bytes of it dynamic) lie one stamp a thread, if
    the kernel ``calls`` functions that have to find it, and, unless ``in_global``, one cell a granule of
    ``1 << granule_shift`` bytes: first all their readers, then the writers, the other readers and the
    atomics, a ``plane`` each. Blocks that leave no room for stamps either have them behind their cells
    (``stamps_in_global``). ``static_bytes``: of the kernel, at most. ``sampled``: not all blocks are checked.
    """

    block: tuple[int, int, int]
    user_dynamic: int
    granule_shift: int = 2
    in_global: bool = False
    atomics: bool = True  # some instruction of the module updates shared memory atomically
    copies: bool = False  # some instruction copies asynchronously into shared memory
    clocks: bool = False  # locks or flags order threads of the block
    static_bytes: int = 0
    sampled: bool = True
    calls: bool = True
    stamps_in_global: bool = False  # with the cells

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.block[0] * self.block[1] * self.block[2]

    @property
    def stamps_offset(self) -> int:
        """From the start of dynamic shared memory, bytes."""
        return (self.user_dynamic + 15) // 16 * 16

    @property
    def cells_offset(self) -> int:
        """From the start of dynamic shared memory, bytes; of no use where the cells are ``in_global``."""
        return self.stamps_offset + (0 if self.stamps_in_global else self._stamps_bytes)

    @property
    def _stamps_bytes(self) -> int:
        return (self.threads * STAMP_BYTES + 15) // 16 * 16 if self.calls else 0

    @property
    def plane(self) -> int:
        """Bytes of one part of all cells."""
        user = self.static_bytes + self.stamps_offset
        return ((-(-user >> self.granule_shift) + 17) & ~1) * STAMP_BYTES

    @property
    def global_bytes(self) -> int:
        """What a block whose cells are ``in_global`` has there."""
        return 4 * self.plane + (self._stamps_bytes if self.stamps_in_global else 0)

    @property
    def dynamic_bytes(self) -> int:
        """Dynamic shared memory that a launch needs, the kernel's own included."""
        return self.cells_offset + (0 if self.in_global else 4 * self.plane)


def function_registers(layout: ShadowLayout) -> str:
    """Declared once a function: the thread's stamp and where its shadow lies."""
    cells = "b64" if layout.in_global else "b32"
    stamp = "b64" if layout.stamps_in_global else "b32"
    return (
        "\t.reg .b32 %clsp_lo, %clsp_hi, %clsp_base, %clsp_lim; .reg .pred %clsp_ok;"
        f" .reg .{stamp} %clsp_self; .reg .b32 {', '.join(map(limit_of, _WIDTHS))};"
        f" .reg .{cells} %clsp_cells; .reg .b64 %clsp_where, %clsp_at; .reg .b32 %clsp_held;"
    )


def clear_shared(layout: ShadowLayout, names: tuple[str, ...]) -> str:
    """Zeros in the kernel's shared memory: what an instrumented block left there is not what others leave.

    A barrier has to follow.
    """
    x, y, _ = layout.block
    lines = [
        "{ .reg .b32 %t, %u, %i, %from, %to, %zero; .reg .pred %p;",
        f"mov.u32 %t, %tid.z; mov.u32 %u, %tid.y; mad.lo.u32 %t, %t, {y}, %u;",
        f"mov.u32 %u, %tid.x; mad.lo.u32 %t, %t, {x}, %u; mov.b32 %zero, 0;",
        f"mov.u32 %from, clsp_dynamic; add.u32 %to, %from, {layout.user_dynamic};",
        *(f"mov.u32 %u, {name}; min.u32 %from, %from, %u;" for name in names),
        "and.b32 %from, %from, -4; mad.lo.u32 %i, %t, 4, %from;",
        "$clsp_zero: setp.ge.u32 %p, %i, %to; @%p bra $clsp_zeroed;",
        f"st.shared.b32 [%i], %zero; add.u32 %i, %i, {4 * layout.threads}; bra $clsp_zero;",
        "$clsp_zeroed: }",
    ]
    return "\t" + "\n\t".join(lines)


def _window(layout: ShadowLayout, names: tuple[str, ...]) -> Iterator[str]:
    """Where the kernel's shared memory begins, and its bytes. Needs ``%u``."""
    yield "mov.u32 %clsp_base, clsp_dynamic;"
    yield from (f"mov.u32 %u, {name}; min.u32 %clsp_base, %clsp_base, %u;" for name in names)
    yield "and.b32 %clsp_base, %clsp_base, -16;"
    yield f"mov.u32 %u, clsp_dynamic; add.u32 %clsp_lim, %u, {layout.user_dynamic};"
    yield "sub.u32 %clsp_lim, %clsp_lim, %clsp_base;"
    for bytes in _WIDTHS:
        limit, shift = limit_of(bytes), bytes.bit_length() - 1
        yield f"add.u32 {limit}, %clsp_lim, {bytes - 1}; shr.u32 {limit}, {limit}, {shift};"


def bounds_prologue(layout: ShadowLayout, names: tuple[str, ...]) -> str:
    """First statements where accesses to shared memory are only kept within their bounds."""
    return "\t" + "\n\t".join(("{ .reg .b32 %u;", *_window(layout, names), "}"))


def _places(layout: ShadowLayout, control: Mapping[str, int], names: tuple[str, ...]) -> Iterator[str]:
    x, y, _ = layout.block
    yield "{ .reg .b32 %t, %u, %w; .reg .b64 %q, %s;"
    yield f"mov.u32 %t, %tid.z; mov.u32 %u, %tid.y; mad.lo.u32 %t, %t, {y}, %u;"
    yield f"mov.u32 %u, %tid.x; mad.lo.u32 %t, %t, {x}, %u;"
    yield from _window(layout, names)
    yield ordinal(control) if layout.sampled else _BLOCK_NUMBER
    yield f"ld.const.u64 %clsp_where, [clsp_control+{control['where']}];"
    yield f"mul.wide.u32 %q, %u, {4 * WHERE_WORDS * -(-layout.threads // 32)};"
    yield "add.u64 %clsp_where, %clsp_where, %q;"
    yield "shr.u32 %w, %t, 5; add.u32 %w, %w, %t;"  # a word more for each warp
    yield "mul.wide.u32 %q, %w, 4; add.u64 %clsp_where, %clsp_where, %q;"
    yield "mov.u32 %w, clsp_dynamic;"
    if layout.in_global:
        yield f"ld.const.u64 %clsp_cells, [clsp_control+{control['cells']}];"
        yield f"ld.const.u64 %s, [clsp_control+{control['cells_stride']}];"
        yield "cvt.u64.u32 %q, %u; mad.lo.u64 %clsp_cells, %q, %s, %clsp_cells;"
    else:
        yield f"add.u32 %clsp_cells, %w, {layout.cells_offset};"
    if layout.stamps_in_global:
        yield f"add.u64 %q, %clsp_cells, {4 * layout.plane};"
        yield f"mad.wide.u32 %clsp_self, %t, {STAMP_BYTES}, %q;"
    else:
        yield f"add.u32 %w, %w, {layout.stamps_offset};"
        yield f"mad.lo.u32 %clsp_self, %t, {STAMP_BYTES}, %w;"


_BLOCK_NUMBER = (
    "{ .reg .b32 %n, %i; mov.u32 %u, %ctaid.z; mov.u32 %n, %nctaid.y; mov.u32 %i, %ctaid.y;"
    " mad.lo.u32 %u, %u, %n, %i; mov.u32 %n, %nctaid.x; mov.u32 %i, %ctaid.x; mad.lo.u32 %u, %u, %n, %i; }"
)


def ordinal(control: Mapping[str, int]) -> str:
    """``%u``: which of the checked blocks this one is; all bits: none. Where not all are checked."""
    return (
        f"{_BLOCK_NUMBER} {{ .reg .b64 %o, %l; ld.const.u64 %o, [clsp_control+{control['ordinal']}];"
        " mad.wide.u32 %l, %u, 4, %o; ld.global.u32 %u, [%l]; }"
    )


def entry_prologue(layout: ShadowLayout, control: Mapping[str, int], names: tuple[str, ...]) -> str:
    """First statements of a watched block: empty cells, the first stamp, a barrier.

    ``names``: the shared variables, of which the lowest address is where the shadow begins.
    """
    lines = list(_places(layout, control, names))
    yield_ = lines.append
    yield_("and.b32 %u, %t, 31; shl.b32 %clsp_lo, %u, 26;")
    yield_(f"shr.u32 %u, %t, 5; mad.lo.u32 %clsp_hi, %u, {OF_WARP}, {EPOCH};")
    yield_(keep_stamp(layout))
    if not layout.in_global:
        yield_("{ .reg .b32 %i, %e; .reg .pred %p; mov.b32 %e, 0;")
        yield_(f"add.u32 %u, %clsp_cells, {4 * layout.plane}; mad.lo.u32 %i, %t, 16, %clsp_cells;")
        yield_("$clsp_clear: setp.ge.u32 %p, %i, %u; @%p bra $clsp_cleared;")
        yield_(f"st.shared.v4.b32 [%i], {{%e, %e, %e, %e}}; add.u32 %i, %i, {16 * layout.threads};")
        yield_("bra $clsp_clear;")
        yield_("$clsp_cleared: }")
    yield_("bar.sync 0; }")
    return "\t" + "\n\t".join(lines)


def function_prologue(layout: ShadowLayout, control: Mapping[str, int], names: tuple[str, ...]) -> str:
    """First statements of a called function: find the caller's state again."""
    return "\t" + "\n\t".join((*_places(layout, control, names), "}", reload_stamp(layout)))


def keep_stamp(layout: ShadowLayout) -> str:
    """After the stamp has changed: for functions that are called."""
    return (
        f"st.{_space_of_stamps(layout)}.v2.b32 [%clsp_self], {{%clsp_lo, %clsp_hi}};" if layout.calls else ""
    )


def reload_stamp(layout: ShadowLayout) -> str:
    """After a call: the callee may have passed barriers."""
    return f"ld.{_space_of_stamps(layout)}.v2.b32 {{%clsp_lo, %clsp_hi}}, [%clsp_self];"


def _space_of_stamps(layout: ShadowLayout) -> str:
    return "global" if layout.stamps_in_global else "shared"


def tell_addresses(offset: int, names: tuple[str, ...]) -> str:
    """Write where the dynamic part and the named variables lie to ``u32 names[]``."""
    lines = [
        "{ .reg .b64 %n; .reg .b32 %v, %w; .reg .pred %first;",
        f"ld.const.u64 %n, [clsp_control+{offset}];",
        "mov.u32 %v, %ctaid.x; mov.u32 %w, %ctaid.y; or.b32 %v, %v, %w;",
        "mov.u32 %w, %ctaid.z; or.b32 %v, %v, %w; mov.u32 %w, %tid.x; or.b32 %v, %v, %w;",
        "setp.eq.u32 %first, %v, 0;",
    ]
    for position, name in enumerate(("clsp_dynamic", *names)):
        lines.append(f"mov.u32 %v, {name}; @%first st.global.u32 [%n+{4 * position}], %v;")
    return "\t" + "\n\t".join(lines) + " }"


_WIDTHS = (1, 2, 4, 8, 16)


def limit_of(bytes: int) -> str:
    """The register that says how many places for so many bytes shared memory has."""
    return f"%clsp_n{bytes}"


def granule_of(to: str, bytes: int) -> str:
    """The number of the place of so many bytes at ``%a``; beyond all of them where it is no multiple."""
    shift = bytes.bit_length() - 1
    turned = f" shf.r.wrap.b32 {to}, {to}, {to}, {shift};" if shift else ""
    return f"sub.u32 {to}, %a, %clsp_base;{turned}"
