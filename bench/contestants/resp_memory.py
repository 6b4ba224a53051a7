# SPDX-License-Identifier: Apache-2.0
"""What a key costs behind the Redis door: SET with EX for 36-byte UUID text, as redis_memory.py loads it into Redis.

A daemon of our own for each round, on `memory:`, with a socket in a temporary folder, stopped by its pid. bytes is the
growth of its resident memory from empty, per key: all of the process, not what a counter of its own says.
"""

import argparse
import pathlib
import subprocess
import sys
import tempfile
import time

BENCH = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(BENCH))
sys.path.insert(0, str(BENCH / "peers/redis"))

import server as redis  # noqa: E402
from harness import contest  # noqa: E402


class Server:
    """As redis.Server, as far as redis.load() asks it."""

    def __init__(self, hapax, folder):
        self.socket = f"{folder}/door.sock"
        self.process = subprocess.Popen(
            [hapax, "serve", "--store", "memory:", "--gateway", "off", "--admin", "off", "--resp", f"unix:{self.socket}"],
            cwd=folder, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 20
        while self.ask("PING") != "PONG":
            if self.process.poll() is not None or time.monotonic() > deadline:
                contest.fail("hapax serve did not start")
            time.sleep(0.02)

    def ask(self, *command):
        run = subprocess.run(["redis-cli", "-s", self.socket, *command], check=False, capture_output=True, text=True)
        return run.stdout.strip()

    def resident(self):
        with open(f"/proc/{self.process.pid}/smaps_rollup", encoding="ascii") as file:
            line = next(line for line in file if line.startswith("Rss:"))
        return int(line.split()[1]) * 1024

    def stop(self):
        self.process.terminate()
        self.process.wait()


def run_round(arguments, seed):
    with tempfile.TemporaryDirectory(prefix="hapax-bench-door-") as folder:
        server = Server(arguments.hapax, folder)
        try:
            before = server.resident()
            redis.load(server, seed, arguments.keys, "1" if arguments.value_size == 1 else "v" * arguments.value_size)
            size = server.ask("DBSIZE")
            if size != str(arguments.keys):
                contest.fail(f"the door holds {size} keys, not {arguments.keys}")
            grown = server.resident() - before
        finally:
            server.stop()
    return {"bytes": grown / arguments.keys}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hapax", required=True)
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--value-size", type=int, default=1)
    arguments = parser.parse_args()
    version = subprocess.run([arguments.hapax, "version"], capture_output=True, text=True, check=True).stdout.split()[1]
    contest.run("hapax", version, lambda seed: run_round(arguments, seed))


if __name__ == "__main__":
    main()
