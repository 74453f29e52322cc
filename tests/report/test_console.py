from __future__ import annotations

import io
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from hipport.findings import Action, Finding, Severity
from hipport.report.console import ConsoleReport, causes, frame, one_line
from hipport.report.model import FilePlan, FileStatus, Report, Snippet
from hipport.report.text import code, safe, shown
from hipport.rules.hazards import Hazard

RULES = {
    "one-thing": Hazard("one-thing", "HP9001", "One thing", Severity.ERROR, Action.FLAG, "m", "w"),
    "small": Hazard("small", "HP9002", "Small", Severity.WARNING, Action.AUTO, "m", "w"),
}


def finding(slug: str, line: int, severity: Severity, action: Action = Action.FLAG) -> Finding:
    number = {"one-thing": "HP9001", "small": "HP9002", "word": "HP9003"}[slug]
    return Finding(number, slug, "a.cu", line, 5, severity, action, f"about line {line} [red]")


def report(*findings: Finding) -> Report:
    lines = {f.line for f in findings}
    plan = FilePlan(
        "a.cu",
        FileStatus.CONVERTED,
        findings=findings,
        edits_by_label=(("runtime", 3), ("blas", 2)),
        snippets=tuple(Snippet(n, b"\tint \xc3\xa4 = cudaX(%d);" % n) for n in sorted(lines)),
        error_bytes=12,
    )
    lost = FilePlan("z[0].cu", FileStatus.UNREADABLE, note="link loop")
    return Report(Path("/r"), "6.4", (plan, lost), seconds=1.25, command="check")


def printed(made: Report, *, width: int = 100, verbose: bool = False, color: bool = False) -> str:
    out = io.StringIO()
    console = Console(
        file=out, width=width, force_terminal=color, color_system="standard" if color else None
    )
    ConsoleReport(made, RULES, verbose=verbose).print(console)
    return out.getvalue()


def test_worst_first_and_by_cause() -> None:
    many = [finding("small", n, Severity.WARNING) for n in range(1, 9)]
    made = causes([*many, finding("one-thing", 3, Severity.ERROR)])
    assert [c.slug for c in made] == ["one-thing", "small"]
    text = printed(report(*many, finding("one-thing", 3, Severity.ERROR)))
    assert text.index("one-thing") < text.index("small")
    assert "8 places in 1 file" in text
    assert text.count("│ \n") == 0
    assert text.count("^\n") == 4
    assert "also a.cu:4, 5, 6, 7, 8" in text
    assert "about line 1 [red]" in text
    assert "hipport rule one-thing" in text
    assert "unread z[0].cu: link loop" in text


def test_repaired_findings_are_a_line_unless_all_is_asked_for() -> None:
    made = report(finding("small", 2, Severity.WARNING, Action.AUTO))
    text = printed(made)
    assert "Repaired by hipport convert" in text
    assert "^" not in text
    assert "0 need a person" in text
    assert "^" in printed(made, verbose=True)
    assert "repaired" in printed(replace(made, command="convert", written=("a.cu",)), verbose=True)


def test_summary() -> None:
    text = printed(report(finding("one-thing", 3, Severity.ERROR)))
    rows = {line.split("  ")[0].strip(): line for line in text.splitlines() if line.strip()}
    assert "2 seen, 1 to convert, 0 untouched, 1 unreadable" in rows["files"]
    assert "5: runtime 3, blas 2" in rows["edits"]
    assert "1 error, 0 warning, 0 info; 1 needs a person" in rows["findings"]
    assert "12 bytes in 1 file: a.cu" in rows["unparsed"]
    assert "ROCm 6.4" in rows["for"]
    assert one_line(report()) == (
        "2 files seen, 1 to convert, 0 findings, 0 for a person, 1 unread"
    )


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("color", [False, True])
def test_nothing_is_wider_than_the_terminal(width: int, color: bool) -> None:
    long = Snippet(7, b"x" * 300 + b"cudaX(" + b"y" * 300)
    made = report(replace(finding("one-thing", 7, Severity.ERROR), column=301))
    made = replace(made, files=(replace(made.files[0], snippets=(long,)),))
    text = printed(made, width=width, color=color)
    assert ("\x1b[" in text) is color
    plain = printed(made, width=width)
    assert all(len(line) <= width for line in plain.splitlines())
    rows = plain.splitlines()
    at = next(i for i, row in enumerate(rows) if row.rstrip().endswith("^"))
    assert rows[at - 1][rows[at].index("^") :].startswith("cudaX"[:3])


@pytest.mark.parametrize(
    ("line", "column", "under"),
    [
        (b"\t\tcudaFree(p);", 3, "cudaFree"),
        (b"int \xe5\xa4\xa7 = cudaX;", 11, "cudaX"),
        (b"int \xff = cudaX;", 9, "cudaX"),
        (b"\x1b[31mcudaX;", 6, "cudaX"),
        (b"cudaX", 1, "cudaX"),
        (b"short", 99, ""),
    ],
)
def test_the_caret_stands_under_the_place(line: bytes, column: int, under: str) -> None:
    from rich.cells import cell_len

    top, caret = frame(Snippet(12, line), column, 80).plain.split("\n")
    cells = cell_len(caret.rstrip("^"))
    text = ""
    for char in top:
        if cell_len(text) >= cells:
            break
        text += char
    assert top[len(text) :].startswith(under)
    assert "\x1b" not in top


def test_text_is_safe() -> None:
    assert safe("a\x1b[2Jb\u202ec\ud800\udce9") == "a\\x1b[2Jb\\u202ec\\ud800\\xe9"
    assert shown("a\nb\tc") == "a\\nb\\tc"
    assert code(b"\ta\xffb\x00") == "    a\\xffb\\x00"
