from __future__ import annotations

from pathlib import Path

import pytest

from hipport.parse.facts import collect, merge
from hipport.parse.types import type_of
from hipport.parse.unit import Unit
from hipport.parse.values import evaluate
from hipport.source import SourceFile

CONSTANTS = (
    b"#define WS 32\n#define LOOP LOOP\nconstexpr int kN = WS * 4;\nenum { kE = 1 << 3 };\n"
    b"#define TWICE 1\n#undef TWICE\n#define TWICE 2\n"
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("96 * 1024", 98304), ("WS", 32), ("kN + kE", 136), ("(int)kN / 3", 42), ("-1 & 0xff", 255),
        ("sizeof(float) * WS", 128), ("LOOP", None), ("n", None), ("f(3)", None), ("TWICE", None),
        ("5ull << 30", 5 << 30), ("WS + ", None),
    ],
)  # fmt: skip
def test_values(text: str, value: int | None) -> None:
    project = merge([collect("a.cu", CONSTANTS)])
    assert evaluate(text.encode(), "a.cu", project) == value


CODE = b"""
__global__ void k(const float* x, unsigned n, long long q, half h, float4 v, uint3* c) {
  int i = 0; size_t s = 0; auto a = 1.0f; unsigned char b = 1; double d[4];
  use(%s);
}
"""


@pytest.mark.parametrize(
    ("expression", "kind"),
    [
        ("i", "int"), ("n", "unsigned"), ("i + n", "unsigned"), ("x[i]", "float"), ("x", "float*"),
        ("a", "float"), ("b + b", "int"), ("s * i", "ulong"), ("q", "longlong"), ("i < n", "bool"),
        ("threadIdx.x", "unsigned"), ("v.x", "float"), ("c[0].y", "unsigned"), ("d[1]", "double"),
        ("*x", "float"), ("&i", "int*"), ("(long long)i", "longlong"), ("1ull", "ulonglong"),
        ("static_cast<float>(i)", "float"), ("__popc(n)", "int"), ("unknown", None),
        ("f(i)", None), ("i ? n : i", "unsigned"), ("sizeof(int)", "ulong"),
        ("0x80000000", "unsigned"),
        ("1.5", "double"), ("-b", "int"), ("n << 3", "unsigned"),
    ],
)  # fmt: skip
def test_types(expression: str, kind: str | None) -> None:
    unit = Unit(SourceFile(Path("a.cu"), CODE.replace(b"%s", expression.encode())))
    (call,) = unit.calls(b"use")
    arguments = call.child_by_field_name("arguments")
    assert arguments is not None
    assert type_of(unit, arguments.named_children[0]) == kind
