"""The documentation is true: examples give what they say, links lead somewhere, options exist."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))
from settings_page import page as settings_page
from toolkit import needs_nvcc

from cuda_lsp.batch.analysis import analysed
from cuda_lsp.batch.asked import Asked
from cuda_lsp.cli import main
from cuda_lsp.config import merge
from cuda_lsp.model import Code, FileReport, Severity, Verdict
from cuda_lsp.readings import Reading

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md"), *(ROOT / "vscode-extension").glob("*.md")])
OF_PROGRAMS = Code.GLOBAL_OUT_OF_BOUNDS
"""Told of whole programs only, when they run."""
_LINK = re.compile(r"(?<!`)\[[^\]\[]*\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^```(\w+)\n(.*?)^```", re.M | re.S)


def named(path: Path) -> str:
    return str(path.relative_to(ROOT))


def blocks(language: str) -> list[tuple[str, str]]:
    """The blocks of a language, each with its page's name."""
    return [
        (named(path), text)
        for path in PAGES
        for kind, text in _BLOCK.findall(path.read_text())
        if kind == language
    ]


# ------------------------------------------------------------------------------------------- the codes


def examples(code: Code) -> tuple[str, str]:
    """The program that has the finding, and the mended one."""
    text = (DOCS / "codes" / f"{code.value}.md").read_text()
    _, _, rest = text.partition("\n## Example\n")
    before, _, after = rest.partition("\n## How to mend it\n")
    return _BLOCK.findall(before)[0][1], _BLOCK.findall(after.partition("\n## Options\n")[0])[0][1]


def looked_at(folder: Path, text: str) -> FileReport:
    path = folder / "example.cu"
    path.write_text(text)
    asked = Asked({"severity": {Code.REDUNDANT_BARRIER.value: "hint"}})
    return analysed(Reading(path), asked, lambda report: None).report


@pytest.mark.parametrize(
    "code", [code for code in Code if code is not OF_PROGRAMS], ids=lambda code: code.value
)
def test_the_example_of_a_page_has_its_finding_and_the_mended_one_has_none(
    code: Code, tmp_path: Path
) -> None:
    racy, mended = (looked_at(tmp_path, text) for text in examples(code))
    assert code in {finding.code for finding in racy.findings}
    assert {f.code for f in mended.findings if f.effective_severity < Severity.HINT} <= {
        Code.BANK_CONFLICT
    } - {code}
    assert mended.kernels and all(k.verdict is Verdict.RACE_FREE for k in mended.kernels)
    assert not mended.errors and not (code is not Code.ANALYSIS_INCOMPLETE and racy.errors)


@needs_nvcc
def test_the_example_of_a_program_leaves_its_memory_and_the_mended_one_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_LSP_CACHE", str(tmp_path / "cache"))
    said: list[str] = []
    for text in examples(OF_PROGRAMS):
        (tmp_path / "program.cu").write_text(text)
        command = ["run", str(tmp_path / "program.cu"), "--program", "--engine", "emulator"]
        said.append(CliRunner().invoke(main, command).stdout)
    assert [OF_PROGRAMS.value in text for text in said] == [True, False]


def test_the_list_of_codes_is_whole() -> None:
    listed = re.findall(r"^\| \[([\w-]+)\]\(\1\.md\) \|", (DOCS / "codes" / "index.md").read_text(), re.M)
    assert sorted(listed) == sorted(code.value for code in Code)


# --------------------------------------------------------------------------------------- links, blocks


def anchors(path: Path) -> set[str]:
    """Of the headings of a page, as sites make them."""
    heads = re.findall(r"^#+ (.+)$", _BLOCK.sub("", path.read_text()), re.M)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


@pytest.mark.parametrize("path", PAGES, ids=named)
def test_links_lead_somewhere(path: Path) -> None:
    for link in _LINK.findall(_BLOCK.sub("", path.read_text())):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        target, _, anchor = link.partition("#")
        leads = (path.parent / target).resolve() if target else path
        assert leads.exists(), f"{named(path)}: {link}"
        assert not anchor or leads.suffix != ".md" or anchor in anchors(leads), f"{named(path)}: {link}"


