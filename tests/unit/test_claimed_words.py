"""Words that are claimed by compare-and-swap and never given back: no locks, and each has one owner."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import KernelReport, Status, Verdict
from cuda_lsp.static.analyze import check_text

LOCK = "what a loop waits for, which may act as a lock"

EDGES = """
__global__ void k(const int* start, const int* to, int* seen, int* out, int* count, int n) {{
  int v = blockIdx.x * blockDim.x + threadIdx.x;
  if (v >= n) return;
  for (int e = start[v]; e < start[v + 1]; ++e) {{ int w = to[e]; {body} }}
}}
void go(int* s, int* t, int* a, int* o, int* c) {{ k<<<2, 64>>>(s, t, a, o, c, 128); }}
"""

SLOTS = """
__global__ void k(const unsigned* key, const int* val, unsigned* slot, int* out, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n{guard}) return;
  for (int step = 0; step < n; ++step) {{
    unsigned h = key[i] + step & 255, old = atomicCAS(&slot[h], ~0u, key[i]);
    {body}
  }}
}}
void go(unsigned* k_, int* v, unsigned* s, int* o) {{ k<<<2, 64>>>(k_, v, s, o, 100); }}
"""
NOT_FREE = " || key[i] == ~0u"


def checked(text: str) -> tuple[KernelReport, set[Status]]:
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    return report.kernels[0], {f.status for f in report.findings if f.kind}


@pytest.mark.parametrize(
    "text",
    [
        EDGES.format(body="if (atomicCAS(&seen[w], 0, 1) == 0) out[w] = v;"),
        EDGES.format(body="if (atomicCAS(&seen[w], -1, v) == -1) out[w] += e;"),
        EDGES.format(body="if (!atomicCAS(seen + w, 0, 7)) { out[2 * w] = v; out[2 * w + 1] = e; }"),
        EDGES.format(body="if (atomicExch(&seen[w], 1) == 0) out[w] = v;"),
        EDGES.format(body="if (atomicExch(&seen[w], 3) != 3) out[w] += e;"),
        SLOTS.format(
            guard=NOT_FREE, body="if (old == ~0u) { out[h] = val[i]; return; } if (old == key[i]) return;"
        ),
    ],
)
def test_a_word_that_is_never_given_back_has_one_owner(text: str) -> None:
    kernel, found = checked(text)
    assert (kernel.verdict, found) == (Verdict.RACE_FREE, set())


@pytest.mark.parametrize(
    "text",
    [
        EDGES.format(body="if (atomicCAS(&seen[w], 0, 1) == 0) out[w / 2] = v;"),  # of two words
        EDGES.format(body="if (atomicCAS(&seen[w], 0, 1) != 0) out[w] = v;"),  # who came too late
        EDGES.format(body="if (atomicCAS(&seen[w], 0, 1) <= 0) out[w] = v;"),
        EDGES.format(body="if (atomicCAS(&seen[w], 0, n - 128) == 0) out[w] = v;"),  # 0 again
        EDGES.format(body="if (atomicExch(&seen[w], 1) == 1) out[w] = v;"),
        EDGES.format(body="if (atomicExch(&seen[w], 1) >= 0) out[w] = v;"),
        EDGES.format(body="if (atomicExch(&seen[w], v) == 0) out[w] = v;"),  # 0 again, by thread 0
        EDGES.format(body="if (atomicExch(&seen[w], 1) == 0) out[w] = v; else atomicExch(&seen[w], 0);"),
        EDGES.format(body="if (atomicExch_block(&seen[w], 1) == 0) out[w] = v;"),
        EDGES.format(body="if (atomicCAS_block(&seen[w], 0, 1) == 0) out[w] = v;"),
        EDGES.format(body="if (atomicCAS(&seen[w], 0, 1) == 0) out[w] = v; else if (e < 0) seen[w] = 0;"),
        EDGES.format(
            body="if (atomicCAS(&seen[w], 0, 1) == 0) out[w] = v; if (w == e) atomicAnd(&seen[w], 2);"
        ),
        EDGES.format(
            body="if (atomicCAS(&seen[w], 0, 1) == 0 || atomicCAS(&seen[w], 1, 0) == 1) out[w] = v;"
        ),
        SLOTS.format(
            guard="", body="if (old == ~0u) { out[h] = val[i]; return; } if (old == key[i]) return;"
        ),
        SLOTS.format(guard=NOT_FREE, body="if (old == ~0u || old == key[i]) { out[h] = val[i]; return; }"),
    ],
)
def test_who_writes_without_owning_the_word_may_meet_others(text: str) -> None:
    kernel, _ = checked(text)
    assert kernel.verdict is not Verdict.RACE_FREE


def test_what_is_counted_plainly_beside_claims_races() -> None:
    kernel, found = checked(EDGES.format(body="if (atomicCAS(&seen[w], 0, 1) == 0) *count += 1;"))
    assert (kernel.verdict, found) == (Verdict.RACY, {Status.CONDITIONAL})


@pytest.mark.parametrize(
    "body",
    [
        "if (atomicCAS(&seen[w], 0, 1) == 0) { out[w] += 1; __threadfence(); atomicExch(&seen[w], 0); }",
        "if (atomicCAS(&seen[w], 0, 1) == 0) { out[w] += 1; __threadfence(); atomicCAS(&seen[w], 1, 0); }",
        "if (atomicCAS(&seen[w], 0, 1) == 0) { out[w] += 1; __threadfence(); seen[w] = 0; }",
        "while (atomicCAS(seen, 0, 1) != 0) {} *count += 1;",  # given back by another kernel, or nobody
    ],
)
def test_what_is_given_back_or_waited_for_may_be_a_lock(body: str) -> None:
    kernel, _ = checked(EDGES.format(body=body))
    assert kernel.verdict is Verdict.UNDECIDED
    assert any(f"{LOCK};" in reason for reason in kernel.reasons)


TABLE = """
__global__ void k(const unsigned* keys, unsigned* out, int n) {{
  __shared__ unsigned tab[512], val[512];
  int t = threadIdx.x;
  unsigned key = keys[blockIdx.x * 256 + t] | 0x80000000u, h = key & 511u, old;
  {body}
}}
void go(unsigned* k_, unsigned* o) {{ k<<<8, 256>>>(k_, o, 9); }}
"""
CLEAR = "for (int i = t; i < 512; i += 256) tab[i] = 0;"
PROBE = "while ((old = atomicCAS(&tab[h], 0u, key)) != 0u) h = (h + 1) & 511u;"
SYNC = "__syncthreads();"
MIRRORED = "for (int i = t; i < 512; i += 256) out[blockIdx.x * 512 + i] += tab[511 - i];"
READ = "for (int i = t; i < 512; i += 256) out[blockIdx.x * 512 + i] += tab[i] ? val[i] : 0;"


def table(*parts: str) -> str:
    return TABLE.format(body=" ".join(parts))


def rounds(*parts: str) -> str:
    return table("for (int r = 0; r < n; ++r) {", *parts, "}")


@pytest.mark.parametrize(
    "text",
    [
        table(CLEAR, SYNC, PROBE, "out[blockIdx.x * 512 + h] = t;"),
        table(CLEAR, SYNC, PROBE, "val[h] = t;", SYNC, READ),
        table(CLEAR, SYNC, PROBE, SYNC, CLEAR),
        rounds(CLEAR, SYNC, PROBE, "val[h] = r;", SYNC, READ, SYNC),
        rounds(CLEAR, SYNC, PROBE, "val[h] = r;", SYNC, READ),  # each thread what it has read
        rounds(CLEAR, SYNC, "if (keys[t] > r) {", PROBE, "val[h] = r; }", SYNC, READ, SYNC),
        table(CLEAR, SYNC, "for (int r = 0; r < n; ++r) {", PROBE, "val[h] = r; }", SYNC, READ),
    ],
)
def test_a_table_that_is_cleared_behind_a_barrier_is_no_lock(text: str) -> None:
    kernel, found = checked(text)
    assert (kernel.verdict, found) == (Verdict.RACE_FREE, set())


@pytest.mark.parametrize(
    "text",
    [
        table(CLEAR, PROBE, "val[h] = t;", SYNC, READ),
        table(CLEAR, SYNC, PROBE, "val[h] = t;", READ),
        table(CLEAR, SYNC, PROBE, "out[blockIdx.x] = t;"),
        rounds(CLEAR, SYNC, PROBE, "val[h] = r;", SYNC, MIRRORED),  # cleared while others read
    ],
)
def test_a_table_that_is_cleared_or_read_too_early_races(text: str) -> None:
    kernel, _ = checked(text)
    assert kernel.verdict is Verdict.RACY


@pytest.mark.parametrize(
    "text",
    [
        table(CLEAR, SYNC, PROBE, "out[h] = t;"),  # each block has a table of its own
        table(CLEAR, SYNC, PROBE, "val[h] = t; tab[h] = 0;"),
        table(CLEAR, SYNC, PROBE, "if (t > n) tab[h ^ 1] = 0; out[blockIdx.x * 512 + h] = t;"),
        table(CLEAR, SYNC, PROBE, "if (t > n)", SYNC, CLEAR, PROBE, "out[blockIdx.x * 512 + h] = t;"),
        table(CLEAR, SYNC, PROBE, "val[h] = t; __syncwarp();", CLEAR, SYNC, PROBE, "val[h] = n;"),
        rounds(CLEAR, SYNC, PROBE, "val[h] = r;", "if (r) continue;", SYNC),
    ],
)
def test_a_word_that_may_be_cleared_beside_claims_has_no_owner(text: str) -> None:
    kernel, _ = checked(text)
    assert kernel.verdict is not Verdict.RACE_FREE


def test_a_word_has_an_owner_in_each_round_that_clears_it() -> None:
    kernel, _ = checked(rounds(CLEAR, SYNC, PROBE, "out[8 * h + blockIdx.x] = r;", SYNC))
    assert kernel.verdict is Verdict.RACE_FREE
    kernel, _ = checked(
        table(CLEAR, SYNC, PROBE, "int a = h;", SYNC, CLEAR, SYNC, PROBE, "val[a] = val[h] = t;")
    )
    assert kernel.verdict is not Verdict.RACE_FREE  # the owner of the first table, and of the second one
