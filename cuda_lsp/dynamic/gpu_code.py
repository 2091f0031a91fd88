"""Assembled code on the device: loading it, and launching it so that all blocks run together.

PyCUDA knows no cooperative launches; for kernels that need one the few calls of the driver's interface are
made directly (CUDA driver API: ``cuModuleLoadData``, ``cuLaunchCooperativeKernel``), in the context that is
current. Everything else is PyCUDA's.
"""

from __future__ import annotations

import ctypes
from typing import Any

from attrs import frozen

from cuda_lsp.model import Dim3

_TOO_LARGE = 720  # CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE


class GridTooLarge(Exception):
    """The blocks of a cooperative launch do not fit on the device at once; the message says so."""


def loaded(driver: Any, cubin: bytes, cooperative: bool) -> Any:
    """A module in the current context: PyCUDA's, or one whose functions are launched cooperatively."""
    return _CooperativeModule.load(driver, cubin) if cooperative else driver.module_from_buffer(cubin)


def launch(
    function: Any, grid: Dim3, block: Dim3, parameters: list[tuple[int, bytes]], shared: int, stream: Any
) -> None:
    """Queue one launch. ``parameters``: alignment and value of each. Raises GridTooLarge."""
    if isinstance(function, _CooperativeFunction):
        return function.launch(grid, block, [value for _, value in parameters], shared, stream)
    packed = bytearray()
    for alignment, value in parameters:
        packed += bytes(-len(packed) % alignment) + value
    function._launch_kernel(grid, block, bytes(packed), shared, stream)


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
