"""Inline PTX: the instructions that touch memory, synchronise, or read special registers.

Source: PTX ISA 8.x.  libclang gives the operands' expressions but not the constraints, so both
template and constraints are read from the source text.  Arithmetic only loses its values; anything
else that may touch memory is incomplete.
"""

from __future__ import annotations

import re

from cuda_lsp.frontend.lowering import conversions, expressions, lvalues
from cuda_lsp.frontend.lowering.build import binary, cast, offset_by, select, unary
from cuda_lsp.frontend.lowering.output import Untranslatable
from cuda_lsp.frontend.lowering.places import EXPR_TYPES, Place, Value, VarPlace, is_expr
from cuda_lsp.frontend.lowering.state import Lowering
from cuda_lsp.frontend.tree import Ast, Node
from cuda_lsp.frontend.vocabulary.assembly import (
    Assembly,
    index_of,
    number,
    operand,
    parts_of,
    protect,
    statement,
    width,
)
from cuda_lsp.frontend.vocabulary.attempts import attempt
from cuda_lsp.frontend.vocabulary.clusters import cluster_barrier
from cuda_lsp.frontend.vocabulary.registers import REGISTERS
from cuda_lsp.frontend.vocabulary.written_out import Definitions, definitions
from cuda_lsp.ir.atomics import AtomicOp
from cuda_lsp.ir.program import (
    Assign,
    Atomic,
    AwaitCopies,
    Barrier,
    BarrierPhase,
    BarrierScope,
    BinaryOp,
    CommitCopies,
    Const,
    Copy,
    Expr,
    Fence,
    If,
    Load,
    Store,
    UnaryOp,
)
from cuda_lsp.ir.types import INT64, UINT32, Int, Opaque, Pointer
from cuda_lsp.ir.walk import stripped
from cuda_lsp.model import Scope

# Of an instruction on one line, with one space at most between its words.
_INSTRUCTION = re.compile(r"\A(?:@(!?)(%?\w+) )?([a-z][\w.:]*) ?(.*)\Z", re.S)
_CHOICE = re.compile(r'\A[\w\s]{1,40}\((?:\s|"[^"\n]*")*?^[ \t]*#[ \t]*if', re.M)
_JUMP = re.compile(r"\bbra\b")
_LABELED = re.compile(r"(?<![\w$%=])([\w$%=]+) ?:(?!:)")
_LABEL = re.compile(r"\A[A-Za-z_$%][\w$]* ?:(?!:) ?")
_END = re.compile(r"[;\n{}]")
_ADDRESS = re.compile(r"\[ ?(%\d+) ?(?:\+ ?(-?\w+))? ?\]")
_ADDRESSES = re.compile(r"\[[^\[\]]*\]")
_COMPARISONS = {
    "eq": BinaryOp.EQ, "ne": BinaryOp.NE, "lt": BinaryOp.LT, "le": BinaryOp.LE, "gt": BinaryOp.GT,
    "ge": BinaryOp.GE, "lo": BinaryOp.LT, "ls": BinaryOp.LE, "hi": BinaryOp.GT, "hs": BinaryOp.GE,
}  # fmt: skip
_MOVES = re.compile(r"\A(?:cvta\.[\w.]*u(?:32|64)|mov\.[bu](?:32|64)|cvt\.u(?:32|64)\.u(?:32|64))\Z")
_MEMORY = ("ld.", "st.", "atom.", "red.", "cp.", "ldmatrix", "stmatrix", "mbarrier", "wmma.", "tma",
           "tensormap", "discard", "multimem", "fence.proxy", "wgmma", "tcgen05", "prefetch")  # fmt: skip


