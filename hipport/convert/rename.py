"""`--rename`: ``a.cu`` becomes ``a.hip``, and what names the file follows.

Headers (``.cuh``) keep their names: neither clang nor CMake looks at a header's suffix, so a new
name would only touch more lines.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from hipport.findings import Finding
from hipport.project.discover import Discovery
from hipport.project.kinds import BUILD, kind_of
from hipport.report.model import FilePlan, FileStatus
from hipport.rules.hazards import Hazard
from hipport.source import Change, Edit, EditSet, SourceFile, Span

OLD, NEW = ".cu", ".hip"
LABEL = "renamed files"

_INCLUDE = re.compile(
    rb'^[ \t\f\v]*#[ \t]*(?:include|import|include_next)[ \t]*["<]([^">\r\n]+)\.cu[">]', re.M
)
_TOKEN = re.compile(rb"((?:[\w.+@-]+/)*[\w.+@-]+)\.cu(?![\w.])")
_PATTERN = re.compile(rb"""[\w./{}$*-]*\*\.cu(?![\w.])|["']\.cu["']""")


@dataclass
class Renames:
    """Which files get which new names, and what could not follow."""

    paths: Mapping[str, str]
    pattern_rule: Hazard | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._by_name: dict[str, list[str]] = {}
        for path in self.paths:
            self._by_name.setdefault(posixpath.basename(path), []).append(path)

    @classmethod
    def of(
        cls, discovery: Discovery, without: frozenset[str], rules: Mapping[str, Hazard]
    ) -> Renames:
        """Renames for every source that was read; a taken name keeps its file where it is."""
        pairs: dict[str, str] = {}
        notes = []
        for entry in discovery.files:
            if not entry.path.endswith(OLD) or entry.link or entry.path in without:
                continue
            new = entry.path[: -len(OLD)] + NEW
            if new in discovery.by_path or (discovery.root / new).exists():
                notes.append(f"{entry.path}: not renamed, {new} exists")
            else:
                pairs[entry.path] = new
        return cls(pairs, rules.get("renamed-source-pattern"), notes)

    def resolve(self, user: str, named: str) -> str | None:
        """The renamed file that a file means by a name, if it means one."""
        near = posixpath.normpath(posixpath.join(posixpath.dirname(user), named))
        if near in self.paths:
            return near
        tail = "/" + posixpath.normpath(named).lstrip("./")
        for path in self._by_name.get(posixpath.basename(tail), ()):
            if ("/" + path).endswith(tail):
                return path
        return None

    def patterns(self, source: SourceFile) -> Iterator[Finding]:
        rule = self.pattern_rule
        if rule is None:
            return
        for match in _PATTERN.finditer(source.data):
            line, column = source.line_col(match.start())
            yield Finding(
                code=rule.code,
                slug=rule.slug,
                path=source.path.as_posix(),
                line=line,
                column=column,
                severity=rule.severity,
                action=rule.action,
                message=rule.render(pattern=match.group().decode("utf-8", "replace")),
                span=Span(*match.span()),
            )


def follow(plan: FilePlan, source: SourceFile, renames: Renames) -> FilePlan:
    """Give a plan its new name, and let what it names follow renamed files."""
    plan = replace(plan, renamed=renames.paths.get(plan.path, ""))
    if not source.ascii_compatible or plan.status is FileStatus.UNREADABLE:
        return plan
    build = kind_of(plan.path) in BUILD
    if not renames.paths or (build and b".cu" not in source.data):
        return plan
    edits = EditSet(len(source.data))
    for edit in plan.edits:
        text = _followed(edit.text, plan.path, renames) if build else edit.text
        edits.add(Change((replace(edit, text=text),)))
    count = 0
    for match in (_TOKEN if build else _INCLUDE).finditer(source.data):
        if renames.resolve(plan.path, match.group(1).decode("utf-8", "replace") + OLD):
            at = match.end(1)
            count += edits.add(Change((Edit.replace(at, at + len(OLD), NEW.encode()),)))
    findings = (*plan.findings, *(renames.patterns(source) if build else ()))
    if not count:
        return replace(plan, findings=findings)
    return replace(
        plan,
        status=FileStatus.CONVERTED,
        edits=tuple(edits.ordered()),
        output=edits.apply(source.data),
        findings=findings,
        edits_by_label=(*plan.edits_by_label, (LABEL, count)),
    )


def _followed(text: bytes, path: str, renames: Renames) -> bytes:
    """Text that an edit puts in, with renamed sources by their new names."""

    def new_name(match: re.Match[bytes]) -> bytes:
        known = renames.resolve(path, match.group(1).decode("utf-8", "replace") + OLD)
        return match.group(1) + NEW.encode() if known else match.group()

    return _TOKEN.sub(new_name, text)
