"""The PTX reader and writer: what is read, and that nothing is lost on the way back."""

import pytest

from cuda_lsp.dynamic.ptx.module import Declaration, Instruction, Label, TargetList, split_operands
from cuda_lsp.dynamic.ptx.operands import (
    AddressOperand,
    FloatOperand,
    IntegerOperand,
    NegatedOperand,
    PairOperand,
    RegisterOperand,
    SymbolOperand,
    VectorOperand,
    parse_operand,
)
from cuda_lsp.dynamic.ptx.reader import PtxSyntaxError, read_module
from cuda_lsp.dynamic.ptx.writer import write_module

MODULE = """
.version 8.0
.target sm_75
.address_size 64
.extern .func (.param .b32 func_retval0) vprintf(.param .b64 a, .param .b64 b);
.global .align 4 .u32 counter = 7;   // one word
.const .align 8 .f32 weights[2] = {0f3F800000, 0f40000000};
.extern .shared .align 16 .b8 dynamic[];
.visible .entry kernel(
  .param .u64 .ptr .global .align 4 kernel_param_0,
  .param .align 8 .b8 kernel_param_1[24]
)
.maxntid 256, 1, 1
.minnctapersm 2
{
  .reg .pred %p<3>;
  .reg .b32 %r<4>;
  .loc 1 3 5
  .shared .align 4 .b8 tile[1024];
  mov.u32 %r1, %tid.x;
  .loc 1 9 7, function_name $L__info_string0, inlined_at 1 3 5
  @!%p1 bra $L__BB0_2;
  { .reg .b32 t; mov.b32 t, 1; }
$L__BB0_2:
  st.shared.v2.u32 [%r1+8], {%r2, %r3};
$targets: .branchtargets $L__BB0_2, $L__BB0_2;
  brx.idx %r1, $targets;
  ret;
}
.file 1 "/somewhere/a//b.cu"
"""


@pytest.fixture(scope="module")
def module():
    return read_module(MODULE)


def test_a_written_module_reads_back_the_same(module):
    assert read_module(write_module(module)) == module


def test_a_path_with_two_slashes_is_not_a_comment(module):
    assert module.files == {1: "/somewhere/a//b.cu"}


def test_variables_know_size_and_initialiser(module):
    assert module.variables["weights"].size == 8
    assert module.variables["weights"].initialiser == "{0f3F800000, 0f40000000}"
    assert module.variables["dynamic"].size == 0 and module.variables["dynamic"].alignment == 16


def test_kernel_parameters_and_directives(module):
    kernel = module.entries["kernel"]
    assert [(p.type, p.size, p.alignment) for p in kernel.params] == [("u64", 8, 4), ("b8", 24, 8)]
    assert kernel.directives == (".maxntid 256, 1, 1", ".minnctapersm 2")


def test_instruction_knows_the_call_it_was_inlined_at(module):
    branch = next(i for i in module.entries["kernel"].instructions() if i.base == "bra")
    assert branch.guard == "!%p1"
    assert [(p.line, p.column) for p in branch.location.chain()] == [(9, 7), (3, 5)]


def test_body_keeps_labels_declarations_and_branch_targets(module):
    body = module.entries["kernel"].body
    assert [s.name for s in body if isinstance(s, Label)] == ["$L__BB0_2"]
    assert [s.variable.name for s in body if isinstance(s, Declaration)] == ["tile"]
    assert [s.targets for s in body if isinstance(s, TargetList)] == [("$L__BB0_2", "$L__BB0_2")]
    assert [s.index for s in body if isinstance(s, Instruction)] == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    ("text", "operand"),
    [
        ("%r1", RegisterOperand("%r1")),
        ("-0x10", IntegerOperand(-16)),
        ("010", IntegerOperand(8)),
        ("0f3F800000", FloatOperand(1.0, True)),
        ("0d4000000000000000", FloatOperand(2.0, False)),
        ("buffer+4", SymbolOperand("buffer", 4)),
        ("generic(table)+16", SymbolOperand("table", 16)),
        ("generic(table+8)", SymbolOperand("table", 8)),
        ("[%rd1+-8]", AddressOperand(RegisterOperand("%rd1"), -8)),
        ("[buffer]", AddressOperand(SymbolOperand("buffer"))),
        ("!%p1", NegatedOperand(RegisterOperand("%p1"))),
        ("%r1|%p2", PairOperand(RegisterOperand("%r1"), RegisterOperand("%p2"))),
        ("{%f1, 0}", VectorOperand((RegisterOperand("%f1"), IntegerOperand(0)))),
    ],
)
def test_operand_kinds(text, operand):
    assert parse_operand(text) == operand


def test_operands_split_outside_brackets():
    assert split_operands("(r), f, (a, b), {x, y}") == ("(r)", "f", "(a, b)", "{x, y}")


def test_text_that_is_not_ptx_is_refused():
    with pytest.raises(PtxSyntaxError, match="not a PTX instruction"):
        read_module(".version 8.0\n.target sm_75\n.entry k() { 5 apples; }")


def test_names_of_files_beyond_ascii_are_read():
    text = '.version 8.0\n.target sm_80\n.address_size 64\n.file 1 "/src/\\303\\251.cu"\n'
    assert read_module(text).files == {1: "/src/é.cu"}
