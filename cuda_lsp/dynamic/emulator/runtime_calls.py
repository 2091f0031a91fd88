"""Calls of the device's runtime: ``printf``, the heap, ``assert``, launches → calls of ``Services``.

Source: CUDA C++ Programming Guide, "System calls" of PTX, and ``cuda_device_runtime_api.h``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from attrs import frozen

from cuda_lsp.dynamic.emulator.emitter import Emitter
from cuda_lsp.dynamic.ptx.flatten import DEVICE_RUNTIME, Untranslatable
from cuda_lsp.dynamic.ptx.module import Instruction

_A_STREAM = "16"  # any that is none of the runtime's own


@frozen
class _Call:
    """``given``: the variables that hold its arguments; ``result``: the one for its result, "": none."""

    e: Emitter
    number: int
    given: tuple[str, ...]
    result: str

    def read(self, number: int, kind: str, offset: int = 0) -> str:
        """An argument, or a part of it."""
        return self.e.read(f"%{self.given[number]}.{offset}", kind)

    def returns(self, value: str, kind: str) -> None:
        """The result, where anybody takes it."""
        slot = f"%{self.result}.0"
        if slot in self.e.kernel.registers:
            self.e.write(slot, value, kind)
        else:
            self.e.lines.append(value)


def emit_call(e: Emitter, code: Instruction, number: int) -> None:
    """A call that was not inlined. Raises Untranslatable."""
    arguments = list(code.arguments)
    result = arguments.pop(0).strip("() ") if arguments[0].startswith("(") else ""
    name, rest = arguments[0], arguments[1] if len(arguments) > 1 else ""
    given = tuple(part.strip() for part in rest.strip("() ").split(",") if part.strip())
    emit = _SYSTEM.get(name)
    if name.startswith(DEVICE_RUNTIME):
        emit = _RUNTIME.get(name.removeprefix(DEVICE_RUNTIME).removesuffix("_ptsz"))
    if emit is None:
        raise Untranslatable(f"call of {name}")
    emit(_Call(e, number, given, result))


def _printf(call: _Call) -> None:
    call.e.lines.append(f"S.print({call.read(0, 's64')}, {call.read(1, 's64')}, {call.e.mask})")
    _nothing(call)


def _malloc(call: _Call) -> None:
    call.returns(f"S.allocate({call.read(0, 's64')}, {call.e.mask})", "b64")


def _free(call: _Call) -> None:
    call.e.lines.append(f"S.release({call.read(0, 's64')}, {call.e.mask})")


def _assertion(call: _Call) -> None:
    kinds = ("s64", "s64", "u32", "s64")  # text, file, line, function
    given = ", ".join(call.read(k, kind) for k, kind in enumerate(kinds))
    call.e.lines.append(f"S.assertion({call.number}, {given}, {call.e.mask})")


def _buffer(call: _Call) -> None:
    extents = (f"({', '.join(call.read(k, 'u32', 4 * axis) for axis in range(3))})" for k in (1, 2))
    given = f"{call.read(0, 's64')}, {', '.join(extents)}, {call.read(3, 'u32')}"
    call.returns(f"S.device_launches.buffer({given}, {call.e.mask})", "b64")


def _launch(call: _Call) -> None:
    call.returns(f"S.device_launches.launch({call.read(0, 's64')}, {call.e.mask})", "b32")


def _created(call: _Call) -> None:
    """A stream or event: work is done in one order anyhow, so that any number will do."""
    where, value = call.read(0, "s64"), call.e.read(_A_STREAM, "b64")
    call.e.lines.append(f"S.store({call.number}, {where}, 'u8', {call.e.mask}, {value})")
    _nothing(call)


def _nothing(call: _Call) -> None:
    """It succeeds."""
    slot = f"%{call.result}.0"
    if slot in call.e.kernel.registers:
        kind = call.e.kernel.registers[slot]
        call.e.write(slot, call.e.read("0", kind), kind)


_SYSTEM: Mapping[str, Callable[[_Call], None]] = {
    "vprintf": _printf, "malloc": _malloc, "free": _free, "__assertfail": _assertion,
}  # fmt: skip
_RUNTIME: Mapping[str, Callable[[_Call], None]] = {
    "GetParameterBufferV2": _buffer, "LaunchDeviceV2": _launch, "StreamCreateWithFlags": _created,
    "EventCreateWithFlags": _created, "GetLastError": _nothing, "PeekAtLastError": _nothing,
    "StreamDestroy": _nothing, "StreamWaitEvent": _nothing, "EventRecord": _nothing, "EventDestroy": _nothing,
}  # fmt: skip
"""By what follows ``DEVICE_RUNTIME``; ``_ptsz``: with a stream for each thread of the host."""
