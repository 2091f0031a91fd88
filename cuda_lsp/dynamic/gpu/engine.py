"""The GPU engine: instrument, assemble, launch, read back what the detector saw.

Works through PyCUDA or NVIDIA's ``cuda-bindings``, imported only when a run is asked for. Meant for a child
process: a kernel that hangs or faults leaves the CUDA context unusable, so after an outcome with a
``failure`` the process should end at once (``os._exit``; destroying the context would wait for the kernel).
"""

from __future__ import annotations

import atexit
import math
import os
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from attrs import define, evolve

from cuda_lsp.dynamic.compilation.toolkit import Toolkit, ToolkitMissing, find_toolkit
from cuda_lsp.dynamic.gpu.cuda_bindings import BindingsDevice, Calls, Context, DriverError
from cuda_lsp.dynamic.gpu.device import Device, GridTooLarge, TooMuchMemory
from cuda_lsp.dynamic.gpu.launch import Launch
from cuda_lsp.dynamic.gpu.plan import blocks_of
from cuda_lsp.dynamic.gpu.pycuda import PycudaDevice
from cuda_lsp.dynamic.instrumentation.detector import AssemblyError
from cuda_lsp.dynamic.ptx.reader import read_module
from cuda_lsp.dynamic.runs import (
    EngineUnavailable,
    KernelRun,
    RunOutcome,
)
from cuda_lsp.model import Dim3

INSTALL = (
    "install NVIDIA's wheels, which need a driver alone (`pip install 'cuda-lsp[gpu-wheels]'`), or PyCUDA,"
    " which needs a CUDA toolkit to build (`pip install 'cuda-lsp[gpu]'`)"
)
LIBRARY = "CUDA_LSP_GPU_LIBRARY"
"""Variable that says which to use where both are there: ``pycuda`` or ``cuda-bindings``."""
RealDevice = PycudaDevice | BindingsDevice
PYCUDA, BINDINGS = "pycuda", "cuda-bindings"
_LIBRARIES = {PYCUDA: "pycuda.driver", BINDINGS: "cuda.bindings.driver"}
_LEAD = 1 << 31  # bytes to clear before a timed kernel, while the host queues it

# Launches that hung or faulted: freeing their memory would wait for the kernel, for ever.
_SPENT: list[Launch] = []


def open_engine(nvcc: Path | None = None) -> GpuEngine:
    """The engine on device 0. Raises EngineUnavailable with the next step."""
    try:
        toolkit = find_toolkit(nvcc)
    except ToolkitMissing as error:
        raise EngineUnavailable(str(error)) from error
    device = open_device(toolkit)
    atexit.register(device.context.pop)
    return GpuEngine(device, toolkit)


def device_architecture() -> int:
    """Compute capability of device 0 as in ``sm_90``; no context is made. Raises EngineUnavailable."""
    if library() == BINDINGS:
        calls, handle = _device(0)
        return _bindings_capability(calls, handle)
    cuda = _driver()
    try:
        return _capability(cuda.Device(0))
    except cuda.Error as error:
        raise EngineUnavailable(f"the NVIDIA driver refuses to start ({error}): check nvidia-smi") from error


def open_device(toolkit: Toolkit) -> RealDevice:
    """Device 0 with a context, current. Raises EngineUnavailable with the next step."""
    if library() == BINDINGS:
        device = _bindings_device(toolkit)
        device.context.push()
        return device
    return _opened(toolkit, lambda handle: handle.make_context())


def open_primary(toolkit: Toolkit, number: int = 0) -> RealDevice:
    """A device with the context that the runtime uses in this process, not current yet."""
    if library() == BINDINGS:
        return _bindings_device(toolkit, number)
    return _opened(toolkit, lambda handle: handle.retain_primary_context(), number)


def library() -> str:
    """Which of the two is used: PyCUDA where both are there and it loads. Raises EngineUnavailable."""
    there = [name for name, module in _LIBRARIES.items() if _is_there(module)]
    wanted = os.environ.get(LIBRARY)
    chosen = [name for name in there if wanted in (None, "", name)]
    if not chosen:
        needs = "PyCUDA or cuda-bindings, and neither is installed"
        needs = f"{wanted}, as {LIBRARY} says, which is not installed" if wanted else needs
        raise EngineUnavailable(f"the GPU check needs {needs}: {INSTALL}")
    return next((name for name in chosen[:-1] if _loads(_LIBRARIES[name])), chosen[-1])


