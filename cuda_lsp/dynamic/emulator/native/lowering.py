"""A basic block of generated NumPy (``translate.py``) as operations of the C engine.

The generated text is the one meaning of a kernel: its syntax tree is read here, with the types that NumPy
would give every value, and each operator or call becomes the row of ``operations.py`` with its name. A
function without a row is called in NumPy, on the active threads alone. A block that asks the machine for
anything but plain loads, stores, arguments and addresses stays Python's: atomics, exchanges between lanes,
barriers.

Values are dense arrays of the active threads (*slots*); only registers that outlive a block are kept for all.
"""

# NumPy's stubs leave views and types of scalars unknown.
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false, reportUnknownArgumentType=false

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

import numpy as np
from attrs import define, field

from cuda_lsp.dynamic.emulator.native.instructions import (
    CALL,
    CONSTANT,
    FIRST,
    GET,
    LOAD,
    POOL,
    ROW,
    SET,
    STORE,
    Call,
    Lowered,
    Operation,
    PythonOnly,
    Shared,
    Value,
)
from cuda_lsp.dynamic.emulator.native.operations import NUMBERS, ROWS, SIZES

_BINARY: Mapping[type[ast.operator], str] = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
_COMPARED: Mapping[type[ast.cmpop], str] = {
    ast.Eq: "eq", ast.NotEq: "ne", ast.Lt: "lt", ast.LtE: "le", ast.Gt: "gt", ast.GtE: "ge",
}  # fmt: skip
_SAME_BITS = {kind: {f"i{kind[1]}", f"u{kind[1]}"} for kind in SIZES if kind[0] in "iu"}
_ALL = "m"  # the mask that the block was entered with: all its threads are active


def lowered(function: ast.FunctionDef, shared: Shared) -> Lowered:
    """Operations of one block. Raises PythonOnly."""
    return _Block(shared).run(function)


_Group = tuple[int, bool]  # bytes of a value in a slot, and whether it may stand for what others hold


