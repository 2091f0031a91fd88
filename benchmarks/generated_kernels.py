"""Whole kernels from hypothesis, whose results do not depend on who is first: for one engine against another.

A kernel holds variables of every width, fills them from two input arrays, does a dozen things to them (loops,
divergence, switches, arrays, structures, calls, shared memory with barriers, exchange within warps, atomics
whose order does not matter) and writes them all out, eight bytes each. Signed overflow, shifts beyond a width
and the bits of a NaN are avoided. ``-fmad=false`` keeps compilers from contracting what is written apart.
"""

# ruff: noqa: E501
from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis.strategies as st
from attrs import define, field, frozen
from generated_forms import CONSTANTS, FLOATS, FORMS, HALVES, INTEGERS, KINDS
from hypothesis import HealthCheck, Phase, given, seed, settings

GRID = 2
BLOCKS = (32, 64, 96)
INPUTS = 1024
"""Elements of each input array: random words, and random floats with special values among them."""
POOL = 64
"""Words that the blocks of a kernel add to together."""
FAMILIES = ("integers", "floats", "halves", "flow", "memory", "warps", "atomics", "calls")
SEED = 20261121
_HOLE = re.compile(r"\{(\w+)\}")
_SHUFFLED = ("i32", "u32", "i64", "u64", "f32", "f64", "h16x2")


@frozen
class GeneratedKernel:
    """``kinds``: of the outputs of a thread, in order. ``text``: the function, and those it calls."""

    name: str
    block: int
    kinds: tuple[str, ...]
    text: str


