"""Short texts that ask for more than any machine has: each would take minutes and gigabytes.

``BOMBS``: by name, the text of a kernel ``victim`` and what it needs, the words that must be told of it
("": nothing is too much), and headers beside it. ``with_neighbour`` puts a harmless kernel behind it, which
is analysed as ever.

    python tests/fuzz/bombs.py [NAME …]

prints the seconds of CPU, the peak of memory and the reasons of each.
"""

from __future__ import annotations

import json
import os
import resource
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

from attrs import asdict, field, frozen

from cuda_lsp.config import Settings
from cuda_lsp.frontend.translation import Translation
from cuda_lsp.static.analyze import Analyzer

MOST_CPU = 20
"""Seconds after which the system ends a child."""

MOST_SPACE = 4 << 30
"""Bytes of address space of a child: the shim, libclang and Z3 map a part of it."""

_LEVELS = 30
_NEIGHBOUR = """
__global__ void neighbour(int *out) {
  extern __shared__ int s[];
  s[threadIdx.x] = 1;
  __syncthreads();
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch_neighbour(int *out) { neighbour<<<1, 64, 256>>>(out); }
"""
_LAUNCH = "\nvoid launch(int *p) { victim<<<1, 64>>>(p); }\n"


@frozen
class Bomb:
    """``reason``: what the victim's verdict, or the file's error, has to say; ``headers``: name → text."""

    text: str
    reason: str
    headers: Mapping[str, str] = field(factory=dict[str, str])
    refuses_file: bool = False


def _chain(first: str, step: str, last: str, levels: int = _LEVELS) -> str:
    """``step`` for 1, 2, …: ``{n}`` is the number, ``{m}`` the one before."""
    return "\n".join([first, *(step.format(n=n, m=n - 1) for n in range(1, levels + 1)), last])


def _victim(body: str) -> str:
    return f"__global__ void victim(int *p) {{ {body} }}{_LAUNCH}"


def _lines(line: str, count: int) -> str:
    return "".join(line.format(n=n) + "\n" for n in range(count))


_ROUNDS = "for (int i = 0; i < 1000000000; ++i) s += i & 1; return s; }"
_INLINING = "inlining its calls takes more than"
_LARGE = "more than"
_WORDS = "words and operators"
_MACROS = "macro"
_TEMPLATES = "template"
_CONSTANT = "constexpr"

