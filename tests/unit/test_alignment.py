"""Accesses of several elements at once whose addresses are no multiples of their size."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuda_lsp.model import Code, Finding, Status
from cuda_lsp.static.analyze import check_text


def misaligned(body: str, parameters: str = "float* out, const float* in", block: int = 64) -> list[Finding]:
    names = ", ".join(p.split()[-1].lstrip("*") for p in parameters.split(","))
    text = (
        "struct __attribute__((packed)) Packed { char tag; int value; };\n"
        f"__global__ void k({parameters}) {{ int t = threadIdx.x; {body} }}\n"
        f"void run({parameters}) {{ k<<<1, {block}>>>({names}); }}\n"
    )
    (kernel,) = check_text(Path("k.cu"), text, solver=False).kernels
    return [f for f in kernel.findings if f.code is Code.MISALIGNED_ACCESS]


def test_a_vector_read_from_padded_rows_is_misaligned() -> None:
    (finding,) = misaligned(
        "__shared__ float tile[32][33]; for (int i = t; i < 32 * 33; i += 64) tile[0][i] = in[i];"
        " __syncthreads();"
        " float4 v = *reinterpret_cast<float4*>(&tile[t / 8][4 * (t % 8)]); out[t] = v.x;"
    )
    assert finding.status is Status.PROVED
    assert finding.message == (
        "thread 8 reads *reinterpret_cast<float4*>(&tile[t / 8][4 * (t % 8)]) 132 bytes behind "
        "thread 0: one of the two addresses is no multiple of 16, as float4 needs"
    )


@pytest.mark.parametrize(
    "body",
    [
        "float2 w = ((float2*)(in + t))[0]; out[t] = w.x;",
        "*(float4*)&out[3 * t] = make_float4(0, 0, 0, 0);",
        "*(long long*)(out + 3 * t) = t;",
    ],
)
def test_neighbours_that_are_too_near_are_misaligned(body: str) -> None:
    assert len(misaligned(body)) == 1


@pytest.mark.parametrize(
    "body",
    [
        "((float4*)out)[t] = make_float4(0, 0, 0, 0);",
        "*(float4*)&out[4 * t + 1] = make_float4(0, 0, 0, 0);",  # where ``out`` begins, nobody tells
        "*(float3*)&out[3 * t] = make_float3(0, 0, 0);",  # aligned as its elements are
        "if (t == 1) *(float2*)&out[3 * t] = make_float2(0, 0);",
    ],
)
def test_what_may_be_aligned_is_not_accused(body: str) -> None:
    assert not misaligned(body)


def test_members_of_packed_records_are_read_byte_by_byte() -> None:
    assert not misaligned("out[t] = p[t].value;", "float* out, Packed* p")


def test_threads_of_two_blocks_count_too() -> None:
    body = "if (t == 0) *(float2*)&out[3 * blockIdx.x] = make_float2(0, 0);"
    assert not misaligned(body)  # one block only


def test_rounds_of_a_loop_are_looked_at_together() -> None:
    (finding,) = misaligned(
        "__shared__ float s[64][36]; for (int i = 0; i < 8; i++) *(float2*)&s[t][3 * i] = make_float2(0, 0);"
    )
    assert "12 bytes behind thread 0" in finding.message


def test_what_all_threads_and_what_all_rounds_share_goes_together() -> None:
    assert not misaligned(
        "__shared__ unsigned char bins[16384]; for (int b = 0; b < 64; b++) bins[64 * b + t] = 0;"
        " for (int b = 0; b < 64; b++) *(int*)&bins[4 * b] = 0;"
    )


def test_pitches_that_nobody_told_may_be_multiples_of_the_vector() -> None:
    body = "*(float2*)&out[t * (n + 1)] = make_float2(0, 0);"
    (finding,) = misaligned(body, "float* out, int n", block=4)
    assert finding.status is Status.POSSIBLE
