# SPDX-License-Identifier: Apache-2.0
"""What a key costs in Redis: SET with EX for 36-byte UUID text, loaded by redis-cli --pipe.

The server is one of our own: no port, a socket in a temporary folder, nothing written to disk, stopped
by its pid. Measures: bytes (used_memory, what its allocator handed out) and resident (RSS), both as
growth from empty, per key.
"""

import argparse
import pathlib
import random
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2]))

from harness import contest  # noqa: E402

BLOCK = 4096


class Server:
    """A redis-server of this process."""

    def __init__(self, folder):
        self.socket = f"{folder}/redis.sock"
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", folder, "--save", "",
             "--appendonly", "no", "--daemonize", "no", "--logfile", f"{folder}/redis.log"],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )
        deadline = time.monotonic() + 10
        while self.ask("PING") != "PONG":
            if self.process.poll() is not None or time.monotonic() > deadline:
                contest.fail("redis-server did not start")
            time.sleep(0.05)

    def ask(self, *command):
        run = subprocess.run(["redis-cli", "-s", self.socket, *command],
                             check=False, capture_output=True, text=True)
        return run.stdout.strip()

    def memory(self):
        """used_memory and used_memory_rss."""
        fields = dict(line.split(":", 1) for line in self.ask("INFO", "memory").split() if ":" in line)
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

    def stop(self):
        self.process.terminate()
        self.process.wait()


def requests(seed, count, value):
    """SET commands in the Redis protocol, a block at a time."""
    source = random.Random(seed)
    for begin in range(0, count, BLOCK):
        size = min(BLOCK, count - begin)
        text = source.randbytes(16 * size).hex()
        parts = []
        for at in range(0, 32 * size, 32):
            uuid = (f"{text[at:at + 8]}-{text[at + 8:at + 12]}-4{text[at + 13:at + 16]}-"
                    f"a{text[at + 17:at + 20]}-{text[at + 20:at + 32]}")
            parts.append(f"*5\r\n$3\r\nSET\r\n$36\r\n{uuid}\r\n{value}$2\r\nEX\r\n$5\r\n86400\r\n")
        yield "".join(parts).encode()


def load(server, seed, count, value_size):
    text = "1" if value_size == 1 else "v" * value_size
    value = f"${len(text)}\r\n{text}\r\n"
    pipe = subprocess.Popen(["redis-cli", "-s", server.socket, "--pipe"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for block in requests(seed, count, value):
        pipe.stdin.write(block)
    answer = pipe.communicate()[0].decode()
    if f"errors: 0, replies: {count}" not in answer:
        contest.fail(f"redis-cli --pipe answered {answer.strip()!r}")


def run_round(seed, count, value_size):
    with tempfile.TemporaryDirectory(prefix="hapax-bench-redis-") as folder:
        server = Server(folder)
        try:
            used, resident = server.memory()
            load(server, seed, count, value_size)
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
    version = subprocess.run(["redis-server", "--version"], check=True, capture_output=True, text=True).stdout
    words = dict(word.split("=", 1) for word in version.split() if "=" in word)
    contest.run("Redis", f"{words['v']}, {words['malloc']}",
                lambda seed: run_round(seed, arguments.keys, arguments.value_size))


if __name__ == "__main__":
    main()
