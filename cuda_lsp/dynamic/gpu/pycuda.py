"""The device that a launch runs on, through PyCUDA's driver interface.

PyCUDA knows no cooperative launches; for kernels that need one the few calls of the driver's interface are
made directly (CUDA driver API: ``cuModuleLoadData``, ``cuLaunchCooperativeKernel``), in the context that is
current. A launch that hung or faulted must be kept alive: freeing what it uses would wait for the kernel.
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
from cuda_lsp.model import Dim3

_TOO_LARGE = 720  # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


class _Allocation:
    """PyCUDA's ``DeviceAllocation``, which is freed when it is dropped, on somebody's account."""

    def __init__(self, memory: Any, size: int, allowance: Allowance) -> None:
        self._memory, self._size, self._allowance = memory, size, allowance
        allowance.used += size

    def __int__(self) -> int:
        return int(self._memory)

    def __del__(self) -> None:
        self._allowance.used -= self._size


@frozen
class PycudaDevice:
    """``context`` must be current whenever the device is used."""

    driver: Any
    handle: Any
    context: Any
    toolkit: Toolkit
    name: str
    architecture: int
    shared_limit: int
    multiprocessors: int
    threads_at_once: int
    allowance: Allowance = field(factory=lambda: Allowance(1 << 62))

    @property
    def error(self) -> type[Exception]:
        """PyCUDA's base class of errors."""
        return self.driver.Error

    def free_bytes(self) -> int:
        """As the driver tells it, or less."""
        return self.allowance.left(int(self.driver.mem_get_info()[0]))

    def allow(self, limit: int) -> None:
        """Let checks use so many bytes; 0: most of what is free now."""
        self.allowance.allow(limit, int(self.driver.mem_get_info()[0]))

    def allocate(self, size: int) -> Any:
        """Something that is an address, and frees its memory when it is dropped. Raises TooMuchMemory."""
        self.allowance.check(size)
        try:
            return _Allocation(self.driver.mem_alloc(size), size, self.allowance)
        except self.driver.MemoryError as error:
            raise TooMuchMemory(f"the GPU has no {size >> 20} MiB of memory left") from error

    def clear(self, start: int, size: int) -> None:
        """Zeros, and does not wait for them."""
        self.driver.memset_d8(start, 0, size)

    def upload(self, start: int, data: Records) -> None:
        """Copy, and wait until the array may be changed."""
        self.driver.memcpy_htod(start, np.ascontiguousarray(data))

    def download(self, start: int, target: Records) -> None:
        """Copy, after all that was started before."""
        self.driver.memcpy_dtoh(target, start)

    def copy(self, target: int, source: int, size: int) -> None:
        """Copy on the device."""
        self.driver.memcpy_dtod(target, source, size)

    def load(self, ptx: str, architecture: str, together: bool) -> PycudaCode:
        """Assemble and load; a cooperative kernel through the driver itself. Raises AssemblyError."""
        cubin = assembled(ptx, self.toolkit, architecture)
        if together:
            return PycudaCode(self, _CooperativeModule.load(self.driver, cubin))
        return PycudaCode(self, self.driver.module_from_buffer(cubin))

    def wait(self) -> None:
        """For all that was started."""
        self.driver.Context.synchronize()


