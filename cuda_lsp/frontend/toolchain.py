"""The libclang index, its flags, and the precompiled shim header.

CUDA is parsed device-only against our own declarations (``headers/``): 20–80 times faster than the
toolkit's headers, works without a toolkit, and parses more real files cleanly (``docs/frontend.md``).
The shim is precompiled once per libclang version, flags and shim text, into the cache folder.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import tempfile
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

import clang.cindex as cindex  # pyright: ignore[reportMissingTypeStubs]
from attrs import frozen

from cuda_lsp import files
from cuda_lsp.cache_folder import cache_folder
from cuda_lsp.config import Settings
from cuda_lsp.frontend.libclang import has_fatal_error_of_no_file, unit_handle
from cuda_lsp.hardware import architecture_number

HEADERS = Path(__file__).resolve().parent / "headers"
SHIM = HEADERS / "cuda_lsp_shim.h"
OTHER_NAMES = HEADERS / "hip"
"""Where the headers stand by which HIP has CUDA's words under other names; searched behind all others."""
CONVENTIONS = ".cuda-lsp-conventions.h"
"""How the names of headers end that no disk holds: what is declared by convention for one file."""
LoadError = cindex.TranslationUnitLoadError

# CXTranslationUnit_KeepGoing is mandatory: without it one missing include silences later diagnostics and
# template instantiation. The preamble makes reparsing cheap.
# CXTranslationUnit_ForSerialization | Incomplete: what a saved translation unit needs.
_FOR_SERIALIZATION = 0x010 | 0x002
PARSE_ALL = 0x200
PARSE_OPTIONS = PARSE_ALL | 0x100 | 0x004
_SHIM_BYTES = 4 << 20  # four times what it takes
# Bits of CXIndexOptions: ExcludeDeclarationsFromPCH, StorePreamblesInMemory.
_EXCLUDE_DECLARATIONS, _IN_MEMORY = 1, 4


def is_ours(path: Path) -> bool:
    """Whether a file is one of our headers, which nobody can look into."""
    return path.parent == HEADERS or OTHER_NAMES in path.parents or path.name.endswith(CONVENTIONS)


@frozen
class FrontendOptions:
    """How files are parsed. ``arguments`` are further compiler flags, already clang's.

    ``compile_commands``: path of the database to use; None: the nearest above each file, "": none.
    ``device``: what nvcc needs besides, and clang does not know. ``ours``: macros of the shim.
    """

    include_dirs: tuple[str, ...] = ()
    defines: tuple[str, ...] = ()
    arch: str = "sm_80"
    std: str = "c++17"
    arguments: tuple[str, ...] = ()
    compile_commands: str | None = None
    device: tuple[str, ...] = ()
    ours: tuple[str, ...] = ()

    @classmethod
    def of(cls, settings: Settings) -> FrontendOptions:
        """What the settings ask for."""
        return cls(
            settings.include_dirs,
            settings.defines,
            settings.arch,
            settings.std,
            compile_commands=settings.compile_commands,
        )

    @property
    def compute(self) -> int:
        """The value of ``__CUDA_ARCH__``; libclang 18 knows architectures up to sm_90."""
        return (architecture_number(self.arch) or 80) * 10

    def undefines(self) -> tuple[str, ...]:
        """Macros that the flags take back."""
        return tuple(flag[2:] for flag in self.arguments if flag.startswith("-U"))

    def forced_headers(self) -> str:
        """Lines that include what the flags include before the text."""
        pairs = zip(self.arguments, self.arguments[1:], strict=False)
        return "".join(f'#include "{header}"\n' for flag, header in pairs if flag == "-include")

    def language_flags(self) -> tuple[str, ...]:
        """The flags that a precompiled shim depends on."""
        return (
            "-x", "cuda", "--cuda-device-only", f"--cuda-gpu-arch={_clang_arch(self.compute)}",
            "-nocudainc", "-nocudalib", "-fgpu-rdc", "--cuda-path=/nonexistent", "-nostdinc", "-nostdinc++",
            "-Xclang", "-fcuda-allow-variadic-functions",
            f"-std={self.std}", "-fno-spell-checking", "-ferror-limit=0", "-Wno-everything",
            *(f"-D{define}" for define in self.ours),
        )  # fmt: skip

    def file_flags(self, path: Path) -> tuple[str, ...]:
        """The flags of one file, without the shim."""
        folders = (str(path.parent), *self.include_dirs)
        return (
            *self.language_flags(),
            *(f"-I{folder}" for folder in folders),
            "-idirafter",
            str(OTHER_NAMES),
            *(f"-D{define}" for define in self.defines),
            *self.arguments,
            *files.clang_flags(),
        )


