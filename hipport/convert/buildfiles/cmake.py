"""CMake files from CUDA to HIP: token-wise edits, formatting and comments kept."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from hipport.checks.context import Context
from hipport.convert.buildfiles.nvcc_flags import translate
from hipport.findings import Finding
from hipport.parse.cmake import Argument, Command, commands
from hipport.parse.unit import Unit
from hipport.rules.build import cmake as names
from hipport.source import Change, Edit, Span

DEFAULT_TARGETS = ("gfx90a", "gfx942", "gfx1100")
_LANGUAGE_COMMANDS = frozenset({"project", "enable_language", "check_language"})
_REFERENCE = re.compile(r"\$\{(\w+)\}")
_WORD = re.compile(r"[A-Za-z_]\w*")
_CU = re.compile(r"\.cu$")
_GENEX = re.compile(r"\$<(COMPILE_LANGUAGE|COMPILE_LANG_AND_ID|LINK_LANGUAGE|CUDA_COMPILER_ID):"
                    r"([^>]*)>")  # fmt: skip
_FLAG_COMMANDS = frozenset({"target_compile_options", "add_compile_options"})
_SOURCE_COMMANDS = frozenset({"add_executable", "add_library", "target_sources", "set", "list",
                              "cuda_add_executable", "cuda_add_library"})  # fmt: skip
_ARCHITECTURES = frozenset({"CMAKE_CUDA_ARCHITECTURES", "CUDA_ARCHITECTURES",
                            "CMAKE_HIP_ARCHITECTURES"})  # fmt: skip


@dataclass
class _Converter:
    unit: Unit
    context: Context
    commands: list[Command]
    findings: list[Finding] = field(default_factory=list)
    changes: list[Change] = field(default_factory=list)
    packages: dict[str, None] = field(default_factory=dict)
    find_at: Command | None = None
    found_packages: set[str] = field(default_factory=set)

    def change(self, slug: str, *edits: Edit) -> Change:
        change = Change(edits, priority=10, label=slug)
        self.changes.append(change)
        return change

    def report(self, slug: str, span: Span, change: Change | None = None, **fields: Any) -> None:
        self.findings.append(self.context.finding(slug, self.unit, span, change=change, **fields))

    # -- one command ------------------------------------------------------------------

    def convert(self, command: Command) -> None:
        handled = False
        if command.name in _LANGUAGE_COMMANDS:
            self._languages(command)
        elif command.name == "find_package":
            handled = self._find_package(command)
        elif command.name == "cmake_minimum_required":
            self._minimum(command)
        elif command.name in (
            "set_target_properties",
            "set_property",
            "set_source_files_properties",
            "set_directory_properties",
        ):
            handled = self._properties(command)
        elif command.name in ("cuda_add_executable", "cuda_add_library"):
            new = command.name.removeprefix("cuda_")
            self.report(
                "cmake-old-module",
                command.name_span,
                self.change(
                    "build-language",
                    Edit.replace(command.name_span.start, command.name_span.end, new.encode()),
                ),
                what=f"{command.name} becomes {new}",
            )
        elif command.name in names().no_counterpart:
            self.report(
                "cmake-old-module", command.name_span, what=f"{command.name} has no counterpart"
            )
        if handled:
            return
        if (
            command.name == "set"
            and command.arguments
            and (command.arguments[0].text in _ARCHITECTURES)
        ):
            self._architectures(command)
            return
        self._flags(command)
        for argument in command.arguments:
            self._argument(command, argument)
        if command.name in _SOURCE_COMMANDS:
            self._sources(command)
        elif (
            command.name == "file"
            and command.arguments
            and command.arguments[0].text in ("GLOB", "GLOB_RECURSE")
        ):
            self._glob(command)

    def _languages(self, command: Command) -> None:
        for argument in command.arguments[0 if command.name != "project" else 1 :]:
            if argument.text == "CUDA":
                change = self.change(
                    "build-language", Edit.replace(argument.span.start, argument.span.end, b"HIP")
                )
                self.report(
                    "build-language", argument.span, change, what="the language CUDA becomes HIP"
                )

    def _find_package(self, command: Command) -> bool:
        if not command.arguments:
            return False
        first = command.arguments[0]
        self.found_packages.add(first.text)
        if first.text not in ("CUDAToolkit", "CUDA"):
            return False
        edits = [Edit.replace(first.span.start, first.span.end, b"hip")]
        previous = first.whole.end
        components = False
        for argument in command.arguments[1:]:
            if argument.text in ("COMPONENTS", "OPTIONAL_COMPONENTS"):
                components = True
            keep = argument.text in ("REQUIRED", "QUIET") and not components
            if argument.text in ("REQUIRED", "QUIET"):
                components = False
                keep = True
            if not keep:
                edits.append(Edit.replace(previous, argument.whole.end, b""))
            previous = argument.whole.end
        change = self.change("build-language", *edits)
        self.report("cmake-find-cuda", command.span, change, name=first.text)
        if self.find_at is None:
            self.find_at = command
        return True

    def _minimum(self, command: Command) -> None:
        listed = command.after("VERSION")
        if not listed or not self._uses_cuda():
            return
        match = re.match(r"(\d+)\.(\d+)", listed[0].text)
        if match is None or (int(match[1]), int(match[2])) >= (3, 21):
            return
        span = listed[0].span
        end = span.start + len(match[0])
        patch = re.match(r"\d+\.\d+(\.\d+)*", listed[0].text)
        if patch is not None:
            end = span.start + len(patch[0])
        change = self.change("build-language", Edit.replace(span.start, end, b"3.21"))
        self.report(
            "build-language", span, change, what="the language HIP needs CMake 3.21 or newer"
        )

    def _uses_cuda(self) -> bool:
        return b"CUDA" in self.unit.data

    def _architecture_names(self) -> bytes:
        return " ".join(self.context.options.targets or DEFAULT_TARGETS).encode()

    def _architectures(self, command: Command) -> None:
        first = command.arguments[0]
        if first.text == "CMAKE_HIP_ARCHITECTURES":
            return
        edits = [
            Edit.replace(
                first.span.start,
                first.span.end,
                names().variables.get(first.text, first.text).encode(),
            )
        ]
        values = []
        for argument in command.arguments[1:]:
            if argument.text in ("CACHE", "PARENT_SCOPE"):
                break
            values.append(argument)
        if values:
            text = self._architecture_names()
            if values[0].quoted:
                text = text.replace(b" ", b";")
                edits.append(Edit.replace(values[0].span.start, values[-1].span.end, text))
            else:
                edits.append(Edit.replace(values[0].whole.start, values[-1].whole.end, text))
        change = self.change("build-arch", *edits)
        self.report(
            "build-arch",
            first.span,
            change,
            what="NVIDIA's architectures",
            chosen=self._architecture_names().decode(),
        )

    def _properties(self, command: Command) -> bool:
        arguments = command.after("PROPERTIES") or command.after("PROPERTY")
        if not arguments:
            return False
        table = names()
        single = bool(command.after("PROPERTY"))
        pairs: list[tuple[Argument, tuple[Argument, ...]]] = (
            [(arguments[0], arguments[1:])]
            if single
            else [(arguments[i], arguments[i + 1 : i + 2]) for i in range(0, len(arguments), 2)]
        )
        dropped = [p for p in pairs if p[0].text in table.dropped_properties]
        if dropped and len(dropped) == len(pairs):
            line = self._whole_lines(command.span)
            slug = table.dropped_properties[dropped[0][0].text]
            rdc = self._rdc_lines(command, dropped)
            change = self.change(slug, Edit.replace(line.start, line.end, rdc))
            for name, _ in dropped:
                self.report(
                    table.dropped_properties[name.text], name.span, change, **self._rdc(name.text)
                )
            return True
        for name, values in pairs:
            gone = table.dropped_properties.get(name.text)
            if gone is not None and values:
                slug = gone
                start = self._gap_before(name.whole.start)
                change = self.change(slug, Edit.replace(start, values[-1].whole.end, b""))
                self.report(slug, name.span, change, **self._rdc(name.text))
                added = self._rdc_lines(command, [(name, values)]).decode().split("\n")
                lines = [text.strip() for text in added if text.strip()]
                if lines:
                    self.changes.append(
                        Change((self._insert_after(command, lines),), priority=10, label=slug)
                    )
            elif name.text in table.properties:
                edits = [
                    Edit.replace(
                        name.span.start, name.span.end, table.properties[name.text].encode()
                    )
                ]
                slug = "build-language"
                if name.text == "CUDA_ARCHITECTURES" and values:
                    slug = "build-arch"
                    text = self._architecture_names().replace(b" ", b";")
                    start, end = values[0].whole.start, values[-1].whole.end
                    edits.append(Edit.replace(start, end, b'"' + text + b'"'))
                change = self.change(slug, *edits)
                fields = (
                    {
                        "what": "NVIDIA's architectures",
                        "chosen": self._architecture_names().decode(),
                    }
                    if slug == "build-arch"
                    else {"what": f"the property {name.text}"}
                )
                self.report(slug, name.span, change, **fields)
            else:
                for value in values:
                    self._argument(command, value)
        return True

    def _rdc_lines(
        self, command: Command, dropped: Sequence[tuple[Argument, Sequence[Argument]]]
    ) -> bytes:
        """Lines that compile and link a target's device code across files."""
        wanted = any(
            name.text == "CUDA_SEPARABLE_COMPILATION"
            and values
            and values[0].text.upper() in ("ON", "TRUE", "1", "YES")
            for name, values in dropped
        )
        if not wanted or command.name not in ("set_target_properties", "set_property"):
            return b""
        targets = []
        for argument in command.arguments:
            if argument.text in ("PROPERTIES", "PROPERTY"):
                break
            if argument.text not in ("TARGET", "APPEND", "APPEND_STRING"):
                targets.append(argument.text)
        first = self.unit.source.line_span(self.unit.line(command.span.start))
        head = self.unit.data[first.start : command.span.start]
        indent = head if not head.strip() else b""
        newline = self.unit.source.newline
        lines = [
            line
            for target in targets
            for line in (
                f"target_compile_options({target} PRIVATE $<$<COMPILE_LANGUAGE:HIP>:-fgpu-rdc>)",
                f"target_link_options({target} PRIVATE -fgpu-rdc --hip-link)",
            )
        ]
        return b"".join(indent + line.encode() + newline for line in lines)

    @staticmethod
    def _rdc(name: str) -> dict[str, str]:
        return {"what": f"the property {name} has no counterpart"}

    def _gap_before(self, at: int) -> int:
        data = self.unit.data
        while at and data[at - 1 : at] in (b" ", b"\t", b"\n", b"\r"):
            at -= 1
        return at

    def _whole_lines(self, span: Span) -> Span:
        """The span widened to whole lines where nothing else stands on them."""
        source = self.unit.source
        first = source.line_span(self.unit.line(span.start))
        last = source.line_span(self.unit.line(max(span.end - 1, span.start)))
        alone = not self.unit.data[first.start : span.start].strip() and not (
            self.unit.data[span.end : last.end].strip()
        )
        return Span(first.start, last.end) if alone else span

    # -- flags ----------------------------------------------------------------------------

    def _flags(self, command: Command) -> None:
        """Flags in compile options for CUDA and in CUDA's flag variables."""
        if command.name in _FLAG_COMMANDS:
            self._option_flags(command)
        elif command.name in ("set", "list", "string") and any(
            a.text.startswith(("CMAKE_CUDA_FLAGS", "CUDA_NVCC_FLAGS"))
            for a in command.arguments[:2]
        ):
            for argument in command.arguments[1:]:
                if argument.text.startswith(("CMAKE_CUDA_FLAGS", "CUDA_NVCC_FLAGS")):
                    continue
                self._flag_text(argument.text, argument.span)

    def _option_flags(self, command: Command) -> None:
        inside = False
        pending: list[Argument] = []
        for argument in command.arguments:
            opens = re.match(
                r"\$<\$<(?:COMPILE_LANGUAGE|COMPILE_LANG_AND_ID):CUDA[^>]*>:(.*)$",
                argument.text,
                re.S,
            )
            if opens is not None:
                start = argument.span.start + len(argument.text[: opens.start(1)].encode())
                body = opens.group(1)
                inside = not body.endswith(">")
                body = body.removesuffix(">")
                self._flag_text(body, Span(start, start + len(body.encode())))
            elif inside:
                body = argument.text
                if body.endswith(">") and body.count("<") < body.count(">"):
                    inside = False
                    body = body[:-1]
                pending.append(argument)
                self._flag_text(
                    body, Span(argument.span.start, argument.span.start + len(body.encode()))
                )

    def _flag_text(self, text: str, span: Span) -> None:
        words = [(m.group(), m.start(), m.end()) for m in re.finditer(r"[^\s;]+", text)]
        for item in translate([w for w, _, _ in words]):
            if not item.changed and not item.finding:
                continue
            start = words[item.first][1]
            end = words[item.first + item.count - 1][2]
            separator = ";" if ";" in text else " "
            if not item.words:
                # The separator goes with the word.
                while end < len(text) and text[end] in " \t;" and start == 0:
                    end += 1
                while start > 0 and text[start - 1] in " \t;":
                    start -= 1
            at = Span(
                span.start + len(text[:start].encode()), span.start + len(text[:end].encode())
            )
            change = None
            if item.changed:
                change = self.change(
                    "nvcc-flags",
                    Edit.replace(at.start, at.end, separator.join(item.words).encode()),
                )
            self.report_flag(item.finding or "nvcc-flags", at, change, item.text, item.words)

    def report_flag(
        self, slug: str, at: Span, change: Change | None, text: str, words: tuple[str, ...]
    ) -> None:
        what = f"'{text}' becomes '{' '.join(words)}'" if words else f"'{text}' was dropped"
        fields: dict[str, Any] = {"what": what}
        if slug == "build-arch":
            fields = {"what": f"'{text}'", "chosen": "what CMAKE_HIP_ARCHITECTURES names"}
        self.report(slug, at, change, **fields)

    # -- arguments ----------------------------------------------------------------------------

    def _argument(self, command: Command, argument: Argument) -> None:
        table = names()
        text, base = argument.text, argument.span.start
        target = table.targets.get(text)
        if target is not None:
            self.packages[target[1]] = None
            change = self.change(
                "build-language",
                Edit.replace(argument.span.start, argument.span.end, target[0].encode()),
            )
            self.report("build-language", argument.span, change, what=f"{text} becomes {target[0]}")
            return
        if text.startswith("CUDA::"):
            self.report("cmake-cuda-target", argument.span, name=text)
            return
        feature = table.features.get(text)
        if feature is not None:
            change = self.change(
                "build-language",
                Edit.replace(argument.span.start, argument.span.end, feature.encode()),
            )
            self.report("build-language", argument.span, change, what=f"{text} becomes {feature}")
            return
        whole = _REFERENCE.fullmatch(text)
        if whole is not None and whole.group(1) in table.references:
            target = table.references[whole.group(1)]
            self.packages[target[1]] = None
            change = self.change(
                "build-language",
                Edit.replace(argument.span.start, argument.span.end, target[0].encode()),
            )
            self.report("build-language", argument.span, change, what=f"{text} becomes {target[0]}")
            return
        for match in _GENEX.finditer(text):
            self._generator(match, text, base)
        for match in _WORD.finditer(text):
            self._word(command, argument, match, text, base)

    def _generator(self, match: re.Match[str], text: str, base: int) -> None:
        kind, value = match.group(1), match.group(2)
        if kind == "CUDA_COMPILER_ID":
            new = f"$<HIP_COMPILER_ID:{value.replace('NVIDIA', 'Clang')}>"
        else:
            parts = ["HIP" if p == "CUDA" else p for p in value.split(",")]
            if "HIP" in parts and "NVIDIA" in parts:
                parts = ["Clang" if p == "NVIDIA" else p for p in parts]
            new = f"$<{kind}:{','.join(parts)}>"
        if new == match.group():
            return
        start = base + len(text[: match.start()].encode())
        span = Span(start, start + len(match.group().encode()))
        change = self.change("build-language", Edit(span, new.encode()))
        self.report("build-language", span, change, what=f"{match.group()} becomes {new}")

    def _word(
        self, command: Command, argument: Argument, match: re.Match[str], text: str, base: int
    ) -> None:
        table = names()
        word = match.group()
        start = base + len(text[: match.start()].encode())
        span = Span(start, start + len(word))
        referenced = text[: match.start()].endswith("{") or not argument.quoted
        new = table.variables.get(word)
        if new is not None and referenced and match.group() == word:
            change = self.change("build-language", Edit(span, new.encode()))
            self.report("build-language", span, change, what=f"{word} becomes {new}")
        elif (word in table.no_counterpart and text[: match.start()].endswith("{")) or (
            word in table.no_counterpart
            and command.name in ("set", "if", "elseif")
            and (text == word)
        ):
            self.report("cmake-old-module", span, what=f"{word} has no counterpart")

    # -- sources ---------------------------------------------------------------------------------

    def _insert_after(self, command: Command, lines: list[str]) -> Edit:
        source = self.unit.source
        line = source.line_span(self.unit.line(max(command.span.end - 1, 0)))
        first = source.line_span(self.unit.line(command.span.start))
        head = self.unit.data[first.start : command.span.start]
        indent = head if not head.strip() else b""
        newline = source.newline
        text = b"".join(indent + text.encode() + newline for text in lines)
        if not self.unit.data[: line.end].endswith((b"\n", b"\r")):
            text = newline + text
        return Edit.insert(line.end, text)

    def _languages_set(self) -> set[str]:
        """Sources and variables whose language the file already sets to HIP."""
        found: set[str] = set()
        for command in self.commands:
            if command.name != "set_source_files_properties":
                continue
            texts = [a.text for a in command.arguments]
            if "LANGUAGE" in texts and texts[texts.index("LANGUAGE") + 1 :][:1] == ["HIP"]:
                found.update(texts[: texts.index("PROPERTIES")] if "PROPERTIES" in texts else ())
        return found

    def _sources(self, command: Command) -> None:
        done = self._languages_set()
        sources = [a for a in command.arguments if _CU.search(a.text) and a.text not in done
                   and "*" not in a.text]  # fmt: skip
        if not sources:
            return
        listed = " ".join(self.unit.source.text(a.whole).decode() for a in sources)
        change = self.change(
            "build-language",
            self._insert_after(
                command, [f"set_source_files_properties({listed} PROPERTIES LANGUAGE HIP)"]
            ),
        )
        self.report(
            "build-language",
            sources[0].span,
            change,
            what="CMake takes .cu files for CUDA; their language is set to HIP",
        )

    def _glob(self, command: Command) -> None:
        variable = command.arguments[1].text if len(command.arguments) > 1 else ""
        if not any(_CU.search(a.text) for a in command.arguments[2:]) or not variable:
            return
        chosen = f"{variable}_HIP"
        if f"${{{chosen}}}" in self._languages_set():
            return
        change = self.change(
            "build-language",
            self._insert_after(
                command,
                [
                    f"set({chosen} ${{{variable}}})",
                    f'list(FILTER {chosen} INCLUDE REGEX "\\\\.cu$")',
                    f"set_source_files_properties(${{{chosen}}} PROPERTIES LANGUAGE HIP)",
                ],
            ),
        )
        self.report(
            "build-language",
            command.span,
            change,
            what="CMake takes .cu files for CUDA; their language is set to HIP",
        )

    def finish(self) -> None:
        """Add find_package calls for the libraries that are linked."""
        missing = [p for p in self.packages if p not in self.found_packages and p != "hip"]
        if self.find_at is None:
            if self.packages and "hip" not in self.found_packages:
                missing = ["hip", *missing]
            anchor = next((c for c in self.commands if c.name == "project"), None)
        else:
            anchor = self.find_at
        if missing and anchor is not None:
            self.change(
                "build-language",
                self._insert_after(anchor, [f"find_package({name} REQUIRED)" for name in missing]),
            )


def cmake_changes(unit: Unit, context: Context) -> Iterator[Finding | Change | Span]:
    """Findings, further changes, and unparsed regions of one CMake file."""
    listed, errors = commands(unit.data)
    if b"CUDA" not in unit.data and b"cuda" not in unit.data and b".cu" not in unit.data:
        return
    converter = _Converter(unit, context, listed)
    for command in listed:
        converter.convert(command)
    converter.finish()
    carried = {id(f.change) for f in converter.findings if f.change is not None}
    yield from converter.findings
    yield from (c for c in converter.changes if id(c) not in carried)
    yield from errors
