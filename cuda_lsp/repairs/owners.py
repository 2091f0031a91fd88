"""An element that several threads store to, stored by one of them: a guard that their index suggests.

A row's columns are those below its width (``x < w`` for ``y * w + x``), a ring's elements those that come
first (``i < n`` for ``i % n``), a group has a first thread (``t % 4 == 0`` for ``t / 4``), and where an index
hangs on the thread alone, one block is enough (``blockIdx.x == 0``). What the others meant to store is lost:
the width may be what is wrong.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from cuda_lsp.model import RACES, FileReport, Finding, RaceKind, SourceRange
from cuda_lsp.repair import RepairKind
from cuda_lsp.repairs.candidate import Candidate
from cuda_lsp.repairs.elements import Names, names_around, subscripts
from cuda_lsp.repairs.expressions import Expression, bare, parsed
from cuda_lsp.repairs.insertion import guarded
from cuda_lsp.repairs.reached import may_be_met
from cuda_lsp.repairs.source import Source
from cuda_lsp.repairs.statements import Form, Statement

_MOST = 6  # conditions of one access
_COMPARED = re.compile(r"([^<>=!&|?:;]{1,200}?)\s{0,9}(<=|>=|<|>)\s{0,9}([^<>=!&|?:;]{1,200})")
_ELEMENT = re.compile(r"[*(\s]*[A-Za-z_][\w.]*\s*(?:->\s*\w+\s*)*(?:[\[)]|\Z)")
_FIRST = re.compile(r"[^<>=!]+(?:<=?[^<>=!]+|(?:==|>=)\s*0\s*)")
"""Conditions that the first thread or block meets."""
_REVERSED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_OPPOSITE = {"<": ">=", ">=": "<", ">": "<=", "<=": ">"}


def owners_of_a_store(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Guards of a statement that races with itself."""
    del report
    if _is_candidate(source, finding) and len(_ranges(finding)) == 1:
        yield from _alone(source, finding, finding.site.range)


def owners(source: Source, report: FileReport, finding: Finding) -> Iterator[Candidate]:
    """Guards of either of two statements, and of both."""
    del report
    if not _is_candidate(source, finding) or len(_ranges(finding)) != 2:
        return
    found = [list(_alone(source, finding, extent)) for extent in _ranges(finding)]
    for first, second in zip(*found, strict=False):
        if first.title.rpartition(" by ")[2] == second.title.rpartition(" by ")[2]:
            yield _both(first, second)
    for candidates in found:
        yield from candidates
    for first, second in zip(*found, strict=False):
        yield _both(first, second)


def _both(first: Candidate, second: Candidate) -> Candidate:
    title = f"{first.title}, {second.title[0].lower()}{second.title[1:]}"
    return Candidate(first.kind, title, (*first.edits, *second.edits), keeps_meaning=False)


def _is_candidate(source: Source, finding: Finding) -> bool:
    return finding.code in RACES and finding.kind is not None and source.here(finding)


def _ranges(finding: Finding) -> list[SourceRange]:
    return list(dict.fromkeys((finding.site.range, *(r.site.range for r in finding.related[:1]))))


def _alone(source: Source, finding: Finding, extent: SourceRange) -> Iterator[Candidate]:
    """Guards of one access."""
    access, statement = source.extent(extent), source.statement_at(extent)
    names = names_around(source, access[0])
    if statement is None or names is None or statement.form is not Form.SIMPLE:
        return
    text = source.plain[slice(*access)]
    if _ELEMENT.match(text) is None or _is_nothing(source, statement):
        return
    told: set[str] = set()
    updates, stores = _is_update(source, statement, access), _is_store(source, statement, access)
    for kind, condition in _conditions(names, text, finding, stores=stores):
        if updates and kind is RepairKind.ONE_STORES:
            continue  # what the others add is meant
        if condition in told or len(told) == _MOST or _never(source, access[0], condition):
            continue
        told.add(condition)
        if may_be_met(source, access[0], condition, finding.launch):
            title = f"Guard {source.text[slice(*access)]} by {condition}"
            edits = guarded(source, statement, access, condition)
            yield Candidate(kind, title, edits, keeps_meaning=False)


def _is_nothing(source: Source, statement: Statement) -> bool:
    """A label, or what ends something: a condition before it says something else."""
    text = source.plain[statement.start : statement.end]
    return text.rstrip().endswith(":") or re.match(r"(?:return|break|continue|goto)\b", text) is not None


def _is_update(source: Source, statement: Statement, access: tuple[int, int]) -> bool:
    """``x += v``, ``x++``, ``x = x + v``."""
    behind = source.plain[access[1] : statement.end].lstrip()
    before = source.plain[statement.start : access[0]].strip()
    target = source.plain[slice(*access)].strip()
    steps = re.match(r"\+\+|--|(?:<<|>>|[-+*/%&|^])=", behind) is not None or before in ("++", "--")
    return steps or (behind.startswith("=") and target in behind)


def _is_store(source: Source, statement: Statement, access: tuple[int, int]) -> bool:
    return (
        re.match(r"\s*(?:\+\+|--|(?:<<|>>|[-+*/%&|^])?=(?!=))", source.plain[access[1] : statement.end])
        is not None
    )


