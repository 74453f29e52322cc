"""Whole small projects: converted once, and then there is nothing left to do."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from hipport.api import check_paths, convert_paths
from hipport.report.model import FileStatus
from tests.project.tree import commit, snapshot

REPOS = Path(__file__).parents[2] / "fixtures" / "repos"


@pytest.mark.parametrize("name", ["particles", "torch_ext"])
def test_converting_twice_changes_nothing(tmp_path: Path, name: str) -> None:
    root = tmp_path / name
    shutil.copytree(REPOS / name, root)
    commit(root)
    before = snapshot(root)
    first = convert_paths([root])
    assert first.count(FileStatus.UNREADABLE) == 0
    assert first.count(FileStatus.CONVERTED) > 1
    after = snapshot(root)
    changed = {path for path in before if after[path] != before[path]}
    assert changed == {p.path for p in first.files if p.status is FileStatus.CONVERTED}
    second = check_paths([root])
    assert second.count(FileStatus.CONVERTED) == 0
    left = {(f.slug, f.path) for f in first.all_findings()}
    assert {(f.slug, f.path) for f in second.all_findings()} <= left
