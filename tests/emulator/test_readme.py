"""The wave64 example of the README: wrong when merely renamed, right when converted."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from hipport.emulator.command import run

EXAMPLE = Path(__file__).resolve().parents[2] / "fixtures" / "wave64"
VALUES = ",".join(["1"] * 32 + ["0,1"] * 16)


def counts(source: str, target: str, *options: str) -> str:
    arguments = ["--kernel", "count", "--grid", "1", "--block", "64", "--target", target,
                 "--arg", f"i32[64]={VALUES}", "--arg", "i32[2]", *options]  # fmt: skip
    done = CliRunner().invoke(run, [str(EXAMPLE / source), *arguments])
    assert done.exit_code == 0, done.output
    return next(line for line in done.output.splitlines() if line.startswith("arg1"))


def test_renamed_is_wrong_on_64_lanes() -> None:
    assert counts("renamed.hip", "gfx942", "--as-is") == "arg1 int32[2] = [32 32]"
    assert counts("renamed.hip", "gfx1100", "--as-is") == "arg1 int32[2] = [32 16]"


@pytest.mark.parametrize("target", ["gfx90a", "gfx942", "gfx1100"])
def test_converted_is_right(target: str) -> None:
    assert counts("count.cu", target) == "arg1 int32[2] = [32 16]"
