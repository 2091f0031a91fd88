"""The device that a launch runs on, through NVIDIA's own ``cuda-bindings``: wheels that need a driver alone.

Calls the driver as it is (CUDA Driver API, "Memory Management", "Execution Control"). The context is the
primary one, which the runtime of a program in this process uses too. As with PyCUDA, a launch that hung or
faulted is kept alive: freeing what it uses would wait for the kernel.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
from attrs import define, field, frozen

from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.gpu.device import Ended, GridTooLarge, Start, TooMuchMemory
from cuda_lsp.dynamic.gpu.records import Records
from cuda_lsp.dynamic.gpu.waiting import Allowance, captured_output, comes
from cuda_lsp.dynamic.instrumentation.detector import assembled


class DriverError(Exception):
    """A call of the driver failed; the message names both."""


@frozen
class Calls:
    """The functions of ``cuda.bindings.driver``, which answer with an error number and values."""

    driver: Any

    def __call__(self, name: str, *arguments: Any) -> Any:
        """The value of a call, a tuple of several, or None.

        Raises DriverError, GridTooLarge, TooMuchMemory.
        """
        status, *values = getattr(self.driver, name)(*arguments)
        results = self.driver.CUresult
        if status == results.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE:
            raise GridTooLarge("the blocks of this cooperative launch do not fit on the GPU at once")
        if status == results.CUDA_ERROR_OUT_OF_MEMORY:
            raise TooMuchMemory("the GPU has not enough memory left")
        if status != results.CUDA_SUCCESS:
            _, text = self.driver.cuGetErrorString(status)
            raise DriverError(f"{name} failed: {(text or b'unknown error').decode()}")
        return values[0] if len(values) == 1 else tuple(values) or None


@define
class Context:
    """The device's primary context, made current and put away again."""

    calls: Calls
    handle: Any

    def push(self) -> None:
        """Make it current."""
        self.calls("cuCtxPushCurrent", self.handle)

    def pop(self) -> None:
        """Make current what was before."""
        self.calls("cuCtxPopCurrent")


class _Memory:
    """Device memory that is freed when it is dropped, on somebody's account."""

    def __init__(self, calls: Calls, size: int, allowance: Allowance) -> None:
        self._start = int(calls("cuMemAlloc", size))
        self._calls, self._size, self._allowance = calls, size, allowance
        allowance.used += size

    def __int__(self) -> int:
        return self._start

    def __del__(self) -> None:
        if hasattr(self, "_size"):
            self._allowance.used -= self._size
            self._calls.driver.cuMemFree(self._start)  # an error belongs to an earlier launch


