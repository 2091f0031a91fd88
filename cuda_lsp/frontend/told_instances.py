"""Template arguments of kernels as launches of the project write them: ``kernel<scalar_t, 256><<<…>>>``.

Numbers, truth values and types that the file knows are taken as they are written. What hangs on a template
around the launch, or on a dispatch macro's type, is a stand-in, as where nothing tells (``instantiation``).
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen

from cuda_lsp.frontend.host.launch_site import LaunchSite
from cuda_lsp.frontend.host.text import whole_arguments

_NUMBER = re.compile(r"\A-?(?:0[xX][0-9a-fA-F]+|\d+)[uUlL]*\Z|\A(?:true|false)\Z")
_BUILT_IN = re.compile(
    r"\A(?:const\s)?(?:(?:unsigned|signed|long|short)\s?)*(?:u?(?:char|short|int|long)[1-4]?|float[1-4]?|double[1-4]?"
    r"|unsigned|long|short|bool|u?int(?:8|16|32|64)_t|size_t|__half2?|half2?|__nv_bfloat16)?(?:\s?\*)?\Z"
)
_ENUMERATOR = re.compile(r"\A(?:\w+\s?::\s?)*[A-Za-z_]\w*\Z")
_NAME = re.compile(r"\A[A-Za-z_]\w*\Z")


@frozen
class TemplateParameter:
    """One parameter of a kernel template. ``guess``: what stands for it where nothing tells."""

    guess: str
    is_type: bool = False
    is_enumeration: bool = False
    has_default: bool = False


def told(
    parameters: Sequence[TemplateParameter], sites: Iterable[LaunchSite], text: str
) -> Mapping[str, bool]:
    """``float, 256`` for every different launch that tells an argument, in their order, and whether it tells
    all the numbers.

    ``text``: of the file, which declares the types that it knows.
    """
    found: dict[str, bool] = {}
    for site in sites:
        written = [part.strip() for part in whole_arguments(site.template_arguments or "")]
        usable = [_usable(p, w, text) for p, w in zip(parameters, written, strict=False)]
        if any(usable) and len(written) <= len(parameters):
            made = ", ".join(_arguments(parameters, written, usable))
            numbers = all(map(_says_no_number, itertools.compress(parameters, (not u for u in usable))))
            found[made] = numbers or found.get(made, False)
    return found


def _says_no_number(parameter: TemplateParameter) -> bool:
    return parameter.is_type or parameter.is_enumeration or parameter.guess in ("true", "false")


def _usable(parameter: TemplateParameter, written: str, text: str) -> bool:
    if parameter.is_type:
        return bool(written) and (_BUILT_IN.match(written) is not None or _declares(text, written))
    if parameter.is_enumeration and not _NUMBER.match(written):
        return _ENUMERATOR.match(written) is not None and "::" in written
    return _NUMBER.match(written) is not None


def _declares(text: str, name: str) -> bool:
    if not _NAME.match(name):
        return False
    declared = (
        rf"^[ \t]*(?:(?:struct|class|enum(?:\s+class)?)\s+{name}\s*[:{{]|using\s+{name}\s*="
        rf"|typedef\b[^;{{}}]*\b{name}\s*;)"
    )
    return re.search(declared, text, re.M) is not None


def _arguments(
    parameters: Sequence[TemplateParameter], written: Sequence[str], usable: Sequence[bool]
) -> list[str]:
    arguments: list[str] = []
    for number, parameter in enumerate(parameters):
        if number >= len(written) and parameter.has_default:
            break
        is_told = number < len(written) and usable[number]
        arguments.append(written[number] if is_told else parameter.guess)
    return arguments
