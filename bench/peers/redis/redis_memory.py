# SPDX-License-Identifier: Apache-2.0
"""What a key costs in Redis: SET with EX for 36-byte UUID text, loaded by redis-cli --pipe.

The server is one of our own: no port, a socket in a temporary folder, nothing written to disk, stopped
by its pid. Measures: bytes (used_memory, what its allocator handed out) and resident (RSS), both as
growth from empty, per key.
"""

import argparse
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import server as redis  # noqa: E402
from harness import contest  # noqa: E402


class Server(redis.Server):
    """Nothing is written to disk."""

    def __init__(self, folder):
        super().__init__(folder, "--save", "", "--appendonly", "no")

    def memory(self):
        """used_memory and used_memory_rss."""
        fields = self.info("memory")
        return int(fields["used_memory"]), int(fields["used_memory_rss"])

    def settled_memory(self):
        """The same once tables that were growing have moved: two equal readings a second apart."""
        before = self.memory()
        while True:
            time.sleep(1)
            now = self.memory()
            if abs(now[0] - before[0]) < 65536:
                return now
            before = now


def run_round(seed, count, value_size):
    with tempfile.TemporaryDirectory(prefix="hapax-bench-redis-") as folder:
        server = Server(folder)
        try:
            used, resident = server.memory()
            redis.load(server, seed, count, "1" if value_size == 1 else "v" * value_size)
            size = server.ask("DBSIZE")
            if size != str(count):
                contest.fail(f"Redis holds {size} keys, not {count}")
            used_after, resident_after = server.settled_memory()
        finally:
            server.stop()
    return {"bytes": (used_after - used) / count, "resident": (resident_after - resident) / count}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--keys", type=int, default=1_000_000)
    parser.add_argument("--value-size", type=int, default=1)
    arguments = parser.parse_args()
    contest.run("Redis", redis.version(),
                lambda seed: run_round(seed, arguments.keys, arguments.value_size))


if __name__ == "__main__":
    main()
