"""Names that the macros of a text put together with ``##``, from what they are given.

What a macro is given may come through others that hand it on. Followed are ``_DEEPEST`` of them, and so many
tokens as a text of any size may have; behind that nothing is told, and the limits of the process are what is
left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

Tokens = Sequence[bytes]
Definition = tuple[Sequence[bytes] | None, Tokens]
"""Parameters, None: it takes none and no parentheses; and the replacement."""

_DEEPEST = 3
_MOST_STEPS = 200_000
_PASTE = [b"#", b"#"]


class Pastes:
    """Of the ``macros`` of a text, by name."""

    def __init__(self, macros: Mapping[bytes, Sequence[Definition]]) -> None:
        self._macros = macros
        self._steps = 0
        self._makers = {  # those that put names together, or hand on what they are given to one that does
            name for name, found in macros.items() if any(b"#" in tokens for _, tokens in found)
        }
        for _ in range(_DEEPEST if self._makers else 0):
            self._makers |= {
                name
                for name, found in macros.items()
                if any(not self._makers.isdisjoint(tokens) for _, tokens in found)
            }

    def names(self, name: bytes, arguments: Sequence[Tokens], deep: int = 0) -> Iterator[bytes]:
        """The names that a use of a macro makes."""
        for parameters, tokens in self._macros[name] if name in self._makers else ():
            if parameters is None:
                continue
            given = dict(zip(parameters, arguments, strict=False))
            self._steps += len(tokens)
            if self._steps > _MOST_STEPS:
                return
            yield from _pasted(tokens, given)
            for at, token in enumerate(tokens) if deep < _DEEPEST else ():
                if token in self._makers and token != name and list(tokens[at + 1 : at + 2]) == [b"("]:
                    inner, _ = arguments_of(tokens, at + 2)
                    handed = [
                        [t for part in argument for t in given.get(part, (part,))] for argument in inner
                    ]
                    yield from self.names(token, handed, deep + 1)


def _pasted(tokens: Tokens, given: Mapping[bytes, Tokens]) -> Iterator[bytes]:
    """Names that ``##`` makes in a replacement: ``a ## b ## c`` is one."""
    at = 0
    while at < len(tokens):
        made, joined = given.get(tokens[at], (tokens[at],))[-1:], False
        while made and list(tokens[at + 1 : at + 3]) == _PASTE and at + 3 < len(tokens):
            made, joined = (made[0] + b"".join(given.get(tokens[at + 3], (tokens[at + 3],))[:1]),), True
            at += 3
        if joined:
            yield made[0]
        at += 1


def arguments_of(tokens: Tokens, at: int) -> tuple[list[Tokens], int]:
    """The arguments of a use whose parenthesis is behind ``at``, and where it ends."""
    found: list[Tokens] = []
    depth, start = 0, at
    while at < len(tokens):
        token = tokens[at]
        if token == b")" and not depth:
            break
        if token == b"," and not depth:
            found.append(tokens[start:at])
            start = at + 1
        depth += (token == b"(") - (token == b")")
        at += 1
    return [*found, tokens[start:at]], at + 1
