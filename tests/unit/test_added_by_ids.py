"""Updates of places that an array tells: ids of rows differ, keys of what is counted do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Status
from cuda_lsp.static.analyze import check_text

HOST = "template <class T> void go(T* out, T* id, T* in, int n) { k<<<32, 256>>>(out, id, in, n); }\n"


def statuses(
    body: str, parameters: str = "float* out, const int* id, const float* in, int n", host: str = HOST
) -> set[Status]:
    text = (
        f"__global__ void k({parameters}) {{\n"
        f"  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) {{ {body} }}\n"
        "}\n"
        f"{host}"
    )
    report = check_text(Path("k.cu"), text)
    assert not report.errors
    return {f.status for f in report.findings if f.kind}


@pytest.mark.parametrize(
    "body",
    [
        "out[id[i]] += in[i];",
        "float x = out[id[i]]; x += in[i + 1] - in[i]; out[id[i]] = x;",
        "int at = id[i] * 16; for (int c = 0; c < 16; ++c) out[at + c] += in[16 * i + c];",
    ],
)
def test_what_stands_beside_its_id_is_put_back_to_a_row_of_its_own(body: str) -> None:
    assert statuses(body) == {Status.POSSIBLE}


@pytest.mark.parametrize(
    "body",
    [
        "out[id[i]] += 1;",
        "out[id[i]] += i;",
        "out[id[i] % 64] += in[i];",
        "out[id[i] >> 4] += in[i];",
        "int bin = id[i] & 31; out[bin] += in[i];",
        "if (out[id[i]] < in[i]) out[id[i]] = in[i];",
    ],
)
def test_what_is_counted_or_compared_meets(body: str) -> None:
    assert Status.CONDITIONAL in statuses(body)


def test_bytes_are_no_ids() -> None:
    told = statuses("out[id[i]] += in[i];", "float* out, const unsigned char* id, const float* in, int n")
    assert Status.CONDITIONAL in told


def test_edges_lead_to_one_place_more_than_once() -> None:
    parameters = "float* out, const int* id, const float* in, int n, const int* from, const float* x"
    text = (
        f"__global__ void k({parameters}) {{\n"
        "  int i = blockIdx.x * blockDim.x + threadIdx.x; if (i < n) out[id[i]] += in[i] * x[from[i]];\n"
        "}\n"
    )
    assert Status.CONDITIONAL in {f.status for f in check_text(Path("k.cu"), text).findings if f.kind}


SEVERAL = """
__global__ void k(float* sum, float* deep, const float* x, int* id, const float* in, int n) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  int at = id[i];
  {body}
}}
void go(float* a, float* b, float* c, int* id, float* in, int n) {{ k<<<32, 256>>>(a, b, c, id, in, n); }}
"""


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("sum[at] += in[i]; deep[at] += in[i] * 2; if (in[i] < 0) id[i] = -1;", Status.POSSIBLE),
        ("sum[at] += in[i]; deep[3 * at] += in[i]; deep[3 * at + 1] += in[i];", Status.POSSIBLE),
        (
            "int k = 0; while (k < n) { if (in[k] == 0) break; k++; } float s = sum[at], d = deep[at];"
            " if (k < n) id[i] = -1; else sum[at] = s + in[i]; deep[at] = d + in[i];",
            Status.POSSIBLE,
        ),
        ("sum[at] += in[i] * x[at];", Status.CONDITIONAL),  # what nobody puts back
        ("sum[at] += in[i]; deep[at] += 1; if (sum[at] > 3) deep[i] = 0;", Status.CONDITIONAL),
    ],
)
def test_rows_of_several_arrays_are_put_back_by_the_same_ids(body: str, status: Status) -> None:
    report = check_text(Path("k.cu"), SEVERAL.format(body=body))
    found = {f.status for f in report.findings if f.kind and f.array in ("sum", "deep")}
    assert (found == {status}) if status is Status.POSSIBLE else (status in found)


BY_ROW = """
__global__ void k({type}* out, const int* id, const float* in, int n, const int* kind, const float* bias) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{ int row = id[i]; {body} }}
}}
void go({type}* o, int* id, float* in, int n, int* d, float* b) {{ k<<<32, 256>>>(o, id, in, n, d, b); }}
"""


def of_rows(body: str, type: str = "float") -> set[Status]:
    report = check_text(Path("k.cu"), BY_ROW.format(body=body, type=type))
    assert not report.errors
    return {f.status for f in report.findings if f.kind}


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ("out[row] += in[i] + bias[kind[row]];", "float"),
        ("out[row] += bias[kind[row]];", "float"),
        ("out[row] += bias[row] * *in;", "float"),  # the ids list rows that there is work for
        ("if (kind[row] == n) out[row] = out[row] * .5f + bias[row];", "float"),
        ("int k = 0; while (k < 9) k = kind[k + (kind[row] < 3)]; out[row] += bias[k];", "float"),
        ("out[row] *= bias[kind[i]];", "float"),
        ("for (int c = 0; c < 4; ++c) out[row * 4 + c] *= bias[kind[i] * 4 + c];", "float"),
        ("out[row] = in[i] * out[row];", "float"),
        ("out[row] /= 3;", "int"),
    ],
)
def test_numbers_of_a_row_are_no_other_end_and_products_no_sums_over_edges(body: str, type: str) -> None:
    assert of_rows(body, type) == {Status.POSSIBLE}


@pytest.mark.parametrize(
    ("body", "type"),
    [
        ("out[row] += in[i] * bias[kind[i]];", "float"),  # an edge from kind[i] to row
        ("out[row] += n;", "float"),  # nothing stands beside the ids: a count
        ("if (in[i] > 0) out[row] += bias[row];", "float"),  # of elements, by the key that each has
        ("out[row] += bias[kind[row % 64]];", "float"),
        ("out[row] += bias[kind[0]];", "float"),
        ("out[row] += in[i] * bias[row];", "float"),
        ("int k = 0; while (k < 9) k = kind[k + i]; out[row] += in[i] + bias[k];", "float"),
        ("out[row] = out[row] * 2 + bias[kind[i]];", "float"),
        ("float v = out[row]; row = kind[i]; out[row] = v * 2 + out[row];", "float"),
        ("out[row % 64] *= in[i];", "float"),
        ("out[row] = 2 / out[row];", "int"),
    ],
)
def test_sums_over_edges_and_what_is_no_product_of_its_place_meet(body: str, type: str) -> None:
    assert Status.CONDITIONAL in of_rows(body, type)


LIST = """
struct Rule {{ float limit; int most; }};
__constant__ Rule rule;
__global__ void k(float4* v, float* out, int* code, const int* id, const float* beside, const float* pos,
                  const float* table, int n, int zone, int* next) {{
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) {{ int p = id[i]; {body} }}
}}
void go(float4* v, float* o, int* c, int* id, float* b, float* x, float* t, int n, int z, int* next) {{
  k<<<32, 256>>>(v, o, c, id, b, x, t, n, z, next);
}}
"""


def of_list(body: str) -> set[Status]:
    report = check_text(Path("k.cu"), LIST.format(body=body))
    assert not report.errors
    return {f.status for f in report.findings if f.kind}


@pytest.mark.parametrize(
    "body",
    [
        # what a row's floats lead to, and what all threads read
        "int c = (int)(pos[p] * 4); out[p] = out[p] * .5f + table[c] - table[c + 1];",
        "if (pos[p] < rule.limit) out[p] = out[p] + pos[p] * rule.limit;",
        "float s = 0; for (int k = 0; k < n; k++) s += table[k]; out[p] = out[p] * s + pos[p];",
        # stored over, but for what is put back as it was
        "float4 a = v[p]; a.x = beside[i]; v[p] = a;",
        "float4 a = v[p]; if (zone == 0) a.x = beside[i]; else a.y = table[zone]; v[p] = a;",
        "if (code[p] == zone) v[p] = make_float4(beside[i], pos[p], 0, v[p].w);",
        "float s = 0; for (int k = 0; k < n; k++) s += beside[i] * k; float4 a = v[p]; a.z = s; v[p] = a;",
        # looked at before, where another number of the row says so
        "if (pos[p] < 1) { float old = out[p]; v[p] = make_float4(old, 0, 0, 0); } out[p] = table[p];",
    ],
)
def test_lists_of_rows_to_work_on_name_each_once(body: str) -> None:
    assert of_list(body) == {Status.POSSIBLE}


@pytest.mark.parametrize(
    "body",
    [
        "int c = (int)(beside[i] * 4); out[p] = out[p] * .5f + table[c];",  # it leads there
        "out[p] = out[p] * .5f + pos[p] * out[p + 1];",  # the entry of another row, which may be in the list
        "out[p] = out[p] * .5f + pos[p] * out[id[i + 1]];",
        "float a = out[p]; p = id[n - 1 - i]; out[p] = a * .5f + pos[p];",
        "float4 a = v[p]; a.x += beside[i] * pos[p]; v[p] = a;",  # made of what was there
        "float4 a = v[p]; a.x = fmaxf(a.y, beside[i]) + pos[p]; v[p] = a;",
        "float4 a = v[p]; if (a.w < beside[i]) a.w = pos[p]; v[p] = a;",  # chosen by it
        "if (code[p] == 0) code[p] = i;",
        "if (code[p] != 0) return; code[p] = 1; out[i] = 1;",
        "next[i] = code[p]; code[p] = i;",  # handed on: a list begins there
        "float4 a = v[p]; for (int k = 0; k < n; k++) a.x += beside[i] * pos[p]; v[p] = a;",
        "int old = code[p]; code[p] = zone; if (old != zone) *next = 1;",
        "int a[2]; a[0] = code[p]; a[1] = i; code[p] = a[n & 1] + zone;",
        "float old = out[p]; if (old < pos[p]) out[p] = table[p];",
    ],
)
def test_who_updates_a_place_or_reads_another_row_meets_others(body: str) -> None:
    assert Status.CONDITIONAL in of_list(body)


KEPT = """
struct Steps {{
  int at, by, end;
  __device__ Steps(int from, int by, int end) : at(from), by(by), end(end) {{}}
  __device__ bool operator!=(const Steps& other) const {{ return at < other.end; }}
  __device__ int operator*() const {{ return at; }}
  __device__ void operator++() {{ at += by; }}
}};
template <int N>
__global__ void k(float* out, const float* in, const int* id, const int* from, int n, int width) {{
  int step[N], at[N], other[N];
  for (int j = 0; j < N; j++) step[j] = j * gridDim.x * blockDim.x;
  Steps rows(blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x * N, n);
  for (; rows != rows; ++rows) {{
    int i = *rows;
    for (int j = 0; j < N; j++) if (i + step[j] < n) {{ {keeps} }}
    for (int y = blockIdx.y * blockDim.y + threadIdx.y; y < width; y += gridDim.y * blockDim.y)
      for (int j = 0; j < N; j++) if (i + step[j] < n) {{ {adds} }}
  }}
}}
void go(float* o, float* in, int* id, int* from, int n, int w) {{
  k<4><<<dim3(64, 4), dim3(4, 64)>>>(o, in, id, from, n, w);
}}
"""
ROW = "at[j] = id[i + step[j]] * width;"
ADDS = "out[at[j] + y] += in[(i + step[j]) * width + y];"


def kept(keeps: str, adds: str) -> set[Status]:
    report = check_text(Path("k.cu"), KEPT.format(keeps=keeps, adds=adds))
    assert not report.errors
    return {f.status for f in report.findings if f.kind}


def test_ids_are_ids_where_threads_keep_several() -> None:
    assert kept(ROW, ADDS) == {Status.POSSIBLE}


@pytest.mark.parametrize(
    ("keeps", "adds"),
    [
        (ROW, "out[at[j] + y] += 1;"),  # a count
        (ROW, "float v = out[at[j] + y]; out[at[(j + 1) % N] + y] = v + in[(i + step[j]) * width + y];"),
        ("at[j] = id[i + step[j]] % 64 * width;", ADDS),
        ("at[j] = (id[i + step[j]] >> 3) * width;", ADDS),
        (ROW, "float v = out[at[j] + y]; at[j] = id[i] * width; out[at[j] + y] = v + in[i * width + y];"),
        (
            ROW + " other[j] = from[i + step[j]] * width;",  # edges
            "out[at[j] + y] += in[other[j] + y];",
        ),
    ],
)
def test_what_threads_keep_is_no_id_where_it_is_a_key_or_changes(keeps: str, adds: str) -> None:
    assert Status.CONDITIONAL in kept(keeps, adds)


PAIRS = """
__global__ void k(float* out, const int* id, const float* in, int n, int c) {
  int at = blockIdx.x * blockDim.x + threadIdx.x, i = at / (c / 2), j = 2 * (at % (c / 2));
  if (i >= n) return;
  float2* place = reinterpret_cast<float2*>(&out[ROW * c + j]);
  float2 sum = *place;
  sum.x += in[i * c + j];
  sum.y += in[i * c + j + 1];
  *place = sum;
}
void go(float* out, int* id, float* in, int n, int c) { k<<<(n * c + 511) / 512, 256>>>(out, id, in, n, c); }
"""


@pytest.mark.parametrize(("row", "meet"), [("id[i]", False), ("(id[i] & 31)", True), ("(id[i] / 4)", True)])
def test_rows_are_put_back_pair_by_pair(row: str, meet: bool) -> None:
    report = check_text(Path("k.cu"), PAIRS.replace("ROW", row))
    assert not report.errors
    assert (Status.CONDITIONAL in {f.status for f in report.findings if f.kind}) is meet


PLANES = """
__global__ void k(int* state, const int* id, const float* mass, float* x, float* y, float* z, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= n) return;
    int now = state[i], p = id[OFFSET i];
    float m = 1 / mass[p];
    x[p] = .5f * x[p] + m * now;
    y[Y] = .5f * y[Y] + m * now;
    z[p] = .5f * z[p] + m * now;
    state[i] = now * 7 + 1;
}
void go(int* state, int* id, float* mass, float* x, int n) {
    k<<<32, 256>>>(state, id, mass, x, x + n, x + 2 * n, n);
}
"""


def of_planes(offset: str = "", y: str = "p") -> set[Status]:
    report = check_text(Path("k.cu"), PLANES.replace("OFFSET", offset).replace("Y]", f"{y}]"))
    assert not report.errors
    return {f.status for f in report.findings if f.kind}


@pytest.mark.parametrize("offset", ["", "7 +", "n +"])
def test_rows_are_put_back_to_planes_of_one_allocation(offset: str) -> None:
    """With what each thread keeps for itself, as random numbers are."""
    assert of_planes(offset) == {Status.POSSIBLE}


@pytest.mark.parametrize("y", ["p / 2", "id[i / 2]", "p % 64"])
def test_rows_that_are_named_twice_meet_in_planes_too(y: str) -> None:
    assert Status.CONDITIONAL in of_planes(y=y)


@pytest.mark.parametrize(
    "body",
    [
        "out[id[i]] = fmaxf(out[id[i]], 0.0f);",
        "float4* r = (float4*)out; float4 v = r[id[i]]; float m = v.w;"
        " if (m > 0) { v.x /= m; v.y /= m; } r[id[i]] = v;",
        "float* x = out + id[i] * 2; float s = x[0] * x[0] + x[1] * x[1]; x[0] /= s; x[1] /= s;",
    ],
)
def test_rows_that_are_made_of_themselves_are_listed_once(body: str) -> None:
    assert statuses(body) == {Status.POSSIBLE}


@pytest.mark.parametrize(
    "body",
    [
        "out[id[i]] = fminf(out[id[i]] + 1.0f, 255.0f);",
        "float v = out[id[i]]; v += 2; if (v > n) v = n; out[id[i]] = v;",
        "out[id[i]] = fmaxf(out[id[i]], (float)i);",
        "float v = out[id[i]]; for (int k = 0; k < 3; ++k) v += 1; out[id[i]] = v;",
    ],
)
def test_a_step_counts_and_so_does_what_a_thread_brings(body: str) -> None:
    assert Status.CONDITIONAL in statuses(body)


SEGMENTS = (
    "float* out, const int* id, const float* in, const int* list, const int* first, const int* last, int n"
)
SEGMENTS_HOST = (
    "void go(float* out, int* id, float* in, int* list, int* first, int* last, int n)"
    " { k<<<32, 256>>>(out, id, in, list, first, last, n); }\n"
)


def in_segments(body: str) -> set[Status]:
    return statuses(body, SEGMENTS, SEGMENTS_HOST)


SUM = "int b = first[i], e = last[i]; float v = 0; for (int k = b; k < e; ++k) v += in[list[k]];"


def test_a_segment_is_added_to_the_one_row_that_its_first_element_names() -> None:
    assert in_segments(f"{SUM} out[id[list[b]]] += v;") == {Status.POSSIBLE}


@pytest.mark.parametrize(
    "body",
    [
        "int b = first[i], e = last[i]; for (int k = b; k < e; ++k) out[id[k]] += in[k];",
        "int e = list[i]; out[id[e]] += in[first[e]];",
    ],
)
def test_edges_of_a_list_meet_at_their_ends(body: str) -> None:
    assert Status.CONDITIONAL in in_segments(body)


EDGES = "int j = id[i]; float s = v[i] * w[to[i]]; "
GIVEN = "float* out, const int* id, const int* to, const float* v, const float* w, int n, int how"
PASSES = """
void go(float* o, int* d, int* t, float* v, float* w, int n, int h) { k<<<9, 256>>>(o, d, t, v, w, n, h); }
"""


@pytest.mark.parametrize(
    "body",
    [
        "if (how) out[j] += s; else atomicAdd(&out[j], s);",
        "if (how == 2) { atomicAdd(&out[j], s); } else { out[j] += s; }",
    ],
)
def test_who_may_choose_atomics_knows_when_ids_differ(body: str) -> None:
    assert statuses(EDGES + body, GIVEN, PASSES) == {Status.POSSIBLE}


@pytest.mark.parametrize(
    "body",
    [
        "out[j] += s;",
        "if (how) out[j] += s;",
        "if (how) out[j] += s; else out[j] += 2 * s;",
        "if (v[i] > 0) out[j] += s; else atomicAdd(&out[j], s);",
        "if (how) out[j] += s; else atomicAdd(&out[j], s); out[j] += 1;",
    ],
)
def test_who_may_not_meets_others(body: str) -> None:
    assert Status.CONDITIONAL in statuses(EDGES + body, GIVEN, PASSES)
