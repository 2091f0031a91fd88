"""Settings: one schema, merged from several places, mistakes told one by one."""

from __future__ import annotations

from pathlib import Path

import jsonschema
import pytest

from cuda_lsp.config import PATIENT, Settings, find_settings_file, load, merge, settings_schema
from cuda_lsp.confirm import CheckOptions, chosen
from cuda_lsp.dynamic.runs import Detail
from cuda_lsp.hardware import UnknownArchitecture, gpu_model
from cuda_lsp.model import Code, Severity


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
