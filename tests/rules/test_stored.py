"""The cache of parsed YAML."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from hipport.rules import build, ptx
from hipport.rules.stored import cache_dir, read_yaml


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HIPPORT_CACHE_DIR", os.fspath(tmp_path / "cache"))
    return tmp_path / "cache"


def put(folder: Path, text: str) -> Path:
    """A YAML file."""
    file = folder / "x.yaml"
    file.write_text(text)
    return file


def test_cached_once_and_again_when_it_changes(tmp_path: Path, cache: Path) -> None:
    file = put(tmp_path, "a: [1, two]\n")
    assert read_yaml(file) == {"a": [1, "two"]}
    (one,) = cache.iterdir()
    one.write_text('{"a": "from the cache"}')
    assert read_yaml(file) == {"a": "from the cache"}
    put(tmp_path, "a: [1, three]\n")
    assert read_yaml(file) == {"a": [1, "three"]}
    assert len(list(cache.iterdir())) == 2


@pytest.mark.parametrize("garbage", [b"", b"{", b"\xff\xfe", b'{"a": 1'])
def test_a_broken_cache_is_made_anew(tmp_path: Path, cache: Path, garbage: bytes) -> None:
    file = put(tmp_path, "a: 1\n")
    read_yaml(file)
    (one,) = cache.iterdir()
    one.write_bytes(garbage)
    assert read_yaml(file) == {"a": 1}
    assert one.read_bytes() == b'{"a": 1}'


def test_no_place_for_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("HIPPORT_CACHE_DIR", os.fspath(tmp_path / "file" / "below"))
    assert read_yaml(put(tmp_path, "a: 1\n")) == {"a": 1}


def test_what_json_would_change_is_not_cached(tmp_path: Path, cache: Path) -> None:
    file = put(tmp_path, "1: one\n")
    assert read_yaml(file) == {1: "one"}
    assert read_yaml(file) == {1: "one"}
    assert not cache.exists()


def test_wrong_content_is_refused_every_time(tmp_path: Path, cache: Path) -> None:
    def check(data: object) -> None:
        raise ValueError(f"wrong: {data}")

    file = put(tmp_path, "a: 1\n")
    for _ in range(2):
        with pytest.raises(ValueError, match="wrong"):
            read_yaml(file, check)
    assert not cache.exists()


def test_default_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HIPPORT_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", os.fspath(tmp_path))
    assert cache_dir() == tmp_path / "hipport"


def test_every_pattern_of_the_ptx_table_compiles() -> None:
    for rule in ptx.load():
        re.compile(rule.pattern)
        re.compile(rule.register_pattern)


def test_a_bad_pattern_is_named() -> None:
    with pytest.raises(ptx.PtxError, match="entry 2: unterminated"):
        ptx._check([{"match": "a", "flag": "inline-ptx"}, {"match": "[", "flag": "inline-ptx"}])


def test_same_from_yaml_and_from_the_cache(cache: Path) -> None:
    def everything() -> tuple[object, ...]:
        for function in (ptx.load, build.flags, build.cmake, build.tools):
            function.cache_clear()
        return ptx.load(), build.flags(), build.cmake(), build.tools()

    first = everything()
    assert len(list(cache.iterdir())) == 4
    assert everything() == first
