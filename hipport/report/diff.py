"""Unified diffs in git's form, on bytes: they apply whatever the encoding and line ends."""

from __future__ import annotations

import difflib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from hipport.report.model import FilePlan, Report
from hipport.source import Change, Edit, EditSet

CONTEXT = 3
_NO_NEWLINE = b"\\ No newline at end of file\n"


def _lines(data: bytes) -> list[bytes]:
    """Lines by LF alone, as patch tools count them."""
    lines = data.split(b"\n")
    last = lines.pop()
    out = [line + b"\n" for line in lines]
    if last:
        out.append(last)
    return out


Block = tuple[int, int, int, int]
"""Lines ``old[a:b]`` become ``new[c:d]``."""


def _blocks_from_edits(old: bytes, edits: Sequence[Edit]) -> list[Block]:
    """Changed line ranges, straight from the edits; each edit is looked at once."""
    blocks: list[Block] = []
    line = at = shift = 0
    for edit in edits:
        start, end = edit.span.start, edit.span.end
        line += old.count(b"\n", at, start)
        first = line
        last = first + old.count(b"\n", start, end)
        grown = edit.text.count(b"\n") - (last - first)
        line, at = last, end
        if blocks and first < blocks[-1][1]:
            a, _, c, d = blocks[-1]
            blocks[-1] = (a, last + 1, c, d + (last + 1 - blocks[-1][1]) + grown)
        else:
            blocks.append((first, last + 1, first + shift, last + 1 + shift + grown))
        shift += grown
    return blocks


def _trimmed(block: Block, old: list[bytes], new: list[bytes]) -> Block:
    """Drop lines that are equal at both ends of a block."""
    a, b, c, d = block
    b, d = min(b, len(old)), min(d, len(new))
    while a < b and c < d and old[a] == new[c]:
        a, c = a + 1, c + 1
    while a < b and c < d and old[b - 1] == new[d - 1]:
        b, d = b - 1, d - 1
    return a, b, c, d


def _blocks(old: bytes, new: bytes, edits: Sequence[Edit]) -> list[Block]:
    old_lines, new_lines = _lines(old), _lines(new)
    if edits and _apply(old, edits) == new:
        raw = _blocks_from_edits(old, edits)
    else:
        # The plan was made from a recoded text (UTF-16), so its offsets mean other bytes.
        matcher = difflib.SequenceMatcher(None, old_lines, new_lines, autojunk=False)
        raw = [(a, b, c, d) for tag, a, b, c, d in matcher.get_opcodes() if tag != "equal"]
    trimmed = [_trimmed(block, old_lines, new_lines) for block in raw]
    return [block for block in trimmed if block[0] != block[1] or block[2] != block[3]]


def _apply(old: bytes, edits: Sequence[Edit]) -> bytes | None:
    chosen = EditSet(len(old))
    if not all(chosen.add(Change((edit,))) for edit in edits):
        return None
    return chosen.apply(old)


def _range(start: int, stop: int) -> bytes:
    length = stop - start
    first = start + 1 if length else start
    return b"%d" % first if length == 1 else b"%d,%d" % (first, length)


def _mark(sign: bytes, lines: Sequence[bytes]) -> Iterator[bytes]:
    for line in lines:
        yield sign + line
        if not line.endswith(b"\n"):
            yield b"\n" + _NO_NEWLINE


def hunks(old: bytes, new: bytes, edits: Sequence[Edit] = ()) -> Iterator[bytes]:
    """The hunks that turn `old` into `new`; `edits`, if they do that, save the search."""
    old_lines, new_lines = _lines(old), _lines(new)
    groups: list[list[Block]] = []
    for block in _blocks(old, new, edits):
        if groups and block[0] - groups[-1][-1][1] <= 2 * CONTEXT:
            groups[-1].append(block)
        else:
            groups.append([block])
    for group in groups:
        lead = min(CONTEXT, group[0][0], group[0][2])
        start, new_start = group[0][0] - lead, group[0][2] - lead
        tail = min(CONTEXT, len(old_lines) - group[-1][1])
        stop, new_stop = group[-1][1] + tail, group[-1][3] + tail
        yield b"@@ -%b +%b @@\n" % (_range(start, stop), _range(new_start, new_stop))
        at = start
        for a, b, c, d in group:
            yield from _mark(b" ", old_lines[at:a])
            yield from _mark(b"-", old_lines[a:b])
            yield from _mark(b"+", new_lines[c:d])
            at = b
        yield from _mark(b" ", old_lines[at:stop])


def _quoted(prefix: str, path: str) -> bytes:
    """A path as git writes it: in quotes where it holds bytes out of the ordinary."""
    raw = os.fsencode(prefix + path)
    if all(0x20 <= byte < 0x7F and byte not in b'"\\' for byte in raw):
        return raw
    out = bytearray(b'"')
    for byte in raw:
        if byte in b'"\\':
            out += b"\\" + bytes([byte])
        elif 0x20 <= byte < 0x7F:
            out.append(byte)
        else:
            out += b"\\%03o" % byte
    return bytes(out + b'"')


def _name_line(sign: bytes, name: bytes) -> bytes:
    # git ends a name with blanks in it by a tab, so that patch tools see where it ends.
    return sign + b" " + name + (b"\t" if b" " in name else b"") + b"\n"


def file_diff(plan: FilePlan, old: bytes) -> Iterator[bytes]:
    """The diff of one file's plan, in pieces; nothing where nothing changes."""
    new = old if plan.output is None else plan.output
    target = plan.renamed or plan.path
    if new == old and not plan.renamed:
        return
    before, after = _quoted("a/", plan.path), _quoted("b/", target)
    yield b"diff --git " + before + b" " + after + b"\n"
    if plan.renamed:
        yield b"rename from " + _quoted("", plan.path) + b"\n"
        yield b"rename to " + _quoted("", target) + b"\n"
    if new != old:
        yield _name_line(b"---", before)
        yield _name_line(b"+++", after)
        yield from hunks(old, new, plan.edits)


def new_file_diff(path: str, content: bytes) -> Iterator[bytes]:
    """The diff that adds a file."""
    name = _quoted("b/", path)
    yield b"diff --git " + _quoted("a/", path) + b" " + name + b"\n"
    yield b"new file mode 100644\n"
    yield b"--- /dev/null\n"
    yield _name_line(b"+++", name)
    lines = _lines(content)
    yield b"@@ -0,0 +%b @@\n" % _range(0, len(lines))
    yield from _mark(b"+", lines)


def report_diff(report: Report) -> Iterator[bytes]:
    """The diff of a whole run, before anything is written. Reads the originals again.

    A file that changed since it was planned is left out; `stale` tells which.
    """
    for plan in report.files:
        if plan.output is None and not plan.renamed:
            continue
        old = _original(report.root, plan)
        if old is not None:
            yield from file_diff(plan, old)
    for path, content in report.extra_files:
        yield from new_file_diff(path, content)


def _original(root: Path, plan: FilePlan) -> bytes | None:
    from hipport.project.write import digest_of

    try:
        data = (root / plan.path).read_bytes()
    except OSError:
        return None
    return data if digest_of(data) == plan.digest else None


def stale(report: Report) -> list[str]:
    """Planned changes whose files have changed or gone meanwhile."""
    return [
        plan.path
        for plan in report.files
        if plan.output is not None and _original(report.root, plan) is None
    ]
