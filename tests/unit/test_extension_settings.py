"""The VS Code extension declares exactly the server's settings."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from cuda_lsp import __version__
from cuda_lsp.config import settings_schema

PACKAGE = Path(__file__).resolve().parents[2] / "vscode-extension/package.json"
OF_THE_EXTENSION = {"cuda-lsp.server.command", "cuda-lsp.trace.server", "cuda-lsp.headersAsCuda"}
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
    paths_and_flags = {"server.command", "includeDirs", "defines", "std", "compileCommands", "programLink"}
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
