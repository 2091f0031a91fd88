"""The device on NVIDIA's bindings, with a driver of ours: what it asks, and what it makes of the answers."""

from __future__ import annotations

import ctypes
import enum
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cuda_lsp.dynamic.compilation.toolkit import Toolkit
from cuda_lsp.dynamic.gpu import cuda_bindings, engine
from cuda_lsp.dynamic.gpu.cuda_bindings import BindingsDevice, Calls, Context, DriverError
from cuda_lsp.dynamic.gpu.device import GridTooLarge, Start, TooMuchMemory
from cuda_lsp.dynamic.runs import EngineUnavailable

TOOLKIT = Toolkit(Path("nvcc"), "13.0", "a test", Path("/"))


class CUresult(enum.IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_OUT_OF_MEMORY = 2
    CUDA_ERROR_NOT_READY = 600
    CUDA_ERROR_LAUNCH_FAILED = 719
    CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE = 720


class Attribute(enum.IntEnum):
    CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR = 39
    CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75
    CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76


class FunctionAttribute(enum.IntEnum):
    CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES = 3
    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8


class FakeDriver:
    """Device memory is the host's. ``event``: what an event's query answers; ``launched``: as it is told."""

    CUresult, CUdevice_attribute, CUfunction_attribute = CUresult, Attribute, FunctionAttribute
    CUDA_VERSION = 13000
    driver_version, count, local = 13000, 1, 0

    def __init__(self) -> None:
        self.held: dict[int, Any] = {}
        self.event, self.launch_error = CUresult.CUDA_SUCCESS, CUresult.CUDA_SUCCESS
        self.launched: list[tuple[Any, ...]] = []
        self.made, self.destroyed = 0, 0

    def __getattr__(self, name: str) -> Any:
        """Whatever only has to succeed."""
        if not name.startswith("cu"):
            raise AttributeError(name)

        def call(*arguments: Any) -> tuple[Any, ...]:
            self.destroyed += "Destroy" in name or name == "cuMemFreeHost"
            return (CUresult.CUDA_SUCCESS,)

        return call

    def _memory(self, size: int) -> tuple[Any, int]:
        memory = (ctypes.c_uint8 * size)()
        self.held[ctypes.addressof(memory)] = memory
        return CUresult.CUDA_SUCCESS, ctypes.addressof(memory)

    def cuMemAlloc(self, size: int) -> tuple[Any, ...]:
        return self._memory(size) if size < 1 << 30 else (CUresult.CUDA_ERROR_OUT_OF_MEMORY, 0)

    def cuMemFree(self, start: int) -> tuple[Any]:
        del self.held[start]
        return (CUresult.CUDA_SUCCESS,)

    def cuMemAllocHost(self, size: int) -> tuple[Any, ...]:
        self.made += 1
        return self._memory(size)

    def cuMemsetD8(self, start: int, value: int, size: int) -> tuple[Any]:
        ctypes.memset(start, value, size)
        return (CUresult.CUDA_SUCCESS,)

    def cuMemcpyHtoD(self, target: int, source: int, size: int, *stream: Any) -> tuple[Any]:
        ctypes.memmove(target, source, size)
        return (CUresult.CUDA_SUCCESS,)

    cuMemcpyDtoH = cuMemcpyDtoD = cuMemcpyDtoHAsync = cuMemcpyHtoD

    def cuMemGetInfo(self) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, 4000, 8000

    def cuGetErrorString(self, status: Any) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, status.name.lower().encode()

    def cuModuleGetFunction(self, module: Any, name: bytes) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, name

    def cuModuleGetGlobal(self, module: Any, name: bytes) -> tuple[Any, ...]:
        known = name == b"known"
        return (CUresult.CUDA_SUCCESS, 64, 8) if known else (CUresult.CUDA_ERROR_LAUNCH_FAILED, None, None)

    def cuDeviceGetAttribute(self, kind: Any, device: Any) -> tuple[Any, ...]:
        values = {39: 2048, 97: 232448, 16: 132, 75: 9, 76: 0}
        return CUresult.CUDA_SUCCESS, values[kind]

    def cuDeviceGetName(self, size: int, device: Any) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, b"NVIDIA Test\0\0"

    def cuFuncGetAttribute(self, kind: Any, function: Any) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, self.local

    def cuEventCreate(self, flags: int) -> tuple[Any, ...]:
        self.made += 1
        return CUresult.CUDA_SUCCESS, self.made

    cuStreamCreate = cuEventCreate

    def cuEventQuery(self, event: Any) -> tuple[Any]:
        return (self.event,)

    def cuEventElapsedTime(self, begun: Any, ended: Any) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, 2.5

    def cuLaunchKernel(self, function: Any, *shape: Any) -> tuple[Any]:
        pointers = ctypes.cast(shape[8], ctypes.POINTER(ctypes.c_void_p))
        self.launched.append((function, shape[:7], ctypes.string_at(pointers[0], 8)))
        return (self.launch_error,)

    def cuLaunchCooperativeKernel(self, function: Any, *shape: Any) -> tuple[Any]:
        return (CUresult.CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE,)

    def cuDriverGetVersion(self) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, self.driver_version

    def cuDeviceGetCount(self) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, self.count

    def cuDeviceGet(self, number: int) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, number

    def cuDevicePrimaryCtxRetain(self, device: Any) -> tuple[Any, ...]:
        return CUresult.CUDA_SUCCESS, "context"


@pytest.fixture
def driver() -> FakeDriver:
    return FakeDriver()


@pytest.fixture
def device(driver: FakeDriver, monkeypatch: pytest.MonkeyPatch) -> BindingsDevice:
    monkeypatch.setattr(cuda_bindings, "assembled", lambda ptx, toolkit, architecture: b"cubin")
    calls = Calls(driver)
    return BindingsDevice(calls, 0, Context(calls, 1), TOOLKIT, "test", 90, 1 << 17, 132, 2048)


def start(**changed: Any) -> Start:
    values = {"entry": "k", "grid": (4, 1, 1), "block": (64, 1, 1), "parameters": [(8, b"12345678")],
              "shared": 16, "deadline": 0.05}  # fmt: skip
    return Start(**{**values, **changed})


def test_memory_goes_there_and_back_and_is_counted_until_it_is_dropped(device, driver):
    memory = device.allocate(64)
    data = np.arange(16, dtype=np.int32)
    device.upload(int(memory), data)
    read = np.zeros(16, np.int32)
    device.download(int(memory), read)
    assert (read == data).all()
    assert device.allowance.used == 64
    del memory
    assert (device.allowance.used, driver.held) == (0, {})


def test_memory_beyond_the_allowance_or_the_device_is_refused(device):
    device.allow(0)
    assert device.allowance.limit == 3000  # three quarters of what is free
    with pytest.raises(TooMuchMemory, match="raise gpu-memory"):
        device.allocate(3001)
    device.allow(1 << 40)
    with pytest.raises(TooMuchMemory):
        device.allocate(1 << 30)
    assert device.allowance.used == 0


def test_a_launch_gets_its_parameters_and_puts_everything_away(device, driver):
    ended = device.load("ptx", "sm_90", False).launch(start())
    assert ended.seconds == 0.0025
    assert driver.launched == [(b"k", (4, 1, 1, 64, 1, 1, 16), b"12345678")]
    assert driver.destroyed == driver.made


def test_a_kernel_that_hangs_is_told_with_what_could_be_rescued_and_nothing_is_freed(device, driver):
    memory = device.allocate(8)
    device.upload(int(memory), np.frombuffer(b"rescued!", np.uint8))
    driver.event = CUresult.CUDA_ERROR_NOT_READY
    ended = device.load("ptx", "sm_90", False).launch(start(rescue=(int(memory), 8)))
    assert ended.seconds is None
    assert ended.rescued == b"rescued!"
    assert driver.destroyed == 0


def test_a_kernel_that_fails_raises_the_device_s_error(device, driver):
    driver.event = CUresult.CUDA_ERROR_LAUNCH_FAILED
    with pytest.raises(device.error, match="cuEventQuery failed: cuda_error_launch_failed"):
        device.load("ptx", "sm_90", False).launch(start())
    with pytest.raises(GridTooLarge):
        device.load("ptx", "sm_90", True).launch(start())
    driver.event, driver.local = CUresult.CUDA_SUCCESS, 1 << 30
    device.allow(1 << 20)
    with pytest.raises(TooMuchMemory):
        device.load("ptx", "sm_90", False).launch(start())


def test_a_variable_that_is_not_there_is_none(device):
    code = device.load("ptx", "sm_90", False)
    assert code.variable("known") == (64, 8)
    assert code.variable("unknown") is None


def with_libraries(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.delenv(engine.LIBRARY, raising=False)
    monkeypatch.setattr(engine, "find_spec", lambda module: object() if module in names else None)
    monkeypatch.setattr(engine, "import_module", lambda module: object())


def test_pycuda_is_taken_where_both_are_there_and_a_variable_says_otherwise(monkeypatch):
    with_libraries(monkeypatch, "pycuda.driver", "cuda.bindings.driver")
    assert engine.library() == "pycuda"
    monkeypatch.setenv(engine.LIBRARY, "cuda-bindings")
    assert engine.library() == "cuda-bindings"
    with_libraries(monkeypatch, "cuda.bindings.driver")
    assert engine.library() == "cuda-bindings"
    with_libraries(monkeypatch)
    with pytest.raises(EngineUnavailable, match=r"gpu-wheels.*cuda-lsp\[gpu\]"):
        engine.library()


def test_a_pycuda_that_does_not_load_leaves_it_to_the_bindings(monkeypatch):
    def broken(module: str) -> object:
        raise ImportError("undefined symbol: cuArrayCreate_v2")

    with_libraries(monkeypatch, "pycuda.driver", "cuda.bindings.driver")
    monkeypatch.setattr(engine, "import_module", broken)
    assert engine.library() == "cuda-bindings"
    with_libraries(monkeypatch, "pycuda.driver")
    assert engine.library() == "pycuda"


@pytest.mark.parametrize(
    ("error", "step"),
    [("undefined symbol: cuArrayCreate_v2", "build it anew"), ("libcuda.so.1: no such file", "is missing")],
)
def test_why_pycuda_does_not_load_is_said(monkeypatch, tmp_path, error, step):
    with_libraries(monkeypatch, "pycuda.driver")
    (tmp_path / "pycuda").mkdir()
    (tmp_path / "pycuda" / "__init__.py").touch()
    (tmp_path / "pycuda" / "driver.py").write_text(f"raise ImportError({error!r})")
    monkeypatch.syspath_prepend(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] == "pycuda"]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(EngineUnavailable, match=step):
        engine.device_architecture()
    sys.modules.pop("pycuda", None)


def test_what_is_missing_below_the_bindings_is_said(monkeypatch, driver):
    with_libraries(monkeypatch, "cuda.bindings.driver")
    monkeypatch.setattr(engine, "import_module", lambda name: driver)
    assert engine.device_architecture() == 90
    opened = engine.open_device(TOOLKIT)
    assert (opened.name, opened.multiprocessors, opened.shared_limit) == ("NVIDIA Test", 132, 232448)
    driver.count = 0
    with pytest.raises(EngineUnavailable, match="no CUDA device is visible"):
        engine.device_architecture()
    driver.driver_version = 12080
    with pytest.raises(EngineUnavailable, match=r"pip install 'cuda-bindings==12\.\*'"):
        engine.device_architecture()

    def missing(flags: int) -> None:
        raise RuntimeError("libcuda.so.1")

    monkeypatch.setattr(driver, "cuInit", missing, raising=False)
    with pytest.raises(EngineUnavailable, match="finds no NVIDIA driver"):
        engine.device_architecture()


def test_errors_name_the_call(driver):
    driver.launch_error = CUresult.CUDA_ERROR_LAUNCH_FAILED
    with pytest.raises(DriverError, match="cuLaunchKernel failed"):
        Calls(driver)("cuLaunchKernel", b"k", *range(7), 0, ctypes.addressof((ctypes.c_void_p * 1)(
            ctypes.addressof(ctypes.create_string_buffer(8))
        )), 0)  # fmt: skip
