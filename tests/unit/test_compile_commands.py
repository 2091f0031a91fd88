"""What nvcc's flags mean for the front end."""

from __future__ import annotations

import json
from pathlib import Path

from cuda_lsp.config import Settings
from cuda_lsp.confirm import compile_options
from cuda_lsp.frontend.surroundings.compile_commands import find_database, options_for, translate
from cuda_lsp.frontend.toolchain import FrontendOptions


def test_folders_macros_standard_and_architecture_are_kept(tmp_path: Path) -> None:
    words = "nvcc -Iinc -isystem /sys -DN=4 -D M -std=c++20 -gencode arch=compute_80,code=sm_90 -c a.cu"
    flags = translate(words.split(), tmp_path)
    assert flags.include_dirs == (str(tmp_path / "inc"), "/sys")
    assert flags.defines == ("N=4", "M")
    assert flags.std == "c++20"
    assert flags.arch == "sm_90"


def test_host_compiler_flags_are_unpacked(tmp_path: Path) -> None:
    flags = translate(["nvcc", "-Xcompiler", "-DHOST,-Wall", "-Xcompiler=-I/h", "a.cu"], tmp_path)
    assert flags.defines == ("HOST",)
    assert flags.include_dirs == ("/h",)


def test_response_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.rsp").write_text("-DFROM_FILE -I/r\n")
    flags = translate(["nvcc", "--options-file", "a.rsp", "@a.rsp", "a.cu"], tmp_path)
    assert flags.defines == ("FROM_FILE",)
    assert flags.include_dirs == ("/r",)


def test_unknown_flags_do_not_swallow_what_follows(tmp_path: Path) -> None:
    flags = translate(["nvcc", "--expt-relaxed-constexpr", "-O3", "-lineinfo", "-DX"], tmp_path)
    assert flags.defines == ("X",)


def test_the_nearest_database_wins_and_build_folders_are_searched(tmp_path: Path) -> None:
    (tmp_path / "compile_commands.json").write_text("[]")
    nested = tmp_path / "project" / "build"
    nested.mkdir(parents=True)
    (nested / "compile_commands.json").write_text("[]")
    source = tmp_path / "project" / "src" / "a.cu"
    assert find_database(source) == nested / "compile_commands.json"


def test_a_header_takes_the_flags_of_its_neighbour(tmp_path: Path) -> None:
    entries = [
        {"directory": str(tmp_path), "file": "x/a.cu", "command": "nvcc -DA x/a.cu"},
        {"directory": str(tmp_path), "file": "y/b.cu", "arguments": ["nvcc", "-DB", "y/b.cu"]},
    ]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    (tmp_path / "y").mkdir()
    options, errors = options_for(tmp_path / "y" / "b.cuh", FrontendOptions())
    assert options.defines == ("B",)
    assert errors == ()


def test_settings_come_after_the_database_so_they_win(tmp_path: Path) -> None:
    entries = [{"directory": str(tmp_path), "file": "a.cu", "command": "nvcc -DN=1 a.cu"}]
    (tmp_path / "compile_commands.json").write_text(json.dumps(entries))
    options, _ = options_for(tmp_path / "a.cu", FrontendOptions(defines=("N=2",)))
    assert options.defines == ("N=1", "N=2")


def test_a_broken_database_gives_one_clear_message(tmp_path: Path) -> None:
    (tmp_path / "compile_commands.json").write_text("{")
    options, errors = options_for(tmp_path / "a.cu", FrontendOptions())
    assert options == FrontendOptions()
    assert len(errors) == 1
    assert "compile_commands.json is not used" in errors[0].message


def test_a_dynamic_check_compiles_with_the_flags_of_the_build(tmp_path):
    words = [
        *("nvcc", "-std=gnu++20", "-DMODE=2", "-UNDEBUG", "-Iinc", "-isystem", "sys", "-include", "all.h"),
        *("--expt-relaxed-constexpr", "-extended-lambda", "-O3", "-arch=sm_86", "-c", "a.cu"),
    ]
    entry = {"directory": str(tmp_path), "file": "a.cu", "arguments": words}
    (tmp_path / "compile_commands.json").write_text(json.dumps([entry]))
    settings = Settings(defines=("MINE",), include_dirs=("/mine",))
    options = compile_options(settings, tmp_path / "a.cu")
    assert options.include_dirs == (Path("/mine"), tmp_path / "inc", tmp_path / "sys")
    assert options.defines == ("MODE=2", "MINE") and options.std == "c++20"
    assert options.extra == (
        *("-UNDEBUG", "-include", "all.h"),
        *("--expt-relaxed-constexpr", "-extended-lambda"),
    )
    assert compile_options(settings).defines == ("MINE",)


def test_the_last_word_on_a_macro_counts(tmp_path: Path) -> None:
    flags = translate(
        ["nvcc", "-DA=1", "-UA", "-DB=1", "-D", "B=2", "-UC", "-DA=3", "-DD", "-U", "D"], tmp_path
    )
    assert flags.defines == ("B=2", "A=3")
    assert flags.undefines == ("C", "D")


def test_folders_are_searched_in_the_order_of_compilers(tmp_path: Path) -> None:
    words = "nvcc -isystem s -idirafter z -Ia -iquote q --include-path=b,c -isystemt -I=d"
    folders = translate(words.split(), tmp_path).include_dirs
    assert [Path(folder).name for folder in folders] == ["q", "a", "b", "c", "d", "s", "t", "z"]


def test_a_flag_and_its_value_may_be_handed_on_one_by_one(tmp_path: Path) -> None:
    words = ["nvcc", "-Xcompiler", "-isystem", "-Xcompiler", "/x", "--compiler-options=-DA,-DB -DC=1\\,2"]
    flags = translate(words, tmp_path)
    assert flags.include_dirs == ("/x",)
    assert flags.defines == ("A", "B", "C=1,2")


def test_flags_that_are_macros_to_the_text(tmp_path: Path) -> None:
    words = "nvcc --use_fast_math -G -rdc=true -Xcompiler -fopenmp --default-stream per-thread a.cu"
    assert translate(words.split(), tmp_path).defines == (
        *("__USE_FAST_MATH__", "__CUDACC_DEBUG__", "__CUDACC_RDC__", "_OPENMP=201511"),
        "CUDA_API_PER_THREAD_DEFAULT_STREAM=1",
    )
    assert translate(["nvcc", "-rdc=false", "-default-stream", "legacy"], tmp_path).defines == ()


def test_flags_of_clang_are_understood(tmp_path: Path) -> None:
    words = (
        "clang++ -x cuda --offload-arch=sm_80 --offload-arch=sm_90 -Xclang -DNO -imacros m.h --include n.h"
    )
    flags = translate(words.split(), tmp_path)
    assert flags.arch == "sm_90"
    assert flags.headers == ("m.h", "n.h")
    assert flags.defines == ()


def test_response_files_may_name_others_and_the_words_keep_their_order(tmp_path: Path) -> None:
    (tmp_path / "outer.rsp").write_text("-DA=1\n@inner.rsp\n-DA=3 # not this: -DB\n")
    (tmp_path / "inner.rsp").write_text('-DA=2 -I"with space"\n')
    flags = translate(["nvcc", "-DA=0", "@outer.rsp"], tmp_path)
    assert flags.defines == ("A=3",)
    assert flags.include_dirs == (str(tmp_path / "with space"),)
