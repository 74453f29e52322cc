"""How long the name tables take to load, and what ``hipport --version`` loads.

    python benchmarks/startup.py [--runs N]

Prints the median of N fresh processes, wall and processor time in milliseconds, for a warm and for
an empty cache, and whether ``--version`` imports the rules.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

_LOAD = """
import json, sys, time
from hipport.rules import api
wall, cpu = time.perf_counter(), time.process_time()
rows = len(api.load(sys.argv[1]).rows)
print(json.dumps([(time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3, rows]))
"""
_REST = """
import json, sys, time
from hipport.rules import build, hazards, ptx
import yaml
wall, cpu = time.perf_counter(), time.process_time()
for load in (hazards.load, ptx.load, build.flags, build.cmake, build.tools):
    load()
print(json.dumps([(time.perf_counter() - wall) * 1e3, (time.process_time() - cpu) * 1e3]))
"""
_VERSION = """
import json, sys, time
wall = time.perf_counter()
from hipport.cli.main import guarded
guarded(["--version"])
loaded = sorted(m for m in sys.modules if m.startswith("hipport.rules"))
print(json.dumps([(time.perf_counter() - wall) * 1e3, loaded]))
"""


def _run(code: str, *arguments: str, cache: str) -> list[object]:
    environment = {**os.environ, "HIPPORT_CACHE_DIR": cache}
    done = subprocess.run([sys.executable, "-c", code, *arguments], env=environment,
                          capture_output=True, text=True, check=True)  # fmt: skip
    result: list[object] = json.loads(done.stdout.splitlines()[-1])
    return result


def _median(values: list[object]) -> str:
    return f"{statistics.median(float(str(v)) for v in values):.1f} ms"


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description="Time the loading of the name tables.")
    parser.add_argument("--runs", type=int, default=11)
    parser.add_argument("--rocm", default="10.0")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as cache:
        cold = []
        for _ in range(max(1, options.runs // 3)):
            with tempfile.TemporaryDirectory() as empty:
                cold.append(_run(_LOAD, options.rocm, cache=empty))
        _run(_LOAD, options.rocm, cache=cache)
        warm = [_run(_LOAD, options.rocm, cache=cache) for _ in range(options.runs)]
        _run(_REST, cache=cache)
        rest = [_run(_REST, cache=cache) for _ in range(options.runs)]
        version = [_run(_VERSION, cache=cache) for _ in range(options.runs)]
    print(f"rows            {warm[0][2]}")
    print(
        f"warm cache      {_median([w[0] for w in warm])} wall, {_median([w[1] for w in warm])} cpu"
    )
    print(
        f"empty cache     {_median([c[0] for c in cold])} wall, {_median([c[1] for c in cold])} cpu"
    )
    print(
        f"other rules     {_median([r[0] for r in rest])} wall, {_median([r[1] for r in rest])} cpu"
    )
    print(f"--version       {_median([v[0] for v in version])} wall with imports")
    print(f"rules imported  {version[0][1] or 'none'}")


if __name__ == "__main__":
    main()