@define(eq=False)
class _Block:
    shared: Shared
    operations: list[Operation] = field(factory=list[Operation])
    names: dict[str, Value | tuple[Value, ...]] = field(factory=dict[str, "Value | tuple[Value, ...]"])
    users: dict[int, int] = field(factory=dict[int, int])  # slot → how many hold it
    groups: dict[int, _Group] = field(factory=dict[int, "_Group"])  # of each slot
    free: dict[_Group, list[int]] = field(factory=lambda: defaultdict["_Group", list[int]](list))
    changed: set[int] = field(factory=set[int])  # registers

    def run(self, function: ast.FunctionDef) -> Lowered:
        for line in function.body:
            match line:
                case ast.Assign([ast.Subscript(ast.Name("R"), ast.Constant(int(number)))]):
                    self.changed.add(number)
                case _:
                    pass
        last = {
            node.id: k
            for k, line in enumerate(function.body)
            for node in ast.walk(line)
            if isinstance(node, ast.Name)
        }
        for k, line in enumerate(function.body):
            if isinstance(line, ast.Return):
                return self._returned(line)
            self._statement(line)
            for name in [n for n in self.names if last.get(n, -1) <= k]:
                self._forget(name)
        raise PythonOnly("a block without an end")

    def _returned(self, line: ast.Return) -> Lowered:
        if line.value is None or (isinstance(line.value, ast.Constant) and line.value.value is None):
            return Lowered(tuple(self.operations), -1)
        value = self._one(line.value)
        if value.kind not in ("b1", "u4"):
            raise PythonOnly(value.kind)
        return Lowered(tuple(self.operations), value.slot)

    # ----------------------------------------------------------------------------------- slots

    def _slot(self, kind: str, stands: bool = False) -> int:
        """A slot of one width for ever: the engine computes a part of all threads after the other.

        ``stands``: it may stand for a register that the block does not change, and never holds a result, in
        no block: these are the odd ones.
        """
        free = self.free[SIZES[kind], stands]
        if not free:
            new = 2 * sum(slot % 2 == stands for slot in self.groups) + stands
            self.groups[new] = SIZES[kind], stands
            free.append(new)
            self.shared.slots = max(self.shared.slots, new + 1)
        slot = free.pop()
        self.users[slot] = 1
        return slot

    def _drop(self, *values: Value) -> None:
        for value in values:
            self.users[value.slot] -= 1
            if not self.users[value.slot]:
                self.free[self.groups[value.slot]].append(value.slot)

    def _keep(self, value: Value) -> Value:
        self.users[value.slot] += 1
        return value

    def _forget(self, name: str) -> None:
        held = self.names.pop(name)
        self._drop(*(held if isinstance(held, tuple) else (held,)))

    def _name(self, name: str, held: Value | tuple[Value, ...]) -> None:
        if name in self.names:
            self._forget(name)
        self.names[name] = held

    def _emit(self, code: int, kind: str, given: tuple[Value, ...] = (), constant: int = 0) -> Value:
        """An operation without memory; what it was given is let go. Results never share a slot with those."""
        stands = code == ROW or (code == GET and constant not in self.changed)
        result = self._slot(kind, stands)
        self.operations.append(
            Operation(
                code, result, tuple(v.slot for v in given), size=SIZES[kind], constant=constant, kind=stands
            )
        )
        self._drop(*given)
        return Value(result, kind)

    def _operate(self, name: str, *given: Value, constant: int = 0) -> Value:
        """The operation of a row that is there."""
        return self._emit(FIRST + NUMBERS[name], ROWS[NUMBERS[name]].result, given, constant)

    # ------------------------------------------------------------------------------- statements

    def _statement(self, line: ast.stmt) -> None:
        match line:
            case ast.Assign([ast.Name(name)], value):
                self._name(name, self._value(value))
            case ast.Assign([ast.Subscript(ast.Name("R"), ast.Constant(int(number)))], value):
                given = self._one(value)
                if given.kind != self.shared.registers[number]:
                    raise PythonOnly("a register of another kind")
                size = SIZES[given.kind]
                self.operations.append(Operation(SET, given=(given.slot,), size=size, constant=number))
                self._drop(given)
            case ast.Expr(ast.Call(ast.Attribute(ast.Name("S"), "store" | "store_vector"), arguments)):
                self._store(arguments)
            case _:
                raise PythonOnly(ast.unparse(line))

    def _store(self, arguments: list[ast.expr]) -> None:
        if len(arguments) > 5:
            raise PythonOnly("a strong store")
        number, where, kind, mask, values = arguments
        parts = [self._one(v) for v in (values.elts if isinstance(values, ast.Tuple) else [values])]
        self._access(STORE, number, where, kind, mask, parts)
        self._drop(*parts)

    def _load(self, arguments: list[ast.expr], vector: bool) -> Value | tuple[Value, ...]:
        if len(arguments) > 5 or (len(arguments) > 4 and not vector):
            raise PythonOnly("a strong load")
        number, where, kind, *count, mask = arguments
        parts = [
            Value(self._slot(_text(kind)), _text(kind)) for _ in range(_number(count[0]) if vector else 1)
        ]
        self._access(LOAD, number, where, kind, mask, parts)
        return tuple(parts) if vector else parts[0]

    def _access(
        self, code: int, number: ast.expr, where: ast.expr, kind: ast.expr, mask: ast.expr, parts: list[Value]
    ) -> None:
        name, address = _text(kind), self._one(where)
        under = () if _is_named(mask, _ALL) else (self._one(mask),)
        if address.kind != "i8" or any(SIZES[p.kind] != SIZES[name] for p in parts) or len(parts) > 8:
            raise PythonOnly("an access of another width")
        self.operations.append(
            Operation(
                code, -1, (address.slot, *(u.slot for u in under)), _number(number), SIZES[name],
                {"u": 0, "b": 0, "i": 1, "f": 2}[parts[0].kind[0]], tuple(p.slot for p in parts),
            )
        )  # fmt: skip
        self._drop(address, *under)

    # ------------------------------------------------------------------------------ expressions

    def _one(self, node: ast.expr) -> Value:
        value = self._value(node)
        if isinstance(value, tuple):
            raise PythonOnly("a tuple")
        return value

    def _value(self, node: ast.expr) -> Value | tuple[Value, ...]:
        match node:
            case ast.Name(name):
                return self._named(name)
            case ast.Subscript(ast.Name("R"), ast.Constant(int(number))):
                return self._emit(GET, self.shared.registers[number], constant=number)
            case ast.Subscript(inner, ast.Constant(int(number))):
                parts = self._value(inner)
                if not isinstance(parts, tuple):
                    raise PythonOnly("an element of an array")
                self._keep(parts[number])
                self._drop(*parts)
                return parts[number]
            case ast.BinOp(left, sign, right):
                return self._rowed(_BINARY.get(type(sign), "?"), node, (left, right))
            case ast.Compare(left, [sign], [right]):
                return self._rowed(_COMPARED.get(type(sign), "?"), node, (left, right))
            case ast.UnaryOp(ast.Invert(), inner):
                return self._rowed("~", node, (inner,))
            case ast.UnaryOp(ast.USub(), inner):
                return self._rowed("neg", node, (inner,))
            case ast.Attribute(ast.Name("np"), "True_" | "False_" as which):
                return self._constant(np.bool_(which == "True_"))
            case ast.Attribute(ast.Name("S"), "shared_base" | "local_base" as which):
                return self._row(which, "i8")
            case ast.Call():
                return self._call(node)
            case _:
                raise PythonOnly(ast.unparse(node))

    def _named(self, name: str) -> Value | tuple[Value, ...]:
        held = self.names.get(name)
        if held is None:
            return self._constant(self.shared.constants.get(name))
        for value in held if isinstance(held, tuple) else (held,):
            self._keep(value)
        return held

    def _constant(self, value: Any) -> Value:
        if not isinstance(value, np.generic):
            raise PythonOnly(f"{value} for a number")
        kind = f"{value.dtype.kind}{value.dtype.itemsize}"
        if kind not in SIZES:
            raise PythonOnly(kind)
        bits = int(np.array([value]).view(f"u{SIZES[kind]}")[0])
        return self._emit(CONSTANT, kind, constant=bits)

    def _row(self, name: str, kind: str) -> Value:
        number = self.shared.rows.setdefault(name, len(self.shared.rows))
        return self._emit(ROW, kind, constant=number)

    def _pooled(self, kind: str, *what: str) -> Value:
        number = self.shared.pool.setdefault((kind, *what), len(self.shared.pool))
        return self._emit(POOL, kind, constant=number)

    def _rowed(self, word: str, node: ast.expr, arguments: tuple[ast.expr, ...]) -> Value | tuple[Value, ...]:
        """An operator, or a function of arrays alone; a plain number takes the type of the other side."""
        plain = [isinstance(a, ast.Constant) for a in arguments]
        values = [None if p else self._one(a) for a, p in zip(arguments, plain, strict=True)]
        known = next((v for v in values if v is not None), None)
        if known is None:
            raise PythonOnly("numbers alone")
        kind = np.dtype(known.kind).type
        given = tuple(
            v if v is not None else self._constant(kind(ast.literal_eval(a)))
            for v, a in zip(values, arguments, strict=True)
        )
        return self._computed(f"{word}({','.join(v.kind for v in given)})", given, node, arguments)

    def _computed(
        self,
        name: str,
        given: tuple[Value, ...],
        node: ast.expr,
        vectors: tuple[ast.expr, ...],
        constant: int = 0,
    ) -> Value | tuple[Value, ...]:
        if name in NUMBERS:
            return self._operate(name, *given, constant=constant)
        parts = [f"{name[:-1]}#{k})" for k in (0, 1)]
        if parts[0] in NUMBERS:  # two results, an operation each
            for value in given:
                self._keep(value)
            return tuple(self._operate(part, *given) for part in parts)
        return self._called(node, given, vectors)

    def _called(
        self, node: ast.expr, given: tuple[Value, ...], vectors: tuple[ast.expr, ...]
    ) -> Value | tuple[Value, ...]:
        """NumPy does it; of which types its results are it tells itself, asked about ones."""
        numbers = {id(vector): k for k, vector in enumerate(vectors)}

        class Named(ast.NodeTransformer):
            def visit(self, node: ast.AST) -> Any:
                k = numbers.get(id(node))
                return ast.Name(f"given{k}", ast.Load()) if k is not None else self.generic_visit(node)

        body = ast.unparse(Named().visit(node))
        if re.search(r"\bS\b", body):
            raise PythonOnly(body)
        names = ", ".join(f"given{k}" for k in range(len(given)))
        function = eval(f"lambda {names}: {body}", dict(self.shared.constants))  # our own text
        with np.errstate(all="ignore"):
            answer = function(*(np.ones(1, v.kind) for v in given))
        kinds = [np.asarray(a).dtype for a in (answer if isinstance(answer, tuple) else (answer,))]
        named = [f"{k.kind}{k.itemsize}" for k in kinds]
        if not SIZES.keys() >= set(named):
            raise PythonOnly("results of another kind")
        results = tuple(Value(self._slot(kind), kind) for kind in named)
        self.operations.append(Operation(CALL, constant=len(self.shared.calls)))
        self.shared.calls.append(Call(function, given, results))
        self._drop(*given)
        return results if isinstance(answer, tuple) else results[0]

    def _call(self, node: ast.Call) -> Value | tuple[Value, ...]:
        match node.func, node.args:
            case ast.Attribute(ast.Name("S"), name), arguments:
                return self._served(name, arguments)
            case ast.Attribute(inner, "view"), [kind]:
                value = self._one(inner)
                target = self._kind(kind)
                if SIZES[target] != SIZES[value.kind] or "b1" in (target, value.kind):
                    raise PythonOnly("a view of another width")
                return Value(value.slot, target)
            case ast.Attribute(inner, "astype"), [kind] if not _is_named(inner, "np"):
                return self._cast(node, inner, kind)
            case ast.Name("keep"), [mask, new, old]:
                if _is_named(mask, _ALL):
                    return self._value(new)
                return self._chosen(mask, new, old)
            case ast.Name("select"), [condition, new, old]:
                return self._chosen(condition, new, old)
            case ast.Name("both"), [ast.Name("m"), condition, _]:
                return self._one(condition)
            case function, arguments:
                return self._function(node, ast.unparse(function), arguments)

    def _chosen(self, condition: ast.expr, new: ast.expr, old: ast.expr) -> Value:
        given = (self._one(condition), self._one(new), self._one(old))
        name = f"np.where({','.join(v.kind for v in given)})"
        if name not in NUMBERS:
            raise PythonOnly(name)
        return self._operate(name, *given)

    def _cast(self, node: ast.Call, inner: ast.expr, kind: ast.expr) -> Value | tuple[Value, ...]:
        if (
            isinstance(inner, ast.Call)
            and isinstance(inner.func, ast.Attribute)
            and _is_named(inner.func.value, "S")
        ):
            name, arguments = inner.func.attr, inner.args
            if name in ("symbol", "param_address"):
                return self._pooled(self._kind(kind), name, *(ast.unparse(a) for a in arguments))
            if name == "special":
                return self._special(_text(arguments[0]), self._kind(kind))
        value, target = self._one(inner), self._kind(kind)
        if target == value.kind or {target, value.kind} <= _SAME_BITS.get(target, set()):
            return Value(value.slot, target)
        return self._computed(f"astype({value.kind},{target})", (value,), node, (inner,))

    def _special(self, name: str, kind: str) -> Value:
        if "clock" in name or "globaltimer" in name:
            raise PythonOnly(name)
        value = self._row(name, "u4")
        return value if kind == "u4" else self._operate(f"astype(u4,{kind})", value)

    def _kind(self, node: ast.expr) -> str:
        kind = self.shared.constants.get(node.id) if isinstance(node, ast.Name) else None
        if isinstance(kind, np.dtype) and f"{kind.kind}{kind.itemsize}" in SIZES:
            return f"{kind.kind}{kind.itemsize}"
        raise PythonOnly("a type")

    def _served(self, name: str, arguments: list[ast.expr]) -> Value | tuple[Value, ...]:
        match name:
            case "load" | "load_vector":
                return self._load(arguments, name == "load_vector")
            case "argument":
                return self._pooled(self._kind(arguments[2]), name, *(ast.unparse(a) for a in arguments[:2]))
            case "symbol" | "param_address":
                return self._pooled("i8", name, *(ast.unparse(a) for a in arguments))
            case "in_space":
                return self._in_space(_text(arguments[0]), self._one(arguments[1]))
            case _:
                raise PythonOnly(name)

    def _in_space(self, space: str, address: Value) -> Value:
        if space not in ("shared", "local", "global") or address.kind != "i8":
            raise PythonOnly(space)
        found: list[Value] = []
        for one in ("shared", "local") if space == "global" else (space,):
            low, high = (
                self._operate(f"{word}(i8,i8)", self._keep(address), self._pooled("i8", end, one))
                for word, end in (("ge", "low"), ("lt", "high"))
            )
            found.append(self._operate("&(b1,b1)", low, high))
        self._drop(address)
        return found[0] if len(found) == 1 else self._operate("~(b1)", self._operate("|(b1,b1)", *found))

    def _function(self, node: ast.Call, word: str, arguments: list[ast.expr]) -> Value | tuple[Value, ...]:
        vectors = tuple(a for a in arguments if not self._is_constant(a))
        given = tuple(self._one(a) for a in vectors)
        if not given or node.keywords:
            raise PythonOnly(word)
        constants = [a for a in arguments if self._is_constant(a)]
        words = ",".join((*(v.kind for v in given), *(ast.unparse(a) for a in constants)))
        if word == "lop3":
            return self._computed(f"{word}(u4,u4,u4,#)", given, node, vectors, _number(constants[0]))
        return self._computed(f"{word}({words})", given, node, vectors)

    def _is_constant(self, node: ast.expr) -> bool:
        """Whether it is no array: a number, a word, a type, a function, or a tuple of such."""
        if isinstance(node, ast.Tuple):
            return all(map(self._is_constant, node.elts))
        if isinstance(node, ast.Name):
            return node.id not in self.names and not isinstance(
                self.shared.constants.get(node.id), np.generic
            )
        return isinstance(node, (ast.Constant, ast.Lambda)) or (
            isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
        )


def _is_named(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    raise PythonOnly("a word that is not told")


def _number(node: ast.expr) -> int:
    if isinstance(node, ast.Constant) and isinstance(node.value, int):
        return node.value
    raise PythonOnly("a number that is not told")
