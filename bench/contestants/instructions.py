# SPDX-License-Identifier: Apache-2.0
"""Instructions per operation of a contestant in C, counted by callgrind: a figure without noise.

    instructions.py PROGRAM [ARGUMENT...]

The program must be store_check or have its functions pass_new and pass_dup; only what runs inside of
them is counted, in one run for each.
"""

import json
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import contest  # noqa: E402


def count(command, measure):
    """Instructions inside of pass_<measure>, per operation."""
    with tempfile.TemporaryDirectory(prefix="hapax-bench-callgrind-") as folder:
        out = pathlib.Path(folder) / "callgrind.out"
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", f"--toggle-collect=pass_{measure}*",
             *command],
            check=False, input="round\n", capture_output=True, text=True,
        )
        if run.returncode != 0:
            contest.fail(run.stderr)
        total = re.search(r"^(?:summary|totals): (\d+)", out.read_text(encoding="utf-8"), re.MULTILINE)
    # The last line of output is the round's; what valgrind prints goes to stderr.
    measures = json.loads(run.stdout.splitlines()[-1])
    if total is None or int(total.group(1)) == 0:
        contest.fail(f"callgrind counted nothing in pass_{measure}")
    return int(total.group(1)) / measures[measure]["ops"]


def main():
    command = sys.argv[1:]
    if not command:
        contest.fail(__doc__)
    version = subprocess.run(["valgrind", "--version"], check=True, capture_output=True, text=True).stdout.strip()
    contest.run("callgrind", version, lambda _: {measure: count(command, measure) for measure in ("new", "dup")})


if __name__ == "__main__":
    main()
