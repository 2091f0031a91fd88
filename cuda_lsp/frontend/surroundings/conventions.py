"""Names that a file uses and nothing declares, because the headers that do are not there.

Kernels are often read away from the project that they were written for. Some names mean the same wherever
they are used: the macros and small types of PyTorch, Torch, GLM, Caffe, OpenCV, RAPIDS, GoogleTest,
dmlc.
``headers/frameworks`` declares them in our words, after the frameworks' documentation; they are put before
the file when its kernels are not understood without, and that is told. So are macros of headers that CMake
writes. The same goes for macros under whose ``#ifdef`` projects keep their device code (``USE_CUDA``,
``GPU``). Looked for when a file is opened, never while typing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from pathlib import Path

from attrs import frozen

from cuda_lsp.frontend.toolchain import CONVENTIONS, HEADERS

_PYTORCH_HOST = r"AT_DISPATCH_[A-Z]\w+|(?:at|torch)::(?:Tensor|cuda::\w+)"
"""What host code names that hands tensors to kernels; it needs PyTorch's types and views as well."""
_FRAMEWORKS: tuple[tuple[str, str], ...] = (
    ("loops.h", r"(?:CUDA|GPU)_(?:1D_|2D_)?KERNEL_LOOP(?:_TYPE|_T)?|GPU_LAMBDA"),
    ("pytorch_macros.h", r"C10_[A-Z_]+(?:_[0-2])?|CUDA_KERNEL_ASSERT(?:_MSG|_PRINTF)?"),
    (
        "pytorch_warps.h",
        r"WARP_SHFL(?:_XOR|_UP|_DOWN)?|WARP_BALLOT|WARP_SYNC|ACTIVE_MASK|gpuAtomicAdd(?:NoReturn)?",
    ),
    (
        "pytorch_types.h",
        r"at::(?:Half|BFloat16|opmath_type|acc_type|ceil_div|numeric_limits|PhiloxCudaState)|c10::\w+",
    ),
    ("pytorch_tensors.h", r"(?:Generic)?PackedTensorAccessor(?:32|64)?|TensorAccessor|RestrictPtrTraits"),
    (
        "thc.h",
        r"TH_INDEX_BASE|ScalarConvert|THC(?:Numerics|Index_t|CeilDiv|RoundUp|DeviceTensor|State|Half\w*|Atomics)",
    ),
    ("glm.h", r"glm::\w+"),
    ("cutlass.h", r"CUTLASS_(?:PRAGMA_(?:NO_)?UNROLL|(?:HOST_)?DEVICE|GLOBAL)"),
    ("opencv.h", r"PtrStep(?:Sz)?(?:b|f|i|us)?|PtrSz|DevPtr"),
    ("gtest.h", r"TEST(?:_[FP])?|(?:ASSERT|EXPECT)_(?:TRUE|FALSE|EQ|NE|L[TE]|G[TE]|NEAR|FLOAT_EQ)"),
    ("rapids.h", r"H?DI|HD|_?(?:RAFT|CUDF|CUML)_[A-Z_]+"),
    ("rapids_functions.h", r"(?:raft|cudf)::\w+"),
    ("dmlc.h", r"dmlc::\w+|DMLC_[A-Z_]+"),
)
"""Which of our headers declares what, as a pattern of whole words."""
_INSTEAD_OF = {"glm.h": re.compile(r"(?:\A|/)glm/"), "thc.h": re.compile(r"(?:\A|/)THC")}
"""Those that stand for a whole library: which of its headers have to be absent."""
_OF_HOSTS = tuple((f"pytorch_{part}.h", _PYTORCH_HOST) for part in ("types", "tensors", "host"))
"""The same for host code; each needs those before it."""
_MADE_BY_CMAKE = {
    "CONSTEXPR": "constexpr", "NOEXCEPT": "noexcept", "FINAL": "final", "OVERRIDE": "override", "EXPORT": "",
    "NO_EXPORT": "", "DEPRECATED": "", "DEPRECATED_EXPORT": "",
}  # fmt: skip
"""What stands behind a project's prefix in headers of ``WriteCompilerDetectionHeader`` and of
``GenerateExportHeader``, which are there once a build was made; and what such a macro stands for."""
_OF_CMAKE = re.compile(
    rf"\b[A-Z][A-Z0-9]*_({'|'.join(sorted(_MADE_BY_CMAKE, key=len, reverse=True))})\b(?!\s*\()"
)
_DECLARED = "#pragma clang system_header"
"""Functions of it without a body only compute, as those of the toolkit's headers."""
_CONDITION = re.compile(
    r"^[ \t]*#[ \t]*(?:el)?if(n?def)?[ \t]+([^\n]*)(?:\n[ \t]*#[ \t]*define[ \t]+(\w+))?", re.M
)
_DEVICE = frozenset({"GPU", "CUDA", "CUDEV", "CUDNN", "NVCC"})
_WORDS = re.compile(r"\A[A-Z]+(?:_[A-Z]+)*\Z")
_MACRO = re.compile(r"#[ \t]*define[ \t]+(\w+)")
_NOT_A_SWITCH = re.compile(
    r"^_|_H_?$|_HPP_?$|_CUH_?$|VERSION|ARCH|DISABLE|NO_|WITHOUT|HIP|ROCM|CPU|DEBUG|ERROR"
)


