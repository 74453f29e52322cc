"""What one file tells about the whole project, and the project's facts made of all files.

The first pass collects a `FileFacts` a file (small, picklable); `merge` makes one `ProjectFacts`,
which the second pass asks while it looks at each file again.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property

from tree_sitter import Node

from hipport.parse.cuda import walk
from hipport.parse.tokens import Kind, Token, directive_name
from hipport.parse.unit import Unit
from hipport.source import SourceFile, Span


class Scope(str, Enum):
    """How far a definition of the code base reaches."""

    GLOBAL = "global"
    """Namespace scope or a macro: this file and whoever includes it."""
    MEMBER = "member"
    """A member of a class: member accesses, and the class's own body."""
    LOCAL = "local"
    """A parameter or local variable: the enclosing function."""


@dataclass(frozen=True, slots=True)
class OwnName:
    """A name that the code base itself defines or declares.

    `region` is where the name means the definition (`MEMBER`, `LOCAL`); `at` is the declarator.
    `namespace` is the innermost named namespace around it, empty at file scope.
    """

    name: bytes
    scope: Scope
    at: Span
    region: Span
    namespace: bytes = b""


@dataclass(frozen=True, slots=True)
class Macro:
    """A macro definition: parameters (None for an object-like one) and body as written."""

    name: bytes
    params: tuple[bytes, ...] | None
    body: bytes
    line: int


@dataclass(frozen=True, slots=True)
class Constant:
    """A named constant (``constexpr``, ``const``, ``enum``) and its initialiser as written."""

    name: bytes
    value: bytes
    line: int
    kind: str


@dataclass(frozen=True, slots=True)
class FunctionFact:
    """A function definition or declaration with an execution space.

    `space` is ``global``, ``device``, ``host device`` or ``host``; `params` are pairs of type and
    name as written; `template_params` likewise with defaults as third.
    """

    name: bytes
    space: str
    returns: bytes
    params: tuple[tuple[bytes, bytes], ...]
    template_params: tuple[tuple[bytes, bytes, bytes], ...]
    line: int
    span: Span
    is_definition: bool
    ballot: bool = False
    """Whether it returns a ballot or active mask as it comes."""