BOMBS: dict[str, Bomb] = {
    # ------------------------------------------------------------------------------------ inlining
    "functions that call each other twice": Bomb(
        _chain(
            "__device__ void f0(int *p) { p[threadIdx.x] += 1; }",
            "__device__ void f{n}(int *p) {{ f{m}(p); f{m}(p + 1); }}",
            _victim(f"f{_LEVELS}(p);"),
        ),
        _INLINING,
    ),
    "values of functions that call each other twice": Bomb(
        _chain(
            "__device__ int f0(int x) { return x * 3 + 1; }",
            "__device__ int f{n}(int x) {{ return f{m}(x) * f{m}(x + 1); }}",
            _victim(f"p[threadIdx.x] = f{_LEVELS}(threadIdx.x);"),
        ),
        _INLINING,
    ),
    "functions without statements that call each other twice": Bomb(
        _chain(
            "__device__ void f0() { }",
            "__device__ void f{n}() {{ f{m}(); f{m}(); }}",
            _victim(f"f{_LEVELS}(); p[threadIdx.x] = 1;"),
        ),
        _INLINING,
    ),
    "function templates that call each other twice": Bomb(
        "template <int N> __device__ void f(int *p) { f<N - 1>(p); f<N - 1>(p + N); }\n"
        "template <> __device__ void f<0>(int *p) { *p = 1; }\n" + _victim("f<30>(p);"),
        _INLINING,
    ),
    "constructors that call each other twice": Bomb(
        _chain(
            "struct S0 { int v; __device__ S0(int x) : v(x) {} };",
            "struct S{n} {{ int v; __device__ S{n}(int x) : v(S{m}(x).v + S{m}(x + 1).v) {{}} }};",
            _victim(f"S{_LEVELS} s(threadIdx.x); p[s.v] = 1;"),
        ),
        _INLINING,
    ),
    "operators that call each other twice": Bomb(
        _chain(
            "struct S0 { int v; }; __device__ S0 operator+(S0 a, S0 b) { return S0{a.v + b.v}; }",
            "struct S{n} {{ S{m} v; }};\n"
            "__device__ S{n} operator+(S{n} a, S{n} b) {{ return S{n}{{(a.v + b.v) + (b.v + a.v)}}; }}",
            _victim(f"S{_LEVELS} s{{}}; s = s + s; p[threadIdx.x] = 1;"),
        ),
        _INLINING,
    ),
    "closures that call each other twice": Bomb(
        _victim(
            "auto f0 = [&](int x) { p[x] = 1; };\n"
            + "".join(
                f"auto f{n} = [&](int x) {{ f{n - 1}(x); f{n - 1}(x + 1); }};\n" for n in range(1, _LEVELS)
            )
            + f"f{_LEVELS - 1}(0);"
        ),
        _INLINING,
    ),
    "a function that calls itself twice": Bomb(
        _chain(
            "__device__ int f0(int n) { return n < 2 ? n : f0(n - 1) + f0(n - 2) + f0(n - 3); }",
            "__device__ int f{n}(int x) {{ return x < 2 ? f{n}(x - 1) + f{n}(x - 2) : f{m}(x); }}",
            _victim(f"p[f{_LEVELS}(threadIdx.x)] = 1;"),
        ),
        "nests too deeply",
    ),
    "variables whose address is taken, in a long kernel": Bomb(
        _victim(
            _lines("int v{n} = threadIdx.x; int *q{n} = &v{n}; *q{n} = {n}; p[v{n}] = 1;", 60)
            + _lines("p[threadIdx.x + {n}] += {n};", 8000)
        ),
        "",
    ),
    # ----------------------------------------------------------------------------------- statements
    "a hundred thousand statements": Bomb(
        _victim(_lines("p[threadIdx.x] += {n};", 100_000)), "more than"
    ),
    "a function of ten thousand statements called a hundred times": Bomb(
        "__device__ void f(int *p) {\n"
        + _lines("p[threadIdx.x] += {n};", 10_000)
        + "}\n"
        + _victim("f(p);\n" * 100),
        _INLINING,
    ),
    "five thousand labels": Bomb(
        _victim(_lines("l{n}: if (p[{n}]) goto l{n};", 5000)), "nests too deeply"
    ),
    "a switch of fifty thousand cases": Bomb(
        _victim("switch (p[0]) {\n" + _lines("case {n}: p[{n}] = 1; break;", 50_000) + "}"), "statements"
    ),
    "a case of a billion values": Bomb(
        _victim("switch (p[0]) { case 0 ... 1000000000: p[threadIdx.x] = 1; break; default: p[0] = 2; }"), ""
    ),
    "records in records": Bomb(
        _chain(
            "struct S0 { int v; };",
            "struct S{n} {{ S{m} a, b; }};",
            _victim("S14 s; S14 t = s; p[sizeof(t)] = 1;"),
            14,
        ),
        "members",
    ),
    "records in records, initialised": Bomb(
        _chain(
            "struct S0 { int v; };",
            "struct S{n} {{ S{m} a, b; }};",
            "__device__ S24 all = {};\n" + _victim("p[0] = sizeof(all);"),
            24,
        ),
        "members",
        refuses_file=True,
    ),
    "unions and bases of one another": Bomb(
        _chain(
            "typedef struct { int v; } S0;",
            "struct A{n} : S{m} {{ S{m} a[2]; }}; typedef union {{ A{n} a; S{m} *p, b; }} S{n};",
            "constexpr S24 all{};\n" + _victim("p[0] = sizeof(all);"),
            24,
        ),
        "members",
        refuses_file=True,
    ),
    "default arguments that call each other twice": Bomb(
        _chain(
            "__device__ int f0();",
            "__device__ int f{n}(int x = f{m}(), int y = f{m}());",
            _victim(f"p[f{_LEVELS}()] = 1;"),
        ),
        "default arguments",
        refuses_file=True,
    ),
    "default arguments, one a level": Bomb(
        _chain(
            "namespace n { __device__ int f0(int z = 1); }",
            "namespace n {{ template <class T> T g{n}(T); __device__ int f{n}(int x, int y = n::f{m}(1)); }}",
            _victim(f"p[n::f{_LEVELS}(2)] = 1;"),
        ),
        "default arguments",
        refuses_file=True,
    ),
    # -------------------------------------------------------------------------------------- nesting
    "a sum of a hundred thousand terms": Bomb(
        _victim("p[0] = " + " + ".join(["threadIdx.x"] * 100_000) + ";"), _WORDS
    ),
    "a hundred thousand negations": Bomb(_victim("p[0] = " + "!" * 100_000 + "p[1];"), _WORDS),
    "a hundred thousand assignments in one": Bomb(_victim("p[0] = " * 100_000 + "1;"), _WORDS),
    "a hundred thousand conditions in one": Bomb(_victim("if (p[0]) " * 100_000 + "p[1] = 2;"), _WORDS),
    "thirty thousand alternatives": Bomb(
        _victim("if (p[0]) p[1] = 1; " + "else if (p[2]) p[1] = 2; " * 30_000), "alternatives"
    ),
    "a hundred thousand choices": Bomb(_victim("p[0] = " + "p[1] ? 2 : " * 100_000 + "3;"), _WORDS),
    "a hundred thousand brackets": Bomb(
        _victim("p[0] = " + "(" * 100_000 + "1" + ")" * 100_000 + ";"), _WORDS
    ),
    "a hundred thousand blocks": Bomb(_victim("{" * 100_000 + "p[0] = 1;" + "}" * 100_000), "blocks"),
    "a hundred thousand stars": Bomb(_victim("int " + "*" * 100_000 + "q; p[0] = 1;"), _WORDS),
    "a hundred thousand members": Bomb(
        "struct S { S *n; int v; };\n" + _victim("S *s = (S *)p; p[0] = s" + "->n" * 100_000 + "->v;"), _WORDS
    ),
    "a hundred thousand commas": Bomb(_victim("p[0] = (" + "p[1], " * 100_000 + "1);"), _WORDS),
    "a number of a million digits": Bomb(_victim("p[0] = " + "7" * 1_000_000 + ";"), "too large"),
    "a hundred comparisons in a row": Bomb(
        _victim("for (int k = 0; k < " + "q < " * 100 + "8; ++k) p[k] = 1;"), "in a row"
    ),
    "a hundred unknown templates": Bomb(_victim("View<" * 100 + "float> v;"), "in a row"),
    "a hundred unknown templates, closed, in a host function": Bomb(
        _victim("p[threadIdx.x] = 1;") + "void host() { " + "View<" * 100 + "float" + ">" * 100 + " v; }", ""
    ),
    # --------------------------------------------------------------------------------------- macros
    "macros that use each other twice": Bomb(
        _chain("#define A0 p[0] += 1;", "#define A{n} A{m} A{m}", _victim(f"A{_LEVELS}")), _MACROS
    ),
    "macros with arguments that use each other twice": Bomb(
        _chain("#define A0(x) x += 1;", "#define A{n}(x) A{m}(x) A{m}(x)", _victim(f"A{_LEVELS}(p[0])")),
        _MACROS,
    ),
    "a macro applied to itself": Bomb(
        "#define D(x) x x\n" + _victim("D(" * _LEVELS + "p[0] += 1;" + ")" * _LEVELS), _MACROS
    ),
    "macros that repeat all their arguments": Bomb(
        _chain(
            "#define A0(...) f(__VA_ARGS__);",
            "#define A{n}(...) A{m}(__VA_ARGS__, __VA_ARGS__)",
            "__device__ void f(int) {}\n" + _victim(f"A{_LEVELS}(p[0])"),
        ),
        _MACROS,
    ),
    "macros that repeat what is optional": Bomb(
        _chain(
            "#define A0(...) p[0] += 1;",
            "#define A{n}(...) A{m}(__VA_ARGS__) __VA_OPT__(A{m}(__VA_ARGS__))",
            _victim(f"A{_LEVELS}(1)"),
        ),
        _MACROS,
    ),
    "macros whose names are put together": Bomb(
        _chain(
            "#define J(a, b) a##b\n#define C(a, b) J(a, b)\n#define A0 p[0] += 1;",
            "#define A{n} C(A, {m}) C(A, {m})",
            _victim(f"C(A, {_LEVELS})"),
        ),
        _MACROS,
    ),
    "macros whose names are put together, by one for each": Bomb(
        _chain(
            "#define A0 p[0] += 1;",
            "#define J{n}(a, b) a##b\n#define A{n} J{n}(A, {m}) J{n}(A, {m})",
            _victim(f"A{_LEVELS}"),
        ),
        _MACROS,
    ),
    "macros whose names are put together from what others hand on": Bomb(
        _chain(
            "#define A0_ p[0] += 1;",
            "#define J{n}(a, b, c) a##b##c\n#define H{n}(x, ...) J{n}(A, x, _)\n"
            "#define A{n}_ H{n}({m}, 2) H{n}({m}, 3)",
            _victim(f"A{_LEVELS}_"),
        ),
        _MACROS,
    ),
    "macros over several lines, in a condition of the preprocessor": Bomb(
        _chain(
            "#define A0 + 1",
            "#define A{n} A{m} \\\n  A{m}",
            f"#if 0 A{_LEVELS}\n#endif\n" + _victim("p[0] = 1;"),
        ),
        _MACROS,
        refuses_file=True,
    ),
    "macros of a header": Bomb(
        '#include "bomb.h"\n' + _victim(f"A{_LEVELS}"),
        _MACROS,
        {"bomb.h": _chain("#define A0 p[0] += 1;", "#define A{n} A{m} A{m}", "")},
    ),
    # ------------------------------------------------------------------------------------- includes
    "headers that include each other twice": Bomb(
        '#include "h30.h"\n' + _victim("p[0] = LAST;"),
        "includ",
        {f"h{n}.h": f'#include "h{n - 1}.h"\n' * 2 if n else "#define LAST 1\n" for n in range(31)},
    ),
    # ------------------------------------------------------------------------------------ constants
    "a constant of a billion rounds": Bomb(
        "constexpr __host__ __device__ int f() { int s = 0; " + _ROUNDS + "\n"
        + _victim("constexpr int n = f(); p[n] = 1;"),
        _CONSTANT,
    ),
    "a constant that calls itself twice": Bomb(
        "constexpr __host__ __device__ int f(int n) { return n < 2 ? n : f(n - 1) + f(n - 2); }\n"
        + _victim("constexpr int n = f(60); p[n] = 1;"),
        _CONSTANT,
    ),
    "a thousand constants of a billion rounds": Bomb(
        "template <int N> constexpr int f() { int s = N; " + _ROUNDS + "\n"
        + _lines("constexpr int c{n} = f<{n}>();", 1000)
        + _victim("p[c0] = c999;"),
        "c999",
    ),
    "a constant array of a billion elements": Bomb(
        "constexpr __host__ __device__ int f() { int a[1 << 30] = {}; a[1 << 29] = 1; return a[0]; }\n"
        + _victim("constexpr int n = f(); p[n] = 1;"),
        _CONSTANT,
    ),
    "values that take a million rounds each": Bomb(
        "constexpr __host__ __device__ int f(int k) { int s = k; " + _ROUNDS + "\n"
        + _victim(_lines("p[f({n})] = {n};", 1000)),
        "",
    ),
    # ------------------------------------------------------------------------------------ templates
    "a tree of class templates": Bomb(
        "template <int D, int I> struct T { T<D - 1, 2 * I> a; T<D - 1, 2 * I + 1> b; };\n"
        "template <int I> struct T<0, I> { int v; };\n" + _victim("p[0] = sizeof(T<30, 0>);"),
        _TEMPLATES,
    ),
    "a tree of function templates": Bomb(
        "template <int D, int I> __device__ int f() {\n"
        "  if constexpr (D > 0) return f<D - 1, 2 * I>() + f<D - 1, 2 * I + 1>(); else return I;\n}\n"
        + _victim("p[threadIdx.x] = f<30, 0>();"),
        _TEMPLATES,
    ),
    "a tree of types": Bomb(
        "template <class A, class B> struct P {};\n"
        "template <class X, int D> struct T { using a = typename T<P<X, int>, D - 1>::a;"
        " using b = typename T<P<X, char>, D - 1>::b; };\n"
        "template <class X> struct T<X, 0> { using a = X; using b = X; };\n"
        + _victim("p[0] = sizeof(T<int, 30>::a);"),
        _TEMPLATES,
    ),
    "a tree of constant templates": Bomb(
        "template <int D, int I> constexpr int v = v<D - 1, 2 * I> + v<D - 1, 2 * I + 1>;\n"
        "template <int I> constexpr int v<0, I> = I;\n" + _victim("p[0] = v<30, 0>;"),
        _TEMPLATES,
    ),
    "two templates that use each other twice": Bomb(
        "template <int D, int I> struct U;\n"
        "template <int D, int I> struct T { enum { v = U<D - 1, 2 * I>::v + U<D - 1, 2 * I + 1>::v }; };\n"
        "template <int D, int I> struct U { enum { v = T<D - 1, 2 * I>::v + T<D - 1, 2 * I + 1>::v }; };\n"
        "template <int I> struct T<0, I> { enum { v = I }; };\n" + _victim("p[0] = T<30, 0>::v;"),
        _TEMPLATES,
    ),
    "a pack of a hundred million": Bomb(
        "template <class T, T... I> struct S { enum { v = sizeof...(I) }; };\n"
        "template <int N> using M = __make_integer_seq<S, int, N>;\n" + _victim("p[0] = M<100000000>::v;"),
        _TEMPLATES,
    ),
    "ten thousand instances of a kernel": Bomb(
        "template <int N> __global__ void victim(int *p) { p[threadIdx.x] = N; }\n"
        + _lines("template __global__ void victim<{n}>(int *);", 10_000),
        "instantiations",
    ),
}  # fmt: skip


