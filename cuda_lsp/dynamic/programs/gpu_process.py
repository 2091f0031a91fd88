"""The process in which a whole program runs on the GPU, its kernels instrumented launch by launch.

Started by ``on_gpu``: reads a ``Task`` from stdin, writes what it sees to a file descriptor, and becomes the
program: its exit status is the program's. The program is a shared object; its launches come here first
(``standin/hooks.cpp``). A launch that is checked runs the instrumented kernel on the program's own memory, in
the same CUDA context; all others run as they are. Kernels must not have side effects twice, so races are
looked for in one launch and bank conflicts in another.
"""

from __future__ import annotations

import ctypes
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, BinaryIO

import numpy as np
from attrs import define, evolve, field

from cuda_lsp.dynamic.compilation.compile import CompiledModule
from cuda_lsp.dynamic.compilation.releases import with_releases
from cuda_lsp.dynamic.compilation.sites import sites_of
from cuda_lsp.dynamic.gpu.device import GridTooLarge, TooMuchMemory
from cuda_lsp.dynamic.gpu.engine import RealDevice, open_primary
from cuda_lsp.dynamic.gpu.launch import Launch
from cuda_lsp.dynamic.gpu.memory import HostMemory
from cuda_lsp.dynamic.gpu.records import Extent
from cuda_lsp.dynamic.instrumentation.detector import AssemblyError
from cuda_lsp.dynamic.messages import send
from cuda_lsp.dynamic.programs.function_tables import told_functions
from cuda_lsp.dynamic.programs.guard import usual_memory
from cuda_lsp.dynamic.programs.instances import Tally, instances
from cuda_lsp.dynamic.programs.job import Checked, ProgramKernel, argument_names
from cuda_lsp.dynamic.programs.on_gpu import FAULT, RACES, SAMPLED, SKIPPED, Said, Task
from cuda_lsp.dynamic.programs.process import input_of
from cuda_lsp.dynamic.ptx.functions import (
    calls_stored_pointers,
    kept_names,
    names_of,
    tables_of_functions,
)
from cuda_lsp.dynamic.ptx.module import PtxModule
from cuda_lsp.dynamic.ptx.names import stable
from cuda_lsp.dynamic.runs import Argument, EngineUnavailable, KernelRun
from cuda_lsp.dynamic.sampling import spread_blocks
from cuda_lsp.model import LaunchConfig, LaunchSource

_KERNEL_SECONDS = 30.0
_TOLD_EVERY = 0.5  # seconds between two messages that only count launches
_REASONS = (None, "in a graph, which is launched as a whole", "with attributes (a programmatic event, …)")
"""Why a launch cannot be carried out here, as ``standin/hooks.cpp`` numbers it."""
_AT_EXIT = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_REFUSAL = ctypes.CFUNCTYPE(None, ctypes.c_int)
_CALLBACK = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_void_p)
)