@dataclass(frozen=True, slots=True)
class LaunchFact:
    """A ``kernel<<<grid, block, ...>>>`` with its parts as written."""

    kernel: bytes
    grid: bytes
    block: bytes
    shared: bytes
    line: int


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What one file contributes."""

    path: str
    includes: tuple[bytes, ...] = ()
    own: tuple[OwnName, ...] = ()
    macros: tuple[Macro, ...] = ()
    constants: tuple[Constant, ...] = ()
    functions: tuple[FunctionFact, ...] = ()
    launches: tuple[LaunchFact, ...] = ()
    shapes: tuple[tuple[bytes, bytes], ...] = ()
    """Variables of type dim3 and their initialisers."""


@dataclass(frozen=True)
class ProjectFacts:
    """The facts of all files, with look-ups that follow includes."""

    files: Mapping[str, FileFacts] = field(default_factory=dict)

    @cached_property
    def _by_tail(self) -> dict[str, list[str]]:
        tails: dict[str, list[str]] = {}
        for path in self.files:
            tails.setdefault(posixpath.basename(path), []).append(path)
        return tails

    @cached_property
    def _direct(self) -> dict[str, tuple[str, ...]]:
        return {path: tuple(self._resolve(path, f.includes)) for path, f in self.files.items()}

    def _resolve(self, path: str, includes: Iterable[bytes]) -> Iterable[str]:
        folder = posixpath.dirname(path)
        for include in includes:
            name = include.decode("utf-8", "replace")
            near = posixpath.normpath(posixpath.join(folder, name))
            if near in self.files:
                yield near
                continue
            tail = name
            while tail.startswith("../"):
                tail = tail[3:]
            for candidate in self._by_tail.get(posixpath.basename(tail), ()):
                if candidate == tail or candidate.endswith("/" + tail):
                    yield candidate

    @cached_property
    def _closures(self) -> dict[str, tuple[str, ...]]:
        return {}

    def closure(self, path: str) -> tuple[str, ...]:
        """The file and the project's files that it includes, directly or not."""
        known = self._closures.get(path)
        if known is None:
            seen: dict[str, None] = {path: None}
            todo = [path]
            while todo:
                for other in self._direct.get(todo.pop(), ()):
                    if other not in seen:
                        seen[other] = None
                        todo.append(other)
            known = self._closures[path] = tuple(seen)
        return known

    def system_includes(self, path: str) -> frozenset[bytes]:
        """Every include path named in the file's closure."""
        return frozenset(
            include
            for other in self.closure(path)
            if other in self.files
            for include in self.files[other].includes
        )

    def own_names(self, path: str) -> list[OwnName]:
        """Definitions of the code base that reach into a file."""
        reaching: list[OwnName] = []
        for other in self.closure(path):
            facts = self.files.get(other)
            if facts is None:
                continue
            if other == path:
                reaching.extend(facts.own)
            else:
                reaching.extend(o for o in facts.own if o.scope is not Scope.LOCAL)
        return reaching

    def macros(self, path: str, name: bytes) -> list[Macro]:
        """Definitions of a macro that a file may see."""
        return [
            macro
            for other in self.closure(path)
            if other in self.files
            for macro in self.files[other].macros
            if macro.name == name
        ]

    def constants(self, path: str, name: bytes) -> list[Constant]:
        """Definitions of a named constant that a file may see."""
        return [
            constant
            for other in self.closure(path)
            if other in self.files
            for constant in self.files[other].constants
            if constant.name == name
        ]

    def parameter_names(self, path: str) -> frozenset[bytes]:
        """Names that parameters and template parameters of a file's functions have."""
        known = self._parameters.get(path)
        if known is None:
            facts = self.files.get(path)
            known = self._parameters[path] = frozenset(
                name
                for function in (facts.functions if facts is not None else ())
                for name in (
                    *(p[1] for p in function.template_params),
                    *(p[1] for p in function.params),
                )
            )
        return known

    @cached_property
    def _parameters(self) -> dict[str, frozenset[bytes]]:
        return {}

    def functions(self, name: bytes) -> list[tuple[str, FunctionFact]]:
        """All functions of a name, with their files."""
        return self._functions.get(name, [])

    def launches(self, kernel: bytes) -> list[tuple[str, LaunchFact]]:
        """All launches of a kernel, with their files."""
        return self._launches.get(kernel, [])

    @cached_property
    def _functions(self) -> dict[bytes, list[tuple[str, FunctionFact]]]:
        found: dict[bytes, list[tuple[str, FunctionFact]]] = {}
        for path, facts in self.files.items():
            for function in facts.functions:
                found.setdefault(function.name, []).append((path, function))
        return found

    @cached_property
    def _launches(self) -> dict[bytes, list[tuple[str, LaunchFact]]]:
        found: dict[bytes, list[tuple[str, LaunchFact]]] = {}
        for path, facts in self.files.items():
            for launch in facts.launches:
                found.setdefault(launch.kernel, []).append((path, launch))
        return found


def merge(facts: Iterable[FileFacts]) -> ProjectFacts:
    """The project's facts."""
    return ProjectFacts({f.path: f for f in facts})


