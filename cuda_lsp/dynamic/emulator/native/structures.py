"""The structures of ``engine.c`` as ctypes, field by field."""

from __future__ import annotations

import ctypes
from ctypes import POINTER, Structure, c_double, c_int32, c_int64, c_uint64, c_void_p

CALLBACK = ctypes.CFUNCTYPE(None, c_int64, c_int64)


class Op(Structure):
    """One operation."""

    _fields_ = (
        *((name, c_int32) for name in ("code", "result", "a", "b", "c", "number", "size", "count", "kind")),
        ("parts", c_int32 * 8),
        ("constant", c_uint64),
    )  # type: ignore[assignment]


class Block(Structure):
    """A basic block."""

    _fields_ = (
        *(
            (name, c_int32)
            for name in ("kind", "condition", "leads_back", "targets_count", "ops_count", "unused")
        ),
        ("targets", POINTER(c_int32)),
        ("ops", POINTER(Op)),
    )  # type: ignore[assignment]


class Record(Structure):
    """One access of some threads."""

    _fields_ = (
        *((name, c_int32) for name in ("number", "size", "mode", "kind", "known", "tick")),
        *((name, c_int64) for name in ("sequence", "start", "count")),
    )  # type: ignore[assignment]


class Log(Structure):
    """Accesses."""

    _fields_ = (
        *((name, c_int64) for name in ("records", "record_room", "entries", "room")),
        *((name, c_void_p) for name in ("record", "thread", "address", "value")),
    )  # type: ignore[assignment]


class Fault(Structure):
    """An access that was not carried out."""

    _fields_ = (
        *((name, c_int64) for name in ("number", "thread", "address", "misaligned", "count", "furthest")),
    )  # type: ignore[assignment]


class Launch(Structure):
    """One execution."""

    _fields_ = (
        ("threads", c_int64), ("granules", c_int64), ("memory", c_void_p), ("limits", c_void_p),
        ("shared_low", c_int64), ("shared_high", c_int64), ("local_low", c_int64), ("local_high", c_int64),
        ("slots", c_void_p), ("own", c_void_p), ("same", c_void_p), ("scalars", c_void_p),
        ("slots_count", c_int64),
        ("registers", c_void_p), ("register_same", c_void_p), ("row_same", c_void_p), ("rows", c_void_p),
        ("pool", c_void_p),
        ("blocks", c_void_p), ("blocks_count", c_int64), ("alive", c_void_p), ("resting", c_void_p),
        ("pc", c_void_p), ("parked", c_void_p), ("active", c_void_p), ("here", c_int64),
        ("all_alive", c_int64),
        ("steps", c_int64), ("often", c_int64), ("look", c_int64), ("jumps", c_int64), ("patience", c_int64),
        ("backwards", c_int64), ("deadline", c_double), ("watched", c_void_p), ("executed", c_void_p),
        ("log", c_void_p), ("only_shared", c_int64), ("most", c_int64), ("logged", c_void_p),
        ("sequence", c_int64), ("tick", c_int64), ("faults", c_void_p), ("faults_count", c_int64),
        ("faults_room", c_int64), ("fault_of", c_void_p), ("call", CALLBACK), ("failed", c_int64),
    )  # fmt: skip
