"""The values of variables while host code is run (``host_run``)."""

from __future__ import annotations

from attrs import frozen

from cuda_lsp.frontend.host.known_values import Key


@frozen
class Unknown:
    """A value that nobody knows; ``keys``: what it hangs on."""

    keys: frozenset[Key]


Axes = tuple[int | Unknown, int | Unknown, int | Unknown]
Value = int | Axes | Unknown
State = dict[Key, Value]
"""By name and the place of its definition."""


def hanging(value: int | Unknown, key: Key) -> int | Unknown:
    """The value; where nobody can say what it hangs on, it hangs on itself."""
    return Unknown(frozenset({key})) if isinstance(value, Unknown) and not value.keys else value


def alike(a: Value, b: Value, otherwise: Value) -> Value:
    """The components that two have in common; ``otherwise``: what the rest is."""
    if not (isinstance(a, tuple) and isinstance(b, tuple) and isinstance(otherwise, Unknown)):
        return otherwise
    x, y, z = (mine if mine == theirs else otherwise for mine, theirs in zip(a, b, strict=True))
    return x, y, z


def with_axis(held: Value, axis: str, value: int | Unknown, made: Key) -> Axes:
    """What is held, with another component; ``made``: where that is written."""
    nobody = Unknown(frozenset({made}))
    x, y, z = held if isinstance(held, tuple) else (nobody, nobody, nobody)
    return (value if axis == "x" else x, value if axis == "y" else y, value if axis == "z" else z)
