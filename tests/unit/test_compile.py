"""From source to PTX: places, caches, errors. Needs nvcc."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.dynamic.compilation.compile import CompiledModule, CompileError, CompileOptions, compile_module
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.compilation.toolkit import find_toolkit
from cuda_lsp.dynamic.runs import Level

pytestmark = needs_nvcc
KERNEL = "__global__ void k(int* o) { __shared__ int s[64]; s[threadIdx.x] = STEP; BARRIER o[0] = s[1]; }\n"


def compiled(folder: Path, text: str, **options: object) -> CompiledModule:
    return compile_module(
        folder / "k.cu", text, CompileOptions(**options), Level.O0, find_toolkit(), folder / "cache"
    )


def barriers(module: CompiledModule) -> int:
    return module.ptx.count("bar.sync")


@pytest.mark.parametrize("between", ["", "int unused_by_kernels;\n"])
def test_a_changed_header_is_seen_also_when_it_only_defines_macros(tmp_path, between):
    header = tmp_path / "conf.h"
    text = f'#include "conf.h"\n{KERNEL}'
    header.write_text(f"{between}#define STEP 1\n#define BARRIER __syncthreads();\n")
    assert barriers(compiled(tmp_path, text)) == 1
    assert compiled(tmp_path, text).from_cache
    header.write_text(f"{between}#define STEP 1\n#define BARRIER\n")
    changed = compiled(tmp_path, text)
    assert not changed.from_cache
    assert barriers(changed) == 0


def test_places_in_headers_are_the_headers_own(tmp_path):
    (tmp_path / "device.h").write_text("// a line\n__device__ void put(int* p, int i) { p[i] = i; }\n")
    text = '#include "device.h"\n__global__ void k(int* o) { put(o, threadIdx.x); }\n'
    module = compiled(tmp_path, text)
    (store,) = [s for s in sites_of(module, "_Z1kPi") if s.opcode.startswith("st")]
    assert store.site is not None
    assert (store.site.range.path.name, store.site.range.start.line, store.site.text) == (
        "device.h",
        2,
        "p[i]",
    )


def test_an_unsaved_text_is_compiled_and_not_the_file(tmp_path):
    (tmp_path / "k.cu").write_text("this is not CUDA\n")
    assert "entry _Z1kv" in compiled(tmp_path, "__global__ void k() {}\n").ptx


def test_errors_name_the_users_line_and_column(tmp_path):
    with pytest.raises(CompileError) as caught:
        compiled(tmp_path, "__global__ void k() {\n    int x = missing;\n}\n")
    (error,) = caught.value.errors
    assert error.range is not None
    assert (error.range.start.line, error.range.start.column) == (2, 13)
    assert "missing" in error.message


def test_an_unknown_architecture_is_one_clear_message(tmp_path):
    with pytest.raises(CompileError, match="nvcc"):
        compiled(tmp_path, "__global__ void k() {}\n", arch="sm_1")


def test_defines_and_macros_reach_the_device(tmp_path):
    text = KERNEL.replace("STEP", "VALUE").replace("BARRIER", "")
    assert compiled(tmp_path, text, defines=("VALUE=7",)).ptx


def test_a_damaged_cache_entry_is_made_again(tmp_path):
    text = "__global__ void k() {}\n"
    compiled(tmp_path, text)
    for table in (tmp_path / "cache").rglob("tokens.json"):
        table.write_text("{")
    assert not compiled(tmp_path, text).from_cache
