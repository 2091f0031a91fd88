"""Command lines of compilers: which sources a program has, and what each is compiled with."""

from __future__ import annotations

from pathlib import Path

from cuda_lsp.dynamic.programs import build_commands
from cuda_lsp.dynamic.programs.build_commands import Step, linked, steps_of
from cuda_lsp.dynamic.programs.recorder import Started

HERE = Path("/project")


def steps(*commands: str, folder: Path = HERE, **environment: str) -> dict[Path, Step]:
    found: dict[Path, Step] = {}
    for command in commands:
        words = tuple(command.split())
        started = Started(False, Path("/bin") / words[0], folder, words, environment=environment)
        found |= {step.output: step for step in steps_of(started)}
    return found


def test_one_command_that_compiles_and_links():
    made = linked(HERE / "app", steps("nvcc -O3 -std=c++17 -Iinc -DN=4 a.cu b.cpp -o app -lz -lcudart"))
    kernel, host = made.units
    assert (kernel.path, kernel.device) == (HERE / "a.cu", True)
    assert (host.path, host.device) == (HERE / "b.cpp", False)
    assert kernel.options.include_dirs == (HERE / "inc",)
    assert kernel.options.defines == ("N=4",)
    assert kernel.options.std == "c++17"
    assert kernel.flags == ("-Xcompiler=-O3",)
    assert made.link == ("-lz",)


def test_objects_lead_to_their_sources_through_archives_and_libraries_of_the_build():
    made = linked(
        HERE / "app",
        steps(
            "nvcc -c a.cu -o a.o",
            "g++ -O2 -c b.cpp -o b.o",
            "nvcc -dc c.cu -o c.o",
            "ar rcs libb.a b.o",
            "g++ -shared c.o -o libc2.so -Wl,-soname,libc2.so",
            "g++ a.o -L. -lb -lc2 /opt/other.o -o app -Wl,-rpath,.",
        ),
    )
    assert [unit.path.name for unit in made.units] == ["a.cu", "b.cpp", "c.cu"]
    assert [unit.relocatable for unit in made.units] == [False, False, True]
    assert made.units[1].host == Path("/bin/g++")
    assert made.units[1].flags == ("-O2",)
    assert made.link == ("/opt/other.o", "-L/project", "-Wl,-rpath,.")


def test_long_and_separate_forms_are_the_same_options():
    short = steps("nvcc -c -I inc -D A=1 -std c++14 -o a.o a.cu")
    long = steps("nvcc --compile --include-path=inc --define-macro A=1 --std=c++14 --output-file a.o a.cu")
    assert short == long


def test_where_output_goes_and_for_which_gpu_does_not_count():
    plain = steps("nvcc -c a.cu -o a.o")
    ordered = "nvcc -c a.cu -o a.o -gencode arch=compute_80,code=sm_80 -arch=sm_80 -MD -MF a.d -lineinfo -G"
    assert steps(ordered) == plain


def test_language_options_are_kept_in_order():
    (step,) = steps("nvcc --extended-lambda -use_fast_math -Xcompiler -fopenmp -isystem sys -c a.cu").values()
    assert step.output == HERE / "a.o"
    assert step.units[0].options.extra == (
        *("--extended-lambda", "-use_fast_math", "-Xcompiler", "-fopenmp"),
        *("-isystem", "/project/sys"),
    )


def test_a_source_of_any_name_is_device_code_when_the_command_says_so():
    (step,) = steps("nvcc -x cu -c kernels.cpp -o k.o").values()
    assert step.units[0].device


def test_response_files_are_read(tmp_path):
    (tmp_path / "flags.rsp").write_text('-DA=1 -I"with space"')
    (step,) = steps("nvcc --options-file flags.rsp -c a.cu", folder=tmp_path).values()
    assert step.units[0].options.defines == ("A=1",)
    assert step.units[0].options.include_dirs == (tmp_path / "with space",)


def test_nvccs_environment_counts_like_options():
    (step,) = steps("nvcc -c a.cu", NVCC_APPEND_FLAGS="-DB=2").values()
    assert step.units[0].options.defines == ("B=2",)


def test_other_work_makes_nothing():
    assert not steps("nvcc --version", "nvcc -ptx a.cu", "nvcc -E a.cu", "g++ -M a.cpp", "gcc -v")


def test_what_a_device_link_makes_is_left_out():
    made = linked(
        HERE / "app", steps("nvcc -dc a.cu", "nvcc -dlink a.o -o dlink.o", "g++ a.o dlink.o -o app -lcudart")
    )
    assert [unit.path.name for unit in made.units] == ["a.cu"]
    assert made.link == ()


def test_a_response_file_that_names_itself_ends(tmp_path: Path):
    (tmp_path / "self.rsp").write_text("-DX @self.rsp\n")
    words = list(build_commands._expanded(["@self.rsp"], tmp_path))
    assert words.count("-DX") < 100
    assert words[-1] == "@self.rsp"
