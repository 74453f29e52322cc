from __future__ import annotations

from pathlib import Path

import pytest

from hipport.parse.calls import find_calls
from hipport.parse.unit import Unit
from hipport.source import SourceFile


def args(code: str, name: str = "f") -> list[list[str]]:
    unit = Unit(SourceFile(Path("a.cu"), code.encode()))
    return [
        [unit.source.text(a).decode() for a in call.arguments]
        for call in find_calls(unit, {name.encode()})
    ]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("f(a, b)", [["a", "b"]]),
        ("f()", [[]]),
        ("f(g(a, b), c[1, 2], {3, 4})", [["g(a, b)", "c[1, 2]", "{3, 4}"]]),
        ("f(k<4, 2>, x)", [["k<4, 2>", "x"]]),
        ("f(a < b, c > d)", [["a < b", "c > d"]]),
        ("f(std::map<int, std::vector<int>>(), 1)", [["std::map<int, std::vector<int>>()", "1"]]),
        ("f<int, 4>(x, y)", [["x", "y"]]),
        ("#define M(x) f(x, 2)\n", [["x", "2"]]),
        ("f(/* a, b */ x, y)", [["x", "y"]]),
        ("f(\"a, b\", ',')", [['"a, b"', "','"]]),
        ("f(a", []),
        ("f(a, [](int x, int y) { return x, y; })", [["a", "[](int x, int y) { return x, y; }"]]),
        ("nof(a); fx(b);", []),
    ],
)
def test_arguments(code: str, expected: list[list[str]]) -> None:
    assert args(code) == expected
