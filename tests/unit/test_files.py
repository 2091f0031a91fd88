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