def test_no_link_leads_to_a_domain_that_is_not_ours() -> None:
    listed = subprocess.run(
        ["grep", "-rIl", "cuda-lsp" + ".dev", "cuda_lsp", "docs"], cwd=ROOT, capture_output=True
    )
    assert listed.stdout == b""


@pytest.mark.parametrize(("page", "text"), blocks("toml"), ids=lambda value: value if len(value) < 40 else "")
def test_settings_in_pages_are_settings(page: str, text: str) -> None:
    told = tomllib.loads(text)
    if told.keys() & {"language-server", "language", "editor"}:  # Helix's own
        return
    _, problems = merge(Asked().settings(ROOT / "x.cu")[0], told.get("tool", {}).get("cuda-lsp", told), page)
    assert problems == []


def test_data_in_pages_can_be_read() -> None:
    for _, text in blocks("yaml"):
        assert yaml.safe_load(text)
    for _, text in blocks("json"):
        assert json.loads(text)


def commands() -> list[tuple[str, str]]:
    lines = ((page, line.strip()) for page, text in blocks("sh") for line in text.splitlines())
    return [(page, line) for page, line in lines if line.startswith("cuda-lsp ")]


def test_commands_in_pages_and_their_options_exist() -> None:
    assert len(commands()) > 15
    for page, line in commands():
        words = shlex.split(line.partition("  #")[0].partition(" # ")[0])[1:]
        command = main.get_command(click.Context(main), words[0])
        assert command is not None, f"{page}: {line}"
        known = {
            option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)
        }
        given = words[1 : words.index("--") if "--" in words else None]
        asked = {word.partition("=")[0] for word in given if re.match(r"--?[a-zA-Z]", word)}
        assert asked <= known | {"--help"}, f"{page}: {line}"


# ------------------------------------------------------------------------------------------- the rest


def test_the_page_of_settings_is_made_of_their_schema() -> None:
    assert (DOCS / "settings.md").read_text() == settings_page(), "run python scripts/settings_page.py"


def test_what_is_compared_was_measured() -> None:
    measured = {line for page in (ROOT / "benchmarks").glob("*.md") for line in page.read_text().splitlines()}
    rows = [line for line in (DOCS / "comparison.md").read_text().splitlines() if line.startswith("|")]
    assert len(rows) > 5 and set(rows) <= measured


@pytest.mark.skipif(find_spec("material") is None, reason="the site needs mkdocs: make docs")
def test_the_site_can_be_built(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert (tmp_path / "codes" / "shared-race" / "index.html").exists()  # where links of findings lead


# ------------------------------------------------------------------------------------------ who trusts what


def test_each_line_of_what_is_run_and_read_names_a_test_that_is_there():
    lines = (DOCS / "security.md").read_text().splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    claims = [row for row in rows if len(row) == 3 and row[-1] not in ("test", "---")]
    assert len(claims) > 12
    there = {path.name for path in (ROOT / "tests").rglob("test_*.py")}
    for *_, tests in claims:
        named_tests = re.findall(r"`(test_\w+\.py)`", tests)
        assert named_tests and set(named_tests) <= there, tests


def test_the_code_that_keeps_it_is_where_security_says():
    """Files as they are written there: from the package, or the end of their path."""
    named_files = re.findall(r"`([\w/]+(?:\.py|\.cpp|/))`", (DOCS / "security.md").read_text())
    files = {f"/{named(path)}{'/' * path.is_dir()}" for path in (ROOT / "cuda_lsp").rglob("*")}
    files |= {
        f"/{named(path)}" for path in [*(ROOT / "tests").rglob("*.py"), *(ROOT / "benchmarks").glob("*")]
    }
    shadowing = {"cuda_lsp/", "pickle.py"}  # of somebody's project
    missing = [f for f in named_files if f not in shadowing and not any(p.endswith(f"/{f}") for p in files)]
    assert not missing