def lower(low: Lowering, node: Node) -> None:
    """Emit what an ``asm`` statement does."""
    assembly = statement(low.ast.text_from(node), lambda: _macros(low.ast))
    operands = [c for c in node.children if c.kind >= 100]
    if assembly is None:
        chosen = _CHOICE.match(low.ast.text_from(node)) is not None
        reason = "the preprocessor chooses its text" if chosen else "a macro makes its text"
        reason += ", and what it makes could not be read"
        low.incomplete("asm", reason, node, synchronises=True)
        return
    if len(operands) != len(assembly.constraints):
        raise Untranslatable("asm", "its operands could not be read", node)
    outputs: list[Place] = [lvalues.place(low, n) for n in operands[: assembly.outputs]]
    values: list[Value] = [expressions.value(low, n) for n in operands[assembly.outputs :]]
    lines = (" ".join(line.split()) for line in _END.split(protect(assembly.template)))
    given: dict[int, Expr] = {}
    predicates: dict[str, Expr] = {}
    registers: dict[str, Expr] = {}  # of the statement's own that hold addresses
    jumps = _JUMP.search(assembly.template) is not None  # then one line may be run with several values
    for line in lines:
        if line.startswith((".shared", ".extern .shared")):
            low.incomplete(
                "asm", "shared memory of its own, where `extern __shared__` arrays may begin", node
            )
        if line.startswith(("//", ".")):
            continue
        line = _LABEL.sub("", line.replace("<", "{").replace(">", "}"))
        match = _INSTRUCTION.match(line)
        if match is None:
            continue
        denied, predicate, name, rest = match.groups()
        condition = predicates.get(predicate) if predicate and not jumps else None
        _forget(rest, given)
        tried = None
        if not predicate and not jumps and _gives_up(name):
            tried = _attempt(low, node, name, rest, assembly, values)
        elif condition is None:
            _instruction(low, node, name, rest, assembly, values, given)
        else:
            if denied:
                condition = unary(UnaryOp.NOT, condition)
            _if(low, node, condition, name, rest, assembly, values, given)
        _compare(name, rest, assembly, values, predicates, always=not predicate)
        if tried is not None:
            predicates[parts_of(rest)[0]] = tried
        _move(low, name, rest, assembly, values, given, registers, known=not predicate and not jumps)
        if not predicate and not jumps:
            _choose(name, rest, assembly, values, predicates, given)
    for index, place in enumerate(outputs):
        value = given.get(index)
        if value is None or not place.info.scalar:
            value = low.unknown("the result of inline assembly", place.info.ir, varies=True)
        else:
            place = _holding(low, place, value)
            value = conversions.converted(low, value, place.info.ir)
        low.write(place, value, operands[index])


def _macros(ast: Ast) -> Definitions:
    if ast.macros is None:
        ast.macros = definitions(ast.texts())
    return ast.macros


def _holding(low: Lowering, place: Place, value: Expr) -> Place:
    """The place of an output; an integer that is given an address is a pointer from there on.

    Where it is declared in the same block: every way from there on comes by.
    """
    if not isinstance(place, VarPlace) or not place.info.is_int or low.env.get(place.owner) is not place:
        return place
    declared = any(isinstance(s, Assign) and s.var is place.var for s in low.out)
    if not declared or not isinstance(stripped(value).type, Pointer):
        return place
    holder = VarPlace(place.info, low.var(place.var.name, Pointer()), place.owner, address=True)
    low.env[place.owner] = holder
    return holder


def _if(
    low: Lowering,
    node: Node,
    condition: Expr,
    name: str,
    rest: str,
    assembly: Assembly,
    values: list[Value],
    given: dict[int, Expr],
) -> None:
    """``@p st.global.u32 …``: an instruction on a condition; what it gives is not known then."""
    before = dict(given)
    with low.nested() as statements:
        _instruction(low, node, name, rest, assembly, values, given)
    for register in [r for r, value in given.items() if before.get(r) is not value]:
        del given[register]
    if statements:
        low.emit(If(condition, tuple(statements), (), low.site(node)))