def _clang_arch(compute: int) -> str:
    known = (50, 52, 53, 60, 61, 62, 70, 72, 75, 80, 86, 87, 89, 90)
    return f"sm_{max((n for n in known if n <= compute // 10), default=50)}"


class _IndexOptions(ctypes.Structure):
    """CXIndexOptions of libclang 17 and later, which its Python module lacks."""

    _fields_ = (
        ("size", ctypes.c_uint),
        ("priorities", ctypes.c_ubyte * 2),
        ("choices", ctypes.c_uint16),
        ("preamble_folder", ctypes.c_char_p),
        ("invocation_folder", ctypes.c_char_p),
    )


@lru_cache(maxsize=1)
def index() -> Any:
    """The process's index. ``excludeDecls`` makes template instantiations visible at top level.

    Preambles, some 20 KB each, are kept in memory: as files they would lie in the system's folder for
    temporary files, and stay there when the server is killed.
    """
    libclang = cast(Any, cindex)
    libclang.conf.lib.clang_reparseTranslationUnit.errcheck = _reparsed
    options = _IndexOptions(size=ctypes.sizeof(_IndexOptions), choices=_EXCLUDE_DECLARATIONS | _IN_MEMORY)
    create = libclang.conf.lib.clang_createIndexWithOptions
    create.restype = libclang.c_object_p
    made = create(ctypes.byref(options))
    return libclang.Index(made) if made else libclang.Index.create(excludeDecls=True)


def _reparsed(status: int, function: object, arguments: object) -> int:
    """Raises LoadError when libclang gave up: the unit is dead then, which its Python module does not see."""
    del function, arguments
    if status:
        raise LoadError(f"Error reparsing translation unit: {status}")
    return status


def without_damaged_shim(flags: Sequence[str]) -> tuple[str, ...]:
    """``flags`` with the shim as a header; the precompiled one is removed, so the next file remakes it."""
    position = flags.index("-include-pch")
    with contextlib.suppress(OSError):
        Path(flags[position + 1]).unlink()
    precompiled_shim.cache_clear()
    return (*flags[:position], "-include", str(SHIM), *flags[position + 2 :])


def shim_is_damaged(flags: Sequence[str], unit: Any) -> bool:
    """Whether clang refused the precompiled header (a fatal error that is of no source file)."""
    return "-include-pch" in flags and has_fatal_error_of_no_file(unit_handle(unit))


def shim_flags(options: FrontendOptions) -> tuple[str, ...]:
    """Flags that bring the shim in: precompiled where the cache can be written, else as a header."""
    compiled = precompiled_shim(options.language_flags())
    return ("-include-pch", str(compiled)) if compiled else ("-include", str(SHIM))


@lru_cache(maxsize=32)
def precompiled_shim(flags: tuple[str, ...]) -> Path | None:
    """Path of the precompiled shim for ``flags``, made when missing; None: the cache is not usable."""
    target = cache_folder() / f"shim-{_digest(flags)}.pch"
    if target.is_file():
        return target
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        # Written beside and renamed: another process never sees half a file.
        handle, name = tempfile.mkstemp(dir=target.parent, suffix=".pch")
    except OSError:
        return None
    try:
        _make_room(handle)
    except OSError:
        Path(name).unlink()
        return None
    finally:
        os.close(handle)
    return _compile_shim(flags, Path(name), target)


def _make_room(handle: int) -> None:
    """Room on the disk for a precompiled shim: libclang ends the process when it cannot write.

    Raises OSError.
    """
    reserve = getattr(os, "posix_fallocate", None)
    if reserve is not None:  # not on macOS
        reserve(handle, 0, _SHIM_BYTES)


def _compile_shim(flags: Sequence[str], scratch: Path, target: Path) -> Path | None:
    try:
        unit = index().parse(str(SHIM), args=list(flags), options=_FOR_SERIALIZATION)
        unit.save(str(scratch))
        os.replace(scratch, target)
    except (OSError, cindex.TranslationUnitLoadError, cindex.TranslationUnitSaveError):
        with contextlib.suppress(OSError):
            scratch.unlink()
        return None
    return target


def _digest(flags: Sequence[str]) -> str:
    sha = hashlib.sha256("\0".join(flags).encode())
    library: Any = cindex.conf
    sha.update(str(library.get_filename()).encode())
    for header in sorted(HEADERS.glob("*.h")):
        sha.update(header.read_bytes())
        # clang rejects a precompiled header whose source is newer.
        sha.update(str(header.stat().st_mtime_ns).encode())
    return sha.hexdigest()[:20]
