"""``check --fix``, ``--diff`` and ``--repairs``, as they are used at a terminal and in scripts."""

from __future__ import annotations

import json
import os
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from cuda_lsp.cli import main, mend
from cuda_lsp.model import FileReport
from cuda_lsp.repairs import plan
from cuda_lsp.repairs.search import Composition
from cuda_lsp.repairs.writing import rewritten, write

pytestmark = pytest.mark.usefixtures("own_folder")
RACY = """__global__ void NAME(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = 1 + threadIdx.x;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { NAME<<<1, 64>>>(out); }
"""
MENDED = RACY.replace("  out[", "  __syncthreads();\n  out[")
OVERRUN = """__global__ void k(int *out) {
  __shared__ int s[64];
  s[threadIdx.x + 1] = 1;
}
void launch(int *out) { k<<<1, 64>>>(out); }
"""


def check(*arguments: object, text: bytes | None = None) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)], input=text, env={"COLUMNS": "200"})


def racy(name: str = "k") -> str:
    return RACY.replace("NAME", name)


def mended(name: str = "k") -> str:
    return MENDED.replace("NAME", name)


def test_what_is_mended_is_written_and_what_is_left_is_told() -> None:
    Path("a.cu").write_text(racy())
    Path("b.cu").write_text(OVERRUN)
    result = check("--fix", ".")
    assert Path("a.cu").read_text() == mended()
    assert Path("b.cu").read_text() == OVERRUN  # what was meant is not known
    assert result.exit_code == 1 and "shared-out-of-bounds" in result.stdout
    assert "shared-race" not in result.stdout
    assert "mended 1 finding in 1 file, by 1 repair" in result.stderr
    assert check("--fix", "a.cu").exit_code == 0


def test_unsafe_repairs_are_made_when_asked_for() -> None:
    Path("b.cu").write_text(OVERRUN)
    assert check("--fix", "--unsafe-fixes", "b.cu").exit_code == 0
    assert "  if (threadIdx.x + 1 < 64) s[threadIdx.x + 1] = 1;\n" in Path("b.cu").read_text()


def test_a_diff_changes_nothing_can_be_applied_and_says_by_its_status_that_there_is_one() -> None:
    Path("a.cu").write_text(racy())
    result = check("--diff", "a.cu")
    assert result.exit_code == 1 and Path("a.cu").read_text() == racy()
    assert "would mend 1 finding in 1 file, by 1 repair" in result.stderr
    subprocess.run(["patch", "-s", "a.cu"], input=result.stdout, text=True, check=True)
    assert Path("a.cu").read_text() == mended()
    again = check("--diff", "a.cu")
    assert (again.exit_code, again.stdout) == (0, "")


def test_a_diff_of_a_file_without_an_end_of_line_can_be_applied() -> None:
    Path("a.cu").write_text(racy().rstrip("\n"))
    result = check("--diff", "a.cu")
    subprocess.run(["patch", "-s", "a.cu"], input=result.stdout, text=True, check=True)
    assert Path("a.cu").read_text() == mended().rstrip("\n")


def test_a_file_that_cannot_be_read_is_exit_code_2_with_a_diff_too() -> None:
    Path("a.cu").write_bytes(b"\0\1\2")
    assert check("--diff", "a.cu").exit_code == 2


def test_the_text_of_standard_input_comes_out_mended_and_findings_go_elsewhere() -> None:
    result = check("--fix", "-", "--stdin-filename", "a.cu", text=racy().encode())
    assert result.stdout == mended() and result.exit_code == 0
    assert "race-free" in result.stderr and not Path("a.cu").exists()
    result = check("--fix", "-", "--stdin-filename", "a.cu", text=OVERRUN.encode())
    assert result.stdout == OVERRUN and result.exit_code == 1
    assert "shared-out-of-bounds" in result.stderr


def test_several_repairs_of_a_file_are_made_together() -> None:
    both = racy("one") + racy("two").replace("launch", "other")
    Path("a.cu").write_text(both)
    assert check("--fix", "a.cu").exit_code == 0
    assert Path("a.cu").read_text() == mended("one") + mended("two").replace("launch", "other")


def test_what_there_is_no_time_for_is_told_and_the_findings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.cu").write_text(racy())
    monkeypatch.setattr(mend, "_SHARE", 1e-6)
    result = check("--fix", "a.cu")
    assert result.exit_code == 1 and Path("a.cu").read_text() == racy()
    assert "a.cu: repairs were looked for only as long as 0 s of --deadline" in result.stderr


def test_only_chosen_codes_are_mended() -> None:
    Path("a.cu").write_text(racy())
    assert check("--fix", "--ignore", "shared-race", "a.cu").exit_code == 0
    assert check("--fix", "--select", "bank-conflict", "a.cu").exit_code == 0
    assert Path("a.cu").read_text() == racy()


# ------------------------------------------------------------------------------ what stays as it is


