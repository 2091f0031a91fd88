"""What ``check`` tells of what it found, and in which shape: selections, baselines, totals, formats."""

from __future__ import annotations

import json
import subprocess
import sys
import xml.etree.ElementTree as Xml
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner, Result
from jsonschema import Draft202012Validator
from rich.console import Console

from cuda_lsp.batch.asked import Analysed
from cuda_lsp.batch.watch import Watched
from cuda_lsp.cli import main
from cuda_lsp.model import Code, FileReport, ToolError
from cuda_lsp.readings import Reading
from cuda_lsp.report.baseline import BadBaseline, Baseline, baseline
from cuda_lsp.report.document import document
from cuda_lsp.report.gitlab import code_quality
from cuda_lsp.report.junit import junit
from cuda_lsp.report.progress import Progress
from cuda_lsp.report.sarif import sarif
from cuda_lsp.report.schema import report_schema
from cuda_lsp.report.selection import selected
from cuda_lsp.static.analyze import check_text

pytestmark = pytest.mark.usefixtures("own_folder")
FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
RACY = """__global__ void NAME(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { NAME<<<1, 64>>>(out); }
"""
CONFLICT = """__global__ void columns(float *out) {
  __shared__ float t[32][32];
  t[threadIdx.x][threadIdx.y] = 1;
  out[threadIdx.x] = t[0][0];
}
void launch_columns(float *out) { columns<<<1, dim3(32, 1)>>>(out); }
"""


def racy(name: str) -> str:
    return RACY.replace("NAME", name)


def check(*arguments: object, text: str | None = None) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, arguments)], input=text, env={"COLUMNS": "200"})


def codes(result: Result) -> set[str]:
    (report,) = json.loads(result.stdout)["files"]
    return {finding["code"] for finding in report["findings"]}


# ------------------------------------------------------------------------------------- selections


def test_codes_are_selected_and_ignored():
    Path("k.cu").write_text(racy("k") + CONFLICT)
    everything = codes(check("k.cu", "--format", "json"))
    assert {"shared-race", "bank-conflict"} <= everything
    assert codes(check("k.cu", "--format", "json", "--select", "bank-conflict")) == {"bank-conflict"}
    left = codes(check("k.cu", "--format", "json", "--ignore", "bank-conflict,shared-race"))
    assert left == everything - {"bank-conflict", "shared-race"}
    unknown = check("k.cu", "--select", "races")
    assert unknown.exit_code == 2 and "no code 'races'" in unknown.output


def test_the_exit_status_counts_what_is_told_only():
    Path("k.cu").write_text(racy("k"))
    assert check("k.cu").exit_code == 1
    assert check("k.cu", "--ignore", "shared-race").exit_code == 0


def test_verdicts_stay_whatever_is_told():
    (report,) = selected([check_text(Path("k.cu"), racy("k"))], frozenset(), frozenset(Code))
    assert report.kernels[0].verdict.value == "racy" and not report.findings


# -------------------------------------------------------------------------------------- baselines


def test_a_project_adopts_a_baseline_changes_and_is_told_of_what_is_new():
    Path("old.cu").write_text(racy("first"))
    written = check(".", "--write-baseline", "known.json")
    assert written.exit_code == 0 and "1 findings are known now" in written.output
    quiet = check(".", "--baseline", "known.json")
    assert quiet.exit_code == 0 and "shared-race" not in quiet.stdout and "1 known" in quiet.stderr
    # Lines move, the code is laid out anew, and a second mistake of the same kind comes.
    moved = racy("first").replace("s[63 - threadIdx.x]", "s[ 63-threadIdx.x ]")
    Path("old.cu").write_text("// a comment\n\n" + moved + racy("second"))
    again = check(".", "--baseline", "known.json", "--format", "json")
    assert again.exit_code == 1
    (report,) = json.loads(again.stdout)["files"]
    assert [finding["kernel"] for finding in report["findings"]] == ["second"]


def test_a_file_that_is_renamed_keeps_what_is_known():
    Path("old.cu").write_text(racy("first"))
    check(".", "--write-baseline", "known.json")
    Path("old.cu").rename("new.cu")
    assert check(".", "--baseline", "known.json").exit_code == 0
    Path("copy.cu").write_text(racy("first"))  # a second one of the same is new
    assert check(".", "--baseline", "known.json").exit_code == 1


def test_as_many_are_excused_as_were_known():
    Path("k.cu").write_text(racy("k"))
    report = check_text(Path("k.cu"), racy("k"))
    twice = evolve(report, kernels=(*report.kernels, *report.kernels))
    Path("known.json").write_text(baseline([report], Path("known.json")))
    known = Baseline.read(Path("known.json"))
    (left,) = known.new([evolve(twice, path=Path("k.cu").absolute())])
    assert len(left.findings) == 1 and known.hidden == 1


