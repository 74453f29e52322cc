from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

from hipport import __version__
from tests.project.tree import CUDA, HIP, put

ROOT = Path(__file__).parents[2]


def test_a_wheel_in_an_empty_environment_works_from_any_folder(tmp_path: Path) -> None:
    clean = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "VIRTUAL_ENV")}
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "-q"]

    def run(*command: str | Path, cwd: Path = tmp_path) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(c) for c in command],
            cwd=cwd,
            env=clean,
            capture_output=True,
            text=True,
            check=False,
        )

    built = run(*pip, "wheel", "--no-deps", "-w", tmp_path / "dist", ROOT)
    assert built.returncode == 0, built.stderr
    (wheel,) = (tmp_path / "dist").glob("hipport-*.whl")
    venv.create(tmp_path / "empty", with_pip=False, symlinks=True)
    python = tmp_path / "empty" / "bin" / "python"
    installed = run(*pip, "--python", python, "install", wheel)
    assert installed.returncode == 0, installed.stderr
    hipport = tmp_path / "empty" / "bin" / "hipport"
    elsewhere = put(tmp_path / "elsewhere", {"t/a.cu": CUDA})
    assert run(hipport, "--version", cwd=elsewhere).stdout == f"hipport {__version__}\n"
    assert "HP1001" in run(hipport, "rule", "unparsed", cwd=elsewhere).stdout
    done = run(hipport, "convert", "t", "--out", "o", cwd=elsewhere)
    assert (done.returncode, done.stderr) == (0, "")
    assert (elsewhere / "o" / "a.cu").read_bytes() == HIP
