"""Mangled names of kernels and variables (Itanium C++ ABI), as two builds of one source spell them.

What has internal linkage is named after a hash of where it was compiled, so that each build has another name
for it. ``stable`` takes the hash away and keeps the length, which the name itself tells; ``comparable`` also
makes it what clang says. Where two sources of one program have the same file name and contents, their
internal names become one.
"""

from __future__ import annotations

import ctypes
import re
from functools import lru_cache
from typing import Any

HASH = "00000000"
"""What ``stable`` puts in the place of a hash."""
_HASHED = re.compile(r"(_INTERNAL_|_GLOBAL__N__|__nv_static_\d+__)[0-9a-f]{8}(?=_\d+_)")
_TEMPORARY = re.compile(r"(tmpxft_)[0-9a-f]{8}(?=_)")  # CUDA 11 and older name their own files
_ANONYMOUS = re.compile(r"(?<!\d)\d+_GLOBAL__N__[0-9a-f]{8}_\d{1,9}_\w{1,400}?_[0-9a-f]{8}")
_TAG = re.compile(r"\[abi:[^\[\]]*\]")  # of compilers, not of the source
_LIBRARY = re.compile(r"\$library(\d+)\Z")
_OPENING, _CLOSING = "<([{", ">)]}"


def stable(text: str) -> str:
    """A name, or a whole module, without what differs between builds."""
    return _TEMPORARY.sub(rf"\g<1>{HASH}", _HASHED.sub(rf"\g<1>{HASH}", text))


def of_library(name: str, number: int) -> str:
    """What a kernel or variable of a shared library goes by, as ``standin/libraries.cpp`` says it.

    0: it is the program's own.
    """
    return f"{name}$library{number}" if number else name


def library_of(name: str) -> int:
    """The number of the library that ``of_library`` was told; 0: the name is another one."""
    match = _LIBRARY.search(name)
    return int(match[1]) if match else 0


def comparable(name: str) -> str:
    """A name as clang makes it: all unnamed namespaces of a source are one, and libraries know no other."""
    return _ANONYMOUS.sub("12_GLOBAL__N_1", _LIBRARY.sub("", name))


@lru_cache(4096)
def demangled(name: str) -> str:
    """What the source calls it, with the types of its parameters; the name itself where it is none of C++."""
    library, name = _library(), comparable(name)
    if library is None:
        return name
    status = ctypes.c_int()
    made = library.__cxa_demangle(name.encode(), None, None, ctypes.byref(status))
    if not made:
        return name
    try:
        return ctypes.string_at(made).decode(errors="replace")
    finally:
        library.free(ctypes.c_void_p(made))


@lru_cache(1)
def _library() -> Any:
    """The library of the C++ compiler, which every build needs; None: it is not where others find it."""
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return None
    library.__cxa_demangle.restype = ctypes.c_void_p
    return library


def kernel_name(mangled: str) -> str:
    """A kernel as findings name it: ``tile<float, 256>``, without namespaces, result and parameters."""
    text = _TAG.sub("", demangled(mangled))
    start, depth = 0, 0
    for k, letter in enumerate(text):
        if letter == "(" and depth == 0 and not text.startswith("(anonymous namespace)", k):
            return text[start:k]
        depth += (letter in _OPENING) - (letter in _CLOSING)
        if depth == 0 and (letter == " " or text.startswith("::", k)):
            start = k + (1 if letter == " " else 2)
    return text[start:]
