"""Settings: one schema, merged from several places, mistakes told one by one."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import jsonschema
import pytest
from click.testing import CliRunner

from cuda_lsp.cli import main
from cuda_lsp.config import PATIENT, Settings, merge, settings_schema
from cuda_lsp.confirm import CheckOptions, chosen
from cuda_lsp.dynamic.runs import Detail
from cuda_lsp.hardware import UnknownArchitecture, gpu_model
from cuda_lsp.model import Code, Severity
from cuda_lsp.settings_file import file_schema, find_settings_file, load


def test_later_sources_win_and_keys_come_in_any_case() -> None:
    first, problems = merge(Settings(), {"default-block": [64], "arch": "sm_70"}, "cuda-lsp.toml")
    second, more = merge(first, {"defaultBlock": [32, 8]}, "editor")
    assert problems + more == []
    assert (second.default_block, second.arch) == ((32, 8, 1), "sm_70")


@pytest.mark.parametrize(
    ("values", "key"),
    [
        ({"defaultBlok": 3}, "defaultBlok"),
        ({"arch": "sm_7"}, "arch"),
        ({"arch": "volta"}, "arch"),
        ({"solver": "yes"}, "solver"),
        ({"defines": "N=1"}, "defines"),
        ({"default_block": [0, 1]}, "default_block"),
        ({"default_block": [1, 1, 1, 1]}, "default_block"),
        ({"severity": {"no-such-code": "error"}}, "severity"),
        ({"severity": {"shared-race": "fatal"}}, "severity"),
        ({"solver_budget": -1}, "solver_budget"),
        ({"solver_budget": True}, "solver_budget"),
        ({"solver_budget": 10**9}, "solver_budget"),
        ({"block_dim": [1024, 2]}, "block_dim"),
        ({"default_block": 5000}, "default_block"),
        ({"banks": 64}, "banks"),
        ({"arch": "sm_" + "9" * 5000}, "arch"),
        ({"include_dirs": ["a\0b"]}, "include_dirs"),
        ({"nvcc": "\ud800"}, "nvcc"),
        ({"severity": {"shared-race": ["error"]}}, "severity"),
        ({"severity": 3}, "severity"),
    ],
)
def test_a_mistake_names_source_and_key_and_leaves_the_rest(values: dict[str, object], key: str) -> None:
    settings, problems = merge(Settings(), {**values, "std": "c++20"}, "cuda-lsp.toml")
    assert len(problems) == 1
    assert str(problems[0]).startswith(f"cuda-lsp.toml: {key}: ")
    assert settings.std == "c++20"


def test_severities_by_code() -> None:
    settings, _ = merge(Settings(), {"severity": {"bank-conflict": "hint", "shared-race": "off"}}, "file")
    assert settings.severity == {Code.BANK_CONFLICT: Severity.HINT, Code.SHARED_RACE: None}


def test_the_nearest_settings_file_is_used_and_folders_are_relative_to_it(tmp_path: Path) -> None:
    (tmp_path / "cuda-lsp.toml").write_text('include-dirs = ["inc"]\n')
    nested = tmp_path / "a" / "b"
    nested.mkdir(parents=True)
    settings, problems = load(nested)
    assert problems == []
    assert settings.include_dirs == (str(tmp_path / "inc"),)


def test_a_pyproject_counts_only_with_our_table(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("[tool.other]\n")
    (tmp_path / "cuda").mkdir()
    (tmp_path / "cuda" / "pyproject.toml").write_text('[tool.cuda-lsp]\narch = "sm_90"\n')
    assert find_settings_file(tmp_path / "cuda") == tmp_path / "cuda" / "pyproject.toml"
    assert load(tmp_path / "cuda")[0].arch == "sm_90"


def test_a_broken_file_gives_one_problem_and_the_defaults(tmp_path: Path) -> None:
    (tmp_path / "cuda-lsp.toml").write_text("arch = \n")
    settings, problems = load(tmp_path)
    assert settings == Settings()
    assert len(problems) == 1
    assert "cuda-lsp.toml" in str(problems[0])


def test_the_schema_accepts_its_own_defaults_and_refuses_unknown_keys() -> None:
    schema = settings_schema()
    jsonschema.validate({key: shape["default"] for key, shape in schema["properties"].items()}, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"nothing": 1}, schema)


def test_old_devices_have_sixteen_banks_and_new_ones_more_shared_memory() -> None:
    assert gpu_model("sm_13").banks == 16
    assert gpu_model("sm_90").max_dynamic_shared == 227 * 1024
    assert gpu_model("sm_120a").compute_capability == (12, 0)
    assert gpu_model("sm_80", banks=16).banks == 16


@pytest.mark.parametrize("name", ["", "sm_", "sm_999", "gfx90a"])
def test_an_unknown_architecture_is_refused_in_words(name: str) -> None:
    with pytest.raises(UnknownArchitecture, match="sm_"):
        gpu_model(name)


def test_the_command_line_is_patient_unless_the_file_says_otherwise(tmp_path: Path) -> None:
    assert load(tmp_path, PATIENT)[0].solver_budget > Settings().solver_budget
    (tmp_path / "cuda-lsp.toml").write_text("banks = 16\n")
    assert load(tmp_path, PATIENT)[0].solver_budget == PATIENT.solver_budget
    (tmp_path / "cuda-lsp.toml").write_text("solver-budget = 100\n")
    assert load(tmp_path, PATIENT)[0].solver_budget == 100


def test_settings_speak_where_the_options_of_a_check_are_silent():
    values = {"detail": "flags", "all-blocks": True, "watchAll": True, "nvcc": "/opt/nvcc"}
    settings, problems = merge(Settings(), values, "here")
    options = chosen(CheckOptions(), settings)
    assert not problems
    assert (options.detail, options.all_blocks, options.watch_all) == (Detail.FLAGS, True, True)
    assert options.nvcc == Path("/opt/nvcc")
    assert chosen(CheckOptions(nvcc=Path("/mine")), settings).nvcc == Path("/mine")
    assert [p.key for p in merge(Settings(), {"detail": "some"}, "here")[1]] == ["detail"]


MALFORMED = {
    "no TOML": ("arch = \n", 1),
    "a key in the second line": ('solver = true\narch = "volta"\n', 2),
    "nested too deeply": ("a = " + "[" * 10_000 + "]" * 10_000, 1),
    "a number of 5,000 digits": ("banks = " + "9" * 5000, 1),
    "not UTF-8": (b'std = "\xff"\n', 1),
    "NUL": ('std = "a\\u0000b"\n', 1),
    "an inner table": ("\n[severity]\nshared-race = 1\n", 2),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_malformed_file_gives_one_problem_at_its_line(tmp_path: Path, name: str) -> None:
    content, line = MALFORMED[name]
    path = tmp_path / "cuda-lsp.toml"
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    settings, problems = load(tmp_path)
    assert settings.gpu and settings.std == "c++17"
    assert [(p.path, p.line) for p in problems] == [(path, line)]
    assert len(str(problems[0])) < 400 + len(str(path))


@pytest.mark.parametrize("text", ['[tool]\ncuda-lsp = "x"\n', "\n[tool.cuda-lsp\n"])
def test_a_pyproject_whose_table_is_none_is_told(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    settings, problems = load(tmp_path)
    assert settings == Settings()
    assert [(p.path, p.line) for p in problems] == [(tmp_path / "pyproject.toml", 2)]


@pytest.mark.parametrize("text", ["tool = 3\n", 'dependencies = [\n "cuda-lsp",\n]\n', "x = \n", "[" * 9999])
def test_a_pyproject_of_others_is_left_alone(tmp_path: Path, text: str) -> None:
    (tmp_path / "pyproject.toml").write_text(text)
    assert load(tmp_path) == (Settings(), [])


@pytest.mark.parametrize("target", ["/dev/zero", "cuda-lsp.toml", "nothing"])
def test_a_settings_file_that_is_no_regular_file_is_told(tmp_path: Path, target: str) -> None:
    (tmp_path / "cuda-lsp.toml").symlink_to(target)
    settings, problems = load(tmp_path)
    assert settings == Settings() and len(problems) == 1


def test_a_pipe_instead_of_settings_is_told_at_once(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "cuda-lsp.toml")
    assert "not a regular file" in str(load(tmp_path)[1][0])


def test_solver_processes_are_the_machines_matter(tmp_path: Path) -> None:
    (tmp_path / "cuda-lsp.toml").write_text("solver-workers = 300\n")
    settings, problems = load(tmp_path)
    assert settings.solver_processes == 1 and "setting of the machine" in str(problems[0])
    settings, problems = merge(Settings(), {"solverWorkers": 300}, "editor")
    assert not problems and settings.solver_processes == (os.cpu_count() or 1)


def test_an_untrusted_folder_names_no_paths_flags_or_programs(tmp_path: Path) -> None:
    (tmp_path / "cuda-lsp.toml").write_text(
        'include-dirs = ["/"]\ndefines = ["X"]\nstd = "c++20"\ncompile-commands = "c"\nnvcc = "n"\n'
        'build-command = "b"\nrun-command = "r"\nprogram-arguments = ["a"]\nprogram-sources = ["s"]\n'
        'program-link = ["l"]\nprogram-folder = "f"\narch = "sm_90"\n'
    )
    settings, problems = load(tmp_path, trusted=False)
    assert settings == Settings(arch="sm_90", program_folder=str(tmp_path))
    assert len(problems) == 11 and all("not trusted" in str(problem) for problem in problems)
    assert load(tmp_path, trusted=True)[1] == []


def test_a_key_of_thousands_of_parts_is_told_at_once(tmp_path: Path) -> None:
    """TOML readers take time by the square of it: half a minute for 20,000 parts."""
    (tmp_path / "cuda-lsp.toml").write_text(f'arch = "sm_90"\n{"a." * 100_000}a = 1\n')
    began = time.process_time()
    settings, (problem,) = load(tmp_path)
    assert settings == Settings() and problem.line == 2 and "parts" in problem.expected
    assert time.process_time() - began < 1


def test_a_long_key_is_told_on_its_line(tmp_path: Path) -> None:
    (tmp_path / "cuda-lsp.toml").write_text(f'arch = "sm_90"\n\n{"x" * 300} = 1\n')
    settings, (problem,) = load(tmp_path)
    assert problem.line == 3 and len(problem.said) < 100 and settings.arch == "sm_90"


READ = {
    "arch": "sm_90",
    "default-block": [256],
    "severity": {"bank-conflict": "off"},
    "per-file": {"old/*.cu": {"ignore": ["warp-race"], "block-dim": [32]}},
}


def test_the_schema_of_a_settings_file_accepts_what_is_read_and_nothing_else() -> None:
    schema = file_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    jsonschema.validate(READ, schema)
    assert merge(Settings(), READ, "file")[1] == []
    for wrong in ({"defaultBlock": [256]}, {"solver-workers": 2}, {"arch": "gtx"}, {"banks": "many"}):
        with pytest.raises(jsonschema.ValidationError):
            jsonschema.validate(wrong, schema)
    assert "sm_90" in schema["properties"]["arch"]["anyOf"][0]["enum"]  # what editors complete
    assert "null" not in json.dumps(schema)  # TOML has none
    assert json.loads(CliRunner().invoke(main, ["schema", "--settings"]).stdout) == schema