@frozen
class BindingsDevice:
    """``context`` must be current whenever the device is used."""

    calls: Calls
    handle: Any
    context: Context
    toolkit: Toolkit
    name: str
    architecture: int
    shared_limit: int
    multiprocessors: int
    threads_at_once: int
    allowance: Allowance = field(factory=lambda: Allowance(1 << 62))

    @property
    def error(self) -> type[Exception]:
        """What a failed call of the driver raises."""
        return DriverError

    def free_bytes(self) -> int:
        """As the driver tells it, or less."""
        return self.allowance.left(int(self.calls("cuMemGetInfo")[0]))

    def allow(self, limit: int) -> None:
        """Let checks use so many bytes; 0: most of what is free now."""
        self.allowance.allow(limit, int(self.calls("cuMemGetInfo")[0]))

    def allocate(self, size: int) -> _Memory:
        """Something that is an address, and frees its memory when it is dropped. Raises TooMuchMemory."""
        self.allowance.check(size)
        return _Memory(self.calls, size, self.allowance)

    def clear(self, start: int, size: int) -> None:
        """Zeros, and does not wait for them."""
        self.calls("cuMemsetD8", start, 0, size)

    def upload(self, start: int, data: Records) -> None:
        """Copy, and wait until the array may be changed."""
        held = np.ascontiguousarray(data)
        if held.nbytes:
            self.calls("cuMemcpyHtoD", start, held.ctypes.data, held.nbytes)

    def download(self, start: int, target: Records) -> None:
        """Copy, after all that was started before."""
        if target.nbytes:
            self.calls("cuMemcpyDtoH", target.ctypes.data, start, target.nbytes)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy on the device."""
        self.calls("cuMemcpyDtoD", target, source, size)

    def load(self, ptx: str, architecture: str, together: bool) -> BindingsCode:
        """Assemble and load. Raises AssemblyError."""
        cubin = np.frombuffer(assembled(ptx, self.toolkit, architecture), np.uint8)
        return BindingsCode(self, self.calls("cuModuleLoadData", cubin.ctypes.data), together)

    def wait(self) -> None:
        """For all that was started."""
        self.calls("cuCtxSynchronize")


@define
class BindingsCode:
    """A module in the device's context. ``together``: all blocks of a launch must run at once."""

    device: BindingsDevice
    module: Any
    together: bool
    kept: list[Any] = field(factory=list[Any])  # what a launch uses, while it may still run

    def variable(self, name: str) -> tuple[int, int] | None:
        """As ``Code.variable``; None also for what the assembler dropped because nothing uses it."""
        try:
            start, size = self.device.calls("cuModuleGetGlobal", self.module, name.encode())
        except DriverError:
            return None
        return int(start), int(size)

    def launch(self, start: Start) -> Ended:
        """As ``Code.launch``. What the launch uses is kept, for a kernel that hangs goes on using it."""
        calls, driver = self.device.calls, self.device.calls.driver
        function = calls("cuModuleGetFunction", self.module, start.entry.encode())
        self._check_local_memory(function)
        if start.shared:  # what may be had without asking depends on the kernel's own static part
            most = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
            calls("cuFuncSetAttribute", function, most, start.shared)
        begun, ended = calls("cuEventCreate", 0), calls("cuEventCreate", 0)
        # Made now and kept: while a kernel hangs, the driver allocates and frees nothing.
        stream, other = (calls("cuStreamCreate", 1) for _ in range(2))  # they do not wait for stream 0
        place, size = start.rescue
        rescued = int(calls("cuMemAllocHost", max(size, 1)))
        held = [ctypes.create_string_buffer(value, len(value)) for _, value in start.parameters]
        pointers = (ctypes.c_void_p * max(len(held), 1))(*(ctypes.addressof(one) for one in held))
        self.kept = [begun, ended, stream, other, rescued, function, held, pointers]
        calls("cuCtxSynchronize")  # what was cleared and copied before is there
        if start.lead is not None:
            calls("cuMemsetD8Async", start.lead[0], 0, start.lead[1], stream)
        with captured_output() as output:
            calls("cuEventRecord", begun, stream)
            shape = (*start.grid, *start.block, start.shared, stream, ctypes.addressof(pointers))
            if self.together:
                calls("cuLaunchCooperativeKernel", function, *shape)
            else:
                calls("cuLaunchKernel", function, *shape, 0)
            calls("cuEventRecord", ended, stream)
            in_time = comes(lambda: self._has_come(ended), start.deadline)
            if in_time:
                calls("cuCtxSynchronize")  # flushes what the kernel printed
        if in_time:
            seconds = float(calls("cuEventElapsedTime", begun, ended)) / 1000
            self._put_away(begun, ended, stream, other, rescued)
            return Ended(seconds, output.text)
        calls("cuMemcpyDtoHAsync", rescued, place, size, other)
        calls("cuStreamSynchronize", other)
        return Ended(None, output.text, ctypes.string_at(rescued, size))

    def _has_come(self, event: Any) -> bool:
        calls, driver = self.device.calls, self.device.calls.driver
        (status,) = driver.cuEventQuery(event)
        if status == driver.CUresult.CUDA_ERROR_NOT_READY:
            return False
        calls("cuEventQuery", event)  # raises what it says
        return True

    def _put_away(self, begun: Any, ended: Any, stream: Any, other: Any, rescued: int) -> None:
        calls = self.device.calls
        for event in (begun, ended):
            calls("cuEventDestroy", event)
        for one in (stream, other):
            calls("cuStreamDestroy", one)
        calls("cuMemFreeHost", rescued)
        self.kept = []

    def _check_local_memory(self, function: Any) -> None:
        """The driver reserves it for as many threads as the device holds at once."""
        calls, driver = self.device.calls, self.device.calls.driver
        local = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES
        each = int(calls("cuFuncGetAttribute", local, function))
        self.device.allowance.check(each * self.device.threads_at_once * self.device.multiprocessors)
