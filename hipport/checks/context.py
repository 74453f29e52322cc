"""What a check may ask for besides the unit it looks at."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from hipport.api import Options
from hipport.findings import Action, Confidence, Finding, Related, Severity
from hipport.parse.facts import ProjectFacts
from hipport.parse.unit import Unit
from hipport.rules.api import ApiTable
from hipport.rules.hazards import Hazard
from hipport.source import Change, Safety, Span


@dataclass(frozen=True)
class Context:
    """Rules, options and the facts of the whole project, all read-only."""

    api: ApiTable
    hazards: Mapping[str, Hazard]
    project: ProjectFacts
    options: Options = field(default_factory=Options)

    @property
    def rocm(self) -> tuple[int, int]:
        """The ROCm version converted for, as (major, minor)."""
        major, _, rest = self.api.rocm.partition(".")
        return int(major), int(rest.partition(".")[0] or 0)

    def finding(
        self,
        slug: str,
        unit: Unit,
        span: Span,
        *,
        change: Change | None = None,
        action: Action | None = None,
        severity: Severity | None = None,
        confidence: Confidence = Confidence.HIGH,
        hint: str = "",
        related: tuple[Related, ...] = (),
        **fields: object,
    ) -> Finding:
        """A finding of a class, placed at `span`, its message filled from `fields`.

        The action is the entry's unless given; a change that is only offered makes it ``assist``,
        and no change where the entry says ``auto`` makes it ``flag``.
        """
        hazard = self.hazards[slug]
        if action is None:
            action = hazard.action
            if change is not None:
                action = Action.AUTO if change.safety is Safety.AUTO else Action.ASSIST
            elif action is Action.AUTO:
                action = Action.FLAG
        line, column = unit.source.line_col(span.start)
        return Finding(
            code=hazard.code,
            slug=slug,
            path=unit.path,
            line=line,
            column=column,
            severity=severity or hazard.severity,
            action=action,
            message=hazard.render(**fields),
            span=span,
            hint=hint,
            change=change,
            confidence=confidence,
            related=related,
        )