@define
class _Writer:
    """Draws one kernel. ``uniform``: all threads are here together; ``within``: a function that it calls."""

    draw: Callable[[st.SearchStrategy[Any]], Any]
    name: str
    block: int
    family: str
    variables: list[tuple[str, str]] = field(factory=list[tuple[str, str]])
    lines: list[str] = field(factory=list[str])
    functions: list[str] = field(factory=list[str])
    names: int = 0
    uniform: bool = True
    within: bool = False

    # ------------------------------------------------------------------------------- choices

    def pick(self, choices: Sequence[Any]) -> Any:
        return choices[self.draw(st.integers(0, len(choices) - 1))]

    def fresh(self, stem: str) -> str:
        self.names += 1
        return f"{stem}_{self.names}"

    # --------------------------------------------------------------------------- expressions

    def expression(self, kind: str, depth: int) -> str:
        """Text of a value of ``kind`` (``c``: a condition)."""
        if kind == "k":
            return f"({self.pick(range(40))}u ^ nil())"
        if depth == 0 and kind != "c":
            return self.leaf(kind)
        forms = FORMS[kind]
        if depth == 0:
            forms = tuple(f for f in forms if "{c}" not in f)
        return _HOLE.sub(lambda hole: self.expression(hole[1], max(depth - 1, 0)), self.pick(forms))

    def leaf(self, kind: str) -> str:
        mine = [name for name, of in self.variables if of == kind]
        if mine and self.draw(st.integers(0, 4)):
            return self.pick(mine)
        return self.pick(CONSTANTS[kind])

    def assigned(self, depth: int = 2) -> None:
        name, kind = self.pick(self.variables)
        value = self.expression(kind, depth)
        if kind in (*FLOATS, *HALVES) and self.draw(st.booleans()):
            value = f"tame({value})"
        self.lines.append(f"{name} = {value};")

    # ---------------------------------------------------------------------------- statements

    def statements(self, count: int, depth: int) -> None:
        for _ in range(count):
            self.statement(depth)

    def statement(self, depth: int) -> None:
        chosen: list[Callable[[int], None]] = [lambda d: self.assigned()] * (8 if depth else 1)
        if depth:
            chosen += [self.branch, self.loop, self.switch, self.array]
            if not self.within:
                chosen += [self.vector]
            if self.family == "flow":
                chosen += [self.branch, self.loop, self.switch] * 3
            if self.family in ("memory", "atomics", "calls", "flow"):
                chosen += [self.array, self.structure]
            if self.family == "calls":
                chosen += [self.call] * 5
            if self.uniform:
                chosen += {
                    "memory": [self.exchange, self.tree, self.counted] * 3,
                    "warps": [self.shuffle, self.vote, self.part_of_a_warp, self.matched] * 3,
                    "atomics": [self.atomics, self.tickets, self.own_word] * 3,
                }.get(self.family, [])
        self.pick(chosen)(depth - 1)

    def apart(self, count: int, depth: int) -> None:
        """Statements that not all threads execute together."""
        before, self.uniform = self.uniform, False
        self.statements(count, depth)
        self.uniform = before

    def branch(self, depth: int) -> None:
        self.lines.append(f"if ({self.expression('c', 1)}) {{")
        self.apart(2, depth)
        if self.draw(st.booleans()):
            self.lines.append("} else {")
            self.apart(1, depth)
        self.lines.append("}")

    def loop(self, depth: int) -> None:
        i = self.fresh("i")
        if self.uniform and self.draw(st.booleans()):
            self.lines.append(f"for (int {i} = 0; {i} < {self.pick((2, 3, 5))}; ++{i}) {{")
            self.statements(1, depth)
            self.lines.append("}")
            return
        bound, leave = self.expression("u32", 1), self.pick(("break", "continue"))
        if self.draw(st.booleans()):
            self.lines.append(f"for (u32 {i} = 0; {i} < ({bound} & 7); ++{i}) {{")
        else:
            self.lines.append(f"u32 {i} = {bound} & 7;\ndo {{")
        self.apart(1, depth)
        if self.draw(st.booleans()):
            self.lines.append(
                f"if ({self.expression('c', 1)}) {leave if self.lines[-1] != 'do {' else 'break'};"
            )
        self.apart(1, depth)
        opened = next(
            line for line in reversed(self.lines) if i in line and ("for" in line or "do {" in line)
        )
        self.lines.append("}" if opened.startswith("for") else f"}} while ({i}-- > 0);")

    def switch(self, depth: int) -> None:
        self.lines.append(f"switch ({self.expression('u32', 1)} % 5) {{")
        for case in range(4):
            self.lines.append(f"case {case}: {{")
            self.apart(1, depth)
            self.lines.append("}")
            if self.draw(st.integers(0, 2)):
                self.lines.append("break;")
        self.lines.append("default: {")
        self.apart(1, depth)
        self.lines.append("}\n}")

    def array(self, depth: int) -> None:
        kind, a, i = self.pick(("i32", "u8", "i16", "f32", "u64", "f64")), self.fresh("a"), self.fresh("i")
        self.lines.append(
            f"{kind} {a}[8];\nfor (int {i} = 0; {i} < 8; ++{i}) {a}[{i}] = {self.expression(kind, 1)};"
        )
        self.lines.append(f"{a}[{self.expression('u32', 1)} & 7] = {self.expression(kind, 1)};")
        self.set(kind, f"{a}[{self.expression('u32', 1)} & 7]")

    def set(self, kind: str, value: str) -> None:
        """Give a value to a variable of its kind."""
        names = [n for n, of in self.variables if of == kind]
        if names:
            self.lines.append(f"{self.pick(names)} = {value};")
        else:
            word = next(n for n, of in self.variables if of == "u32")
            self.lines.append(f"{word} = (u32)raw({f'number({value})' if kind in FLOATS else value});")

    def vector(self, depth: int) -> None:
        v, at = self.fresh("v"), f"({self.expression('u32', 1)} & 255)"
        word, source = self.pick((("uint4", "in"), ("float4", "fin")))
        self.lines.append(f"{word} {v} = ((const {word}*){source})[{at}];")
        kind, pick = ("u32", "xyzw") if word == "uint4" else ("f32", "xyzw")
        self.set(kind, f"{v}.{self.pick(pick)}")
        self.set(kind, f"{v}.{self.pick(pick)}")
        small = self.fresh("w")
        self.lines.append(f"ushort4 {small} = ((const ushort4*)in)[{at}];")
        self.set("u16", f"{small}.{self.pick('xyzw')}")

    def structure(self, depth: int) -> None:
        m, n = self.fresh("m"), self.fresh("m")
        values = [self.expression(k, 1) for k in ("i32", "u8", "u8", "u8", "i16", "u64")]
        self.lines.append(
            f"Mixed {m} = {{{values[0]}, {{{', '.join(values[1:4])}}}, number({self.expression('f64', 1)}), "
            f"{values[4]}, {values[5]}}};"
        )
        self.lines.append(
            f"Mixed {n} = {m};\n{n}.b[{self.expression('u32', 1)} % 3u] = {self.expression('u8', 1)};"
        )
        self.set("u64", f"add<u64>(digest({n}), digest({m}))")

    def call(self, depth: int) -> None:
        """A function of its own that is not inlined: scalars, a structure, or one that calls itself."""
        f, kind = self.fresh(f"{self.name}_f"), self.pick(("i32", "u64", "f32", "f64", "i16", "u8"))
        style = self.pick(("plain", "structure", "recursive", "pointer"))
        inner = _Writer(
            self.draw,
            f,
            self.block,
            "flow",
            [("p", kind), ("q", "u32"), ("r", "f32")],
            uniform=False,
            within=True,
        )
        if style == "structure":
            self.functions.append(
                f"__device__ __noinline__ Mixed {f}(Mixed m, u32 q) {{\n"
                f"m.a = add<i32>(m.a, (i32)q);\nif (q & 1) return m;\nm.b[q % 3u] = (u8)m.a;\nm.c = m.c * 0.5;\n"
                f"return m;\n}}"
            )
            m = self.fresh("m")
            self.lines.append(
                f"Mixed {m} = {{{self.expression('i32', 1)}, {{1, 2, {self.expression('u8', 1)}}}, "
                f"number({self.expression('f64', 1)}), 5, {self.expression('u64', 1)}}};"
            )
            return self.set("u64", f"digest({f}({m}, {self.expression('u32', 1)}))")
        if style == "recursive":
            below = _next(kind)
            self.functions.append(
                f"__device__ __noinline__ {kind} {f}({kind} p, u32 q) {{\nf32 r = (f32)q;\n"
                f"if (q == 0) return {inner.expression(kind, 1)};\n"
                f"{kind} below = {f}(p, q - 1);\nreturn (q & 1) ? below : {below};\n}}"
            )
            return self.set(kind, f"{f}({self.expression(kind, 1)}, {self.expression('u32', 1)} & 3)")
        inner.statements(2, 1)
        early = f"if ({inner.expression('c', 1)}) return {inner.expression(kind, 1)};"
        target = "*result = (f32)q;" if style == "pointer" else ""
        more = ", f32* result" if style == "pointer" else ""
        body = "\n".join([*inner.lines, early, target])
        self.functions.append(
            f"__device__ __noinline__ {kind} {f}({kind} p, u32 q, f32 r{more}) {{\n{body}\n"
            f"return {inner.expression(kind, 1)};\n}}"
        )
        self.functions[:0] = inner.functions
        given = f"{self.expression(kind, 1)}, {self.expression('u32', 1)}, {self.expression('f32', 1)}"
        given += f", &{self.pick([n for n, of in self.variables if of == 'f32'])}" if more else ""
        result = self.fresh("y")
        self.lines.append(f"{kind} {result} = {f}({given});")
        self.set(kind, result)

    # ------------------------------------------------------------------ shared memory and barriers

    def exchange(self, depth: int) -> None:
        """Each thread writes its word and reads another's."""
        kind, s = self.pick(("i8", "u16", "i32", "u32", "u64", "f32", "f64", "h16")), self.fresh("s")
        n, step = self.block, self.pick((1, 5, 17, 31))
        self.lines.append(f"SHARED {kind} {s}[{n}];\n{s}[t] = {self.expression(kind, 1)};\n__syncthreads();")
        self.set(kind, f"{s}[(t * {self.pick((1, 3, 5, 7))} + {step}) % {n}u]")
        if self.draw(st.booleans()):
            self.lines.append(
                f"__syncthreads();\n{s}[{n - 1}u - t] = {self.expression(kind, 1)};\n__syncthreads();"
            )
            self.set(kind, f"{s}[(t + {step}) % {n}u]")
        self.lines.append("__syncthreads();")

    def tree(self, depth: int) -> None:
        """A reduction by halves."""
        kind, s, k = self.pick(("i32", "u64", "u32")), self.fresh("s"), self.fresh("k")
        op = self.pick(("add", "high", "bxor"))
        self.lines.append(
            f"SHARED {kind} {s}[{self.block}];\n{s}[t] = {self.expression(kind, 1)};\n__syncthreads();\n"
            f"for (u32 {k} = 16; {k} > 0; {k} >>= 1) {{\n"
            f"if (t < {k}) {s}[t] = {op}<{kind}>({s}[t], {s}[t + {k}]);\n__syncthreads();\n}}"
        )
        self.set(kind, f"{s}[0]")
        self.lines.append("__syncthreads();")

    def counted(self, depth: int) -> None:
        how = self.pick(("count", "and", "or"))
        self.set("i32", f"__syncthreads_{how}({self.expression('c', 1)})")

    # --------------------------------------------------------------------------------------- warps

    def shuffle(self, depth: int) -> None:
        kind, width = self.pick(_SHUFFLED), self.pick((32, 32, 16, 8))
        value, by = self.expression(kind, 1), self.pick((1, 2, 5, 16))
        how = self.pick(("", "xor_", "up_", "down_", "idx"))
        if how == "idx":
            return self.set(kind, f"__shfl_sync(~0u, {value}, {self.expression('u32', 1)} & 31, {width})")
        self.set(kind, f"__shfl_{how}sync(~0u, {value}, {by}, {width})")

    def vote(self, depth: int) -> None:
        how = self.pick(("ballot", "any", "all", "add", "min", "max", "and", "or", "xor"))
        if how in ("ballot", "any", "all"):
            return self.set("u32", f"(u32)__{how}_sync(~0u, {self.expression('c', 1)})")
        kind = "u32" if how in ("and", "or", "xor") else self.pick(("i32", "u32"))
        self.set(kind, f"__reduce_{how}_sync(~0u, {self.expression(kind, 1)})")

    def matched(self, depth: int) -> None:
        kind = self.pick(("u32", "u64"))
        value = f"({self.expression(kind, 1)} & 3)"
        if self.draw(st.booleans()):
            return self.set("u32", f"__match_any_sync(~0u, {value})")
        same = self.fresh("same")
        self.lines.append(f"int {same};")
        self.set("u32", f"__match_all_sync(~0u, {value}, &{same})")
        self.lines[-1] = self.lines[-1].replace(");", f") + (u32){same};")

    def part_of_a_warp(self, depth: int) -> None:
        """Some lanes of each warp exchange values on one side of a branch, the others on the other."""
        m, c = self.fresh("m"), self.fresh("c")
        self.lines.append(
            f"bool {c} = {self.expression('c', 1)};\nu32 {m} = __ballot_sync(~0u, {c});\nif ({c}) {{"
        )
        for mask in (m, f"(~{m})"):
            kind = self.pick(("i32", "u32"))
            self.assigned(1)
            self.set(kind, self.pick((
                f"__shfl_sync({mask}, {self.expression(kind, 1)}, __ffs({mask}) - 1)",
                f"__reduce_add_sync({mask}, {self.expression(kind, 1)})",
                f"({kind})__ballot_sync({mask}, {self.expression('c', 1)})",
                f"({kind})__match_any_sync({mask}, ({self.expression('u32', 1)} & 1))",
            )))  # fmt: skip
            self.lines.append("} else {" if mask == m else "}")
        self.lines.append("__syncwarp();")

    # ------------------------------------------------------------------------------------- atomics

    def atomics(self, depth: int) -> None:
        """Operations that commute, on shared words that are read after a barrier, or on the pool."""
        kind = self.pick(("i32", "u32", "u64"))
        op = self.pick(("Add", "Min", "Max", "And", "Or", "Xor"))
        value, slot = self.expression(kind, 1), f"({self.expression('u32', 1)} & 7)"
        if kind == "u32" and self.draw(st.booleans()):
            self.lines.append(f"atomic{op}(&pool[{slot} + {8 * self.fresh_slot(op)}], {value});")
            return
        s = self.fresh("s")
        self.lines.append(f"SHARED {kind} {s}[8];\nif (t < 8) {s}[t] = {self.leaf(kind)};")
        self.lines.append(f"__syncthreads();\natomic{op}(&{s}[{slot}], {value});\n__syncthreads();")
        self.set(kind, f"{s}[t & 7]")
        self.lines.append("__syncthreads();")

    def fresh_slot(self, op: str) -> int:
        """Eight words of the pool for each operation: different ones do not commute."""
        return ("Add", "Min", "Max", "And", "Or", "Xor").index(op)

    def tickets(self, depth: int) -> None:
        """Each ticket is drawn once, whoever draws it; whole numbers add up in any order."""
        s, d = self.fresh("s"), self.fresh("s")
        kind, one = self.pick((("u32", "1u"), ("f32", "1.0f"), ("f64", "2.0")))
        self.lines.append(
            f"SHARED {kind} {s};\nSHARED u32 {d}[{self.block * 2}];\nif (t == 0) {s} = 0;\n{d}[t] = 0;\n"
            f"{d}[t + {self.block}] = 0;\n__syncthreads();\n{d}[(u32)atomicAdd(&{s}, {one}) % {self.block * 2}u] += 3u;\n"
            f"__syncthreads();"
        )
        self.set("u32", f"{d}[t] + (u32){s}")
        self.lines.append("__syncthreads();")

    def own_word(self, depth: int) -> None:
        """Atomics on a word of one's own: their results are fixed."""
        kind, s = self.pick(("i32", "u32", "u64")), self.fresh("s")
        a, b = self.expression(kind, 1), self.expression(kind, 1)
        call = self.pick((f"atomicExch(&{s}[t], {a})", f"atomicCAS(&{s}[t], {a}, {b})", f"atomicAdd(&{s}[t], {a})",
                          f"atomicMin(&{s}[t], {a})", f"atomicXor(&{s}[t], {a})"))  # fmt: skip
        if kind == "u32":
            call = self.pick((call, f"atomicInc(&{s}[t], {a})", f"atomicDec(&{s}[t], {a})"))
        self.lines.append(f"SHARED {kind} {s}[{self.block}];\n{s}[t] = {self.expression(kind, 1)};")
        self.set(kind, call)
        self.set(kind, f"{s}[t]")
        self.lines.append("__syncthreads();")


