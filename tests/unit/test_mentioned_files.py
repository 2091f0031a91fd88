"""Which names of files a text mentions, at beginnings of lines."""

from __future__ import annotations

import time

import pytest

from cuda_lsp.frontend.surroundings.included import mentioned


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('#include "a.h"\n \t# include <b.h>\n', ("a.h", "b.h")),
        ('int x;\n#define A "c.h"\n#import "d.h"', ("c.h", "d.h")),
        ('int x; #include "a.h"\n', ()),
        ('// #include "a.h"\n/* */ #include "b.h"\n', ()),
        ('# #include "a.h"\n#include "b.h"', ("b.h",)),
        ('#include "a\n.h"\n#include A\n', ()),
        ('#if __has_include("e.h")\n#include_next <f.h>\n#endif\n', ("f.h", "e.h")),
    ],
)
def test_directives_are_found_where_lines_begin(text: str, names: tuple[str, ...]):
    assert mentioned(text) == names


def test_one_long_line_is_read_once():
    began = time.process_time()
    assert mentioned('x #include "a.h"' * 50_000 + " " * 1_000_000 + '#include "b.h"') == ()
    assert time.process_time() - began < 1
