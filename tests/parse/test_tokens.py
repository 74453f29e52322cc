from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from hipport.parse.tokens import Kind, directive_name, tokenize

PIECES = [
    b"cudaMalloc",
    b'"a\\"b"',
    b"'",
    b'"',
    b"//",
    b"/*",
    b"*/",
    b"\n",
    b"\r\n",
    b"\\\n",
    b" ",
    b'R"(',
    b')"',
    b'R"x(',
    b')x"',
    b"#define",
    b"#",
    b"##",
    b"<<<",
    b">>>",
    b"1'000",
    b".5e-3f",
    b"\x00",
    b"\xe9",
    b"#include <a.h>",
    b"u8",
    b"L",
    b"\\",
    b"\t",
    b"x",
    b".",
    b"->",
]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=40).map(b"".join))
def test_every_byte_is_in_one_token_or_between(data: bytes) -> None:
    at = 3 if data.startswith(b"\xef\xbb\xbf") else 0
    for token in tokenize(data):
        assert token.start >= at
        assert token.end > token.start
        assert token.text == data[token.start : token.end]
        assert not data[at : token.start].strip(b" \t\r\n\x0b\x0c\x00")
        at = token.end
    assert not data[at:].strip(b" \t\r\n\x0b\x0c\x00")


def kinds(data: bytes) -> list[tuple[Kind, bytes]]:
    return [(t.kind, t.text) for t in tokenize(data)]


def test_names_in_comments_and_literals_are_not_identifiers() -> None:
    data = (
        b'// cudaMalloc\n/* cudaFree */ "cudaMemcpy" R"(cudaMemset " )" \'c\' '
        b"// goes on \\\n cudaHostAlloc\nreal"
    )
    assert [t.text for t in tokenize(data) if t.kind is Kind.IDENT] == [b"real"]


def test_a_broken_literal_ends_with_its_line() -> None:
    data = b"#error don't\ncudaMalloc"
    assert (Kind.IDENT, b"cudaMalloc") in kinds(data)


def test_include_paths_are_header_tokens() -> None:
    assert kinds(b'# include <a/b.h> // x\n#include "c.h"\n')[:2] == [
        (Kind.DIRECTIVE, b"# include"),
        (Kind.HEADER, b"<a/b.h>"),
    ]
    assert (Kind.HEADER, b'"c.h"') in kinds(b'#include "c.h"')
    assert Kind.HEADER not in {k for k, _ in kinds(b"#define include <a.h>")}


def test_directives_only_at_the_start_of_a_line() -> None:
    tokens = tokenize(b"#define S(x) #x\n  #  if A\n")
    names = [directive_name(t) for t in tokens if t.kind is Kind.DIRECTIVE]
    assert names == [b"define", b"if"]


def test_numbers_swallow_their_suffixes_and_separators() -> None:
    assert kinds(b"1'000u 0x1p-3f .5e-3f 10ull") == [
        (Kind.NUMBER, b"1'000u"),
        (Kind.NUMBER, b"0x1p-3f"),
        (Kind.NUMBER, b".5e-3f"),
        (Kind.NUMBER, b"10ull"),
    ]


def test_launch_brackets_are_single_tokens() -> None:
    assert [t.text for t in tokenize(b"k<<<g, b>>>(x)")] == [
        b"k",
        b"<<<",
        b"g",
        b",",
        b"b",
        b">>>",
        b"(",
        b"x",
        b")",
    ]
