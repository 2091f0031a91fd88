"""Terms as C-like text, for messages and tests."""

from __future__ import annotations

from cuda_lsp.static.symbolic.core import Monomial, Op, Term, const, from_monomials, monomials


def show(term: Term) -> str:
    """The term as C-like text, for messages and tests."""
    op, args = term.op, term.args
    if op is Op.CONST:
        return str(args[0])
    if op is Op.SYMBOL:
        return args[0]
    if op in (Op.APPLY, Op.TEST):
        return f"{args[0]}({', '.join(map(show, args[2]))})"
    if op is Op.SUM:
        return _show_sum(args[0])
    if op in (Op.TRUE, Op.FALSE):
        return op.value
    if op is Op.LE or op is Op.EQ:
        return _show_comparison(args[0], op.value)
    if op is Op.NOT:
        inner = args[0]
        return _show_comparison(inner.args[0], "!=") if inner.op is Op.EQ else f"!({show(inner)})"
    if op in (Op.AND, Op.OR):
        return (" && " if op is Op.AND else " || ").join(f"({show(part)})" for part in args)
    if op is Op.ITE:
        return f"({show(args[0])} ? {show(args[1])} : {show(args[2])})"
    if op is Op.POWER:
        return f"{show(args[0])} {'*' if args[3] else '/'} {args[1]}^({show(args[2])})"
    if op is Op.INTRINSIC:
        return f"{args[0]}({', '.join(map(show, args[2]))})"
    if op is Op.WRAP:
        return f"{'int' if args[2] else 'uint'}{args[1]}({show(args[0])})"
    sign = {Op.DIV: "/", Op.REM: "%", Op.FLOOR_DIV: "/", Op.FLOOR_MOD: "%"}.get(op, op.value)
    right = args[1] if isinstance(args[1], Term) else const(args[1])
    return f"({show(args[0])}) {sign} {show(right)}"


def _show_comparison(difference: Term, sign: str) -> str:
    """``difference <sign> 0`` with the negative monomials on the right; ``a + 1 <= b`` is ``a < b``."""
    sums = dict(monomials(difference))
    left = {m: c for m, c in sums.items() if c > 0 and m}
    right = {m: -c for m, c in sums.items() if c < 0 and m}
    constant = sums.get((), 0)
    if not left and right:  # b >= c reads better than -b + c <= 0
        flipped = {"<=": ">=", "==": "==", "!=": "!="}[sign]
        if sign == "<=" and constant > 0:
            return f"{show(from_monomials(right))} > {constant - 1}"
        return f"{show(from_monomials(right))} {flipped} {constant}"
    if constant == 1 and sign == "<=" and left:
        return f"{show(from_monomials(left))} < {show(from_monomials(right))}"
    if constant < 0 or not right:
        right[()] = abs(constant) if right or constant < 0 else -constant
    else:
        left[()] = constant
    return f"{show(from_monomials(left))} {sign} {show(from_monomials(right))}"


def _show_sum(items: tuple[tuple[Monomial, int], ...]) -> str:
    text = ""
    for atoms, factor in sorted(items, key=lambda item: not item[0]):
        names = [show(atom) if atom.op in (Op.SYMBOL, Op.APPLY) else f"({show(atom)})" for atom in atoms]
        size = abs(factor)
        if size != 1 or not names:
            names.insert(0, str(size))
        joint = " - " if factor < 0 else " + "
        text += ("-" if factor < 0 else "") if not text else joint
        text += "*".join(names)
    return text
