"""server.py - a Redis of its own, which syncs before each answer, and can be killed."""

import shutil
import subprocess

from harness import Skip, until
from streams import Stream


class Server:
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
