"""The command line as people use it: exit codes, formats, messages."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import needs_nvcc

from cuda_lsp.cli import main

RACY = (
    "__global__ void k(int* o) {\n  __shared__ int s[64];\n  s[threadIdx.x] = 1;\n"
    "  o[threadIdx.x] = s[63 - threadIdx.x];\n}\nvoid run(int* o) { k<<<1, 64>>>(o); }\n"
)
CLEAN = RACY.replace("= 1;", "= 1;\n  __syncthreads();")


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def file(tmp_path) -> Path:
    path = tmp_path / "k.cu"
    path.write_text(RACY)
    return path


def invoke(*arguments: object):
    return CliRunner().invoke(main, [str(a) for a in arguments])


def test_a_race_gives_exit_code_1_and_its_place(file):
    result = invoke("check", file)
    assert result.exit_code == 1
    assert "k.cu:4:20: shared-race [proved]" in result.output.replace("\n", "")


def test_a_clean_file_gives_exit_code_0(file):
    file.write_text(CLEAN)
    assert invoke("check", file).exit_code == 0


def test_fail_on_never_always_succeeds(file):
    assert invoke("check", file, "--fail-on", "never").exit_code == 0


def test_a_file_that_is_not_there_gives_exit_code_2(tmp_path):
    result = invoke("check", tmp_path / "none.cu")
    assert result.exit_code == 2
    assert "does not exist" in result.output


def test_json_has_the_schema_and_the_witness(file):
    found = json.loads(invoke("check", file, "--format", "json").output)
    assert found["schema"] == 1
    (kernel,) = found["files"][0]["kernels"]
    assert kernel["verdict"] == "racy"
    (race,) = [f for f in found["files"][0]["findings"] if f["code"] == "shared-race"]
    assert race["witness"]["array"] == "s" and race["range"]["start"]["line"] == 4


def test_sarif_and_github_name_the_rule(file):
    assert json.loads(invoke("check", file, "--format", "sarif").output)["version"] == "2.1.0"
    assert "::error" in invoke("check", file, "--format", "github").output


def test_block_dim_overrides_the_launch(file):
    assert "block 32" in invoke("check", file, "--block-dim", "32").output


@pytest.mark.parametrize("text", ["0", "a,b", "1,2,3,4"])
def test_a_bad_block_dim_is_told(file, text):
    result = invoke("check", file, "--block-dim", text)
    assert result.exit_code == 2 and "--block-dim wants" in result.output


def test_explain_lists_and_explains():
    assert "shared-race" in invoke("explain").output
    assert "__syncthreads" in invoke("explain", "shared-race").output
    assert invoke("explain", "nonsense").exit_code == 2


@pytest.mark.parametrize("command", ["check", "run", "serve", "explain", "doctor", "clean"])
def test_every_command_has_help(command):
    result = invoke(command, "--help")
    assert result.exit_code == 0 and "Usage:" in result.output


def test_an_unknown_kernel_is_told_with_those_there_are(file):
    result = invoke("run", file, "--kernel", "other", "--engine", "emulator")
    assert result.exit_code == 2 and "it has k" in result.output


@needs_nvcc
def test_run_confirms_on_the_emulator(file):
    result = invoke("run", file, "--engine", "emulator")
    assert result.exit_code == 1
    assert "[confirmed]" in result.output and "seen on CPU emulator" in result.output.replace("\n", " ")


def test_json_names_the_header_that_a_finding_is_in(tmp_path: Path) -> None:
    (tmp_path / "put.h").write_text("__device__ void put(int* place) { *place = threadIdx.x; }\n")
    kernel = tmp_path / "k.cu"
    kernel.write_text(
        '#include "put.h"\n__global__ void k(int* out) { put(out); }\nvoid go(int* p) { k<<<1, 64>>>(p); }\n'
    )
    (report,) = json.loads(CliRunner().invoke(main, ["check", str(kernel), "--format", "json"]).output)[
        "files"
    ]
    assert report["path"] == str(kernel)
    assert {f["path"] for f in report["findings"] if f["kind"]} == {str(tmp_path / "put.h")}


@needs_nvcc
def test_check_dynamic_says_what_a_run_saw_in_json(file):
    output = invoke("check", file, "--dynamic", "emulator", "--format", "json").output
    races = [f for f in json.loads(output)["files"][0]["findings"] if f["code"] == "shared-race"]
    assert [r["status"] for r in races] == ["confirmed"]


@needs_nvcc
def test_run_of_a_clean_kernel_sees_nothing(file):
    file.write_text(CLEAN)
    result = invoke("run", file, "--engine", "emulator", "--watch-all")
    assert result.exit_code == 0 and "race-free" in result.output


def test_a_kernel_that_is_no_program_text_fails_the_check(file: Path) -> None:
    file.write_text(RACY.replace("s[threadIdx.x] = 1;", "s[threadIdx.x] = 1"))
    result = invoke("check", file, "--format", "concise", "--fail-on", "never")
    assert result.exit_code == 2 and f"{file}:3:21: error: in kernel 'k', not understood" in result.output


def test_a_file_without_kernels_whose_header_lacks_another_is_no_failure(file: Path) -> None:
    (file.parent / "tools.h").write_text('#include "absent.h"\n')
    file.write_text('\n#include "tools.h"\nint main() {}\n')
    result = invoke("check", file, "--format", "concise", "--fail-on", "never")
    assert (
        result.exit_code == 0 and f"{file}:2:1: information: header 'absent.h' was not found" in result.output
    )


def test_what_a_missing_header_would_make_sense_of_is_no_failure(file: Path) -> None:
    file.write_text('#include "macros.h"\n' + RACY.replace("  s[", "  UNROLLED for (;;) s["))
    result = invoke("check", file, "--fail-on", "never")
    assert result.exit_code == 0 and "macros.h" in result.output


def test_a_folder_without_kernels_is_a_failure(tmp_path: Path) -> None:
    (tmp_path / "main.cpp").write_text("int main() {}\n")
    result = invoke("check", tmp_path)
    assert result.exit_code == 2 and "no file with CUDA kernels" in result.output