def _compare(
    name: str,
    rest: str,
    assembly: Assembly,
    values: list[Value],
    predicates: dict[str, Expr],
    *,
    always: bool,
) -> None:
    """``setp.ne.b32 p, %5, 0`` makes a predicate known, whatever else writes to one makes it unknown."""
    parts = parts_of(rest)
    predicates.pop(parts[0], None)
    kind = name.split(".")
    if kind[0] != "setp" or len(kind) != 3 or len(parts) != 3 or kind[1] not in _COMPARISONS or not always:
        return
    sides = [operand(part, assembly, values) for part in parts[1:]]
    type = width(name)
    exact = isinstance(type, Int) and all(is_expr(s) and isinstance(s.type, Int) for s in sides)
    if exact:
        left, right = (cast(side, type) for side in sides if is_expr(side))
        predicates[parts[0]] = binary(_COMPARISONS[kind[1]], left, right)


def _forget(rest: str, given: dict[int, Expr]) -> None:
    """What an instruction writes is no longer what it was."""
    target = index_of(parts_of(rest)[0])
    if target is not None:
        given.pop(target, None)


def _choose(
    name: str,
    rest: str,
    assembly: Assembly,
    values: list[Value],
    predicates: dict[str, Expr],
    given: dict[int, Expr],
) -> None:
    """``selp.b32 %0, 1, 0, p`` makes a number of a predicate."""
    parts, type = parts_of(rest), width(name)
    target = index_of(parts[0])
    condition = predicates.get(parts[-1])
    if not name.startswith("selp.") or len(parts) != 4 or target is None or condition is None:
        return
    arms = [operand(part, assembly, values) for part in parts[1:3]]
    if isinstance(type, Int) and all(is_expr(arm) and isinstance(arm.type, Int) for arm in arms):
        then, otherwise = (cast(arm, type) for arm in arms if is_expr(arm))
        given[target] = select(condition, then, otherwise, type)


def _move(
    low: Lowering,
    name: str,
    rest: str,
    assembly: Assembly,
    values: list[Value],
    given: dict[int, Expr],
    registers: dict[str, Expr],
    *,
    known: bool,
) -> None:
    """``cvta.to.shared.u64 a, %1``: an address that is handed on stays what it is; all else is unknown."""
    parts = parts_of(rest)
    registers.pop(parts[0], None)
    if len(parts) != 2 or not known or not _MOVES.match(name):
        return
    source = registers.get(parts[1]) or operand(parts[1], assembly, values)
    if source is None:
        return
    address = low.pointer(source)
    if not isinstance(stripped(address).type, Pointer):
        return
    target = index_of(parts[0])
    if target is not None:
        given[target] = address
    else:
        registers[parts[0]] = address


def _address(low: Lowering, text: str, assembly: Assembly, values: list[Value], node: Node) -> Expr:
    match = _ADDRESS.search(text)
    offset = number(match.group(2) or "0") if match is not None else None
    if match is None or offset is None:
        raise Untranslatable("asm", "an address that could not be read", node)
    value = operand(match.group(1), assembly, values)
    pointer = low.pointer(value) if value is not None else None
    if pointer is None:
        raise Untranslatable("asm", "an address that could not be read", node)
    pointer = stripped(pointer)
    if not isinstance(pointer.type, Pointer):
        pointer = conversions.converted(low, pointer, Pointer())
    return offset_by(pointer, offset)


