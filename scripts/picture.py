"""Make docs/img/check.svg: what the terminal shows, from real runs of the commands.

    python scripts/picture.py

Run it with a Python that has hipport installed. The demo project is converted in a scratch copy
with hazards from fixtures/picture added, so that there is something to see.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

import hipport.cli.show as show
from hipport.cli.main import guarded

ROOT = Path(__file__).resolve().parent.parent
WIDTH = 100


# Rich's own template loads fonts from the network; a monospaced font of the reader does as well.
_FORMAT = re.sub(r"@font-face \{\{.*?\}\}", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)


def main() -> int:
    """Write the picture."""
    recorder = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    show.Talk.console = lambda self, *, stderr=False: recorder  # type: ignore[method-assign]
    with tempfile.TemporaryDirectory() as scratch:
        project = Path(scratch) / "particles"
        shutil.copytree(ROOT / "fixtures" / "repos" / "particles", project)
        shutil.copy(ROOT / "fixtures" / "picture" / "histogram.cu", project / "src")
        with _inside(project):
            recorder.print(Text("$ hipport check .", "bold"))
            status = guarded(["check", "."])
            recorder.print(Text(f"$ echo $?\n{status}", "bold"))
    target = ROOT / "docs" / "img" / "check.svg"
    recorder.save_svg(str(target), title="hipport", unique_id="hipport", code_format=_FORMAT)
    print(f"wrote {target.relative_to(ROOT)}")
    return 0


@contextlib.contextmanager
def _inside(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


if __name__ == "__main__":
    sys.exit(main())
