"""Convert the pinned corpora, check the outcome, and print a table.

    python benchmarks/corpus.py fetch
    python benchmarks/convert.py                       # every corpus
    python benchmarks/convert.py gsplat exllamav2      # some
    python benchmarks/convert.py --markdown docs/corpus.md

In the same run the same files go through `torch.utils.hipify` (see `corpus_hipify.py` for the
environment that it needs; `--no-hipify` leaves it out) and through a bare tree-sitter parse.

The exit status is 1 if a conversion crashed, a file was lost, a name was left that has a HIP
counterpart, a second conversion changed or found something new, or a file without CUDA did not
come out byte for byte.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tree_sitter_cuda
from corpus import CorpusError, Pin, corpus_dir, ensure, pins, source_files
from corpus_names import Left, declared, facts_map, left, mentions_cuda, prose
from tree_sitter import Language, Node, Parser

from hipport.rules import api

HERE = Path(__file__).resolve().parent
FACTS = HERE.parent.parent / "shared" / "facts"
TIMEOUT = 1800


@dataclass
class Outcome:
    """What one corpus came to.

    `seconds` are wall-clock, the other times are processor seconds of all processes together, which
    a busy machine does not change; sizes are bytes.
    """

    name: str
    version: str
    files: int = 0
    lines: int = 0
    size: int = 0
    converted: int = 0
    edits: int = 0
    severities: Counter[str] = field(default_factory=Counter)
    slugs: Counter[str] = field(default_factory=Counter)
    left: list[Left] = field(default_factory=list)
    own: dict[str, str] = field(default_factory=dict)
    error_bytes: int = 0
    own_error_bytes: int = 0
    seconds: float = 0.0
    processor: float = 0.0
    parse_seconds: float = 0.0
    without_cuda: int = 0
    prose_changed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    hipify: Hipify | None = None


@dataclass
class Hipify:
    """What `torch.utils.hipify` made of the same files."""

    seconds: float = 0.0
    converted: int = 0
    crashed: int = 0
    left: int = 0
    prose_changed: int = 0
    touched_without_cuda: int = 0


def stage(pin: Pin, source: Path, target: Path) -> list[str]:
    """Copy a corpus's C, C++ and CUDA files and return their paths relative to `target`."""
    listed = []
    for path in source_files(source, pin.roots):
        relative = path.relative_to(source)
        place = target / relative
        place.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, place)
        listed.append(relative.as_posix())
    return listed


def bare_parse(root: Path, files: Iterable[str]) -> tuple[float, int]:
    """Processor seconds and bytes in error regions of a tree-sitter parse and nothing else."""
    parser = Parser(Language(tree_sitter_cuda.language()))
    seconds, errors = 0.0, 0
    for name in files:
        data = (root / name).read_bytes()
        begun = time.process_time()
        tree = parser.parse(data)
        seconds += time.process_time() - begun
        errors += _error_bytes(tree.root_node)
    return seconds, errors


def _error_bytes(root: Node) -> int:
    total, todo = 0, [root]
    while todo:
        node = todo.pop()
        if node.is_error:
            total += node.end_byte - node.start_byte
        elif node.has_error:
            todo.extend(node.children)
    return total


def run_hipport(
    source: Path, target: Path, report: Path, jobs: int | None, rocm: str | None
) -> tuple[float, dict[str, Any], str]:
    """Run `hipport convert`: seconds, its JSON report, and what went wrong (or nothing)."""
    command = [sys.executable, "-m", "hipport", "convert", str(source)]
    command += ["--out", str(target), "--json", str(report)]
    command += ["--jobs", str(jobs)] if jobs else []
    command += ["--rocm", rocm] if rocm else []
    begun = time.perf_counter()
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=TIMEOUT, cwd=source
        )
    except subprocess.TimeoutExpired:
        return float(TIMEOUT), {}, f"ran longer than {TIMEOUT} s"
    seconds = time.perf_counter() - begun
    if "Traceback" in done.stderr or done.returncode not in (0, 1, 3):
        return seconds, {}, f"exit status {done.returncode}: {done.stderr.strip()[-400:]}"
    try:
        return seconds, json.loads(report.read_text("utf-8")), ""
    except (OSError, ValueError) as error:
        return seconds, {}, f"no usable JSON report: {error}"


def compare_trees(before: Path, after: Path, files: Iterable[str]) -> list[str]:
    """Names of files that differ between two trees, or that the second lacks."""
    return [
        name
        for name in files
        if not (after / name).is_file()
        or (before / name).read_bytes() != (after / name).read_bytes()
    ]


