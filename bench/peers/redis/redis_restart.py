# SPDX-License-Identifier: Apache-2.0
"""How long Redis takes to start with its keys: from an RDB file, or from an append-only file.

Filled once; each round starts the server with the page cache evicted and waits until it has loaded.
"""

import argparse
import os
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import server as redis  # noqa: E402
from harness import contest  # noqa: E402


def options(form):
    if form == "rdb":
        return ["--save", "", "--appendonly", "no"]
    return ["--save", "", "--appendonly", "yes", "--appendfsync", "no", "--auto-aof-rewrite-percentage", "0"]


def evict(folder):
    for root, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(root, name)
            if not os.path.isfile(path):
                continue
            with open(path, "rb") as file:
                os.fdatasync(file.fileno())
                os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


def fill(folder, form, keys):
    server = redis.Server(folder, *options(form))
    try:
        redis.load(server, 1, keys, "1")
        if form == "rdb" and server.ask("SAVE") != "OK":
            contest.fail("SAVE failed")
    finally:
        server.stop()


def run_round(folder, form, keys):
    evict(folder)
    begin = time.monotonic_ns()
    server = redis.Server(folder, *options(form))
    try:
        wall = time.monotonic_ns() - begin
        cpu = contest.cpu_ns(server.process.pid)
        size = server.ask("DBSIZE")
    finally:
        server.stop()
    if size != str(keys):
        contest.fail(f"Redis holds {size} keys, not {keys}")
    return {"open": {"ops": 1, "wall_ns": wall, "cpu_ns": cpu}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--form", choices=["rdb", "aof"], default="rdb")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="redis-", dir=arguments.folder) as folder:
        fill(folder, arguments.form, arguments.keys)
        contest.run("Redis", redis.version(), lambda seed: run_round(folder, arguments.form, arguments.keys))


if __name__ == "__main__":
    main()