def _instruction(
    low: Lowering,
    node: Node,
    name: str,
    rest: str,
    assembly: Assembly,
    values: list[Value],
    given: dict[int, Expr],
) -> None:
    site = low.site(node)
    parts = parts_of(rest)
    if name.startswith(("bar.", "barrier.")) and ".cluster" not in name:
        _barrier(low, node, name, parts, assembly, values)
    elif name.startswith("barrier.cluster"):
        cluster_barrier(low, node, BarrierPhase.WAIT if ".wait" in name else BarrierPhase.ARRIVE, name)
    elif name.startswith(("membar", "fence")) and "proxy" not in name:
        scope = Scope.BLOCK if ".cta" in name else Scope.SYSTEM if ".sys" in name else Scope.DEVICE
        low.emit(Fence(scope, site))
    elif name.startswith("ld.") and "param" not in name:
        _load(low, node, name, rest, parts, assembly, values, given)
    elif name.startswith("st."):
        data = operand(parts[-1], assembly, values)
        type = width(name)
        exact = is_expr(data) and isinstance(data.type, Int) and isinstance(type, Int)
        value = cast(data, type) if exact and is_expr(data) else low.unknown("stored value", type)
        pointer = _address(low, rest, assembly, values, node)
        low.emit(Store(pointer, value, type, site, ".volatile" in name, word=True))
    elif name.startswith(("atom.", "red.")):
        op = next((_ATOMICS[part] for part in name.split(".") if part in _ATOMICS), AtomicOp.ADD)
        scope = Scope.BLOCK if ".cta" in name else Scope.SYSTEM if ".sys" in name else Scope.DEVICE
        low.emit(Atomic(None, op, _address(low, rest, assembly, values, node), (), width(name), scope, site))
    elif name.startswith(("cp.async.ca", "cp.async.cg", "cp.async.shared")):
        _asynchronous_copy(low, node, name, rest, assembly, values)
    elif name.startswith("cp.async.commit_group"):
        low.emit(CommitCopies(site))
    elif name.startswith(("cp.async.wait_group", "cp.async.wait_all")):
        left_open = operand(parts[0], assembly, values) if "group" in name else None
        if "group" in name and not is_expr(left_open):
            raise Untranslatable(f"asm {name}", "how many groups it leaves open could not be read", node)
        low.emit(AwaitCopies(left_open if is_expr(left_open) else None, site))
    elif name.startswith(("mbarrier.", "cp.async.mbarrier.arrive")):
        _barrier_object(low, node, name, rest, assembly, values)
    elif name.startswith("ldmatrix"):
        low.emit(Load(None, _address(low, rest, assembly, values, node), Opaque("matrix row", 16), site))
    elif name.startswith("mov") and len(parts) == 2 and parts[1] in REGISTERS:
        target = index_of(parts[0])
        if target is not None:
            given[target] = REGISTERS[parts[1]]
    elif name.startswith("prefetch"):
        return
    elif name.startswith(_MEMORY):
        low.incomplete(
            f"asm {name.split(' ')[0]}",
            "this instruction is not modelled",
            node,
            synchronises="barrier" in name,
        )


_ATOMICS = {op.value: op for op in AtomicOp}


def _barrier(
    low: Lowering, node: Node, name: str, parts: list[str], assembly: Assembly, values: list[Value]
) -> None:
    if ".warp" in name:
        low.emit(Barrier(BarrierScope.WARP, low.site(node), mask=Const(0xFFFFFFFF, UINT32)))
        return
    numbers = [operand(p, assembly, values) for p in parts if p and not p.startswith("p")]
    exprs = [n if isinstance(n, EXPR_TYPES) else None for n in numbers]
    identity = exprs[0] if exprs else None
    count = exprs[1] if len(exprs) > 1 else None
    phase = BarrierPhase.ARRIVE if ".arrive" in name else BarrierPhase.SYNC
    if identity is None:
        raise Untranslatable(f"asm {name}", "the barrier's number could not be read", node)
    whole = isinstance(identity, Const) and identity.value == 0 and count is None
    if whole and phase is BarrierPhase.SYNC:
        low.emit(Barrier(BarrierScope.BLOCK, low.site(node)))
    else:
        low.emit(Barrier(BarrierScope.NAMED, low.site(node), phase, id=identity, count=count))  # type: ignore[arg-type]


_NOT_MODELLED = ("expect_tx", "noComplete", "cluster", "complete_tx", "pending_count", "relaxed")


def _gives_up(name: str) -> bool:
    """A wait that is modelled where it is repeated."""
    waits = name.startswith(("mbarrier.test_wait", "mbarrier.try_wait"))
    return waits and not any(word in name for word in _NOT_MODELLED)


def _attempt(
    low: Lowering, node: Node, name: str, rest: str, assembly: Assembly, values: list[Value]
) -> Expr:
    at = _address(low, rest, assembly, values, node)
    parity = _behind(rest, assembly, values) if ".parity" in name else None
    if ".parity" in name and parity is None:
        raise Untranslatable(f"asm {name}", "its parity could not be read", node)
    return attempt(low, node, f"asm {name}", at, parity)


