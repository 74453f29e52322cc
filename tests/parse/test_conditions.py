from __future__ import annotations

from pathlib import Path

import pytest

from hipport.parse.conditions import UNDEFINED, chains, dead_on_hip
from hipport.parse.unit import Unit
from hipport.source import SourceFile


def unit(text: str) -> Unit:
    return Unit(SourceFile(Path("a.h"), text.encode()))


@pytest.mark.parametrize(
    ("condition", "value"),
    [
        ("#if A >= 600 && B", 0),
        ("#if A >= 600 || B", None),
        ("#if !defined(A) || A >= 600", 1),
        ("#if defined A", 0),
        ("#ifndef A", 1),
        ("#if (2 + 3) * 4 == 20", 1),
        ("#if X", None),
        ("#if X && 0", 0),
        ("#if F(1, 2) || 1", 1),
        ("#if -1 / 2 == 0 && 7 % 4 == 3", 1),
        ("#if 0x10 == 16 && 010 == 8 && 1'000 == 1000u", 1),
        ("#if 1 ? 0 : 1", 0),
        ("#if 1 /", None),
    ],
)
def test_values(condition: str, value: int | None) -> None:
    (chain,) = chains(unit(condition + "\n#endif\n"))
    assert chain.branches[0].condition is not None
    assert chain.branches[0].condition.value({b"A": UNDEFINED}) == value


def dead(text: str) -> list[str]:
    u = unit(text)
    return [u.source.text(s).decode().strip() for s in dead_on_hip(u)]


def test_branches_that_hip_does_not_take() -> None:
    assert dead("#ifdef USE_ROCM\nhip\n#else\ncuda\n#endif\n") == ["cuda"]
    assert dead("#if !defined(__HIP_PLATFORM_AMD__)\ncuda\n#endif\n") == ["cuda"]
    assert dead("#if defined(USE_CUDA)\ncuda\n#elif defined(USE_ROCM)\nhip\n#endif\n") == ["cuda"]
    assert dead("#ifdef USE_CUDA\ncuda\n#endif\n") == []
    assert dead("#ifdef __HIP_DEVICE_COMPILE__\na\n#else\nb\n#endif\n") == []


def test_unbalanced_conditionals_are_left_out() -> None:
    assert chains(unit("#endif\n#if A\n#else\n")) == []