def test_bytes_that_are_no_text_line_ends_and_the_mode_stay() -> None:
    head = b"\xef\xbb\xbf// caf\xe9 \xff\xfe \xe2\x82 na\xc3\xafve\r\n"
    Path("a.cu").write_bytes(head + racy().replace("\n", "\r\n").encode() + b"// \xe4")
    os.chmod("a.cu", 0o640)
    Path("link.cu").symlink_to("a.cu")
    assert check("--fix", "link.cu").exit_code == 0
    assert Path("a.cu").read_bytes() == head + mended().replace("\n", "\r\n").encode() + b"// \xe4"
    assert stat.S_IMODE(os.stat("a.cu").st_mode) == 0o640
    assert Path("link.cu").is_symlink() and sorted(os.listdir()) == ["a.cu", "link.cu"]


def test_bytes_before_within_and_behind_changes_stay() -> None:
    data = b"\xff\nold \xe2\x82\xac\n\xe4\xb8 x\nlast \x80\n"
    text = data.decode("utf-8", "replace")
    assert rewritten(data, text) == data
    changed = text.replace("old", "new").replace("last", "very last")
    assert rewritten(data, changed) == data.replace(b"old", b"new").replace(
        b"last \x80", "very last \ufffd".encode()
    )


def test_what_cannot_be_written_is_left_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.cu").write_text(racy())

    def refuse(source: str, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(OSError, match="No space"):
        write(Path("a.cu"), b"half")
    assert os.listdir() == ["a.cu"] and Path("a.cu").read_text() == racy()
    result = check("--fix", "a.cu")
    assert result.exit_code == 2 and "a.cu: cannot be written: No space left on device" in result.stderr
    assert "shared-race" in result.stdout  # it is told as it is


def test_a_file_that_somebody_changes_meanwhile_is_left_to_them(monkeypatch: pytest.MonkeyPatch) -> None:
    Path("a.cu").write_text(racy())
    usual = plan.composed

    def slowly(path: Path, text: str, report: FileReport, *more: object) -> Composition:
        path.write_text("// theirs\n")
        return usual(path, text, report, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(plan, "composed", slowly)
    result = check("--fix", "a.cu")
    assert result.exit_code == 2 and "a.cu: changed meanwhile" in result.stderr
    assert Path("a.cu").read_text() == "// theirs\n"


# -------------------------------------------------------------------------------------- headers


def header(name: str, includers: Sequence[str]) -> None:
    Path("k.cuh").write_text(racy(name).partition("void launch")[0])
    for includer in includers:
        call = f"void {includer}(int *out) {{ {name}<<<1, 64>>>(out); }}\n"
        Path(f"{includer}.cu").write_text(f'#include "k.cuh"\n{call}')


def test_a_header_that_was_not_asked_for_is_told_and_left() -> None:
    header("k", ["one"])
    before = Path("k.cuh").read_text()
    result = check("--fix", "one.cu")
    assert result.exit_code == 1 and Path("k.cuh").read_text() == before
    assert "k.cuh: not among the files asked for, so it is not changed" in result.stderr


def test_a_header_that_was_asked_for_is_mended_for_all_that_include_it() -> None:
    header("k", ["one", "two"])
    result = check("--fix", ".")
    assert result.exit_code == 0, result.output
    assert Path("k.cuh").read_text() == mended().partition("void launch")[0]


def test_a_header_for_which_units_ask_for_different_things_is_left() -> None:
    text = racy().partition("void launch")[0].replace("63 -", "WHICH -")
    Path("k.cuh").write_text(text)
    call = "void f(int *out) { k<<<1, 64>>>(out); }\n"
    Path("one.cu").write_text('#define WHICH 63\n#include "k.cuh"\n' + call)
    Path("two.cu").write_text('#define WHICH 2 * threadIdx.x\n#include "k.cuh"\n' + call)
    result = check("--fix", ".")
    assert Path("k.cuh").read_text() == text, result.output
    assert "k.cuh: not changed, because one.cu, two.cu ask for different repairs" in result.stderr


# ------------------------------------------------------------------------------------- being told


def test_repairs_are_told_beside_findings() -> None:
    Path("a.cu").write_text(racy())
    result = check("--repairs", "--format", "concise", "a.cu")
    assert result.exit_code == 1 and Path("a.cu").read_text() == racy()
    assert "a.cu:4:1: verified repair: Insert __syncthreads(); before line 4" in result.stdout


def test_repairs_are_fixes_of_a_sarif_log() -> None:
    Path("a.cu").write_text(racy())
    (result,) = json.loads(check("--repairs", "--format", "sarif", "a.cu").stdout)["runs"][0]["results"]
    (fix,) = result["fixes"]
    (change,) = fix["artifactChanges"]
    assert fix["description"]["text"] == "Insert __syncthreads(); before line 4"
    assert change["artifactLocation"]["uri"] == "a.cu"
    region = {"startLine": 4, "startColumn": 1, "endLine": 4, "endColumn": 1}
    added = {"text": "  __syncthreads();\n"}
    assert change["replacements"] == [{"deletedRegion": region, "insertedContent": added}]
    (plain,) = json.loads(check("--format", "sarif", "a.cu").stdout)["runs"][0]["results"]
    assert "fixes" not in plain


@pytest.mark.parametrize("other", ["--watch", "--staged", "--dynamic=emulator", "--write-baseline=x.json"])
def test_what_does_not_go_with_repairs_is_refused(other: str) -> None:
    Path("a.cu").write_text(racy())
    result = check("--fix", other, "a.cu")
    assert result.exit_code == 2 and "repairs are not made beside" in result.output
    assert Path("a.cu").read_text() == racy()
