# SPDX-License-Identifier: Apache-2.0
"""Document C's key in Python: parse, leave out the excluded fields, dump sorted, hash."""

import argparse
import hashlib
import json
import pathlib
import platform
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from harness import contest  # noqa: E402


def content_key(payload, excluded):
    kept = {name: value for name, value in payload.items() if name not in excluded}
    text = json.dumps(kept, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def run_round(documents, operations):
    excluded = frozenset()
    count = len(documents)
    wall, cpu = time.monotonic_ns(), time.process_time_ns()
    for index in range(operations):
        content_key(json.loads(documents[index % count]), excluded)
    cpu, wall = time.process_time_ns() - cpu, time.monotonic_ns() - wall
    return {"key": {"ops": operations, "wall_ns": wall, "cpu_ns": cpu}}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--documents", type=pathlib.Path, required=True)
    parser.add_argument("--operations", type=int, default=20000)
    arguments = parser.parse_args()
    documents = arguments.documents.read_bytes().splitlines()
    keys = {content_key(json.loads(document), frozenset()) for document in documents}
    if len(keys) != len(documents):
        contest.fail("two documents have one key")
    contest.run("Python", platform.python_version(), lambda seed: run_round(documents, arguments.operations))


if __name__ == "__main__":
    main()
