"""``check --executor``: the workers of a cluster find what this machine finds, whatever becomes of them."""

from __future__ import annotations

import faulthandler
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import CliRunner

from cuda_lsp.batch import check
from cuda_lsp.batch.asked import Analysed, Asked
from cuda_lsp.batch.limits import FileLimits
from cuda_lsp.cli import main
from cuda_lsp.model import FileReport, Severity, Verdict
from cuda_lsp.readings import Reading

distributed = pytest.importorskip("distributed")
from cuda_lsp.batch.cluster import executor, tree  # noqa: E402
from cuda_lsp.batch.cluster.executor import Cluster  # noqa: E402
from cuda_lsp.batch.cluster.station import Request, Station  # noqa: E402
from cuda_lsp.batch.cluster.work import identity  # noqa: E402

ROOT = Path(__file__).resolve().parents[2]
LIMITS = FileLimits(30)
KERNEL = """#include "shape.h"
#include "../far/outside.h"
#include <shared.h>
__global__ void neighbour(int *out) {
  __shared__ int s[SIZE];
  s[threadIdx.x] = 1;
  out[threadIdx.x] = s[SIZE - 1 - threadIdx.x] + once();
}
"""
LAUNCH = "void launch(int *out) { neighbour<<<1, 64>>>(out); }\n"


@contextmanager
def started(folder: Path) -> Generator[tuple[str, list[subprocess.Popen[bytes]]]]:
    """A scheduler and two workers on this machine: the address, and the workers' processes."""
    place = folder / "scheduler.json"
    common = ["--scheduler-file", str(place), "--no-dashboard"]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    del environment["CUDA_LSP_CACHE"]
    working = ["--nthreads", "1", "--no-nanny", "--local-directory", str(folder)]
    words = [["scheduler", "--port", "0", "--host", "127.0.0.1"], ["worker", *working], ["worker", *working]]
    with (folder / "log").open("wb") as log:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.dask_{what[0]}", *what[1:], *common],
                cwd="/", stdout=log, stderr=log, env=environment,
            )
            for what in words
        ]  # fmt: skip
    try:
        while not place.exists():
            assert processes[0].poll() is None, (folder / "log").read_text()
            time.sleep(0.05)
        yield json.loads(place.read_text())["address"].replace("tcp://", "dask://"), processes
    finally:
        for process in processes:
            process.kill()
            process.wait()


