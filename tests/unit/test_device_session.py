"""A session on a card goes on after whatever fails, and where it was interrupted."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))
import device_session
from card import AGAIN, Kept
from device_session import Step


def python(name: str, code: str, seconds: int = 1, limit: int = 60, **options: object) -> Step:
    return Step(name, (sys.executable, "-c", code), seconds, limit, **options)  # type: ignore[arg-type]


@pytest.fixture
def session(tmp_path, monkeypatch):
    def run(*steps: Step, seconds: float = 1e9, chosen: tuple[str, ...] = ()) -> dict[str, int]:
        monkeypatch.setattr(device_session, "steps", lambda folder, emulated=False: list(steps))
        device_session.run(tmp_path, seconds, list(chosen))
        done = tmp_path / "results" / "done.json"
        return (
            {name: row["status"] for name, row in json.loads(done.read_text()).items()}
            if done.exists()
            else {}
        )

    return run


def test_a_step_that_fails_ends_no_other(session):
    assert session(python("bad", "raise SystemExit(3)"), python("good", "pass")) == {"bad": 3, "good": 0}


def test_what_is_done_is_not_done_again(session, tmp_path):
    count = f"open({str(tmp_path / 'count')!r}, 'a').write('x')"
    for _ in range(2):
        session(python("once", count))
    assert (tmp_path / "count").read_text() == "x"


def test_a_step_without_end_is_cut_with_what_it_started(session, tmp_path):
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(300)'])"
    assert session(python("endless", code, limit=2), python("next", "pass")) == {"endless": 124, "next": 0}


def test_a_process_that_has_spent_the_card_is_followed_by_another(session, tmp_path):
    mark = str(tmp_path / "mark")
    code = (
        f"import os; known = os.path.exists({mark!r}); open({mark!r}, 'w'); os._exit({AGAIN} * (not known))"
    )
    assert session(python("spent", code)) == {"spent": 0}


def test_nothing_begins_for_which_too_little_is_left(session, tmp_path):
    steps = python("long", "pass", seconds=500, resumes=False), python("short", "pass", seconds=5)
    assert session(*steps, seconds=100) == {"short": 0}
    assert session(python("unprepared", "pass", needs=tmp_path / "nothing")) == {"short": 0}


def test_names_of_the_machine_that_prepared_lead_here(tmp_path):
    there = tmp_path / "elsewhere" / "folder"
    (tmp_path / "places.json").write_text(json.dumps({str(there): "folder"}))
    device_session._at_its_place(tmp_path)
    assert (there / "places.json").exists()


def test_rows_are_written_one_by_one_and_those_known_are_kept(tmp_path):
    path = tmp_path / "rows.json"
    kept = Kept.at(path, "rows", "name", True, device="card")
    kept.add("a", lambda: {"value": 1})
    kept.add("b", lambda: 1 // 0)
    assert [row["name"] for row in json.loads(path.read_text())["rows"]] == ["a", "b"]
    again = Kept.at(path, "rows", "name", True, device="card")
    assert again.add("a", lambda: {"value": 2}) is None
    assert [row["value"] for row in again.good] == [1]
    assert "ZeroDivisionError" in again.rows[1]["problem"]
    assert Kept.at(path, "rows", "name", False).rows == []


def test_every_step_names_a_script_that_is_there(tmp_path):
    named = [
        part for step in device_session.steps(tmp_path) for part in step.command if "benchmarks/" in part
    ]
    assert named and all(Path(part).exists() for part in named)


def test_every_script_of_a_step_can_be_imported(tmp_path):
    steps = device_session.steps(tmp_path)
    for path in {Path(part) for step in steps for part in step.command if part.endswith(".py")}:
        assert importlib.import_module(path.stem)
