"""Rows that do not overlap: by the program's own guards, or taken for granted where the source is silent."""

from __future__ import annotations

from cuda_lsp.static.findings.conditions import Open
from cuda_lsp.static.solver.report import data_in_addresses
from cuda_lsp.static.solver.rows.apart import Rows, granted
from cuda_lsp.static.solver.rows.pitch import Pitch, first_row_of, pitches_of
from cuda_lsp.static.solver.rows.stated import speaks_against_sizes
from cuda_lsp.static.solver.tactics.masks import masking
from cuda_lsp.static.solver.tactics.pair import GaveUp, OpenPair, Proved
from cuda_lsp.static.symbolic.terms import Op


def apart(pair: OpenPair) -> Proved | GaveUp | None:
    """Rows that make the pair impossible do not overlap; gives up where that alone is not decided."""
    p, facts, query, launch = pair.p, pair.facts, pair.query, pair.launch
    rows = Rows(p, facts, query)
    if rows.shown(first_row_of(p, query.where.free)):
        return Proved()
    sizes_too = launch is not None
    grid_known = launch is not None and launch.grid is not None and not launch.assumed
    pitches = pitches_of(p, query.summary, query.where.free, grid_known=grid_known)
    masks = masking(*p.offsets)  # whose rows are what is masked, and no arrays
    pitches = [pitch for pitch in pitches if masks.isdisjoint(pitch.parameters)]
    refuting: list[Pitch] = []
    for pitch in rows.refuting(pitches, sizes_too):
        if not pitch.sizes and rows.hold(pitch, lightly=True):
            return Proved(granted(pitch))
        refuting.append(pitch)
    overlapping: list[tuple[bool | None, Pitch]] = []
    for candidate in refuting:
        pitch = rows.as_stated(candidate)
        assumed, broken = rows.apart(pitch, sizes_too)
        if assumed is not None and not speaks_against_sizes(p, facts, pitch.sizes, 0, query):
            return Proved(assumed)
        overlapping.append((broken, pitch))
    if not overlapping:
        return None
    broken, pitch = overlapping[0]
    if launch is None or (broken is None and not pitch.bounded):
        return GaveUp(data_in_addresses(p, query) or Open.TIME)
    # A known width, or one that elements need not divide, is too little to accuse.
    if broken and len(pitch.parameters) >= len(pitch.names) and p.overlap.op is Op.EQ:
        pair.broken = pitch
    return None
