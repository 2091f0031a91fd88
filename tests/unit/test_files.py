"""Files of a project are read only when they are regular, and no more of them than is allowed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from cuda_lsp import files


def test_a_file_is_read_with_universal_line_ends(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"one\r\ntwo\rthree\n\xff")
    assert files.read_text(tmp_path / "a") == "one\ntwo\nthree\n\N{REPLACEMENT CHARACTER}"
    with pytest.raises(UnicodeDecodeError):
        files.read_text(tmp_path / "a", errors="strict")


@pytest.mark.parametrize("target", ["/dev/zero", "/dev/urandom", "/dev/tty", "/"])
def test_links_to_what_is_no_regular_file_are_refused(tmp_path: Path, target: str):
    (tmp_path / "z.h").symlink_to(target)
    assert not files.is_regular(tmp_path / "z.h")
    with pytest.raises(OSError, match=r"not a regular file|No such"):
        files.read_bytes(tmp_path / "z.h")


def test_a_pipe_that_nobody_writes_to_is_refused_at_once(tmp_path: Path):
    os.mkfifo(tmp_path / "pipe.h")
    with pytest.raises(OSError, match="not a regular file"):
        files.read_bytes(tmp_path / "pipe.h")


def test_files_of_the_kernel_are_empty():
    assert files.read_bytes("/proc/self/environ") == b""


def test_links_that_go_round_and_names_that_are_none_are_told(tmp_path: Path):
    (tmp_path / "a").symlink_to(tmp_path / "b")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    for name in ("a", "nothing", "x" * 300, "nul\0"):
        assert not files.is_regular(tmp_path / name)
        with pytest.raises(OSError) as failure:
            files.read_bytes(tmp_path / name)
        assert failure.value.strerror


def test_a_file_over_the_limit_is_refused_unread(tmp_path: Path):
    with (tmp_path / "large").open("wb") as file:
        file.truncate(1 << 40)  # a hole: nothing is stored
    with pytest.raises(OSError, match="larger than 16 MiB"):
        files.read_bytes(tmp_path / "large")


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is too young to be remembered."""
    monkeypatch.setattr(files, "_SETTLED_NS", -(1 << 62))


@pytest.mark.usefixtures("settled")
def test_a_file_is_read_once_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    header, opened = tmp_path / "a.h", []
    real = os.open
    monkeypatch.setattr(files.os, "open", lambda path, flags: opened.append(path) or real(path, flags))
    header.write_bytes(b"one")
    assert [files.read_bytes(header) for _ in range(3)] == [b"one"] * 3
    assert len(opened) == 1
    header.write_bytes(b"three")
    assert files.read_bytes(header) == b"three"
    os.replace(header, tmp_path / "b.h")
    with pytest.raises(FileNotFoundError):
        files.read_bytes(header)


@pytest.mark.usefixtures("settled")
def test_another_file_of_the_same_size_and_time_is_another(tmp_path: Path):
    header, other = tmp_path / "a.h", tmp_path / "b.h"
    header.write_bytes(b"one")
    other.write_bytes(b"two")
    for file in (header, other):
        os.utime(file, ns=(10**18, 10**18))
    assert files.read_bytes(header) == b"one"
    os.replace(other, header)
    assert files.read_bytes(header) == b"two"
    header.write_bytes(b"six")
    os.utime(header, ns=(10**18, 10**18))
    assert files.read_bytes(header) == b"six"


def test_what_changed_a_moment_ago_is_not_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    header = tmp_path / "a.h"
    header.write_bytes(b"one")
    files.read_bytes(header)
    assert str(header) not in files._remembered._known


@pytest.mark.usefixtures("settled")
def test_no_more_is_remembered_than_there_is_room_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(files, "_remembered", files._Remembered())
    monkeypatch.setattr(files, "_MOST_REMEMBERED", 10)
    for number in range(5):
        (tmp_path / str(number)).write_bytes(b"1234")
        files.read_bytes(tmp_path / str(number))
    assert list(files._remembered._known) == [str(tmp_path / "3"), str(tmp_path / "4")]


@pytest.mark.usefixtures("settled")
def test_the_limit_holds_for_what_is_remembered(tmp_path: Path):
    (tmp_path / "a").write_bytes(b"12345")
    files.read_bytes(tmp_path / "a")
    with pytest.raises(OSError, match="larger than"):
        files.read_bytes(tmp_path / "a", 4)