def _conditions(
    names: Names, access: str, finding: Finding, *, stores: bool
) -> Iterator[tuple[RepairKind, str]]:
    if finding.kind is RaceKind.WAW:
        yield from ((RepairKind.ONE_STORES, condition) for condition in _one_for_all(names, access, finding))
    written = [parsed(subscript) for subscript in subscripts(access)]
    found: list[tuple[RepairKind, str]] = []
    # A read that is not made is 0: only what is written in its own subscript says that this is meant.
    for depth in (0, 1, 3) if stores else (0,):
        for subscript in reversed(written):
            for part in parsed(names.resolved(subscript.text, depth)).all():
                found += [(RepairKind.GUARD, condition) for condition in _below_width(names, part)]
                if stores:
                    found += [(RepairKind.GUARD, condition) for condition in _below_size(names, part)]
                found += [(RepairKind.ONE_STORES, condition) for condition in _first_of_group(part)]
    yield from sorted(found, key=lambda told: told[1].startswith("(int)"))


def _below_width(names: Names, part: Expression) -> Iterator[str]:
    """The columns of a row."""
    terms = list(part.terms())
    products = [n for n, (sign, term) in enumerate(terms) if term.operator == "*" and sign == "+"]
    if part.operator in ("+", "-"):
        for number in products:
            behind = terms[number + 1 :]
            others = [t for n, t in enumerate(terms) if n not in products]
            for rest in (others, behind):
                if rest and any(names.origins(term.text).ids for _, term in rest):
                    for factor in reversed(terms[number][1].parts):
                        if not names.origins(factor.text).ids:
                            yield from _below(rest, f"< {factor.as_operand}")


def _below_size(names: Names, part: Expression) -> Iterator[str]:
    """The first elements of a ring."""
    if part.operator in ("%", "&"):
        value, size = part.parts
        if names.origins(value.text).ids and not names.origins(size.text).ids:
            compared = f"< {size.as_operand}" if part.operator == "%" else f"<= {size.as_operand}"
            yield from _below(list(value.terms()), compared)
            yield from (
                f"{term.as_operand} {compared}"
                for _, term in value.terms()
                if term is not value and names.origins(term.text).ids
            )


def _below(terms: list[tuple[str, Expression]], compared: str) -> Iterator[str]:
    """The sum compared, as it is and as a number with a sign: sizes may be negative."""
    (sign, first), *others = terms
    if sign == "-" or first.text.startswith("-"):
        return  # no place of a row begins with that
    if any(sign == "+" and compared.endswith(f" {term.as_operand}") for sign, term in terms):
        return  # with a size added to it nothing is below that size
    text = _as_term(first)
    text += "".join(f" {sign} {_as_term(term)}" for sign, term in others)
    if re.fullmatch(r"(?:threadIdx\.(\w) < blockDim|blockIdx\.(\w) < gridDim)\.\w", f"{text} {compared}"):
        return  # always
    yield f"{text} {compared}"
    if re.search(r"\b(?:thread|block)Idx\b", text):
        yield f"(int)({text}) {compared}" if others else f"(int){first.as_operand} {compared}"


def _as_term(expression: Expression) -> str:
    return expression.text if expression.operator == "*" else expression.as_operand


def _first_of_group(part: Expression) -> Iterator[str]:
    """The first thread of those that a quotient puts together."""
    if part.operator == "/":
        yield f"{part.parts[0].as_operand} % {part.parts[1].as_operand} == 0"
    elif part.operator == ">>" and part.parts[1].text.isdigit():
        yield f"{part.parts[0].as_operand} % {1 << int(part.parts[1].text)} == 0"


def _one_for_all(names: Names, access: str, finding: Finding) -> Iterator[str]:
    """One thread or block, where the two differ in what the element does not hang on."""
    witness = finding.witness
    if witness is None:
        return
    origins = names.origins(" , ".join(subscripts(access)))
    if origins.calls or origins.memory:
        return
    pairs = [("blockIdx", witness.blocks), ("threadIdx", witness.threads)]
    differ = [
        f"{name}.{axis}"
        for name, pair in pairs
        if pair is not None
        for axis, one, other in zip("xyz", *pair, strict=True)
        if one != other
    ]
    if differ and not origins.ids & set(differ):
        yield " && ".join(f"{name} == 0" for name in differ)


def _never(source: Source, offset: int, condition: str) -> bool:
    """Whether what stands around says the opposite."""
    names = names_around(source, offset)
    if names is None:
        return False
    wanted = _relation(names, condition)
    ids = re.findall(r"\b(\w+\.[xyz]) == 0", condition)
    for statement in source.statements.path(offset):
        if statement.head is None or statement.form is not Form.IF or not statement.parts[0].around(offset):
            continue
        for part in source.plain[slice(*statement.head)][1:-1].split("&&"):
            if _FIRST.fullmatch(part.strip()) is None and any(one in names.origins(part).ids for one in ids):
                return True
            known = _relation(names, part)
            if wanted and known and known[0] == wanted[0] and known[1] == _OPPOSITE[wanted[1]]:
                return True
    return False


def _relation(names: Names, condition: str) -> tuple[tuple[str, str], str] | None:
    """Both sides in one order, and how they are compared."""
    match = _COMPARED.fullmatch(re.sub(r"\(int\)", "", condition).strip())
    if match is None:
        return None
    left, right = ("".join(bare(names.resolved(side)).split()) for side in (match[1], match[3]))
    return ((left, right), match[2]) if left <= right else ((right, left), _REVERSED[match[2]])