def _next(kind: str) -> str:
    return f"add<{kind}>(below, ({kind})1)" if kind in INTEGERS else f"(below + ({kind})1)"


def _initial(kind: str, k: int) -> str:
    """What a variable starts with."""
    whole, real = f"in[(g * 7 + {k * 37}) % {INPUTS}u]", f"fin[(g * 5 + {k * 41}) % {INPUTS}u]"
    return {
        "f32": real, "f64": f"(f64){real} + (f64)fin[(g + {k}) % {INPUTS}u] * 1e-9",
        "h16": f"__float2half_rn({real})", "b16": f"__float2bfloat16_rn({real})",
        "h16x2": f"__floats2half2_rn({real}, 0.5f)", "b16x2": f"__floats2bfloat162_rn({real}, -2.f)",
        "i64": f"(i64)((u64){whole} << 32 | in[g % {INPUTS}u])", "u64": f"(u64){whole} << 31 ^ in[g % {INPUTS}u]",
    }.get(kind, f"({kind}){whole}")  # fmt: skip


def _kernel(draw: Callable[[st.SearchStrategy[Any]], Any], name: str, family: str) -> GeneratedKernel:
    block = BLOCKS[draw(st.integers(0, len(BLOCKS) - 1))]
    w = _Writer(draw, name, block, family)
    kinds = list(KINDS) if family == "halves" else [*INTEGERS, *FLOATS]
    often = {"integers": INTEGERS, "floats": FLOATS, "halves": HALVES}.get(family, ("i32", "u32", "f32"))
    kinds += [often[draw(st.integers(0, len(often) - 1))] for _ in range(3)]
    for k, kind in enumerate(kinds):
        w.lines.append(f"{kind} x{k} = {_initial(kind, k)};")
        w.variables.append((f"x{k}", kind))
    w.statements(draw(st.integers(5, 10)), 2)
    stores = [f"o[{k}] = raw(x{k});" for k in range(len(kinds))]
    if draw(st.booleans()):  # some threads leave early
        w.lines += [f"if ({w.expression('c', 1)}) {{", *stores, "return;", "}"]
        w.apart(2, 1)
    head = f"u32 t = threadIdx.x, g = blockIdx.x * {block}u + t;\nu64* o = out + g * {len(kinds)}u;"
    body = "\n".join([head, *w.lines, *stores])
    parameters = "u64* out, u32* pool, const u32* in, const f32* fin"
    text = "\n".join([*w.functions, f'extern "C" __global__ void {name}({parameters}) {{\n{body}\n}}'])
    return GeneratedKernel(name, block, tuple(kinds), text)


def generate(count: int, number: int = SEED, families: Sequence[str] = FAMILIES) -> list[GeneratedKernel]:
    """``count`` kernels, the same for one ``number`` (and one version of hypothesis); the families in turn."""
    return [_drawn(f"k{k}", families[k % len(families)], number + k) for k in range(count)]


def _drawn(name: str, family: str, number: int) -> GeneratedKernel:
    """The longest of a few examples of a run of its own: in one long run later ones resemble earlier ones."""
    found: list[GeneratedKernel] = []

    @seed(number)
    @settings(
        max_examples=3,
        phases=(Phase.generate,),
        database=None,
        deadline=None,
        suppress_health_check=list(HealthCheck),
    )
    @given(st.data())
    def collect(data: st.DataObject) -> None:
        found.append(_kernel(data.draw, name, family))

    collect()
    return max(found, key=lambda kernel: len(kernel.text))
