"""Lambdas of host code that have names: ``auto part = [&](int i) { return d + i; };``. Read from text."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from cuda_lsp.frontend.host.host_functions import HostFunction, parameter_of, references_of
from cuda_lsp.frontend.host.text import HostText, whole_arguments

_LAMBDA = re.compile(r"\bauto\s([A-Za-z_]\w*)\s?=\s?\[[^\[\];{}]{0,200}\]\s?\(")
_BODY = re.compile(r"\s?(?:mutable\s?)?(?:->\s?[\w:<>*&\s]{1,100})?\{")


def lambdas_of(text: HostText) -> Mapping[str, Sequence[HostFunction]]:
    """By name, as functions."""
    found: dict[str, list[HostFunction]] = {}
    for match in _LAMBDA.finditer(text.plain):
        opening = match.end() - 1
        closing = text.closing(opening)
        body = _BODY.match(text.plain, closing + 1) if closing > 0 else None
        end = text.braces.closing.get(body.end() - 1, -1) if body is not None else -1
        if body is not None and end > 0:
            declared = whole_arguments(text.plain[opening + 1 : closing])
            made = HostFunction(
                match[1],
                match.start(),
                opening,
                closing,
                body.end() - 1,
                end,
                tuple(map(parameter_of, declared)),
                references=references_of(declared),
            )
            found.setdefault(match[1], []).append(made)
    return found