@frozen
class Conventions:
    """What is put before a file: ``text``, and the ``names`` in the file that it explains.

    ``host``: also what host code around launches names, which takes clang longer.
    """

    text: str = ""
    names: tuple[str, ...] = ()
    host: bool = False

    def header(self, path: Path) -> str:
        """The name under which ``text`` is included before ``path``; no such file exists."""
        return str(path.absolute().with_name(f".{path.name}{CONVENTIONS}"))


NO_CONVENTIONS = Conventions()


def conventions_of(
    text: str, undeclared: Sequence[str] = (), host: bool = False, unfound: Sequence[str] = ()
) -> Conventions:
    """Declarations of the well-known names that ``text`` uses and does not define; ``host``: as above.

    ``undeclared``: names of which clang says so: what the text defines them to be is in a branch not taken.
    ``unfound``: headers that are not there.
    """
    pieces: list[str] = []
    names: dict[str, None] = {}
    defined = {match[1] for match in _MACRO.finditer(text)}.difference(undeclared)
    written = _names_in(text)
    of_host = re.search(rf"\b(?:{_PYTORCH_HOST})", written) if host else None
    for header, words in (*_FRAMEWORKS, *(_OF_HOSTS if of_host else ())):
        used = dict.fromkeys(m[0] for m in re.finditer(rf"\b(?:{words})\b", written))
        open_ = [name for name in used if name not in defined]
        library = _INSTEAD_OF.get(header)
        absent = library is None or any(library.search(name) for name in unfound)
        if open_ and absent:
            names.update(dict.fromkeys(open_))
            pieces.append(_text(header))
    made = {
        match[0]: _MADE_BY_CMAKE[match[1]] for match in _OF_CMAKE.finditer(text) if match[0] not in defined
    }
    names.update(dict.fromkeys(made))
    pieces += (f"#define {name} {value}".rstrip() for name, value in made.items())
    pieces = list(dict.fromkeys(pieces))
    return Conventions("\n".join([_DECLARED, *pieces]) if pieces else "", tuple(names), of_host is not None)


@lru_cache(maxsize=4)
def _names_in(text: str) -> str:
    """Each name of a text once, with what qualifies it, one a line: long texts repeat few of them."""
    return "\n".join(word for word in dict.fromkeys(re.findall(r"[\w:]+", text)) if not word.isdigit())


def switches_of(texts: Iterable[str]) -> tuple[str, ...]:
    """Macros under whose condition device code may stand, in the order in which they are met."""
    found: dict[str, None] = {}
    for text in texts:
        for match in _CONDITION.finditer(text):
            for name in re.findall(r"\w+", match[2]):
                guard = match[1] == "ndef" and match[3] == name
                if _is_of_devices(name) and not _NOT_A_SWITCH.search(name) and not guard:
                    found[name] = None
    return tuple(found)


def _is_of_devices(macro: str) -> bool:
    return _WORDS.match(macro) is not None and not _DEVICE.isdisjoint(macro.split("_"))


@cache
def _text(header: str) -> str:
    return (HEADERS / "frameworks" / header).read_text(encoding="utf-8")
