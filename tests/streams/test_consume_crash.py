"""`hapax consume` from Redis Streams, killed at random, as is the server.

Issue 11 asks for 10,000 messages with 10 % duplicates; that is with HAPAX_PROOF=1, here it is some hundred.
"""

import shutil
import subprocess

from crash import kill_at_random
from harness import Skip, expect, until
from streams import Stream, event


class Server:
    """A Redis of its own, which syncs before each answer, and can be killed."""

    def __init__(self, folder):
        if shutil.which("redis-server") is None:
            raise Skip("redis-server is not installed (tools/setup test)")
        self.folder = folder
        self.path = folder / "redis.sock"
        self.start()

    def start(self):
        settings = ["--port", "0", "--unixsocket", self.path, "--dir", self.folder, "--appendonly", "yes"]
        settings += ["--appendfsync", "always", "--save", "", "--logfile", self.folder / "redis.log"]
        self.process = subprocess.Popen(["redis-server", *[str(s) for s in settings]], stdout=subprocess.DEVNULL)
        until(self.is_up, "Redis is there")

    def is_up(self):
        try:
            return Stream(str(self.path)).do("PING") == b"PONG"
        except (OSError, AssertionError):
            return False

    def restart(self):
        self.process.kill()
        self.process.wait()
        self.start()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


def test_a_consumer_killed_at_random_loses_nothing(cli):
    with Server(cli.folder) as server:
        stream = Stream(str(server.path))

        def fill(numbers):
            for at in range(0, len(numbers), 500):
                stream.fill([event(n) for n in numbers[at : at + 500]])

        def is_drained(_figures):
            return Stream(str(server.path), stream.name).unread() == 0

        kill_at_random(cli, "Redis Streams", fill, lambda: stream.url(min_idle="500ms"), server.restart, is_drained)
        stream = Stream(str(server.path), stream.name)
        expect((stream.pending(), stream.unread()), (0, 0))