def _loads(module: str) -> bool:
    """Whether it works here: PyCUDA is compiled for one toolkit and driver."""
    try:
        import_module(module)
    except ImportError:
        return False
    return True


def _is_there(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # the package around it is not
        return False


def _opened(toolkit: Toolkit, enter: Callable[[Any], Any], number: int = 0) -> PycudaDevice:
    cuda = _driver()
    try:
        handle = cuda.Device(number)
        architecture = _capability(handle)
        context = enter(handle)
    except cuda.Error as error:
        raise EngineUnavailable(f"the NVIDIA driver refuses to start ({error}): check nvidia-smi") from error
    attribute = cuda.device_attribute
    names = ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", "MULTIPROCESSOR_COUNT", "MAX_THREADS_PER_MULTIPROCESSOR")
    shared, count, threads = (int(handle.get_attribute(getattr(attribute, name))) for name in names)
    name = str(handle.name())
    return PycudaDevice(cuda, handle, context, toolkit, name, architecture, shared, count, threads)


def _bindings_device(toolkit: Toolkit, number: int = 0) -> BindingsDevice:
    calls, handle = _device(number)
    architecture, driver = _bindings_capability(calls, handle), calls.driver.CUdevice_attribute
    try:
        context = Context(calls, calls("cuDevicePrimaryCtxRetain", handle))
        shared, count, threads = (
            int(calls("cuDeviceGetAttribute", attribute, handle))
            for attribute in (
                driver.CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
                driver.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
                driver.CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            )
        )
        name = bytes(calls("cuDeviceGetName", 256, handle)).split(b"\0")[0].decode()
    except (DriverError, TooMuchMemory) as error:
        raise EngineUnavailable(f"the NVIDIA driver refuses to start ({error}): check nvidia-smi") from error
    return BindingsDevice(calls, handle, context, toolkit, name, architecture, shared, count, threads)


def _device(number: int) -> tuple[Calls, Any]:
    """NVIDIA's bindings, once they see a device, and one of them. Raises EngineUnavailable."""
    bindings: Any = import_module(_LIBRARIES[BINDINGS])
    calls = Calls(bindings)
    try:
        calls("cuInit", 0)
        version = int(calls("cuDriverGetVersion"))
        if version // 1000 < int(bindings.CUDA_VERSION) // 1000:
            raise EngineUnavailable(
                f"the driver is made for CUDA {version // 1000}, cuda-bindings for a later one: "
                f"`pip install 'cuda-bindings=={version // 1000}.*'`, or update the driver"
            )
        if int(calls("cuDeviceGetCount")) == 0:
            raise EngineUnavailable("no CUDA device is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES")
        return calls, calls("cuDeviceGet", number)
    except DriverError as error:
        raise EngineUnavailable(f"the NVIDIA driver refuses to start ({error}): check nvidia-smi") from error
    except RuntimeError as error:  # they look for the driver's library on the first call
        message = f"cuda-bindings finds no NVIDIA driver ({error}): install it"
        raise EngineUnavailable(message) from error


def _bindings_capability(calls: Calls, handle: Any) -> int:
    attribute = calls.driver.CUdevice_attribute
    major, minor = (
        int(calls("cuDeviceGetAttribute", kind, handle))
        for kind in (
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
            attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
        )
    )
    return _supported(major, minor)


def _driver() -> Any:
    """PyCUDA's driver module, once it sees a device."""
    try:
        import pycuda.driver as driver  # type: ignore[import-not-found]
    except ImportError as error:
        cause = "the NVIDIA driver is missing, install it"
        if "libcuda.so" not in str(error):
            cause = "it was built for another toolkit or driver; build it anew, or take NVIDIA's wheels"
            cause += " (`pip install 'cuda-lsp[gpu-wheels]'`)"
        message = f"PyCUDA does not load ({error}): {cause}"
        raise EngineUnavailable(message) from error
    cuda: Any = driver
    try:
        cuda.init()
        if cuda.Device.count() == 0:
            raise EngineUnavailable("no CUDA device is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES")
    except cuda.Error as error:
        raise EngineUnavailable(f"the NVIDIA driver refuses to start ({error}): check nvidia-smi") from error
    return cuda


def _capability(handle: Any) -> int:
    major, minor = handle.compute_capability()
    return _supported(int(major), int(minor))


def _supported(major: int, minor: int) -> int:
    """As in ``sm_90``. Raises EngineUnavailable."""
    if major < 7:
        raise EngineUnavailable(
            f"the GPU check needs compute capability 7.0 or newer, this is {major}.{minor}"
        )
    return major * 10 + minor


@define
class GpuEngine:
    """Runs kernels on one device. ``usable`` is false once a kernel hung or faulted."""

    card: Device
    _toolkit: Toolkit
    usable: bool = True
    keep_results: bool = False  # buffers after the run, in the outcome

    @property
    def device(self) -> str:
        """The GPU's name."""
        return self.card.name

    def limit_memory(self, most: int) -> None:
        """Bytes of the GPU that checks may use; 0: the usual share of what is free."""
        if isinstance(self.card, RealDevice) and self.usable:
            self.card.allow(most)

    def foresee(self, request: KernelRun) -> None:
        """Assemble the code of a later run, in a thread of the caller's."""
        if not isinstance(self.card, RealDevice) or not self.usable:
            return
        self.card.context.push()
        try:
            with suppress(AssemblyError, GridTooLarge, TooMuchMemory, self.card.error):  # told by the run
                Launch(self.card, self._toolkit, request, read_module(request.ptx)).assemble()
        finally:
            self.card.context.pop()

    def run(self, request: KernelRun, progress: Callable[[str], None]) -> RunOutcome:
        """Execute one launch, instrumented. Failures are in the outcome; ``usable``: others may follow."""
        launch = Launch(self.card, self._toolkit, request, read_module(request.ptx))
        if not self.usable:
            return launch.failed("not run: an earlier kernel left the GPU unusable for this process")
        try:
            return self._run(launch, progress)
        except GridTooLarge as error:
            return self._run_in_part(launch, progress) or launch.failed(str(error))

    def _run_in_part(self, launch: Launch, progress: Callable[[str], None]) -> RunOutcome | None:
        """The kernel as a smaller grid, which fits on the GPU at once; None: even that does not end well."""
        request = launch.request
        grid = smaller_grid(request.launch.grid or (1, 1, 1), request.cluster, self.card.multiprocessors)
        smaller = evolve(request, launch=evolve(request.launch, grid=grid), blocks=None)
        try:
            outcome = self._run(Launch(self.card, self._toolkit, smaller, launch.module), progress)
        except GridTooLarge:
            return None
        if outcome.failure is not None:
            return None
        told = (
            f"blocks beyond the {math.prod(grid):,} that were run as a grid of their own: the"
            f" {blocks_of(request):,} of this cooperative launch do not fit on the GPU at once"
        )
        return evolve(outcome, blocks_total=blocks_of(request), not_covered=(*outcome.not_covered, told))

    def _run(self, launch: Launch, progress: Callable[[str], None]) -> RunOutcome:
        """Raises GridTooLarge."""
        progress("instrumenting")
        try:
            launch.prepare()
            progress("running")
            outcome = launch.execute(self.keep_results)
        except AssemblyError as error:
            return launch.failed(f"the instrumented kernel could not be assembled: {error}")
        except TooMuchMemory as error:
            return launch.failed(str(error))
        except self.card.error as error:
            self.usable = False
            _SPENT.append(launch)
            cause = str(error).rpartition("failed: ")[2]  # PyCUDA puts the driver's function in front
            return launch.failed(f"the kernel failed on the GPU: {cause}")
        if launch.hung:
            self.usable = False
            _SPENT.append(launch)
        return outcome

    def repeat(self, request: KernelRun, times: int) -> list[RunOutcome]:
        """The same launch several times on the same buffers, for measuring. Raises AssemblyError."""
        launch = Launch(self.card, self._toolkit, request, read_module(request.ptx))
        launch.prepare()
        outcomes: list[RunOutcome] = []
        for _ in range(times):
            launch.empty_shadows()
            outcomes.append(launch.execute(keep_results=False, lead=_LEAD))
        return outcomes


def smaller_grid(grid: Dim3, cluster: Dim3, most: int) -> Dim3:
    """With at most so many blocks, in whole clusters; rows and planes of blocks stay as wide as may be."""
    most = max(1, most // math.prod(cluster))
    x = min(grid[0] // cluster[0], most)
    y = min(grid[1] // cluster[1], most // x)
    z = min(grid[2] // cluster[2], most // (x * y))
    return x * cluster[0], y * cluster[1], z * cluster[2]