@pytest.fixture(scope="module", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Generator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CUDA_LSP_CACHE", str(tmp_path_factory.mktemp("cache")))
        faulthandler.disable()  # of pytest: crashes are meant here
        yield
        faulthandler.enable()


@pytest.fixture(scope="module")
def cluster(own_cache: None, tmp_path_factory: pytest.TempPathFactory) -> Generator[str]:
    with started(tmp_path_factory.mktemp("cluster")) as (address, _):
        yield address


@pytest.fixture
def here(monkeypatch: pytest.MonkeyPatch) -> list[Reading]:
    """What the runs of a test could not have done elsewhere."""
    made: list[Reading] = []

    class Watched(Cluster):
        def __init__(self, *arguments: Any) -> None:
            super().__init__(*arguments)
            self.analysed_here = made

    monkeypatch.setattr(executor, "Cluster", Watched)
    return made


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Headers in it and around it, a database of absolute paths, settings above, a launch in another file."""
    folder = tmp_path / "all" / "project"
    for name, text in {
        ".git/HEAD": "",
        "src/kernel.cu": KERNEL,
        "src/launch.cu": LAUNCH,
        "src/device.h": "__global__ void held(int *p) { p[threadIdx.x / 2] = threadIdx.x; }\n",
        "src/user.cu": '#include "device.h"\nvoid go(int *p) { held<<<1, 64>>>(p); }\n',
        "src/lost.cu": "#pragma clang __debug crash\n",
        "src/shape.h": '#pragma once\n#include "sub/../shape2.h"\n#include "shape2.h"\n',
        "src/shape2.h": "#pragma once\n#define SIZE 64\n__device__ int once() { return 1; }\n",
        "src/sub/other.h": "",
        "far/outside.h": '#include "../../beside/more.h"\n',
        "../beside/more.h": "struct More { int x; };\n",
        "../elsewhere/shared.h": "inline int unused;\n",
        "../cuda-lsp.toml": 'severity = { bank-conflict = "off" }\n',
        "build/compile_commands.json": json.dumps([
            {"file": str(folder / "src/kernel.cu"), "directory": str(folder / "build"),
             "arguments": ["nvcc", f"-I{tmp_path}/all/elsewhere", "-c", str(folder / "src/kernel.cu")]}
        ]),
    }.items():  # fmt: skip
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def checked(paths: list[Path], address: str | None, **how: Any) -> list[FileReport]:
    with check.checking(paths, Asked(), 2, LIMITS, cache=False, executor=address, **how) as reports:
        return [without_how(report) for report in reports]


def without_how(report: FileReport) -> FileReport:
    """Without its time, and without the keys of kernels: digests of flags, which say where copies lie."""
    kernels = tuple(evolve(kernel, key="") for kernel in report.kernels)
    return evolve(report, seconds=0.0, kernels=kernels)


def test_workers_find_what_this_machine_finds(
    project: Path, cluster: str, here: list[Reading], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(project)
    paths = [Path("src", name) for name in ("kernel.cu", "user.cu", "lost.cu")]
    heard: list[str] = []
    told = checked(paths, cluster, heard=lambda reading, found: heard.append(reading.path.name))
    paths = [path.absolute() for path in paths]
    assert told == checked(paths, None)
    kernel, _, lost, held = told
    assert [k.verdict for k in (*kernel.kernels, *held.kernels)] == [Verdict.RACY] * 2
    assert kernel.path == paths[0] and not kernel.errors
    assert [e.message for e in lost.errors if e.severity is Severity.ERROR] == [
        "not analysed: its analysis crashed, most likely in clang (SIGILL)"
    ]
    assert sorted(heard) == ["device.h", "kernel.cu", "lost.cu", "user.cu"] and here == []


def test_a_tree_is_all_that_a_worker_sees(project: Path, tmp_path: Path) -> None:
    shutil.rmtree(project / "build")
    kernel = project / "src/kernel.cu"
    kernel.write_text(KERNEL.replace('#include "../far/outside.h"\n', ""))
    (before,) = checked([kernel], None)
    sent = tree.gathered(project, [str(project.parent / "cuda-lsp.toml")])
    shutil.rmtree(project.parent)
    place = tree.laid_out(sent, tmp_path / "trees")
    station = Station()
    try:
        found = station.ask(Request(Reading(kernel), Asked(noting=True), LIMITS, "", place))
    finally:
        station.close()
    assert without_how(found.report) == before and before.findings
    assert found.answers and not any(str(tmp_path / "trees") in path for _, path in found.answers)


def test_what_cannot_be_known_there_is_analysed_here(
    project: Path, cluster: str, here: list[Reading]
) -> None:
    kernel = project / "src/kernel.cu"
    kernel.write_text("#define WHICH <shared.h>\n#include WHICH\n" + KERNEL)
    assert checked([kernel], cluster) == checked([kernel], None)
    assert [reading.path for reading in here] == [kernel]


def test_a_worker_killed_midway_costs_nothing(tmp_path: Path, here: list[Reading]) -> None:
    paths: list[Path] = []
    for number in range(8):
        paths.append(tmp_path / "files" / f"{number}.cu")
        paths[-1].parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / "fixtures" / "histogram.cu", paths[-1])
    (tmp_path / "cluster").mkdir()
    with started(tmp_path / "cluster") as (address, (_, *workers)):
        observer = distributed.Client(address.replace("dask://", "tcp://"), set_as_default=False)
        observer.wait_for_workers(2, timeout=30)
        killed: list[int] = []

        def kill(reading: Reading, found: Analysed) -> None:
            if not killed:
                pids = observer.run(os.getpid)
                busy = [pids[worker] for worker, tasks in observer.processing().items() if tasks]
                (victim,) = [worker for worker in workers if worker.pid == busy[0]]
                victim.kill()
                killed.append(victim.wait())

        told = checked(paths, address, heard=kill)
        observer.close()
    assert killed and told == checked(paths, None) and here == []
    assert len(told) == len(paths) and all(report.kernels for report in told)


def test_a_scheduler_that_goes_is_told_in_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    for number in range(4):
        shutil.copy(ROOT / "fixtures" / "histogram.cu", folder / f"{number}.cu")
    (tmp_path / "cluster").mkdir()
    with started(tmp_path / "cluster") as (address, (scheduler, *_)):
        fill = Cluster._fill  # pyright: ignore[reportPrivateUsage]

        def fill_and_kill(self: Cluster) -> None:
            fill(self)
            scheduler.kill()

        monkeypatch.setattr(Cluster, "_fill", fill_and_kill)
        status, said = run("--no-cache", "--executor", address, str(folder))
    assert status == 2 and "the scheduler is gone" in said.splitlines()[-1]


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(main, ["check", *words])
    return result.exit_code, result.output.strip()


def test_a_worker_with_another_program_is_named(
    project: Path, cluster: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(executor, "identity", lambda: evolve(identity(), version="9.9"))
    status, said = run("--executor", cluster, str(project))
    assert status == 2 and said.count("\n") == 0
    assert "has cuda-lsp 0.1.0, here it is 9.9: install the same there" in said


def test_an_executor_that_cannot_be_is_told_in_a_line(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executor, "_JOIN_S", 0.5)
    for words, reason in {
        ("--executor", "dask://127.0.0.1:9"): "cannot be reached",
        ("--executor", "localhost"): "wants dask://HOST:PORT",
        ("--executor", "dask://h:1", "--dynamic", "emulator"): "not with --dynamic",
    }.items():
        status, said = run(*words, str(project))
        assert status == 2 and reason in said and said.count("\n") == 0
