from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from hipport.api import Mode, check_paths, convert_paths
from hipport.report.json_report import as_json, render
from tests.project.tree import CUDA, put

SCHEMA = Path(__file__).parents[2] / "docs" / "schema" / "report-1.json"
BAD = b"void g() { cudaDeviceFlushGPUDirectRDMAWrites(0, 0); }\n"


@pytest.fixture(scope="module")
def schema() -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads(SCHEMA.read_text())
    jsonschema.Draft202012Validator.check_schema(loaded)
    return loaded


def test_a_report_is_valid(tmp_path: Path, schema: dict[str, Any]) -> None:
    put(
        tmp_path, {"a.cu": CUDA + BAD, "b.cu": b"\xff\xfe\x00\xd8", "c.cu": b"void f( {{{ cudaFree"}
    )
    (tmp_path / "d.cu").symlink_to("nowhere")
    report = convert_paths([tmp_path], mode=Mode.PLAN, rename=True)
    data = json.loads(render(report))
    jsonschema.validate(data, schema)
    assert data["exit_code"] == 3
    assert data["summary"]["files"] == {
        "seen": 4,
        "converted": 2,
        "untouched": 0,
        "skipped": 0,
        "unreadable": 2,
    }
    assert data["summary"]["unparsed"]["files"] == 1
    finding = next(f for f in data["findings"] if f["slug"] == "no-hip-equivalent")
    assert (finding["path"], finding["line"], finding["column"]) == ("a.cu", 3, 12)
    assert sum(data["summary"]["findings"].values()) == len(data["findings"])
    assert next(f for f in data["files"] if f["path"] == "a.cu")["renamed"] == "a.hip"


@pytest.mark.parametrize(
    ("where", "value"),
    [
        (("schema",), "hipport-report-2"),
        (("exit_code",), 7),
        (("findings", 0, "line"), 0),
        (("findings", 0, "severity"), "fatal"),
        (("files", 0, "status"), "lost"),
    ],
)
def test_the_schema_refuses(
    tmp_path: Path, schema: dict[str, Any], where: tuple[Any, ...], value: object
) -> None:
    put(tmp_path, {"a.cu": CUDA + BAD})
    data = as_json(check_paths([tmp_path]))
    place: Any = data
    for key in where[:-1]:
        place = place[key]
    place[where[-1]] = value
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(data, schema)


def test_numbers_agree_with_the_exit_code(tmp_path: Path) -> None:
    put(tmp_path, {"a.cu": CUDA})
    assert as_json(check_paths([tmp_path]))["exit_code"] == 0
    put(tmp_path, {"b.cu": CUDA + BAD})
    data = as_json(check_paths([tmp_path]))
    assert data["exit_code"] == 1
    assert data["summary"]["need_a_person"] == 1
