"""Fetching: hashes, safe unpacking, pins. Nothing here uses the network."""

import hashlib
import io
import tarfile
from pathlib import Path

import corpus
import pytest


def _archive(path: Path, members: dict[str, bytes], links: dict[str, str] | None = None) -> Path:
    with tarfile.open(path, "w:gz") as tar:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
        for name, target in (links or {}).items():
            info = tarfile.TarInfo(name)
            info.type, info.linkname = tarfile.SYMTYPE, target
            tar.addfile(info)
    return path


def test_unpack_drops_the_top_folder(tmp_path: Path) -> None:
    archive = _archive(tmp_path / "a.tar.gz", {"x-1/src/k.cu": b"k", "x-1/setup.py": b"s"})
    (tmp_path / "out").mkdir()
    corpus.unpack(archive, tmp_path / "out")
    assert (tmp_path / "out/src/k.cu").read_bytes() == b"k"
    assert (tmp_path / "out/setup.py").read_bytes() == b"s"


@pytest.mark.parametrize("name", ["../evil", "/evil", "x-1/../../evil", "x-1/a\\..\\b"])
def test_unpack_refuses_what_leaves_the_folder(tmp_path: Path, name: str) -> None:
    archive = _archive(tmp_path / "a.tar.gz", {name: b"bad"})
    (tmp_path / "out").mkdir()
    with pytest.raises(corpus.CorpusError, match="leaves the folder"):
        corpus.unpack(archive, tmp_path / "out")
    assert not (tmp_path / "evil").exists()


def test_unpack_leaves_links_out(tmp_path: Path) -> None:
    archive = _archive(tmp_path / "a.tar.gz", {"x-1/real": b"r"}, {"x-1/link": "/etc/passwd"})
    (tmp_path / "out").mkdir()
    corpus.unpack(archive, tmp_path / "out")
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["real"]


def test_unpack_says_when_an_archive_is_damaged(tmp_path: Path) -> None:
    archive = tmp_path / "a.tar.gz"
    archive.write_bytes(b"\x1f\x8b no archive")
    with pytest.raises(corpus.CorpusError, match=r"a\.tar\.gz: cannot be unpacked"):
        corpus.unpack(archive, tmp_path)


def test_ensure_checks_the_hash_and_deletes_what_fails(tmp_path: Path) -> None:
    archive = _archive(tmp_path / "x-1.tar.gz", {"x-1/k.cu": b"k"})
    found = hashlib.sha256(archive.read_bytes()).hexdigest()
    wrong = corpus.Pin("x", "1", "0" * 64)
    with pytest.raises(corpus.CorpusError, match=f"sha256 is {found}"):
        corpus.ensure(wrong, tmp_path)
    assert not archive.exists()
    assert not list(tmp_path.iterdir())

    _archive(archive, {"x-1/k.cu": b"k"})
    right = corpus.Pin("x", "1", corpus.digest(archive))
    assert (corpus.ensure(right, tmp_path) / "k.cu").read_bytes() == b"k"


def test_the_pins_are_well_formed_and_enough() -> None:
    assert len(corpus.pins()) >= 12


def test_pins_that_leave_their_folder_are_refused(tmp_path: Path) -> None:
    bad = tmp_path / "c.toml"
    entry = f'[[corpus]]\nname = "x"\nversion = "1"\nsha256 = "{"0" * 64}"\nroots = ["../y"]\n'
    bad.write_text(entry)
    with pytest.raises(corpus.CorpusError, match="relative"):
        corpus.pins(bad)


def test_the_cache_folder_can_be_chosen(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HIPPORT_CACHE_DIR", str(tmp_path))
    assert corpus.corpus_dir() == tmp_path / "corpus"
