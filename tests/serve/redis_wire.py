"""redis_wire.py - the Redis protocol by hand, so that replies can be compared byte for byte; and a real redis-server."""

import contextlib
import select
import shutil
import socket
import subprocess

from harness import TIMEOUT_SECONDS, Skip, until


OFF = ("--gateway", "off", "--resp", "127.0.0.1:0")


def door(daemon):
    """Where the Redis door of a daemon is."""
    host, _, port = daemon.ready["resp"].rpartition(":")
    return (host, int(port))


def pack(*words):
    """A command as clients send it."""
    words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
    return b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(word), word) for word in words)


class Wire:
    """A connection; replies come back as the bytes that they are."""

    def __init__(self, to):
        if isinstance(to, str):
            self.socket = socket.socket(socket.AF_UNIX)
            self.socket.settimeout(TIMEOUT_SECONDS)
            self.socket.connect(to)
        else:
            self.socket = socket.create_connection(to, timeout=TIMEOUT_SECONDS)
            self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = b""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, data):
        self.socket.sendall(data)

    def end(self):
        """No more is sent."""
        self.socket.shutdown(socket.SHUT_WR)

    def has_reply(self):
        """Is there something to be read now?"""
        return bool(self.buffer) or bool(select.select([self.socket], [], [], 0)[0])

    def more(self):
        piece = self.socket.recv(1 << 16)
        if not piece:
            raise EOFError(self.buffer)
        self.buffer += piece

    def line(self, at):
        while (end := self.buffer.find(b"\r\n", at)) < 0:
            self.more()
        return end + 2

    def skip(self, at):
        """Behind the value that begins at `at`."""
        end = self.line(at)
        kind, head = self.buffer[at : at + 1], self.buffer[at + 1 : end - 2]
        if kind in b"+-:_#,(":
            return end
        count = int(head)
        if kind in b"$=!":
            while count >= 0 and len(self.buffer) < end + count + 2:
                self.more()
            return end + count + 2 if count >= 0 else end
        for _ in range(count * (2 if kind in b"%|" else 1)):
            end = self.skip(end)
        return end

    def reply(self):
        end = self.skip(0)
        reply, self.buffer = self.buffer[:end], self.buffer[end:]
        return reply

    def ask(self, *words):
        self.send(pack(*words))
        return self.reply()

    def pipeline(self, commands):
        self.send(b"".join(pack(*command) for command in commands))
        return [self.reply() for _ in commands]

    def rest(self):
        """All that comes until the other side closes."""
        with contextlib.suppress(EOFError, ConnectionResetError):
            while True:
                self.more()
        rest, self.buffer = self.buffer, b""
        return rest


@contextlib.contextmanager
def real_redis(cli, *options):
    """A redis-server of its own, on a unix socket: yields the path."""
    program = shutil.which("redis-server")
    if program is None:
        raise Skip("there is no redis-server")
    path = str(cli.folder / "redis.sock")
    process = subprocess.Popen(
        [program, "--port", "0", "--unixsocket", path, "--save", "", "--databases", "1", "--dir", str(cli.folder), *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
    )

    def answers():
        try:
            with Wire(path) as wire:
                return wire.ask("PING")[:1] in b"+-"
        except OSError:
            return False

    try:
        until(answers, "redis-server answers")
        yield path
    finally:
        process.kill()
        process.wait()