_INCLUDE = re.compile(
    rb'^[ \t\f\v]*#[ \t]*(?:include|import|include_next)[ \t]*[<"]([^>"\r\n]+)', re.M
)
_MACRO = re.compile(
    rb"^[ \t\f\v]*#[ \t]*define[ \t]+([A-Za-z_]\w*)(\([^()\r\n]*\))?"
    rb"((?:[^\\\r\n]|\\\r?\n|\\[^\r\n])*)",
    re.M,
)
_CONSTANT = re.compile(
    rb"\b(constexpr|const)\b[ \t]+(?:static[ \t]+|inline[ \t]+|const(?:expr)?[ \t]+)*"
    rb"(?:unsigned[ \t]+|signed[ \t]+|long[ \t]+)*"
    rb"(?:std::)?[A-Za-z_]\w*[ \t]+(?:const[ \t]+|constexpr[ \t]+)*([A-Za-z_]\w*)"
    rb"[ \t]*(?:=[ \t]*([^;,{}]+)|\{[ \t]*([^;{}]*)\})[ \t]*[;,]",
)
_FURTHER = re.compile(rb"\s*([A-Za-z_]\w*)\s*=\s*([^;,{}]+)\s*[;,]")
_STATIC_FIRST = re.compile(
    rb"\b(constexpr|const)\b[ \t]+([A-Za-z_]\w*)[ \t]*=[ \t]*([^;,{}]+)[ \t]*[;,]"
)
_ENUM = re.compile(rb"\benum\b(?:[ \t]+(?:class|struct)\b)?[^;{}()]*\{([^{}]*)\}")
_ENUMERATOR = re.compile(rb"([A-Za-z_]\w*)\s*=\s*([^,}]+)")
_DEVICE_CODE = re.compile(rb"__global__|__device__|<<<")
_COMMENT = re.compile(rb"//[^\r\n]*|/\*.*?\*/", re.S)
_SHAPE = re.compile(rb"\bdim3\s+(\w+)\s*(?:=\s*(?:dim3\s*)?)?[({]([^;{}]*?)[)}]\s*[;,]")
_RETURNS_BALLOT = re.compile(
    rb"\breturn\s+(?:\([\w\s]+\)\s*)?__(?:ballot|activemask|match_any)\w*\s*\("
    rb"(?:[^();]|\([^()]*\))*\)\s*;"
)
_LARGE = 1 << 20
_NOT_TYPES = frozenset(
    b"return else new delete throw case goto sizeof alignof typeof decltype co_return co_await "
    b"co_yield if while for do switch not and or operator define undef ifdef ifndef defined elif "
    b"typename template using namespace".split()
)
_TYPE_WORDS = frozenset(b"struct class enum union namespace using typedef concept".split())


def _macros(data: bytes, source: SourceFile) -> list[Macro]:
    found = []
    for match in _MACRO.finditer(data):
        params = match.group(2)
        names = (
            None
            if params is None
            else tuple(p.strip() for p in params[1:-1].split(b",") if p.strip())
        )
        body = _COMMENT.sub(b" ", match.group(3)).replace(b"\\\r\n", b" ").replace(b"\\\n", b" ")
        found.append(Macro(match.group(1), names, body.strip(), source.line_col(match.start(1))[0]))
    return found


def _constants(data: bytes, source: SourceFile) -> list[Constant]:
    found = []
    for match in _CONSTANT.finditer(data):
        value = match.group(3) if match.group(3) is not None else match.group(4)
        line = source.line_col(match.start(2))[0]
        kind = match.group(1).decode()
        found.append(Constant(match.group(2), value.strip(), line, kind))
        at = match.end()
        while data[at - 1 : at] == b"," and (more := _FURTHER.match(data, at)) is not None:
            line = source.line_col(more.start(1))[0]
            found.append(Constant(more.group(1), more.group(2).strip(), line, kind))
            at = more.end()
    for match in _STATIC_FIRST.finditer(data):
        line = source.line_col(match.start(2))[0]
        found.append(
            Constant(match.group(2), match.group(3).strip(), line, match.group(1).decode())
        )
    for match in _ENUM.finditer(data):
        for each in _ENUMERATOR.finditer(_COMMENT.sub(lambda m: b" " * len(m.group()), match[1])):
            line = source.line_col(match.start(1) + each.start())[0]
            found.append(Constant(each.group(1), each.group(2).strip(), line, "enum"))
    return found


