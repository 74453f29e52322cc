"""Drawing findings: the same seed draws the same ones, and classes can take turns."""

from sample_findings import Drawn, draw, row


def _finding(slug: str, line: int) -> Drawn:
    return Drawn("c", "f.cu", line, 1, "HP3000", slug, "error", "auto", "m", "a | b")


MANY = [_finding("common", line) for line in range(100)] + [_finding("rare", 500)]


def test_the_seed_decides() -> None:
    assert draw(MANY, 10, 1, by_class=False) == draw(MANY, 10, 1, by_class=False)
    assert draw(MANY, 10, 1, by_class=False) != draw(MANY, 10, 2, by_class=False)


def test_classes_take_turns() -> None:
    assert {f.slug for f in draw(MANY, 2, 1, by_class=True)} == {"common", "rare"}


def test_a_row_keeps_its_cells() -> None:
    assert row(1, MANY[0]).count(" | ") == 6
    assert "a \\| b" in row(1, MANY[0])