def names_left(
    root: Path, files: Sequence[str], originals: Path, counterparts: Mapping[str, str]
) -> tuple[list[Left], dict[str, str]]:
    """Convertible names still there, and those left out because the corpus declares them itself."""
    found = [hit for name in files for hit in left(_read(root / name), name, counterparts)]
    own = declared({hit.name for hit in found}, (_read(originals / name) for name in files))
    return [hit for hit in found if hit.name not in own], own


def prose_changes(before: Path, after: Path, pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Files in which a comment or literal of the original is no longer there as it was.

    Added comments and literals are no loss; texts are compared as multisets.
    """
    changed = []
    for old, new in pairs:
        missing = Counter(prose(_read(before / old))) - Counter(prose(_read(after / new)))
        if missing:
            changed.append(f"{old}: {next(iter(missing)).decode('latin-1')[:80]!r}")
    return changed


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def run_hipify(
    python: Path, root: Path, files: list[str], counterparts: Mapping[str, str], scratch: Path
) -> Hipify:
    """Run torch.utils.hipify over a copy and count the same things.

    Raises:
        CorpusError: it did not run at all.
    """
    tree, listing, result = scratch / "hipify", scratch / "files", scratch / "hipify.json"
    shutil.copytree(root, tree)
    listing.write_text("\n".join(files), "utf-8")
    done = subprocess.run(
        [
            *(str(python), "-W", "ignore", str(HERE / "corpus_hipify.py")),
            *(str(tree), str(listing), str(result)),
        ],
        capture_output=True,
        text=True,
        check=False,
        timeout=TIMEOUT,
    )
    if done.returncode:
        raise CorpusError(f"torch.utils.hipify did not run: {done.stderr.strip()[-400:]}")
    report = json.loads(result.read_text("utf-8"))
    outputs = {old: new for old, new in report["outputs"].items() if (root / old).is_file()}
    final = [(name, outputs.get(name, name)) for name in files]
    changed = [(old, new) for old, new in final if _read(root / old) != _read(tree / new)]
    sources = [_read(root / name) for name in files]
    hits = [hit for _, new in final for hit in left(_read(tree / new), new, counterparts)]
    own = declared({hit.name for hit in hits}, sources)
    return Hipify(
        seconds=report["seconds"],
        converted=len(changed),
        crashed=len(report["failures"]),
        left=sum(hit.name not in own for hit in hits),
        prose_changed=len(prose_changes(root, tree, changed)),
        touched_without_cuda=sum(not mentions_cuda(_read(root / old)) for old, _ in changed),
    )


def convert(
    pin: Pin, scratch: Path, hipify: Path | None, jobs: int | None, rocm: str | None
) -> Outcome:
    """Convert one corpus twice and check it.

    Raises:
        CorpusError: the corpus cannot be had, or hipify does not run.
    """
    outcome = Outcome(pin.name, pin.version)
    source = scratch / "source"
    files = stage(pin, ensure(pin), source)
    originals = {name: _read(source / name) for name in files}
    outcome.files = len(files)
    outcome.lines = sum(data.count(b"\n") for data in originals.values())
    outcome.size = sum(len(data) for data in originals.values())
    outcome.parse_seconds, outcome.error_bytes = bare_parse(source, files)
    counterparts = _counterparts(rocm)
    if hipify is not None:
        outcome.hipify = run_hipify(hipify, source, files, counterparts, scratch)

    once, twice = scratch / "once", scratch / "twice"
    before = _spent()
    outcome.seconds, first, wrong = run_hipport(source, once, scratch / "1.json", jobs, rocm)
    outcome.processor = _spent() - before
    if wrong:
        outcome.failures.append(f"crash: {wrong}")
        return outcome
    changed_input = [name for name in files if _read(source / name) != originals[name]]
    outcome.failures += [f"--out wrote into its input: {name}" for name in changed_input]
    outcome.failures += [f"lost: {name}" for name in files if not (once / name).is_file()]
    differing = compare_trees(source, once, files)
    outcome.converted = len(differing)
    outcome.without_cuda = sum(not mentions_cuda(data) for data in originals.values())
    outcome.failures += [
        f"changed without CUDA: {name}" for name in differing if not mentions_cuda(originals[name])
    ]
    outcome.left, outcome.own = names_left(once, files, source, counterparts)
    outcome.failures += [
        f"left: {hit.path}:{hit.line}: {hit.name} ({hit.counterpart})" for hit in outcome.left
    ]
    outcome.prose_changed = prose_changes(source, once, ((name, name) for name in differing))
    findings = first["findings"]
    outcome.severities = Counter(finding["severity"] for finding in findings)
    outcome.slugs = Counter(finding["slug"] for finding in findings)
    summary = first["summary"]
    outcome.edits = _total(summary["edits"])
    outcome.own_error_bytes = int(summary["unparsed"]["bytes"])

    _, second, wrong = run_hipport(once, twice, scratch / "2.json", jobs, rocm)
    if wrong:
        outcome.failures.append(f"crash on the converted tree: {wrong}")
        return outcome
    outcome.failures += [
        f"changed again: {name}" for name in compare_trees(once, twice, files) if name in originals
    ]
    fresh = _kinds(second["findings"]) - _kinds(findings)
    outcome.failures += [f"found anew: {path}: {slug} ({n})" for (path, slug), n in fresh.items()]
    return outcome


def _spent() -> float:
    """Processor seconds of all child processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _kinds(findings: Iterable[Mapping[str, Any]]) -> Counter[tuple[str, str]]:
    return Counter((str(f["path"]), str(f["slug"])) for f in findings)


def _total(value: Any) -> int:
    return sum(value.values()) if isinstance(value, dict) else int(value)


def _counterparts(rocm: str | None) -> dict[str, str]:
    """CUDA name to HIP name for the ROCm version asked for, by hipport's tables and the public.

    Names that the public table maps and hipport's does not are looked for too: a hole in the
    tables of the converter must not hide itself.
    """
    table = api.load(rocm)
    known = {**table.renames, **table.headers}
    return {
        **facts_map(FACTS),
        **{old.decode(): new.decode() for old, new in known.items() if new},
    }


def markdown(outcomes: Sequence[Outcome], command: str) -> str:
    """The table, as it stands in the documentation."""
    with_hipify = any(outcome.hipify for outcome in outcomes)
    head = ["corpus", "files", "lines", "converted", "edits", "left", "error", "warning", "info"]
    head += ["prose changed", "seconds", "CPU s", "parse CPU s", "unparsed bytes"]
    head += (
        ["hipify CPU s", "left", "failed", "prose changed", "no CUDA, changed"]
        if with_hipify
        else []
    )
    rows = [_cells(outcome, with_hipify) for outcome in outcomes]
    rows.append(_cells(_sum(outcomes), with_hipify))
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" + "---:|" * (len(head) - 1)]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return f"`{command}`\n\n" + "\n".join(lines) + "\n"


def _cells(outcome: Outcome, with_hipify: bool) -> list[str]:
    levels = outcome.severities
    cells = [
        f"{outcome.name} {outcome.version}".strip(),
        f"{outcome.files:,}",
        f"{outcome.lines:,}",
        f"{outcome.converted:,}",
        f"{outcome.edits:,}",
        f"{len(outcome.left):,}",
        *(f"{levels[level]:,}" for level in ("error", "warning", "info")),
        f"{len(outcome.prose_changed)}",
        f"{outcome.seconds:.1f}",
        f"{outcome.processor:.1f}",
        f"{outcome.parse_seconds:.1f}",
        f"{outcome.error_bytes:,} ({100 * outcome.error_bytes / max(outcome.size, 1):.2f} %)",
    ]
    if with_hipify:
        other = outcome.hipify or Hipify()
        cells += [
            f"{other.seconds:.1f}",
            f"{other.left:,}",
            f"{other.crashed}",
            f"{other.prose_changed}",
            f"{other.touched_without_cuda}",
        ]
    return cells


def _sum(outcomes: Sequence[Outcome]) -> Outcome:
    total = Outcome("**total**", "", hipify=Hipify())
    for one in outcomes:
        total.files += one.files
        total.lines += one.lines
        total.size += one.size
        total.converted += one.converted
        total.edits += one.edits
        total.left += one.left
        total.severities += one.severities
        total.slugs += one.slugs
        total.prose_changed += one.prose_changed
        total.seconds += one.seconds
        total.processor += one.processor
        total.parse_seconds += one.parse_seconds
        total.error_bytes += one.error_bytes
        total.without_cuda += one.without_cuda
        if one.hipify and total.hipify:
            for name in ("seconds", "left", "crashed", "prose_changed", "touched_without_cuda"):
                value = getattr(total.hipify, name) + getattr(one.hipify, name)
                setattr(total.hipify, name, value)
    return total


def _hipify_python(given: Path | None) -> Path:
    python = given or corpus_dir().parent / "hipify-venv" / "bin" / "python"
    if not python.is_file():
        raise CorpusError(
            f"no Python with PyTorch at {python}; make one as corpus_hipify.py says, "
            "name another with --hipify-python, or leave it out with --no-hipify"
        )
    return python


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Convert the pinned corpora and check it.")
    parser.add_argument("names", nargs="*", help="only these corpora")
    parser.add_argument("--no-hipify", action="store_true")
    parser.add_argument("--hipify-python", type=Path, help="a Python that has PyTorch")
    parser.add_argument("--jobs", type=int, help="worker processes of hipport")
    parser.add_argument("--rocm", help="ROCm version to convert for")
    parser.add_argument("--markdown", type=Path, help="write the documentation page here")
    parser.add_argument("--keep", type=Path, help="keep trees and reports below this folder")
    arguments = parser.parse_args(argv)
    outcomes: list[Outcome] = []
    try:
        chosen = [p for p in pins() if not arguments.names or p.name in arguments.names]
        if len(chosen) < len(set(arguments.names)) or not chosen:
            raise CorpusError("some of the names given are not in corpus.toml")
        hipify = None if arguments.no_hipify else _hipify_python(arguments.hipify_python)
        for pin in chosen:
            with tempfile.TemporaryDirectory(prefix="hipport-corpus-") as folder:
                scratch = Path(folder)
                if arguments.keep:
                    scratch = arguments.keep / pin.name
                    shutil.rmtree(scratch, ignore_errors=True)
                    scratch.mkdir(parents=True)
                outcome = convert(pin, scratch, hipify, arguments.jobs, arguments.rocm)
            outcomes.append(outcome)
            print(f"{pin.name}: {outcome.seconds:.1f} s, {len(outcome.failures)} failures")
            for failure in outcome.failures[:20]:
                print(f"  {failure}")
            if len(outcome.failures) > 20:
                print(f"  and {len(outcome.failures) - 20} more")
    except CorpusError as error:
        print(f"convert: {error}", file=sys.stderr)
        return 2
    command = "python benchmarks/convert.py " + " ".join(_shown(argv or sys.argv[1:]))
    print("\n" + markdown(outcomes, command.strip()))
    if arguments.markdown:
        arguments.markdown.write_text(page(outcomes, command.strip()), "utf-8")
    return 1 if any(outcome.failures for outcome in outcomes) else 0


def _shown(arguments: Sequence[str]) -> list[str]:
    """The arguments that decide about the figures, without local folders."""
    shown = list(arguments)
    for option in ("--keep", "--hipify-python"):
        if option in shown:
            at = shown.index(option)
            del shown[at : at + 2]
    return shown


def page(outcomes: Sequence[Outcome], command: str) -> str:
    """The page of the documentation, whole."""
    total = _sum(outcomes)
    kinds = "\n".join(f"| `{slug}` | {count:,} |" for slug, count in total.slugs.most_common())
    own = sorted({f"`{n}` in {o.name}: `{how}`" for o in outcomes for n, how in o.own.items()})
    failures = [f"- {o.name}: {text}" for o in outcomes for text in o.failures]
    prose_lines = [f"- {o.name}: `{text}`" for o in outcomes for text in o.prose_changed[:10]]
    return _PAGE.format(
        table=markdown(outcomes, command),
        corpora=len(outcomes),
        cores=os.cpu_count(),
        without=f"{total.without_cuda:,}",
        kinds=kinds,
        own="\n".join(f"- {line}" for line in own) or "None.",
        failures="\n".join(failures[:60]) or "None.",
        prose="\n".join(prose_lines) or "None.",
    )


_PAGE = """# Real code

Every figure on this page is written by the command above the table; `benchmarks/corpus.toml` pins
the {corpora} source distributions, `python benchmarks/corpus.py fetch` gets them. *seconds* are
wall-clock with start-up and writing, on a machine with {cores} cores that may have had other work;
*CPU s* are what all processes together used.

{table}
- **left**: identifiers that have a HIP counterpart and are still there after the conversion,
  counted by a scanner that shares no code with the converter, against hipport's tables and the
  public HIPIFY tables together.
- **prose changed**: files in which a comment or literal of the original is not there any more as
  it was; those inside `asm` are code and do not count.
- **parse CPU s**, **unparsed bytes**: a bare tree-sitter parse of the same files, and the bytes in
  its error regions.
- **hipify**: `torch.utils.hipify` as an extension build calls it, over the same files
  (`benchmarks/corpus_hipify.py` says how to install it). *failed* counts files that it raised an
  exception on. It converts names and launches only and looks for no hazards, so its seconds buy
  less. *no CUDA, changed* counts files without CUDA that it rewrote all the same.

Each corpus is converted, then the result is converted again. {without} files name no CUDA at all;
they have to come out byte for byte.

## Failed checks

{failures}

## Names that a corpus declares itself

These look like CUDA names with a counterpart but are the corpus's own, by the declaration shown.

{own}

## Comments and literals that changed

{prose}

## Findings by class

| class | findings |
|---|---:|
{kinds}
"""


if __name__ == "__main__":
    sys.exit(main())