def _may_define(before: Token | None, after: Token | None, at_directive: bool) -> bool:
    """Whether the neighbours of an identifier allow it to be a declarator (a cheap screen)."""
    if at_directive or before is None:
        return True
    if before.kind is Kind.IDENT:
        return before.text not in _NOT_TYPES or before.text in _TYPE_WORDS
    if before.text in (b"*", b"&", b">", b"&&", b"]", b"*/"):
        return after is not None and after.text in (b"(", b";", b"=", b",", b")", b"[", b"{")
    if before.text in (b",", b"{", b"}", b"::"):
        return after is not None and after.text in (b"=", b",", b"}", b";", b"(")
    return False


def _candidates(unit: Unit, names: frozenset[bytes]) -> frozenset[bytes]:
    tokens = unit.code_tokens
    found = set()
    for i, token in enumerate(tokens):
        if token.kind is not Kind.IDENT or token.text not in names:
            continue
        before = tokens[i - 1] if i else None
        after = tokens[i + 1] if i + 1 < len(tokens) else None
        directive = before is not None and before.kind is Kind.DIRECTIVE
        if directive and before is not None and directive_name(before) != b"define":
            continue
        if _may_define(before, after, directive):
            found.add(token.text)
    return frozenset(found)


_SPECIFIERS = {"struct_specifier", "class_specifier", "enum_specifier", "union_specifier"}
_SCOPES = {"function_definition", "lambda_expression"}
_CLASSES = {"struct_specifier", "class_specifier", "union_specifier"}


def _enclosing(node: Node, kinds: set[str]) -> Node | None:
    parent = node.parent
    while parent is not None and parent.type not in kinds:
        parent = parent.parent
    return parent


def _namespace(unit: Unit, node: Node) -> bytes:
    around = _enclosing(node, {"namespace_definition"})
    if around is None:
        return b""
    return unit.text(around.child_by_field_name("name"))


def _declared(node: Node) -> Node | None:
    """The node of the declaration whose declarator `node` is, if it is one."""
    parent, child = node.parent, node
    while parent is not None:
        kind = parent.type
        if kind.endswith("_declarator") or kind == "qualified_identifier":
            field_name = "name" if kind == "qualified_identifier" else "declarator"
            inner = parent.child_by_field_name(field_name)
            if inner is None:
                inner = next((c for c in parent.named_children if c.id == child.id), None)
            if inner is None or inner.id != child.id:
                return None
            child, parent = parent, parent.parent
            continue
        if kind in (
            "declaration",
            "function_definition",
            "field_declaration",
            "parameter_declaration",
            "optional_parameter_declaration",
            "type_definition",
            "for_range_loop",
        ):
            return (
                parent
                if any(c.id == child.id for c in parent.children_by_field_name("declarator"))
                else None
            )
        return None
    return None


def _is_fallback(unit: Unit, node: Node) -> bool:
    """Whether a definition is the stand-in for a missing CUDA header.

    That is: it lies in a branch of a conditional whose other branch includes a CUDA header, or
    the conditional asks whether the very name is there. Such a name is CUDA's, renamed like all
    others.
    """
    around = node.parent
    name = unit.text(node)
    while around is not None:
        if around.type in ("preproc_if", "preproc_ifdef", "preproc_else", "preproc_elif"):
            top = around
            while top.parent is not None and top.parent.type in (
                "preproc_if",
                "preproc_ifdef",
                "preproc_else",
                "preproc_elif",
            ):
                top = top.parent
            inside = unit.text(top)
            if re.search(rb'#[ \t]*include[ \t]*[<"](?:cu|nv|nccl)', inside) and top != around:
                return True
            if (
                around.type == "preproc_ifdef"
                and unit.text(around.child_by_field_name("name")) == name
            ):
                return True
            if around.type != top.type and re.search(
                rb'#[ \t]*include[ \t]*[<"](?:cu|nv|nccl)', inside
            ):
                return True
        around = around.parent
    return False


