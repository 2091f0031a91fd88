"""Numbers of clang-c/Index.h (libclang 18) that the lowering dispatches on."""

from __future__ import annotations

from cuda_lsp.ir.program import BinaryOp

BINDING = 1  # a structured binding and the names in it (libclang: unexposed declaration)
STRUCT, UNION, CLASS, ENUM_CONSTANT, FIELD, FUNCTION, VAR, PARAMETER = 2, 3, 4, 7, 6, 8, 9, 10
METHOD, CONSTRUCTOR, DESTRUCTOR, CONVERSION, FUNCTION_TEMPLATE = 21, 24, 25, 26, 30
TYPE_REF, BASE_REF, TEMPLATE_REF, MEMBER_REF, VARIABLE_REF = 43, 44, 45, 47, 50
UNEXPOSED, DECL_REF, MEMBER_EXPR, CALL = 100, 101, 102, 103
INTEGER, FLOATING, STRING, CHARACTER, PAREN, UNARY, SUBSCRIPT = 106, 107, 109, 110, 111, 112, 113
BINARY, COMPOUND_ASSIGN, CONDITIONAL, C_CAST, COMPOUND_LITERAL = 114, 115, 116, 117, 118
INIT_LIST, STATEMENT_EXPR, GNU_NULL = 119, 121, 123
STATIC_CAST, DYNAMIC_CAST, REINTERPRET_CAST, CONST_CAST, FUNCTIONAL_CAST = 124, 125, 126, 127, 128
BOOL_LITERAL, NULLPTR, THIS, THROW, NEW, DELETE, SIZEOF = 130, 131, 132, 133, 134, 135, 136
LAMBDA = 144
UNEXPOSED_STMT, LABEL, COMPOUND, CASE, DEFAULT, IF, SWITCH, WHILE, DO, FOR = (
    200,
    201,
    202,
    203,
    204,
    205,
    206,
    207,
    208,
    209,
)
GOTO, INDIRECT_GOTO, CONTINUE, BREAK, RETURN, ASM = 210, 211, 212, 213, 214, 215
TRY, RANGE_FOR, MS_ASM, NULL, DECL_STMT = 224, 225, 229, 230, 231
DEVICE_ATTR, GLOBAL_ATTR, CONSTANT_ATTR, SHARED_ATTR = 413, 414, 412, 416

EXTERN, STATIC = 2, 3  # CX_StorageClass; clang makes __shared__ variables of functions static

CASTS = frozenset({C_CAST, STATIC_CAST, REINTERPRET_CAST, CONST_CAST, FUNCTIONAL_CAST, DYNAMIC_CAST})
"""Casts as written."""

# CXBinaryOperatorKind
COMMA, ASSIGN, LOGICAL_AND, LOGICAL_OR = 33, 22, 20, 21
ARITHMETIC = {
    3: BinaryOp.MUL,
    4: BinaryOp.DIV,
    5: BinaryOp.REM,
    6: BinaryOp.ADD,
    7: BinaryOp.SUB,
    8: BinaryOp.SHL,
    9: BinaryOp.SHR,
    11: BinaryOp.LT,
    12: BinaryOp.GT,
    13: BinaryOp.LE,
    14: BinaryOp.GE,
    15: BinaryOp.EQ,
    16: BinaryOp.NE,
    17: BinaryOp.BAND,
    18: BinaryOp.BXOR,
    19: BinaryOp.BOR,
}
COMPOUND_ARITHMETIC = {
    23: BinaryOp.MUL,
    24: BinaryOp.DIV,
    25: BinaryOp.REM,
    26: BinaryOp.ADD,
    27: BinaryOp.SUB,
    28: BinaryOp.SHL,
    29: BinaryOp.SHR,
    30: BinaryOp.BAND,
    31: BinaryOp.BXOR,
    32: BinaryOp.BOR,
}

# CXUnaryOperatorKind
POST_INC, POST_DEC, PRE_INC, PRE_DEC, ADDRESS_OF, DEREF, PLUS, MINUS, INVERT, NOT = (
    1,
    2,
    3,
    4,
    5,
    6,
    7,
    8,
    9,
    10,
)
EXTENSION = 13