def with_neighbour(bomb: Bomb) -> str:
    return bomb.text + _NEIGHBOUR


@frozen
class Outcome:
    """``status``: negative for a signal; seconds of processor time and the most megabytes resident."""

    status: int
    seconds: float = 0.0
    megabytes: float = 0.0
    kernels: Mapping[str, list[str]] = field(factory=dict[str, list[str]])
    errors: tuple[str, ...] = ()

    @property
    def said(self) -> str:
        """All that is told of the victim and of the file."""
        return "\n".join((*self.kernels.get("victim", ()), *self.errors))


def analysed(bomb: Bomb, folder: Path, mode: str = "quick") -> Outcome:
    """What becomes of a bomb in a fork of this process; ``mode``: "quick" as in an editor, "check"."""
    for name, text in bomb.headers.items():
        (folder / name).write_text(text)
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(reading)
        status = 1
        try:
            _analyse(bomb, folder, mode, writing)
            status = 0
        finally:
            os._exit(status)  # whatever threads and processes of the analyser are still at work
    os.close(writing)
    with os.fdopen(reading) as told:
        words = told.read()
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    return Outcome(code, **json.loads(words)) if words else Outcome(code or 1)


def _analyse(bomb: Bomb, folder: Path, mode: str, told: int) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_CPU, MOST_CPU))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_SPACE, MOST_SPACE))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    analyzer = Analyzer(Settings(), quick=mode == "quick")
    path = folder / "bomb.cu"
    path.write_text(with_neighbour(bomb))
    started = time.process_time()
    analyse = analyzer.update if mode == "quick" else analyzer.check
    report = analyse(path, with_neighbour(bomb))
    outcome = {
        "seconds": time.process_time() - started,
        "megabytes": int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) / 1024,
        "kernels": {k.name: [k.verdict.name, *k.reasons] for k in report.kernels},
        "errors": [e.message for e in report.errors],
    }
    os.write(told, json.dumps(outcome)[:60_000].encode())


def main() -> None:
    names = [a for a in sys.argv[1:] if not a.startswith("--")]
    warm = Translation(Path("/warm.cu"), "__global__ void k(int* a) { a[threadIdx.x] = 1; }")
    warm.lower(*warm.kernels())
    for name in names or BOMBS:
        with tempfile.TemporaryDirectory() as folder:
            outcome = analysed(BOMBS[name], Path(folder), "check" if "--check" in sys.argv else "quick")
        if "--json" in sys.argv:
            print(json.dumps([name, asdict(outcome)]), flush=True)
            continue
        figures = f"{outcome.status:4} {outcome.seconds:6.2f} s {outcome.megabytes:6.0f} MB"
        neighbour = outcome.kernels.get("neighbour", ["absent"])[0]
        print(f"{figures}  {name}: {outcome.said[:150]!r} | {neighbour}", flush=True)


if __name__ == "__main__":
    main()