@define
class Hosted:
    """The program's launches, as they come. ``device``: number 0; ``open``: makes the others ready."""

    task: Task
    device: RealDevice
    library: Any
    answers: BinaryIO
    open: Callable[[int], RealDevice]
    others: dict[int, RealDevice] = field(factory=dict[int, RealDevice])
    tally: Tally = field(init=False)
    told: float = 0.0  # when counts were sent last

    def __attrs_post_init__(self) -> None:
        job = self.task.job
        self.tally = Tally(instances(self.task.modules, job.kernels, job.wanted), SAMPLED)

    def say(self, message: Said) -> None:
        """Send a message to the parent, and how often each kernel was launched so far."""
        self.told = time.monotonic()
        send(self.answers, evolve(message, counts=self.tally.counts))

    def limits(self) -> tuple[int, int]:
        """Bytes of the GPU, and of the host's memory that it reaches, that the program may allocate."""
        self.device.context.push()
        try:
            self.device.allow(self.task.job.gpu_memory)
        finally:
            self.device.context.pop()
        return self.device.allowance.limit, self.task.job.host_memory or usual_memory()

    def refused(self, limits: tuple[int, int], pinned: int) -> None:
        """The program asked for more."""
        where = "pinned memory" if pinned else "the GPU's memory"
        self.say(Said(remark=f"the program was refused more than {limits[pinned] >> 20} MiB of {where}"))

    def end(self, unused: object) -> None:
        """The program leaves."""
        self.say(Said())

    def launch(self, name: bytes, shape: Any, arguments: Any) -> int:
        """1: the launch was carried out here. Never raises: the program goes on whatever happens."""
        entry = stable(name.decode())
        return self.taken(entry, entry, shape, arguments)

    def taken(self, key: str, entry: str, shape: Any, arguments: Any) -> int:
        """The same for the entry of a module. ``key``: what it is counted by."""
        number = self.tally.launched(key)
        reason: int = shape[7]
        why = SKIPPED if key in self.task.skipped else _REASONS[reason]
        if not self.tally.chosen(key, why):
            if time.monotonic() - self.told > _TOLD_EVERY:
                self.say(Said())
            return 0
        kernel = self.tally.instances.kernels[key]
        plain, optimised = self.tally.instances.homes[key]
        refusal = ""
        self.say(Said())  # whatever becomes of it, it was launched
        try:
            device = self.entered(shape[12])
        except EngineUnavailable as problem:
            return self._refuse(key, str(problem))
        try:
            compiled = plain if number in RACES else optimised
            return self._checked(device, kernel, compiled, key, entry, shape, arguments)
        except (EngineUnavailable, AssemblyError, GridTooLarge, TooMuchMemory) as problem:
            refusal = str(problem)
        except self.device.error as problem:
            looked = "races" if number in RACES else "bank conflicts"
            why = f"launch {number}, watched for {looked}, failed on the GPU: {problem}"
            self.tally.refused(key, why)
            self.say(Said(key, problem=why))
            os._exit(FAULT)  # the context is lost
        except OSError as problem:  # the program may have closed what we need, or taken our rights
            refusal = f"{problem.strerror} ({problem.filename})"
        except Exception as problem:  # noqa: BLE001 - a bug of ours must not stop the program
            refusal = f"internal error {type(problem).__name__}: {problem}"
        finally:
            device.context.pop()
        return self._refuse(key, refusal)

    def _refuse(self, key: str, why: str) -> int:
        self.tally.refused(key, why)
        self.say(Said(key, problem=f"not checked: {why}"))
        return 0

    def entered(self, number: int) -> RealDevice:
        """The program's device of this number, its context current. Raises EngineUnavailable."""
        new = number > 0 and number not in self.others
        if new:
            self.others[number] = self.open(number)
        device = self.others[number] if number else self.device
        # Only now: PyCUDA aborts a process that ends, wherever that may be, with a context on its stack.
        device.context.push()
        if new:
            device.allow(self.task.job.gpu_memory)
        return device

    def _checked(
        self, device: RealDevice, kernel: ProgramKernel, compiled: CompiledModule, key: str, entry: str,
        shape: Any, arguments: Any,
    ) -> int:  # fmt: skip
        job, number = self.task.job, self.tally.counts[key].launches
        variables = dict(self.variables(compiled))
        pointers = self._pointers(device, key, compiled.module, entry, variables)
        compiled, sites = with_releases(compiled, sites_of(compiled, entry), kernel.releases)
        races = number in RACES
        grid, block = (shape[0], shape[1], shape[2]), (shape[3], shape[4], shape[5])
        config = LaunchConfig(block, grid, shape[6], LaunchSource.PROGRAM)
        values = tuple(_arguments(compiled.module, entry, arguments))
        names = argument_names(kernel, [value.value for value in values])
        request = KernelRun(
            ptx=compiled.ptx,
            entry=entry,
            launch=config,
            arguments=values,
            sites=sites,
            watch=None if kernel.watch else frozenset(),
            blocks=None if job.all_blocks else spread_blocks(shape[0] * shape[1] * shape[2]),
            detail=job.detail,
            races=races,
            banks=not races,
            deadline=min(_KERNEL_SECONDS, job.deadline / 2),
            lock_step=kernel.lock_step,
            cluster=(shape[8], shape[9], shape[10]),
            together=bool(shape[11]),
        )
        device.wait()  # what the program started earlier comes before
        held = [Extent(n, at, at + size) for n, (at, size) in variables.items() if n in pointers]
        copied = {name: place for name, place in variables.items() if name not in pointers}
        memory = HostMemory((*self._allocations(names), *held), copied, pointers)
        launch = Launch(device, self.task.toolkit, request, compiled.module, host=memory)
        launch.prepare()
        outcome = launch.execute(keep_results=False)
        if not launch.hung:
            launch.return_variables()
        if outcome.output:
            os.write(1, outcome.output.encode())
        checked = Checked(config, outcome if races else None, None if races else outcome, number)
        self.tally.checked(key)
        self.say(Said(key, checked, sites))
        if launch.hung:
            os._exit(FAULT)
        return 1

    def _pointers(
        self,
        device: RealDevice,
        key: str,
        module: PtxModule,
        entry: str,
        variables: Mapping[str, tuple[int, int]],
    ) -> Mapping[str, int]:
        """The program's addresses of functions that the kernel may meet in memory or leave there, and of what
        holds them: they are not those of our build of the module. Raises EngineUnavailable."""
        told = self._told(device, key, variables)
        found = {name: told[name] for name in told_functions(module) if name in told}
        calls, kept = calls_stored_pointers(module, entry), kept_names(module, entry)
        # What stays in memory the optimised build stores, too; of the rest only this launch itself knows.
        lasting = kept_names(self.tally.instances.homes[key][1].module, entry)
        if (calls or kept) and not (told and lasting <= told.keys()):
            does = "calls functions through pointers from memory" if calls else "keeps addresses of functions"
            raise EngineUnavailable(f"it {does}")
        meant = found.keys() | tables_of_functions(module)
        return found if calls or names_of(module, entry) & meant else {}

    def _told(
        self, device: RealDevice, key: str, variables: Mapping[str, tuple[int, int]]
    ) -> Mapping[str, int]:
        """The addresses that the program's objects tell of a kernel's source (``function_tables.py``)."""
        home = self.tally.instances.homes[key]
        places = [f for pair, f in zip(self.task.modules, self.task.functions, strict=False) if pair is home]
        values: dict[str, Any] = {}
        for table in {table for functions in places for table, _ in functions.values()} & variables.keys():
            start, size = variables[table]
            values[table] = np.zeros(size // 8, np.uint64)
            device.download(start, values[table])
        return {
            name: int(values[table][at])
            for functions in places
            for name, (table, at) in functions.items()
            if table in values and values[table][at]
        }

    def _allocations(self, names: Mapping[int, str]) -> Iterator[Extent]:
        start, size, number = ctypes.c_ulonglong(), ctypes.c_ulonglong(), 0
        while self.library.clsp_allocation(number, ctypes.byref(start), ctypes.byref(size)):
            yield Extent(names.get(start.value, "memory"), start.value, start.value + size.value)
            number += 1

    def variables(self, compiled: CompiledModule) -> Iterator[tuple[str, tuple[int, int]]]:
        """Where the program's variables lie, start and bytes, by the names that its code has for them."""
        del compiled  # one program has one module of each source
        name, start, size = ctypes.c_char_p(), ctypes.c_ulonglong(), ctypes.c_ulonglong()
        number = 0
        while self.library.clsp_variable(number, ctypes.byref(name), ctypes.byref(start), ctypes.byref(size)):
            if start.value and name.value is not None:
                yield stable(name.value.decode()), (start.value, size.value)
            number += 1


def _arguments(module: PtxModule, entry: str, given: Any) -> Iterator[Argument]:
    for number, parameter in enumerate(module.entries[entry].params):
        yield Argument(parameter.name, ctypes.string_at(given[number], parameter.size or 8))


def main(descriptor: str) -> None:
    """Become the program. ``descriptor``: of the pipe that takes what there is to say."""
    answers = os.fdopen(int(descriptor), "wb")
    task: Task = pickle.load(sys.stdin.buffer)
    os.chdir(task.job.folder)
    device = open_primary(task.toolkit)
    library: Any = ctypes.CDLL(str(task.library), mode=ctypes.RTLD_GLOBAL)
    hosted = Hosted(task, device, library, answers, partial(open_primary, task.toolkit))
    hosted.say(Said(device=device.name))
    callback = _CALLBACK(hosted.launch)
    library.clsp_attach(callback)
    limits = hosted.limits()
    refusal = _REFUSAL(partial(hosted.refused, limits))
    library.clsp_limit(*map(ctypes.c_ulonglong, limits), refusal)
    at_exit = _AT_EXIT(hosted.end)
    ctypes.CDLL(None).__cxa_atexit(at_exit, None, None)  # also when the program calls exit itself
    words = [*map(os.fsencode, task.job.command)]
    given = (ctypes.c_char_p * (len(words) + 1))(*words, None)
    with input_of(task.job) as file:
        os.dup2(file.fileno(), 0)  # until here it was ours
    try:
        entry = library.main
    except AttributeError:
        hosted.say(Said(remark="nothing defines main: name the program's other sources"))
        os._exit(FAULT)
    status = entry(len(words), given)
    ctypes.CDLL(None).exit(status)  # flushes the program's output, as its own exit would
