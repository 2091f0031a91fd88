"""What a project holds beside the source neither hangs nor fills anything: devices, pipes, endless lists."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner

from cuda_lsp.cli import main
from cuda_lsp.frontend.surroundings.compile_commands import options_for, translate
from cuda_lsp.frontend.toolchain import FrontendOptions
from cuda_lsp.frontend.translation import Translation

KERNEL = "__global__ void k(int* p) { p[threadIdx.x] = 1; }\n"
TARGETS = ("/dev/zero", "/dev/urandom", "/proc/kmsg", "pipe")
_SECONDS = 20
_BYTES = 4 << 30  # of address space; the shim, libclang and Z3 map a part of it

_OPEN = """
import sys
from pathlib import Path
from cuda_lsp.static.analyze import check_text
from cuda_lsp.config import Settings
path = Path(sys.argv[1])
report = check_text(path, path.read_text(), Settings())
print([kernel.name for kernel in report.kernels])
for error in report.errors:
    print(error.range.start.line if error.range else 0, error.message)
"""


def opened(path: Path) -> str:
    """What is told of a file, by a process with limits on time and memory."""

    def limited() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (_BYTES, _BYTES))

    root = Path(__file__).resolve().parents[2]
    done = subprocess.run(
        [sys.executable, "-c", _OPEN, str(path)],
        capture_output=True,
        text=True,
        timeout=_SECONDS,
        check=True,
        env={**os.environ, "PYTHONPATH": str(root)},
        preexec_fn=limited,
    )
    return done.stdout


def endless(folder: Path, name: str, target: str) -> None:
    """A file of that name that never ends, or never begins."""
    if target == "pipe":
        os.mkfifo(folder / name)
    else:
        (folder / name).symlink_to(target)


@pytest.mark.parametrize(
    "text",
    [
        "",
        '#include "{0}"\n',
        '#include "by-{0}"\n',
        '#define Z{1} "{0}"\n#include Z{1}\n',
        '#if __has_include("{0}")\n#endif\n',
    ],
    ids=["beside", "included", "included by a header", "included by a macro", "asked for"],
)
def test_a_header_that_is_no_regular_file_is_not_read(tmp_path: Path, text: str) -> None:
    (tmp_path / ".git").mkdir()
    lines = ""
    for number, target in enumerate(TARGETS):
        name = f"z{number}.h"
        endless(tmp_path, name, target)
        (tmp_path / f"by-{name}").write_text(f'#include "{name}"\n')
        lines += text.format(name, number)
    (tmp_path / "k.cu").write_text(f"{lines}{KERNEL}void f(int* p) {{ k<<<1, 64>>>(p); }}\n")
    told = opened(tmp_path / "k.cu")
    assert "['k']" in told
    refused = told.count("is not read: not a regular file, so what it declares is unknown")
    assert refused == (len(TARGETS) - 1 if text else 0)  # files of the kernel are regular, and empty


def test_what_a_header_includes_that_is_read_before_the_file_is_regular(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    endless(tmp_path, "z.h", "/dev/zero")
    (tmp_path / "names.h").write_text('#include "z.h"\nstruct Place { int at; };\n')
    use = "__global__ void place(int* p) { Place q; q.at = 1; p[threadIdx.x] = q.at; }\n"
    (tmp_path / "k.cu").write_text(f"{KERNEL}{use}void f(int* p) {{ place<<<1, 64>>>(p); }}\n")
    told = opened(tmp_path / "k.cu")
    assert "read behind names.h" in told
    assert "header 'z.h' is not read: not a regular file" in told


def test_a_refused_header_is_told_at_its_line(tmp_path: Path) -> None:
    endless(tmp_path, "z.h", "pipe")
    translation = Translation(tmp_path / "k.cu", f'// first\n#include "z.h"\n{KERNEL}')
    (error,) = translation.diagnostics
    assert error.range is not None
    assert (error.range.start.line, error.range.path) == (2, tmp_path / "k.cu")
    translation.reparse(f"// first\n{KERNEL}")
    assert translation.diagnostics == ()


def test_a_header_that_is_too_large_is_not_read(tmp_path: Path) -> None:
    with (tmp_path / "z.h").open("wb") as file:
        file.truncate(1 << 36)
    (tmp_path / "k.cu").write_text('#include "z.h"\n' + KERNEL)
    assert "header 'z.h' is not read: larger than 16 MiB" in opened(tmp_path / "k.cu")


def test_a_file_that_may_include_a_fragment_is_regular(tmp_path: Path) -> None:
    for number, target in enumerate(TARGETS):
        endless(tmp_path, f"a{number}.cu", target)
    (tmp_path / "k.cuh").write_text("__global__ void k(UNKNOWN* p) { p[threadIdx.x] = MISSING; }\n")
    assert "k" in opened(tmp_path / "k.cuh")


@pytest.mark.parametrize("target", TARGETS)
def test_a_database_that_is_no_regular_file_is_told(tmp_path: Path, target: str) -> None:
    endless(tmp_path, "db.json", target)
    options = FrontendOptions(compile_commands=str(tmp_path / "db.json"))
    _, (error,) = options_for(tmp_path / "k.cu", options)
    assert "is not used" in error.message


@pytest.mark.parametrize("target", TARGETS)
def test_a_response_file_that_is_no_regular_file_is_passed_over(tmp_path: Path, target: str) -> None:
    endless(tmp_path, "a.rsp", target)
    assert translate(["nvcc", "@a.rsp", "-DX"], tmp_path).defines == ("X",)


def test_a_response_file_that_includes_itself_is_read_a_few_times(tmp_path: Path) -> None:
    (tmp_path / "a.rsp").write_text("-DX " + "@a.rsp " * 1000)
    assert len(translate(["nvcc", "@a.rsp"], tmp_path).defines) <= 16


def test_flags_that_hold_each_other_without_end_are_left(tmp_path: Path) -> None:
    assert translate(["nvcc", "-Xcompiler=" * 5000 + "-DX", "-DY"], tmp_path).defines == ("Y",)


@pytest.mark.parametrize(
    "content",
    [
        "[" * 100_000,
        '[{"file": "a\\u0000.cu"}]',
        '[{"file": "\\ud800.cu"}]',
        "{}",
        '[{"directory": 1}]',
        "\0",
    ],
)
def test_a_malformed_database_leaves_the_options(tmp_path: Path, content: str) -> None:
    (tmp_path / "compile_commands.json").write_text(content)
    assert options_for(tmp_path / "k.cu", FrontendOptions())[0] == FrontendOptions()


def test_flags_that_no_compiler_can_be_given_are_left(tmp_path: Path) -> None:
    flags = translate(["nvcc", "-DA\0", "-I\ud800", "-include", "b\0.h", "-DB"], tmp_path)
    assert (flags.defines, flags.include_dirs, flags.headers) == (("B",), (), ())


def test_links_that_go_round_are_no_headers(tmp_path: Path) -> None:
    (tmp_path / "a.h").symlink_to(tmp_path / "b.h")
    (tmp_path / "b.h").symlink_to(tmp_path / "a.h")
    (tmp_path / "k.cu").write_text(f'#include "a.h"\n#include "{"x" * 300}.h"\n{KERNEL}')
    assert "['k']" in opened(tmp_path / "k.cu")


def test_a_source_that_is_no_regular_file_is_refused_and_in_a_folder_passed_over(tmp_path: Path) -> None:
    for number, target in enumerate(("/dev/zero", "pipe")):
        endless(tmp_path, f"{number}.cu", target)
    (tmp_path / "k.cu").write_text(KERNEL)
    refused = CliRunner().invoke(main, ["check", "--no-solver", str(tmp_path / "1.cu")])
    assert (refused.exit_code, "is not a regular file" in refused.output) == (2, True)
    passed = CliRunner().invoke(main, ["check", "--no-solver", "--format", "json", str(tmp_path)])
    assert [file["path"] for file in json.loads(passed.output)["files"]] == [str(tmp_path / "k.cu")]