@pytest.mark.parametrize(
    "text", ["", "[1]", "{", '{"schema": 2}', '{"schema": 1}', '{"schema": 1, "findings": {"k.cu": 3}}'],
)  # fmt: skip
def test_what_is_no_baseline_is_refused(text: str):
    Path("known.json").write_text(text)
    with pytest.raises(BadBaseline):
        Baseline.read(Path("known.json"))
    Path("k.cu").write_text(racy("k"))
    result = check("k.cu", "--baseline", "known.json")
    assert result.exit_code == 2 and "known.json" in result.output and "Traceback" not in result.output


def test_what_could_not_be_analysed_is_no_known_finding():
    Path("k.cu").write_text("#pragma clang __debug crash\n")
    assert check("k.cu", "--write-baseline", "known.json").exit_code == 2


# ----------------------------------------------------------------------------------- which files


def test_a_text_of_standard_input_stands_for_its_file():
    Path("k.cu").write_text("// nothing\n")
    result = check("-", "--stdin-filename", "k.cu", "--format", "json", text=racy("k"))
    assert result.exit_code == 1 and codes(result) == {"shared-race"}
    assert check("-", text=racy("k")).exit_code == 2
    assert check("-", "k.cu", "--stdin-filename", "k.cu", text="").exit_code == 2


def test_changes_since_a_revision_and_what_is_staged():
    def git(*words: str) -> None:
        who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
        subprocess.run(["git", *who, *words], check=True, capture_output=True)

    git("init", "-q")
    Path("old.cu").write_text(racy("old"))
    git("add", ".")
    git("commit", "-qm", "first")
    assert check("--since", "HEAD").exit_code == 0
    Path("new.cu").write_text(racy("fresh"))
    since = check("--since", "HEAD")
    assert since.exit_code == 1 and "new.cu" in since.stdout and "old.cu" not in since.stdout
    assert check("--staged").exit_code == 0
    git("add", "new.cu")
    Path("new.cu").write_text("// mended, but not staged\n")
    assert check("--staged").exit_code == 1
    assert check("--since", "nowhere").exit_code == 2


def test_without_any_path_it_asks_for_one():
    result = check()
    assert result.exit_code == 2 and "cuda-lsp check ." in result.output


def test_a_database_names_files_and_their_flags():
    Path("k.cu").write_text("#ifdef RACY\n" + racy("k") + "#endif\n")
    row = {"directory": str(Path.cwd()), "file": "k.cu", "command": "nvcc -DRACY -c k.cu"}
    Path("build.json").write_text(json.dumps([row]))
    assert check("build.json").exit_code == 1


def test_a_change_is_seen():
    Path("k.cu").write_text(racy("k"))
    watched = Watched([Path()])
    Path("k.cu").write_text(racy("k") + "\n")
    watched.wait()  # returns at once
    Path("header.cuh").write_text("\n")
    watched.wait()


def test_watching_checks_again_and_ends_with_an_interrupt(tmp_path: Path):
    Path("k.cu").write_text("__global__ void fine(int *p) { p[threadIdx.x] = 1; }\n")
    command = [sys.executable, "-P", "-u", "-m", "cuda_lsp", "check", "--watch", "--no-solver", "."]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None and process.stdout is not None
        assert "waiting for changes" in process.stderr.readline()
        Path("k.cu").write_text(racy("late"))
        assert "waiting for changes" in process.stderr.readline()
        process.send_signal(2)
        said = process.stdout.read()
        assert process.wait(timeout=60) == 130
    assert "late is racy" in said


# ---------------------------------------------------------------------------------------- shapes


@cache
def reports() -> list[FileReport]:
    return [check_text(path, path.read_text(), solver=False) for path in sorted(FIXTURES.glob("*.cu"))]


ODD = FileReport(Path("odd\x01.cu"), errors=(ToolError("a \x00 and \ud800 in it"),))


def test_reports_are_what_the_schema_says():
    schema = report_schema()
    Draft202012Validator.check_schema(schema)
    written = json.loads(json.dumps(document([*reports(), ODD])))
    assert [error.message for error in Draft202012Validator(schema).iter_errors(written)] == []
    written["files"][0]["kernels"][0]["verdict"] = "maybe"
    assert list(Draft202012Validator(schema).iter_errors(written))
    assert json.loads(CliRunner().invoke(main, ["schema"]).stdout) == schema