def _own_names(unit: Unit, names: frozenset[bytes]) -> list[OwnName]:
    candidates = _candidates(unit, names)
    if not candidates:
        return []
    whole = Span(0, len(unit.data))
    found: list[OwnName] = []
    for kind in ("identifier", "type_identifier", "field_identifier", "namespace_identifier"):
        for node in unit.nodes.get(kind, ()):
            name = unit.text(node)
            if name not in candidates:
                continue
            own = _own_name(unit, node, name, whole)
            if own is not None and not _is_fallback(unit, node):
                found.append(own)
    return found


def _own_name(unit: Unit, node: Node, name: bytes, whole: Span) -> OwnName | None:
    parent = node.parent
    at = Span(node.start_byte, node.end_byte)
    if parent is None:
        return None
    if parent.type in ("preproc_def", "preproc_function_def"):
        first = parent.child_by_field_name("name")
        return (
            OwnName(name, Scope.GLOBAL, at, whole)
            if first is not None and first.id == node.id
            else None
        )
    if parent.type in _SPECIFIERS:
        body = parent.child_by_field_name("body")
        named = parent.child_by_field_name("name")
        if named is None or named.id != node.id or body is None:
            return None
        return _placed(unit, parent, name, at, whole)
    if parent.type in (
        "alias_declaration",
        "namespace_definition",
        "enumerator",
        "namespace_alias_definition",
    ):
        named = parent.child_by_field_name("name")
        return (
            _placed(unit, parent, name, at, whole)
            if named is not None and named.id == node.id
            else None
        )
    declaration = _declared(node)
    if declaration is None:
        return None
    if declaration.type in ("parameter_declaration", "optional_parameter_declaration"):
        function = _enclosing(declaration, _SCOPES)
        region = function or declaration
        return OwnName(name, Scope.LOCAL, at, Span(region.start_byte, region.end_byte))
    if declaration.type == "declaration" and any(
        unit.text(declaration.child_by_field_name("type")) == word
        for word in (b"return", b"else", b"delete", b"throw", b"goto")
    ):
        return None
    return _placed(unit, declaration, name, at, whole)


def _placed(unit: Unit, node: Node, name: bytes, at: Span, whole: Span) -> OwnName:
    around = _enclosing(node, _SCOPES | _CLASSES)
    if around is None:
        return OwnName(name, Scope.GLOBAL, at, whole, _namespace(unit, node))
    region = Span(around.start_byte, around.end_byte)
    scope = Scope.MEMBER if around.type in _CLASSES else Scope.LOCAL
    return OwnName(name, scope, at, region, _namespace(unit, node))


def _space(head: bytes) -> str:
    if b"__global__" in head:
        return "global"
    device, host = b"__device__" in head, b"__host__" in head
    if device and host:
        return "host device"
    return "device" if device else "host"


def _template_param(unit: Unit, node: Node) -> tuple[bytes, bytes, bytes]:
    """Type, name and default of one template parameter."""
    default = node.child_by_field_name("default_value") or node.child_by_field_name("default_type")
    if "type_parameter" in node.type:
        named = node.child_by_field_name("name") or next(
            (c for c in node.named_children if c.type == "type_identifier"), None
        )
        return b"typename", unit.text(named), unit.text(default)
    declared = node.child_by_field_name("declarator")
    return unit.text(node.child_by_field_name("type")), unit.text(declared), unit.text(default)


