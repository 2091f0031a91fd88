"""Integer constants of host code."""

import pytest

from cuda_lsp.frontend.host.constants import NotConstant, evaluate


def nothing(name: str, *_: object) -> int:
    raise NotConstant(name)


@pytest.mark.parametrize(
    ("text", "value"),
    [("7 << 3 | 1", 57), ("-7 / 2", -3), ("1 << 63", 1 << 63), ("6 > 5 ? 4 : x", 4), ("0 && x", 0)],
)
def test_constants_have_their_value(text: str, value: int) -> None:
    assert evaluate(text, nothing) == value


@pytest.mark.parametrize("text", ["1 << -1", "8 >> -1", "28" + " << 28" * 2000, "1 / 0", "x + 1", "1<<64<<9"])
def test_what_no_integer_of_cpp_is_has_none(text: str) -> None:
    with pytest.raises(NotConstant):
        evaluate(text, nothing)
