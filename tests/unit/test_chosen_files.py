"""Which files ``check`` looks at: patterns, databases, what git says has changed, what is not on disk."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from cuda_lsp import files
from cuda_lsp.batch.history import NoHistory, changed_since, concerned, staged
from cuda_lsp.batch.sources import NoSource, sources

KERNEL = "__global__ void k(int *p) { p[threadIdx.x] = 1; }\n"


@pytest.fixture(autouse=True)
def nothing_stands_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "_instead", {})


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("GIT_DIR", "GIT_INDEX_FILE", "GIT_WORK_TREE"):
        monkeypatch.delenv(name, raising=False)
    git(tmp_path, "init", "-q")
    for name, text in {
        "a.cu": '#include "deep.h"\n' + KERNEL, "b.cu": KERNEL, "deep.h": '#include "low.h"\n', "low.h": "\n",
        "sub/c.cu": KERNEL, "sub/notes.txt": "words\n",
    }.items():  # fmt: skip
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "first")
    return tmp_path


def git(folder: Path, *words: str) -> None:
    who = ("-c", "user.name=t", "-c", "user.email=t@example.org", "-c", "commit.gpgsign=false")
    subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True)


def names(paths: list[Path], folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in paths)


def test_patterns_name_files(tmp_path: Path):
    for name in ("a.cu", "b.cu", "deep/er/c.cu", "d.txt"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(KERNEL)
    assert names(sources([tmp_path / "*.cu"]), tmp_path) == ["a.cu", "b.cu"]
    assert names(sources([tmp_path / "**" / "*.cu"]), tmp_path) == ["a.cu", "b.cu", "deep/er/c.cu"]
    with pytest.raises(NoSource, match="matches no file"):
        sources([tmp_path / "*.cuda"])
    (tmp_path / "odd[1].cu").write_text(KERNEL)  # a file of that name is meant, not the pattern
    assert names(sources([tmp_path / "odd[1].cu"]), tmp_path) == ["odd[1].cu"]


def test_a_database_names_its_files_with_kernels(tmp_path: Path):
    for name, text in {"a.cu": KERNEL, "host.cpp": "int main() {}\n", "kernels.cpp": KERNEL}.items():
        (tmp_path / name).write_text(text)
    rows = [
        {"directory": str(tmp_path), "file": name, "command": f"nvcc -c {name}"}
        for name in ("a.cu", "host.cpp", "kernels.cpp", "gone.cu", "a.cu")
    ]
    database = tmp_path / "compile_commands.json"
    database.write_text(json.dumps(rows))
    assert names(sources([database]), tmp_path) == ["a.cu", "kernels.cpp"]
    database.write_text("[{")
    with pytest.raises(NoSource, match="no compilation database"):
        sources([database])
    database.write_text("[]")
    with pytest.raises(NoSource, match="no file with kernels"):
        sources([database])


def test_what_changed_since_a_revision(repository: Path):
    (repository / "b.cu").write_text(KERNEL * 2)
    (repository / "new.cu").write_text(KERNEL)
    (repository / "sub" / "c.cu").unlink()
    assert names(changed_since("HEAD", repository), repository) == ["b.cu", "new.cu"]
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "second")
    assert changed_since("HEAD", repository) == []
    assert names(changed_since("HEAD~1", repository), repository) == ["b.cu", "new.cu"]
    with pytest.raises(NoHistory):
        changed_since("no-such-revision", repository)
    with pytest.raises(NoHistory, match="is no revision"):
        changed_since("--output=/tmp/x", repository)


def test_outside_of_a_repository_it_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))
    with pytest.raises(NoHistory, match="not a git repository"):
        changed_since("HEAD", tmp_path)


def test_a_header_that_changed_concerns_those_who_include_it(repository: Path):
    (repository / "low.h").write_text("#define N 4\n")
    candidates = [repository / name for name in ("a.cu", "b.cu", "sub/c.cu")]
    changed = changed_since("HEAD", repository)
    assert names(concerned(candidates, changed), repository) == ["a.cu"]


def test_what_is_staged_is_read_as_it_is_in_the_index(repository: Path):
    b = repository / "b.cu"
    b.write_text(KERNEL + "// staged\n")
    git(repository, "add", "b.cu")
    b.write_text(KERNEL + "// staged\n// and more\n")
    (repository / "a.cu").write_text("// not staged\n")
    assert staged(repository) == [b]
    assert files.read_text(b).endswith("// staged\n")
    assert files.read_text(repository / "a.cu") == "// not staged\n"
    assert files.size(b) == len(KERNEL + "// staged\n") and files.is_regular(b)


def test_looking_at_a_repository_runs_none_of_its_programs(repository: Path):
    """Neither a monitor nor an external diff of its configuration."""
    ran = repository / "ran"
    program = repository / "program.sh"
    program.write_text(f"#!/bin/sh\ntouch {ran}\ncat\n")
    program.chmod(0o755)
    (repository / ".gitattributes").write_text("*.cu diff=own\n")
    for key in ("core.fsmonitor", "diff.external", "diff.own.command", "diff.own.textconv", "core.pager"):
        git(repository, "config", key, str(program))
    (repository / "b.cu").write_text(KERNEL * 3)
    ran.unlink(missing_ok=True)  # of our own calls
    changed_since("HEAD", repository)
    staged(repository)
    assert not ran.exists()


def test_a_text_can_stand_in_for_a_file_that_is_not_there(tmp_path: Path):
    path = tmp_path / "k.cu"
    files.instead(path, KERNEL.encode())
    assert files.is_regular(path) and files.is_there(path) and files.read_text(path) == KERNEL
    assert files.answer(("contents", str(path))) != files.ABSENT
    with pytest.raises(OSError, match="larger than"):
        files.read_bytes(path, limit=3)
    assert sources([path]) == [path]


def test_every_diff_is_git_s_own(repository: Path, monkeypatch: pytest.MonkeyPatch):
    asked: list[list[str]] = []
    run = subprocess.run

    def noted(command: list[str], **how: object):
        asked.append(command)
        return run(command, **how)

    monkeypatch.setattr(subprocess, "run", noted)
    changed_since("HEAD", repository)
    staged(repository)
    diffs = [command for command in asked if "diff" in command]
    assert len(diffs) == 3
    assert all({"--no-ext-diff", "--no-textconv"} <= set(command) for command in diffs)
