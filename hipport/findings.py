"""What hipport says about a place in a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from hipport.source import Change, Span


class Severity(str, Enum):
    """How bad it is when nothing is done."""

    ERROR = "error"
    """Silent wrong results, hangs, or code that does not build."""
    WARNING = "warning"
    """May be wrong or slow, depending on what hipport cannot see."""
    INFO = "info"
    """Worth knowing; nothing has to be done."""

    @property
    def rank(self) -> int:
        """0 is worst."""
        return ("error", "warning", "info").index(self.value)


class Action(str, Enum):
    """What hipport does about it."""

    AUTO = "auto"
    ASSIST = "assist"
    FLAG = "flag"


class Confidence(str, Enum):
    """How sure the analysis is that the place is of the named class."""

    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


@dataclass(frozen=True, slots=True)
class Related:
    """Another place that belongs to a finding."""

    path: str
    line: int
    message: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding.

    `line` and `column` are 1-based and refer to the original file. `change` is the rewrite that
    cures it, if there is one. `needs_person` says whether something is left to do after the
    default conversion: such findings decide about the exit code.
    """

    code: str
    slug: str
    path: str
    line: int
    column: int
    severity: Severity
    action: Action
    message: str
    span: Span = field(default_factory=lambda: Span(0, 0))
    hint: str = ""
    change: Change | None = None
    confidence: Confidence = Confidence.HIGH
    related: tuple[Related, ...] = ()

    @property
    def needs_person(self) -> bool:
        """Whether something is left for a person after the default conversion."""
        return self.severity is not Severity.INFO and self.action is not Action.AUTO

    def as_json(self) -> dict[str, Any]:
        """The public JSON form."""
        out: dict[str, Any] = {
            "code": self.code,
            "slug": self.slug,
            "path": self.path,
            "line": self.line,
            "column": self.column,
            "severity": self.severity.value,
            "action": self.action.value,
            "message": self.message,
            "confidence": self.confidence.value,
        }
        if self.hint:
            out["hint"] = self.hint
        if self.related:
            out["related"] = [
                {"path": r.path, "line": r.line, "message": r.message} for r in self.related
            ]
        return out
