"""The VS Code extension declares exactly the server's settings."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from cuda_lsp import __version__
from cuda_lsp.config import settings_schema

PACKAGE = Path(__file__).resolve().parents[2] / "vscode-extension/package.json"
OF_THE_EXTENSION = {
    f"cuda-lsp.{name}" for name in ("server.command", "server.wheels", "trace.server", "headersAsCuda")
}
REQUIREMENTS = PACKAGE.parent / "server/requirements.txt"
MEND = "run python scripts/extension_settings.py"


@pytest.fixture(scope="module")
def package() -> dict[str, Any]:
    return json.loads(PACKAGE.read_text(encoding="utf-8"))


def test_extension_declares_the_servers_settings_word_for_word(package: dict[str, Any]) -> None:
    declared = package["contributes"]["configuration"]["properties"]
    of_the_server = {name: shape for name, shape in declared.items() if name not in OF_THE_EXTENSION}
    expected = {f"cuda-lsp.{name}": shape for name, shape in settings_schema()["properties"].items()}
    without_scope = {
        name: {key: value for key, value in shape.items() if key != "scope"}
        for name, shape in of_the_server.items()
    }
    assert without_scope == json.loads(json.dumps(expected)), MEND


def test_settings_that_name_paths_or_flags_need_trust(package: dict[str, Any]) -> None:
    restricted = set(package["capabilities"]["untrustedWorkspaces"]["restrictedConfigurations"])
    declared = set(package["contributes"]["configuration"]["properties"])
    paths_and_flags = {"server.command", "server.wheels", "includeDirs"}
    paths_and_flags |= {"defines", "std", "compileCommands", "programLink"}
    assert {f"cuda-lsp.{name}" for name in paths_and_flags} <= restricted <= declared


def test_extension_and_server_have_one_version(package: dict[str, Any]) -> None:
    assert package["version"] == __version__


def test_the_extension_runs_where_the_code_is(package: dict[str, Any]) -> None:
    assert package["extensionKind"] == ["workspace"]  # on the other side of Remote-SSH, WSL and containers
    assert package["capabilities"]["untrustedWorkspaces"]["supported"] == "limited"
    assert package["capabilities"]["virtualWorkspaces"]["supported"] == "limited"


def test_each_step_of_the_walkthrough_is_there(package: dict[str, Any]) -> None:
    (walkthrough,) = package["contributes"]["walkthroughs"]
    commands = {command["command"] for command in package["contributes"]["commands"]}
    for step in walkthrough["steps"]:
        assert (PACKAGE.parent / step["media"]["markdown"]).is_file()
        assert set(re.findall(r"\(command:([\w.-]+)\)", step["description"])) <= commands


def test_steps_of_the_walkthrough_tick_by_what_the_extension_tells(package: dict[str, Any]) -> None:
    (walkthrough,) = package["contributes"]["walkthroughs"]
    told = re.findall(r'"(cuda-lsp\.\w+)"', (PACKAGE.parent / "src/milestones.ts").read_text())
    ticked = [event for step in walkthrough["steps"] for event in step["completionEvents"]]
    assert ticked == [f"onContext:{name}" for name in dict.fromkeys(told)]


def test_what_the_extension_installs_is_pinned_and_what_the_server_needs() -> None:
    pinned: dict[str, list[Version]] = {}
    entries = re.split(r"\n(?=\w)", REQUIREMENTS.read_text())[1:]
    for entry in entries:
        needed = Requirement(entry.partition("\\")[0])
        (pin,) = needed.specifier
        assert pin.operator == "==" and "--hash=sha256:" in entry
        pinned.setdefault(canonicalize_name(needed.name), []).append(Version(pin.version))
    pyproject = tomllib.loads((PACKAGE.parents[1] / "pyproject.toml").read_text())
    for needed in map(Requirement, pyproject["project"]["dependencies"]):
        versions = pinned[canonicalize_name(needed.name)]
        assert all(needed.specifier.contains(version) for version in versions), (
            f"{needed}: run python scripts/extension_requirements.py"
        )
