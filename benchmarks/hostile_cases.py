"""Kernels and programs that hang, fault, flood, fork and waste, and what a check has to say of each.

They are our own, in ``hostile/kernels.txt`` and ``hostile/programs.txt``: a name, notes, and the body of the
kernel ``k`` or of ``main``. Programs signal and write to nothing but what they started, the process that
runs them and their working folder, and fork a bounded number of times.

    === a name
    @ said PATTERN      what the report has; {words} stand for the patterns of ``WORDS``
    @ gpu PATTERN       … on a GPU, where that differs
    @ shape <<<…>>>     @ params int* o     the launch and the parameters of a kernel
    @ before CODE       in front of it      @ only ENGINE      @ quick     a part of the short run
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

HERE = Path(__file__).resolve().parent / "hostile"

WORDS = {
    "endless": r"did not (finish before the deadline|end within)|wait(s)? (for|in a loop)|never",
    "fault": r"failed on the GPU|out of bounds|outside",
    "outside": r"out of bounds|outside",
    "ends": r"race-free|racy|undecided",
    "overdue": r"did not end before its deadline",
    "memory": r"more than \d+ MiB of memory",
    "gpu-memory": r"more than \d+ MiB of the GPU's memory|memory",
    "flood": r"more than 256 MiB of output",
    "status": r"exit status ",
}
_HEAD = r"""
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>
#include <stdexcept>
#include <thread>
#include <vector>
#define NOINLINE __attribute__((noinline))
__global__ void k(int* o) { o[threadIdx.x] = threadIdx.x; }
__global__ void hangs(volatile int* o) { while (o[0] < 1000) { } }
__global__ void faults(int* o) { o[(1ll << 36) + threadIdx.x] = 1; }
static int* some() { int* p = nullptr; cudaMalloc(&p, 4096); cudaMemset(p, 0, 4096); return p; }
static void launch() { k<<<1, 64>>>(some()); cudaDeviceSynchronize(); }
// No more than so many forks, should nobody stop them: then they sleep.
static int* born = (int*)mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
static pid_t bounded(int most) {
    if (__atomic_add_fetch(born, 1, __ATOMIC_RELAXED) > most) for (;;) sleep(100);
    return fork();
}
static void eat(size_t most) {
    for (size_t n = 0; n < most; n += 64 << 20) {
        char* p = (char*)malloc(64 << 20);
        if (!p) { puts("no more"); fflush(stdout); sleep(100); }
        for (size_t i = 0; i < 64u << 20; i += 4096) p[i] = 1;
    }
}
"""


@frozen
class Case:
    """``source``: a whole file. ``said``: a pattern that the report has; ``gpu``: there, where it differs.

    ``quick``: a part of the short run. ``only``: the engine that it is for, all by default.
    """

    name: str
    source: str
    said: str
    gpu: str = ""
    program: bool = False
    quick: bool = False
    only: str = ""

    def expected(self, engine: str) -> str:
        """The pattern for ``emulator`` or ``gpu``."""
        return self.gpu if self.gpu and engine == "gpu" else self.said


def cases() -> Iterator[Case]:
    """All of them: kernels, then programs."""
    for kind in ("kernel", "program"):
        text = (HERE / f"{kind}s.txt").read_text()
        for part in re.split(r"^=== ", text, flags=re.MULTILINE)[1:]:
            yield _case(kind, part)


def _case(kind: str, part: str) -> Case:
    name, *lines = part.rstrip().splitlines()
    notes: dict[str, list[str]] = defaultdict(list)
    while lines and lines[0].startswith("@ "):
        word, _, rest = lines.pop(0)[2:].partition(" ")
        notes[word].append(rest)
    told = {word: _pattern(notes[word][0]) if notes[word] else "" for word in ("said", "gpu")}
    before, body = "\n".join(notes["before"]), "\n".join(lines)
    source = _program(before, body) if kind == "program" else _kernel(notes, before, body)
    only = notes["only"][0] if notes["only"] else ""
    return Case(
        f"{kind}: {name}", source, told["said"], told["gpu"], kind == "program", "quick" in notes, only
    )


def _pattern(text: str) -> str:
    return re.sub(r"\{([a-z-]+)\}", lambda word: WORDS[word[1]], text)


def _kernel(notes: dict[str, list[str]], before: str, body: str) -> str:
    params, shape = (notes["params"] or ["int* o"])[0], (notes["shape"] or ["<<<1, 64>>>"])[0]
    names = ", ".join(p.replace("*", " ").split()[-1] for p in params.split(","))
    return (
        f"#include <cstdio>\n#include <cassert>\n{before}\n"
        f"__global__ void k({params}) {{\nint t = threadIdx.x;\n{body}\n}}\n"
        f"void run({params}) {{ k{shape}({names}); }}\n"
    )


def _program(before: str, body: str) -> str:
    return f"{_HEAD}{before}\nint main(int argc, char** argv) {{\n{body}\nreturn 0;\n}}\n"