def _loops(template: str, name: str) -> bool:
    """Behind the instruction stands a jump to a place before it."""
    before, _, after = template.partition(name)
    labels = (re.escape(label[1]) for label in _LABELED.finditer(before))
    return any(re.search(rf"\bbra(?:\.uni)?\s+{label}(?![\w$])", after) for label in labels)


def _behind(rest: str, assembly: Assembly, values: list[Value]) -> Expr | None:
    """What stands behind the address."""
    behind = [part.strip() for part in rest[rest.rfind("]") + 1 :].split(",") if part.strip()]
    value = operand(behind[0], assembly, values) if behind else None
    return cast(value, UINT32) if is_expr(value) else None


def _barrier_object(
    low: Lowering, node: Node, name: str, rest: str, assembly: Assembly, values: list[Value]
) -> None:
    """``mbarrier.init``, ``.arrive``, and the waits that a loop in the same statement repeats."""
    waits = "test_wait" in name or "try_wait" in name
    if any(word in name for word in _NOT_MODELLED) or (waits and not _loops(assembly.template, name)):
        low.incomplete(f"asm {name}", "this form of it is not modelled", node, synchronises=True)
        return
    site, at = low.site(node), _address(low, rest, assembly, values, node)
    given = _behind(rest, assembly, values)
    if ".parity" in name and given is None:
        raise Untranslatable(f"asm {name}", "its parity could not be read", node)
    word = Int(64, signed=False)
    if ".init" in name or ".inval" in name:
        low.emit(Store(at, low.unknown("a barrier's state", word), word, site))
    else:
        low.emit(Atomic(None, AtomicOp.LOAD, at, (), word, Scope.BLOCK, site, rewrites=True))
    if ".init" in name:
        low.emit(Barrier(BarrierScope.OBJECT, site, BarrierPhase.INIT, count=given, object=at))
    elif waits:
        parity = given if ".parity" in name else None
        low.emit(Barrier(BarrierScope.OBJECT, site, BarrierPhase.WAIT, object=at, parity=parity))
    elif name.startswith("cp.async"):
        low.emit(Barrier(BarrierScope.OBJECT, site, BarrierPhase.BIND, object=at))
        if ".noinc" in name:  # counted as one of the arrivals, when the copies are done
            low.emit(Barrier(BarrierScope.OBJECT, site, BarrierPhase.ARRIVE, object=at))
    elif "arrive_drop" in name:
        low.emit(Barrier(BarrierScope.OBJECT, site, BarrierPhase.DROP, count=given, object=at))
    elif ".arrive" in name:
        low.emit(Barrier(BarrierScope.OBJECT, site, BarrierPhase.ARRIVE, count=given, object=at))


def _load(
    low: Lowering,
    node: Node,
    name: str,
    rest: str,
    parts: list[str],
    assembly: Assembly,
    values: list[Value],
    given: dict[int, Expr],
) -> None:
    type = width(name)
    pointer = _address(low, rest, assembly, values, node)
    target = index_of(parts[0])
    var = low.var("", type) if isinstance(type, Int) and target is not None else None
    low.emit(Load(var, pointer, type, low.site(node), ".volatile" in name, ".nc" in name, word=True))
    if var is not None and target is not None:
        given[target] = var


def _asynchronous_copy(
    low: Lowering, node: Node, name: str, rest: str, assembly: Assembly, values: list[Value]
) -> None:
    addresses = _ADDRESSES.findall(rest)
    if len(addresses) != 2 or "bulk" in name:
        low.incomplete(f"asm {name}", "this instruction is not modelled", node, synchronises=True)
        return
    destination, source = (_address(low, a, assembly, values, node) for a in addresses)
    after = rest[rest.rfind("]") + 1 :].split(",")
    size = operand(after[1], assembly, values) if len(after) > 1 else None
    amount: Expr = cast(size, INT64) if isinstance(size, EXPR_TYPES) else Const(16, INT64)  # type: ignore[arg-type]
    low.emit(Copy(destination, source, amount, low.site(node), True, "cp.async"))
