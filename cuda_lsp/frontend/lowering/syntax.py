"""What the shape of the syntax tells without types, places or values."""

from __future__ import annotations

from cuda_lsp.frontend.lowering import cursor_kinds as K
from cuda_lsp.frontend.tree import Node


def strip(node: Node) -> Node:
    """The expression inside parentheses and inside conversions that nobody wrote."""
    while node.kind in (K.PAREN, K.UNEXPOSED) and node.children:
        node = node.children[-1]
    return node


def is_default(argument: Node) -> bool:
    """Whether an argument is the parameter's default, which libclang shows without its parts."""
    return argument.kind == K.UNEXPOSED and not argument.children
