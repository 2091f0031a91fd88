"""C text with its macros written out, for what libclang tells nothing of: the strings of ``asm``.

Definitions are those of all files that were read, whatever ``#if`` is around them: a name that is defined in
two ways stands for nobody knows what.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping

from attrs import frozen

_DEFINED = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:\(([^()\n]*)\))?((?:[^\\\n]|\\\n|\\.)*)", re.M)
_TOKEN = re.compile(
    r"""//(?:[^\\\n]|\\.)*
    |/\*.*?(?:\*/|\Z)
    |R"(?P<mark>[^()\\\s"]{0,16})\(.*?(?:\)(?P=mark)"|\Z)
    |"(?:[^"\\\n]|\\.)*(?:"|(?=\n)|\Z)
    |\s*\#\#\s*|\#\s*\w+|\w+|\s+|.""",
    re.X | re.S,
)
_MOST_STEPS = 8
_LONGEST = 1 << 16


class NotWritten(ValueError):
    """What a macro stands for is not known."""


@frozen
class _Macro:
    """``parameters`` None: it is used by its name alone."""

    parameters: tuple[str, ...] | None
    body: tuple[str, ...]


Definitions = Mapping[str, _Macro | None]
"""Macros by their names; None: defined in several ways."""


def definitions(texts: Iterable[str]) -> Definitions:
    """Of all these files."""
    found: dict[str, _Macro | None] = {}
    for match in (match for text in texts for match in _DEFINED.finditer(text.replace("\r\n", "\n"))):
        name, parameters, body = match.groups()
        listed = None if parameters is None else tuple(p.strip() for p in parameters.split(","))
        macro = _Macro(listed, tuple(tokens(body.replace("\\\n", " ").strip())))
        found[name] = macro if found.get(name, macro) == macro else None
    return found


def tokens(text: str) -> Iterator[str]:
    """Words, strings, white space and single characters; comments are blanks."""
    for match in _TOKEN.finditer(text):
        yield " " if match[0].startswith(("//", "/*")) else match[0]


def use_of_macro(text: str, known: Definitions) -> str:
    """The use of a macro that the text begins with; raises NotWritten where there is none."""
    name = re.match(r"\w*", text)
    macro = known.get(name[0]) if name else None
    if name is None or macro is None:
        raise NotWritten
    return name[0] if macro.parameters is None else name[0] + enclosed(text[name.end() :])


def enclosed(text: str) -> str:
    """From the beginning to the closing parenthesis of what it begins with; raises NotWritten without one."""
    depth, taken = 0, list[str]()
    for token in tokens(text):
        taken.append(token)
        depth += (token == "(") - (token == ")")
        if not token.isspace() and depth <= 0:
            break
    if depth or taken[-1:] != [")"]:
        raise NotWritten
    return "".join(taken)


def written_out(text: str, known: Definitions, steps: int = _MOST_STEPS) -> str:
    """The text without macros; raises NotWritten where one is ambiguous, or it comes to no end."""
    parts, found = list(tokens(text)), list[str]()
    at = 0
    while at < len(parts):
        part, at = parts[at], at + 1
        macro = known.get(part, _NOBODYS)
        if macro is None or not steps:
            raise NotWritten
        arguments: list[str] | None = []
        if macro is not _NOBODYS and macro.parameters is not None:
            arguments, at = _arguments(parts, at)
        if macro is _NOBODYS or arguments is None:
            found.append(part)
        else:
            found.append(written_out(_used(macro, arguments), known, steps - 1))
        if sum(map(len, found)) > _LONGEST:
            raise NotWritten
    return "".join(found)


_NOBODYS = _Macro(None, ())


def _arguments(parts: list[str], at: int) -> tuple[list[str] | None, int]:
    """Of a use whose name stands before ``at``, and what comes behind it; None: it is no use."""
    begin = at
    while at < len(parts) and parts[at].isspace():
        at += 1
    if at == len(parts) or parts[at] != "(":
        return None, begin
    depth, given = 0, [""]
    for end in range(at, len(parts)):
        part = parts[end]
        depth += (part in "([{") - (part in ")]}")
        if not depth:
            return [each.strip() for each in given], end + 1
        if part == "," and depth == 1:
            given.append("")
        elif end > at:
            given[-1] += part
    raise NotWritten


def _used(macro: _Macro, arguments: list[str]) -> str:
    names = macro.parameters or ()
    values = dict(zip(names, arguments, strict=False))
    if names[-1:] == ("...",):
        values["__VA_ARGS__"] = ",".join(arguments[len(names) - 1 :])
    found: list[str] = []
    for token in macro.body:
        if token.startswith("#") and token[1:].strip() in values:
            value = values[token[1:].strip()].replace("\\", "\\\\").replace('"', '\\"')
            found.append(f'"{value}"')
        elif token.strip() != "##":
            found.append(values.get(token, token))
    return "".join(found)