def test_junit_counts_what_it_holds():
    root = Xml.fromstring(junit([*reports(), ODD]))
    cases = list(root.iter("testcase"))
    for key, tag in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        assert int(root.get(key, "")) == sum(case.find(tag) is not None for case in cases)
    assert int(root.get("tests", "")) == len(cases) > 10
    assert root.get("errors") == "1"
    failed = {case.get("name") for case in cases if case.find("failure") is not None}
    assert "columns" in {c.get("name") for c in Xml.fromstring(
        junit([check_text(Path("c.cu"), CONFLICT)])
    ).iter("testcase") if c.find("failure") is not None}  # fmt: skip
    assert failed


def test_gitlab_has_a_fingerprint_for_each(tmp_path: Path):
    rows = code_quality([*reports(), ODD], FIXTURES)
    assert len({row["fingerprint"] for row in rows}) == len(rows) > 5
    for row in rows:
        assert set(row) == {"description", "check_name", "fingerprint", "severity", "location"}
        assert row["severity"] in {"info", "minor", "major", "critical", "blocker"}
        assert row["location"]["lines"]["begin"] >= 1


def test_sarif_keeps_its_fingerprints_when_lines_move_and_shows_both_threads():
    def results(text: str) -> list[dict[str, object]]:
        return sarif([check_text(Path("k.cu"), text)])["runs"][0]["results"]

    before, after = results(racy("k")), results("\n// moved\n" + racy("other") + racy("k"))
    known = {json.dumps(result["partialFingerprints"]) for result in after}
    assert json.dumps(before[0]["partialFingerprints"]) in known and len(known) == len(after) == 2
    flows = before[0]["codeFlows"]
    assert isinstance(flows, list) and len(flows[0]["threadFlows"]) == 2


def test_sarif_has_the_pages_of_its_rules_or_leads_to_them():
    Path("k.cu").write_text(racy("k"))

    def rules() -> list[dict[str, Any]]:
        return json.loads(check("k.cu", "--format", "sarif").stdout)["runs"][0]["tool"]["driver"]["rules"]

    assert all(rule["help"]["markdown"].startswith(f"# {rule['id']}\n") for rule in rules())
    assert not any("helpUri" in rule for rule in rules())
    Path("cuda-lsp.toml").write_text('documentation = "https://example.org/docs"\n')
    assert {f"https://example.org/docs/codes/{rule['id']}/" for rule in rules()} == {
        rule["helpUri"] for rule in rules()
    }


def test_one_line_a_finding():
    Path("k.cu").write_text(racy("k"))
    (line,) = check("k.cu", "--format", "concise").stdout.splitlines()
    assert line.startswith("k.cu:4:22: error: RAW race on s[0]") and line.endswith("[shared-race]")


def test_quiet_statistics_and_explanations():
    Path("k.cu").write_text(racy("k"))
    quiet = check("k.cu", "--quiet").stdout
    assert "shared-race" in quiet and "is racy" not in quiet and "1 kernel in" not in quiet
    counted = check("k.cu", "--statistics").stdout.splitlines()
    assert counted[-1].split() == ["shared-race", "1", "1"]
    assert "__syncthreads()" in check("k.cu", "--quiet", "--explain").stdout
    assert check("k.cu", "--quiet", "--format", "json").exit_code == 2


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_commands(shell: str):
    script = CliRunner().invoke(main, ["completion", shell])
    assert script.exit_code == 0 and "_CUDA_LSP_COMPLETE" in script.stdout
    word = "ch" if shell == "fish" else "1"  # what is being written, or its number
    environment = {"_CUDA_LSP_COMPLETE": f"{shell}_complete", "COMP_WORDS": "cuda-lsp ch", "COMP_CWORD": word}
    asked = CliRunner().invoke(main, [], prog_name="cuda-lsp", env=environment)
    assert "check" in asked.output


# ---------------------------------------------------------------------------------------- the bar


def test_the_bar_counts_and_gives_way(capsys: pytest.CaptureFixture[str]):
    console = Console(force_terminal=True, width=100, stderr=True, color_system=None)
    progress = Progress(2, console)
    report = check_text(Path("k.cu"), racy("k"), solver=False)

    def coming():
        for _ in range(2):
            progress.heard(Reading(report.path), Analysed(report))
            progress.tick()
            yield report

    for told in progress.beside(coming()):
        assert told is report
        print("FINDING")
    shown = capsys.readouterr()
    assert "2/2 files, 2 kernels, 2 findings" in shown.err
    assert shown.out == "FINDING\nFINDING\n"


def test_nothing_is_drawn_where_nobody_watches(capsys: pytest.CaptureFixture[str]):
    progress = Progress(1, Console(stderr=True))
    list(progress.beside([1]))
    progress.tick()
    assert capsys.readouterr().err == ""
