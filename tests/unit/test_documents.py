"""Texts of open documents, where changes come in another order than they were made in."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lsprotocol import types as lsp

from cuda_lsp.server.documents import Document, Documents

URI = Path("/fuzz/k.cu").as_uri()
Edit = tuple[tuple[int, int], tuple[int, int], str]


def change(edit: Edit) -> lsp.TextDocumentContentChangeEvent:
    start, end = sorted(edit[:2])
    return lsp.TextDocumentContentChangePartial(lsp.Range(lsp.Position(*start), lsp.Position(*end)), edit[2])


def typed(order: list[int], edits: list[Edit], text: str = "ab\ncd\n") -> Document:
    workspace = Documents(None, lsp.TextDocumentSyncKind.Incremental)
    workspace.put_text_document(lsp.TextDocumentItem(URI, "cuda", 1, text))
    for number in order:
        version = lsp.VersionedTextDocumentIdentifier(2 + number, URI)
        workspace.update_text_document(version, change(edits[number]))
    document = workspace.get_text_document(URI)
    assert isinstance(document, Document)
    return document


places = st.tuples(st.integers(0, 3), st.integers(0, 4))
edits = st.lists(
    st.tuples(places, places, st.sampled_from(["", "x", "yz", "\n", "(\n)"])), min_size=1, max_size=8
)


@given(edits.flatmap(lambda all: st.tuples(st.just(all), st.permutations(range(len(all))))))
def test_changes_count_in_the_order_of_their_versions(made: tuple[list[Edit], list[int]]) -> None:
    all, order = made
    there, here = typed(order, all), typed(list(range(len(all))), all)
    assert (there.source, there.version) == (here.source, here.version)


def test_several_changes_of_one_late_message_keep_their_order() -> None:
    document = typed([1], [((0, 0), (0, 0), ""), ((0, 3), (0, 3), "!")], "")
    for edit in (((0, 0), (0, 0), "a"), ((0, 1), (0, 1), "b"), ((0, 2), (0, 2), "c")):
        document.take(2, change(edit))
    assert (document.source, document.version) == ("abc!", 3)


def test_a_client_that_counts_anew_is_taken_at_its_word(monkeypatch: pytest.MonkeyPatch) -> None:
    document = typed([5], [((0, 0), (0, 0), "x")] * 6, "")
    now = time.monotonic()
    monkeypatch.setattr(time, "monotonic", lambda: now + 5)
    document.take(2, change(((0, 1), (0, 1), "y")))
    document.take(3, change(((0, 2), (0, 2), "z")))
    assert (document.source, document.version) == ("xyz", 3)
