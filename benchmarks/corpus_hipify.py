"""Run `torch.utils.hipify` over a copy of a tree, file by file.

It runs in an environment of its own, since PyTorch is no dependency of hipport:

    python -m venv ~/.cache/hipport/hipify-venv
    ~/.cache/hipport/hipify-venv/bin/pip install torch==2.13.0 numpy

and is called by `benchmarks/convert.py` as `PYTHON corpus_hipify.py TREE LIST RESULT`: `LIST` names
files relative to `TREE`, one a line; `RESULT` becomes a JSON object with `seconds` (processor
time), `outputs` (file to converted file) and `failures` (file to what went wrong).
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path


def main() -> int:
    """Convert in place what the list names; a failure in one file does not end the run."""
    import importlib

    hipify = importlib.import_module("torch.utils.hipify.hipify_python")

    tree, listing, result = Path(sys.argv[1]).resolve(), Path(sys.argv[2]), Path(sys.argv[3])
    files = [str(tree / line) for line in listing.read_text("utf-8").splitlines() if line]
    stats: dict[str, list[object]] = {"unsupported_calls": [], "kernel_launches": []}
    cleaner = hipify.GeneratedFileCleaner(keep_intermediates=True)
    failures: dict[str, str] = {}
    begun = time.process_time()
    for path in files:
        try:
            # The arguments that torch.utils.cpp_extension uses for an extension.
            hipify.preprocess_file_and_save_result(
                str(tree), path, files, [str(tree)], stats, True, True, cleaner, False
            )
        except Exception as error:
            failures[os.path.relpath(path, tree)] = f"{type(error).__name__}: {error}"
    seconds = time.process_time() - begun
    outputs = {
        os.path.relpath(path, tree): os.path.relpath(done.hipified_path, tree)
        for path, done in hipify.HIPIFY_FINAL_RESULT.items()
        if done.hipified_path
    }
    result.write_text(
        json.dumps({"seconds": seconds, "outputs": outputs, "failures": failures}), "utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
