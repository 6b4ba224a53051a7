# SPDX-License-Identifier: Apache-2.0
"""Durable SET NX in Redis: appendfsync always, asked by redis-benchmark over a socket.

The wall time is redis-benchmark's, the CPU time the server's. --clients C --pipeline P keep C times P
commands outstanding; Redis syncs once for all that it read in one turn of its loop.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import server as redis  # noqa: E402
from harness import contest  # noqa: E402

# Above 2^31 - 1 redis-benchmark takes 0, and every key is the same.
RANGE = 2_000_000_000


def run_round(arguments):
    with tempfile.TemporaryDirectory(prefix="redis-", dir=arguments.folder) as folder:
        server = redis.Server(folder, "--save", "", "--appendonly", "yes", "--appendfsync", "always",
                              "--auto-aof-rewrite-percentage", "0")
        try:
            cpu = contest.cpu_ns(server.process.pid)
            begin = time.monotonic_ns()
            subprocess.run(
                ["redis-benchmark", "-s", server.socket, "-c", str(arguments.clients), "-P", str(arguments.pipeline),
                 "-n", str(arguments.operations), "-r", str(RANGE), "-q",
                 "SET", "key:__rand_int__aaaaaaaaaaaaaaaaaaaa", "86400000", "NX", "EX", "86400"],
                check=True, stdout=subprocess.DEVNULL,
            )
            wall = time.monotonic_ns() - begin
            cpu = contest.cpu_ns(server.process.pid) - cpu
            size = int(server.ask("DBSIZE"))
        finally:
            server.stop()
    # Random keys meet now and then.
    if size < arguments.operations * 0.99:
        contest.fail(f"Redis holds {size} keys of {arguments.operations}")
    return {"check": {"ops": arguments.operations, "wall_ns": wall, "cpu_ns": cpu}}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", required=True)
    parser.add_argument("--clients", type=int, default=64)
    parser.add_argument("--pipeline", type=int, default=1)
    parser.add_argument("--operations", type=int, default=100_000)
    arguments = parser.parse_args()
    contest.run("Redis", redis.version(), lambda seed: run_round(arguments))


if __name__ == "__main__":
    main()
