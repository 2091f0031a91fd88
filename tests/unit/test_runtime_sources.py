"""What a program gives to NVRTC: its options for nvcc, its images, and where its lines stand."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from cuda_lsp.dynamic.programs.scripts.places import marked, places_in
from cuda_lsp.dynamic.programs.scripts.sources import RuntimeSource, image_key, told

KERNEL = """
extern "C" __global__ void add(int* out) {
    out[threadIdx.x] += 1;
}
"""


def lines(folder: Path, script: str, text: str, **others: str) -> list[int | None]:
    """For each line of ``text`` its line in the script, None: not there."""
    path = folder / "script.py"
    path.write_text(script)
    for name, content in others.items():
        (folder / name.replace("_", ".")).write_text(content)
    found = places_in(path).lines_of(text)
    return [place[1] if place is not None and place[0] == path.resolve() else None for place in found]


def test_a_literal_of_the_script_is_found(tmp_path: Path) -> None:
    script = f'import x\n\ntext = r"""{KERNEL}"""\n'
    assert lines(tmp_path, script, KERNEL) == [None, 4, 5, 6, None]


def test_what_was_replaced_in_a_literal_leaves_the_lines_around_it(tmp_path: Path) -> None:
    script = f'text = r"""{KERNEL}""".replace("1;", "2;")\n'
    assert lines(tmp_path, script, KERNEL.replace("1;", "2;"))[:2] == [None, 2]


def test_formatted_texts_keep_the_lines_of_their_parts(tmp_path: Path) -> None:
    script = (
        'text = f"""#define N {n}\n__global__ void k(int* p) {{\n    p[N] = {n};\n    p[0] = 1;\n}}\n"""\n'
    )
    text = "#define N 3\n__global__ void k(int* p) {\n    p[N] = 3;\n    p[0] = 1;\n}\n"
    found = lines(tmp_path, script, text)
    assert found[3] == 4
    assert found[1] in (2, None)


def test_a_literal_with_escaped_line_ends_is_found_by_its_lines(tmp_path: Path) -> None:
    script = 'text = ("__global__ void k(int* p) {\\n"\n        "  p[0] = 1;\\n"\n        "}\\n")\n'
    text = "__global__ void k(int* p) {\n  p[0] = 1;\n}\n"
    assert lines(tmp_path, script, text)[:3] == [1, 2, 3]


def test_a_text_read_from_a_file_has_the_lines_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "script.py"
    path.write_text("text = open('kernel.cu').read()\n")
    (tmp_path / "kernel.cu").write_text(KERNEL)
    found = places_in(path).lines_of(KERNEL)
    assert [place and (place[0].name, place[1]) for place in found][1:3] == [
        ("kernel.cu", 2),
        ("kernel.cu", 3),
    ]


def test_a_word_of_the_script_is_no_line_of_a_text(tmp_path: Path) -> None:
    assert lines(tmp_path, 'a = "threadIdx.x"\nb = "__global__"\n', KERNEL) == [None] * 5


def test_directives_do_not_enter_comments_or_continued_lines(tmp_path: Path) -> None:
    own = tmp_path / "own.cu"
    text = "#define A \\\n  1\n/* one\ntwo */\nint x;"
    places = [None, (own, 9), None, (own, 20), (own, 30)]
    assert marked(text, places, own).split("\n") == [
        f'#line 1 "{own}"', "#define A \\", "  1", "/* one", "two */", f'#line 30 "{own}"', "int x;",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "options",
    [
        ("-I/a", "-DN=3", "--std=c++17", "--gpu-architecture=sm_90", "-lineinfo", "--use_fast_math"),
        ("-I", "/a", "-D", "N=3", "-std", "c++17", "-arch", "compute_90", "--use_fast_math"),
        ("--include-path=/a", "--define-macro=N=3", "-std=c++17", "-use_fast_math", "-dlto", "-G"),
    ],
)
def test_options_are_those_of_nvcc(options: tuple[str, ...]) -> None:
    made = RuntimeSource("", "a.cu", options=options).compile_options
    assert made.include_dirs == (Path("/a"),)
    assert made.defines == ("N=3",)
    assert made.std == "c++17"
    assert made.extra == ("-use_fast_math",)


def test_an_image_is_the_same_however_much_follows_it() -> None:
    head = bytearray(64)
    head[:4] = b"\x7fELF"
    struct.pack_into("<QQ", head, 32, 64, 100)
    struct.pack_into("<HHHH", head, 54, 0, 0, 10, 2)
    image = bytes(head) + bytes(range(56))
    assert image_key(image) == image_key(image + b"more")
    assert image_key(image) != image_key(image[:-1] + b"x")
    assert image_key(b".version 8.0\0") == image_key(b".version 8.0")


def test_a_message_that_lies_about_its_length_is_refused() -> None:
    with pytest.raises(struct.error):
        told(struct.pack("<I", 1 << 30) + b"short", {})
