"""The term algebra under one name: ``from cuda_lsp.static.symbolic import terms as t``."""

# ruff: noqa: F401
# pyright: reportUnusedImport=false

from __future__ import annotations

from cuda_lsp.static.symbolic.core import (
    BIT_OPS,
    FALSE,
    INFINITY,
    ONE,
    TRUE,
    ZERO,
    Level,
    Monomial,
    Op,
    Term,
    add,
    apply,
    begin_afresh,
    const,
    content,
    from_monomials,
    intern,
    monomial_range,
    monomials,
    mul,
    range_times,
    scale,
    sub,
    symbol,
    test,
    without,
)
from cuda_lsp.static.symbolic.integers import (
    bit_and,
    bit_or,
    bit_xor,
    divide,
    floor_div,
    floor_mod,
    intrinsic,
    power,
    remainder,
    shift_left,
    shift_right,
    wrap,
)
from cuda_lsp.static.symbolic.logic import (
    and_,
    bool_ite,
    conjuncts,
    eq,
    eq_zero,
    implies,
    ite,
    le,
    le_zero,
    lt,
    maximum,
    minimum,
    not_,
    number,
    or_,
    says_at_most_zero,
    truth,
)
from cuda_lsp.static.symbolic.quotients import (
    recombined,
)
from cuda_lsp.static.symbolic.rewrite import (
    level_of,
    rebuild,
    replace,
    substitute,
    subterms,
)
from cuda_lsp.static.symbolic.text import (
    show,
)
from cuda_lsp.static.symbolic.wraps import (
    unwrapped,
)
