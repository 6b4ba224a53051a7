# SPDX-License-Identifier: Apache-2.0
"""A redis-server of our own: no port, a socket and its files in a folder, stopped by its pid."""

import random
import subprocess
import time

from harness import contest

BLOCK = 4096


class Server:
    def __init__(self, folder, *options):
        self.folder = folder
        self.socket = f"{folder}/redis.sock"
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", self.socket, "--dir", folder, "--daemonize", "no",
             "--logfile", f"{folder}/redis.log", *options],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
        )
        self.wait()

    def wait(self, seconds=600):
        """Until it answers: while it loads it says that it does."""
        deadline = time.monotonic() + seconds
        while self.ask("PING") != "PONG":
            if self.process.poll() is not None or time.monotonic() > deadline:
                contest.fail("redis-server did not start")
            time.sleep(0.02)

    def ask(self, *command):
        run = subprocess.run(["redis-cli", "-s", self.socket, *command],
                             check=False, capture_output=True, text=True)
        return run.stdout.strip()

    def info(self, section):
        return dict(line.split(":", 1) for line in self.ask("INFO", section).split() if ":" in line)

    def stop(self):
        self.process.terminate()
        self.process.wait()


def version():
    text = subprocess.run(["redis-server", "--version"], check=True, capture_output=True, text=True).stdout
    words = dict(word.split("=", 1) for word in text.split() if "=" in word)
    return f"{words['v']}, {words['malloc']}"


def requests(seed, count, value):
    """SET commands in the Redis protocol for UUID keys, a block at a time."""
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


def load(server, seed, count, text):
    """Load keys by redis-cli --pipe; every reply is counted."""
    value = f"${len(text)}\r\n{text}\r\n"
    pipe = subprocess.Popen(["redis-cli", "-s", server.socket, "--pipe"],
                            stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    for block in requests(seed, count, value):
        pipe.stdin.write(block)
    answer = pipe.communicate()[0].decode()
    if f"errors: 0, replies: {count}" not in answer:
        contest.fail(f"redis-cli --pipe answered {answer.strip()!r}")