@define
class PycudaCode:
    """A module in the device's context."""

    device: PycudaDevice
    module: Any
    kept: list[Any] = field(factory=list[Any])  # what a launch uses, while it may still run

    def variable(self, name: str) -> tuple[int, int] | None:
        """As ``Code.variable``; None also for what the assembler dropped because nothing uses it."""
        try:
            start, size = self.module.get_global(name)
        except self.device.driver.LogicError:
            return None  # the assembler dropped it: nothing uses it
        return int(start), int(size)

    def _check_local_memory(self, function: Any) -> None:
        """The driver reserves it for as many threads as the device holds at once."""
        if isinstance(function, _CooperativeFunction):
            return
        each = function.get_attribute(self.device.driver.function_attribute.LOCAL_SIZE_BYTES)
        self.device.allowance.check(int(each) * self.device.threads_at_once * self.device.multiprocessors)

    def launch(self, start: Start) -> Ended:
        """As ``Code.launch``. What the launch uses is kept, for a kernel that hangs goes on using it."""
        driver, function = self.device.driver, self.module.get_function(start.entry)
        self._check_local_memory(function)
        if start.shared:  # what may be had without asking depends on the kernel's own static part
            function.set_attribute(driver.function_attribute.MAX_DYNAMIC_SHARED_SIZE_BYTES, start.shared)
        begun, ended, stream = driver.Event(), driver.Event(), driver.Stream()
        # Made now and kept: while a kernel hangs, the driver allocates and frees nothing.
        place, size = start.rescue
        other, rescued = driver.Stream(), driver.pagelocked_empty(max(size, 1), np.uint8)
        self.kept = [begun, ended, stream, other, rescued, function]
        if start.lead is not None:
            driver.memset_d8_async(start.lead[0], 0, start.lead[1], stream)
        with captured_output() as output:
            begun.record(stream)
            _launch(function, start, stream)
            ended.record(stream)
            in_time = comes(ended.query, start.deadline)
            if in_time:
                driver.Context.synchronize()  # flushes what the kernel printed
        if in_time:
            return Ended(float(begun.time_till(ended)) / 1000, output.text)
        driver.memcpy_dtoh_async(rescued[:size], place, other)
        other.synchronize()
        return Ended(None, output.text, bytes(rescued[:size]))


def _launch(function: Any, start: Start, stream: Any) -> None:
    if isinstance(function, _CooperativeFunction):
        values = [value for _, value in start.parameters]
        return function.launch(start.grid, start.block, values, start.shared, stream)
    function._launch_kernel(start.grid, start.block, start.packed(), start.shared, stream)


# ----------------------------------------------------------------------------- cooperative launches


@frozen
class _Calls:
    """The driver's functions; failures raise PyCUDA's errors."""

    driver: Any
    library: Any

    def __call__(self, name: str, *arguments: Any) -> None:
        status = getattr(self.library, name)(*arguments)
        if status == _TOO_LARGE:
            raise GridTooLarge("the blocks of this cooperative launch do not fit on the GPU at once")
        if status:
            text = ctypes.c_char_p()
            self.library.cuGetErrorString(status, ctypes.byref(text))
            reason = (text.value or b"unknown error").decode()
            kind = self.driver.LogicError if name == "cuModuleGetGlobal_v2" else self.driver.LaunchError
            raise kind(f"{name} failed: {reason}")


@frozen
class _CooperativeModule:
    calls: _Calls
    handle: ctypes.c_void_p

    @classmethod
    def load(cls, driver: Any, cubin: bytes) -> _CooperativeModule:
        calls, handle = _Calls(driver, ctypes.CDLL("libcuda.so.1")), ctypes.c_void_p()
        calls("cuModuleLoadData", ctypes.byref(handle), cubin)
        return cls(calls, handle)

    def get_global(self, name: str) -> tuple[int, int]:
        start, size = ctypes.c_uint64(), ctypes.c_size_t()
        self.calls(
            "cuModuleGetGlobal_v2", ctypes.byref(start), ctypes.byref(size), self.handle, name.encode()
        )
        return start.value, size.value

    def get_function(self, name: str) -> _CooperativeFunction:
        handle = ctypes.c_void_p()
        self.calls("cuModuleGetFunction", ctypes.byref(handle), self.handle, name.encode())
        return _CooperativeFunction(self.calls, handle)


@frozen
class _CooperativeFunction:
    """As PyCUDA's functions, as far as a launch uses them."""

    calls: _Calls
    handle: ctypes.c_void_p

    def set_attribute(self, attribute: Any, value: int) -> None:
        self.calls("cuFuncSetAttribute", self.handle, ctypes.c_int(int(attribute)), ctypes.c_int(value))

    def launch(self, grid: Dim3, block: Dim3, parameters: list[bytes], shared: int, stream: Any) -> None:
        """``parameters``: one by one, as the driver wants them for these launches."""
        held = [ctypes.create_string_buffer(value, len(value)) for value in parameters]
        pointers = (ctypes.c_void_p * len(held))(*(ctypes.addressof(one) for one in held))
        shape = [ctypes.c_uint(n) for n in (*grid, *block, shared)]
        self.calls(
            "cuLaunchCooperativeKernel", self.handle, *shape, ctypes.c_void_p(int(stream.handle)), pointers
        )