def _function(unit: Unit, node: Node) -> FunctionFact | None:
    declarator = node.child_by_field_name("declarator")
    while declarator is not None and declarator.type != "function_declarator":
        declarator = declarator.child_by_field_name("declarator") or next(
            (c for c in declarator.named_children if c.type.endswith("declarator")), None
        )
    if declarator is None:
        return None
    name = declarator.child_by_field_name("declarator")
    params = declarator.child_by_field_name("parameters")
    if name is None or params is None:
        return None
    head = unit.data[node.start_byte : params.start_byte]
    outer = node.parent
    template: list[tuple[bytes, bytes, bytes]] = []
    if outer is not None and outer.type == "template_declaration":
        head = unit.data[outer.start_byte : params.start_byte]
        listed = outer.child_by_field_name("parameters")
        for each in listed.named_children if listed is not None else ():
            template.append(_template_param(unit, each))
    pairs = []
    for each in params.named_children:
        if "parameter_declaration" not in each.type:
            continue
        declared = each.child_by_field_name("declarator")
        ident = declared
        while ident is not None and ident.type not in ("identifier", "field_identifier"):
            ident = ident.child_by_field_name("declarator") or next(
                (c for c in ident.named_children if c.type != "type_qualifier"), None
            )
        stop = ident.start_byte if ident is not None else each.end_byte
        kind = unit.data[each.start_byte : stop].strip()
        pairs.append((kind, unit.text(ident)))
    if name.type in ("qualified_identifier", "template_function"):
        name = name.child_by_field_name("name") or name
    return FunctionFact(
        name=unit.text(name),
        space=_space(head),
        returns=unit.text(node.child_by_field_name("type")),
        params=tuple(pairs),
        template_params=tuple(template),
        line=unit.line(name.start_byte),
        span=Span(node.start_byte, node.end_byte),
        is_definition=node.type == "function_definition",
        ballot=_RETURNS_BALLOT.search(unit.text(node)) is not None,
    )


def _launch(unit: Unit, node: Node) -> LaunchFact | None:
    """From a `call_expression` that holds a `kernel_call_syntax`."""
    syntax = next((c for c in node.children if c.type == "kernel_call_syntax"), None)
    function = node.child_by_field_name("function")
    if syntax is None or function is None:
        return None
    parts = [unit.text(c) for c in syntax.named_children if c.type != "comment"] + [b""] * 4
    while function is not None and function.type != "identifier":
        function = function.child_by_field_name("name")
    return LaunchFact(unit.text(function), parts[0], parts[1], parts[2], unit.line(node.start_byte))


def collect(path: str, data: bytes, names: frozenset[bytes] = frozenset()) -> FileFacts:
    """The facts of one C-like file.

    Args:
        path: as it will be shown, POSIX style, relative to the root.
        data: the file's bytes.
        names: identifiers whose definitions matter (those that the tables would rename).
    """
    from pathlib import PurePosixPath

    source = SourceFile(PurePosixPath(path), data)  # type: ignore[arg-type]
    if not source.ascii_compatible:
        return FileFacts(path)
    unit = Unit(source)
    functions: list[FunctionFact] = []
    launches: list[LaunchFact] = []
    if _DEVICE_CODE.search(data):
        for kind in ("function_definition", "declaration"):
            for node in unit.nodes.get(kind, ()):
                head = unit.data[node.start_byte : node.start_byte + 400]
                if (
                    kind == "declaration"
                    and b"__device__" not in head
                    and (b"__global__" not in head)
                ):
                    continue
                fact = _function(unit, node)
                if fact is not None:
                    functions.append(fact)
        for node in unit.nodes.get("kernel_call_syntax", ()):
            launch = _launch(unit, node.parent) if node.parent is not None else None
            if launch is not None:
                launches.append(launch)
    own: list[OwnName] = []
    if names and any(word in names for word in set(re.findall(rb"[A-Za-z_]\w*", data))):
        own = _own_names(unit, names)
    if len(data) > _LARGE and not functions:
        # Amalgamated host sources: their constants size no kernel, and there are thousands.
        return FileFacts(path, tuple(dict.fromkeys(_INCLUDE.findall(data))), tuple(own))
    return FileFacts(
        path=path,
        includes=tuple(dict.fromkeys(_INCLUDE.findall(data))),
        own=tuple(own),
        macros=tuple(_macros(data, source)),
        constants=tuple(_constants(data, source)),
        functions=tuple(functions),
        launches=tuple(launches),
        shapes=tuple(_SHAPE.findall(data)) if launches else (),
    )


__all__ = [
    "Constant",
    "FileFacts",
    "FunctionFact",
    "LaunchFact",
    "Macro",
    "OwnName",
    "ProjectFacts",
    "Scope",
    "collect",
    "merge",
    "walk",
]
