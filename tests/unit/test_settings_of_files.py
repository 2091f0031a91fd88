"""``per-file``: settings of files that match a pattern, for the command line and the editor alike."""

from __future__ import annotations

import json
import time
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from cuda_lsp.cli import main
from cuda_lsp.config import Settings, merge, settings_schema
from cuda_lsp.file_patterns import matches
from cuda_lsp.model import Code, Severity
from cuda_lsp.settings_file import load, placed
from cuda_lsp.static.analyze import Analyzer

RACY = """__global__ void k(int *out) {
  __shared__ int s[256];
  s[threadIdx.x] = 1 + threadIdx.x;
  out[threadIdx.x] = s[threadIdx.x ^ 1];
}
"""
TABLES = """min-bank-ways = 3

[per-file."legacy/**"]
ignore = ["shared-race"]

[per-file."one.cu"]
block-dim = 1
severity = { global-race = "hint" }
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "cache"))
    root = tmp_path / "work"
    for name in ("plain.cu", "one.cu", "legacy/deep/old.cu"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(RACY)
    (root / "cuda-lsp.toml").write_text(TABLES)
    monkeypatch.chdir(root)
    return root


@pytest.mark.parametrize(
    ("pattern", "path", "is_meant"),
    [
        ("*.cuh", "/p/src/a.cuh", True),
        ("a.cu", "/p/src/a.cu", True),
        ("a.cu", "/p/a.cu.cu", False),
        ("/p/legacy/**", "/p/legacy/deep/a.cu", True),
        ("/p/legacy/*", "/p/legacy/deep/a.cu", False),
        ("/p/**/a.cu", "/p/a.cu", True),
        ("/p/**/a.cu", "/p/x/y/a.cu", True),
        ("/p/a?[12].cu", "/p/ab2.cu", True),
        ("/p/a[!12].cu", "/p/a1.cu", False),
        ("/p/(a)+.cu", "/p/(a)+.cu", True),
        ("a*b*c.cu", "/p/abxbxc.cu", True),
        ("/**/x/**/y.cu", "/x/a/x/b/y.cu", True),
        ("/**/x/y.cu", "/x/a/y.cu", False),
        ("*.c[", "/p/a.c[", True),
    ],
)
def test_patterns_mean_names_or_whole_paths(pattern: str, path: str, is_meant: bool) -> None:
    assert matches(pattern, Path(path)) is is_meant


@pytest.mark.parametrize(
    "pattern",
    [
        *("*a" * 100 + "b", "/" + "**/" * 100 + "b", "/**" + "/*a" * 50 + "/*b"),
        *("[" * 100_000, "[a]" + "[!" * 50_000, "[" * 100_000 + "]", "[]" * 50_000),
    ],
    ids=range(7),
)
def test_odd_patterns_cost_no_time(pattern: str) -> None:
    path = Path("/" + "aaaa/" * 200 + "a" * 250)
    started = time.process_time()
    assert not matches(pattern, path)
    assert time.process_time() - started < 1


def test_check_uses_the_settings_of_each_file(project: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--format", "json", "."])
    found = {Path(file["path"]).name: file for file in json.loads(result.stdout)["files"]}
    codes = {name: {finding["code"] for finding in file["findings"]} for name, file in found.items()}
    assert "shared-race" in codes["plain.cu"]
    assert "shared-race" not in codes["old.cu"] and found["old.cu"]["kernels"][0]["verdict"] == "racy"
    launches = {name: file["kernels"][0]["launch"]["block"] for name, file in found.items()}
    assert launches == {"plain.cu": [256, 1, 1], "one.cu": [1, 1, 1], "old.cu": [256, 1, 1]}


def test_the_command_line_comes_before_the_settings_of_a_file(project: Path) -> None:
    result = CliRunner().invoke(main, ["check", "--block-dim", "128", "--format", "json", "one.cu"])
    (file,) = json.loads(result.stdout)["files"]
    assert file["kernels"][0]["launch"]["block"] == [128, 1, 1]


@pytest.mark.parametrize("quick", [True, False])
def test_one_analyzer_has_the_settings_of_each_file(project: Path, quick: bool) -> None:
    settings, problems = load(project)
    assert not problems
    analyzer = Analyzer(settings, quick=quick)
    try:
        for name, block, told in (
            ("plain.cu", 256, True),
            ("one.cu", 1, False),
            ("legacy/deep/old.cu", 256, False),
        ):
            (kernel,) = analyzer.update(project / name, RACY).kernels
            assert kernel.launches[0].block == (block, 1, 1)
            assert (Code.SHARED_RACE in {f.code for f in kernel.findings}) is told
    finally:
        analyzer.shutdown()


def test_settings_of_an_editor_are_about_its_workspace() -> None:
    settings, problems = merge(Settings(), {"perFile": {"src/*.cu": {"minBankWays": 8}}}, "editor")
    assert not problems
    settings = placed(settings, Path("/p"))
    assert settings.of_file(Path("/p/src/a.cu")).min_bank_ways == 8
    assert settings.of_file(Path("/q/src/a.cu")).min_bank_ways == 2


def test_all_tables_that_match_count_the_later_before_the_earlier() -> None:
    tables = {
        "*.cu": {"ignore": ["bank-conflict"], "arch": "sm_70", "severity": {"warp-race": "hint"}},
        "a.*": {"arch": "sm_90", "ignore": ["global-race"]},
    }
    settings, _ = merge(Settings(severity={Code.SHARED_RACE: Severity.HINT}), {"per-file": tables}, "x")
    of = settings.of_file(Path("/p/a.cu"))
    assert of.arch == "sm_90" and not of.per_file
    assert of.severity == {
        Code.SHARED_RACE: Severity.HINT, Code.BANK_CONFLICT: None, Code.GLOBAL_RACE: None,
        Code.WARP_RACE: Severity.HINT,
    }  # fmt: skip
    assert settings.of_file(Path("/p/b.cuh")) is not of and settings.of_file(Path("/p/b.cuh")).arch == "sm_80"


@pytest.mark.parametrize(
    "tables",
    [
        3,
        {"*.cu": 3},
        {"*.cu": {"include-dirs": ["x"]}},
        {"*.cu": {"ignore": "bank-conflict"}},
        {"*.cu": {"ignore": ["no-such-code"]}},
        {"*.cu": {"block-dim": [0]}},
        {"*.cu": {"per-file": {}}},
    ],
)
def test_a_mistake_is_told_and_no_table_counts(tables: object) -> None:
    settings, (problem,) = merge(Settings(), {"per-file": tables}, "x")
    assert settings == Settings() and problem.key == "per-file"


def test_a_mistake_stands_at_its_line(project: Path) -> None:
    (project / "cuda-lsp.toml").write_text('arch = "sm_80"\n\n[per-file."a.cu"]\nblock-dim = 0\n')
    _, (problem,) = load(project)
    assert problem.line == 3 and "'a.cu': block-dim: expected one to three positive numbers" in problem.said


def test_the_schema_knows_the_tables() -> None:
    schema = settings_schema()
    jsonschema.validate({"perFile": {"*.cu": {"ignore": ["warp-race"], "blockDim": [32]}}}, schema)
    for wrong in ({"*.cu": {"includeDirs": []}}, {"*.cu": {"ignore": ["x"]}}, []):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate({"perFile": wrong}, schema)
