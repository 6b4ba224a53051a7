"""streams.py - a stream of Redis for tests, and `hapax consume` as a process."""

import os
import socket

from harness import Skip
from kafka import Consume, Service  # noqa: F401

PATH = os.environ.get("HAPAX_TEST_REDIS")


class Redis:
    """A client that speaks as much RESP as is needed."""

    def __init__(self, path=PATH):
        if path is None:
            raise Skip("there is no Redis (tests/redis/with_redis)")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.settimeout(60)
        self.socket.connect(path)
        self.file = self.socket.makefile("rb")

    def read(self):
        line = self.file.readline()[:-2]
        kind, rest = line[:1], line[1:]
        if kind == b"-":
            raise AssertionError(rest.decode())
        if kind == b":":
            return int(rest)
        if kind == b"$":
            return None if rest == b"-1" else self.file.read(int(rest) + 2)[:-2]
        if kind == b"*":
            return None if rest == b"-1" else [self.read() for _ in range(int(rest))]
        return rest

    def send(self, words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))

    def do(self, *words):
        self.send(words)
        return self.read()


    def kill_others(self, *ids):
        """Every connection but this one and those."""
        for line in self.do("CLIENT", "LIST").decode().splitlines():
            number = int(line.split()[0].removeprefix("id="))
            if number not in (*ids, self.do("CLIENT", "ID")):
                self.do("CLIENT", "KILL", "ID", number, "SKIPME", "yes")


class Stream(Redis):
    made = 0

    def __init__(self, path=PATH, name=None):
        super().__init__(path)
        self.path = path
        Stream.made += 1
        self.name = name or f"orders{os.getpid()}-{Stream.made}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.do("DEL", self.name, f"{self.name}.dead", f"{self.name}.duplicate")
        self.socket.close()

    def fill(self, entries, name=None):
        """entries: {field: value}; their ids."""
        for entry in entries:
            self.send(["XADD", name or self.name, "*", *[part for pair in entry.items() for part in pair]])
        return [self.read().decode() for _ in entries]

    def entries(self, name=None):
        """[{field: value}]"""
        found = []
        for _, fields in self.do("XRANGE", name or self.name, "-", "+"):
            found.append({fields[i].decode(): fields[i + 1] for i in range(0, len(fields), 2)})
        return found

    def pending(self, group="g"):
        return self.do("XPENDING", self.name, group)[0]

    def unread(self, group="g"):
        """Pending ones, and those that no member was given."""
        for info in self.do("XINFO", "GROUPS", self.name):
            facts = dict(zip(info[::2], info[1::2]))
            if facts[b"name"] == group.encode():
                return facts[b"pending"] + facts[b"lag"]
        return -1

    def members(self, group="g"):
        return [info[1].decode() for info in self.do("XINFO", "CONSUMERS", self.name, group)]

    def url(self, group="g", **options):
        more = "".join(f"&{name}={value}" for name, value in options.items())
        return f"redis+unix:{self.path}?stream={self.name}&group={group}{more}"


def event(number, prefix="", **more):
    """Fields of a CloudEvent."""
    attributes = {"specversion": "1.0", "type": "order.paid", "source": "/shop", "id": f"A-{number}"}
    attributes["datacontenttype"] = "application/json"
    return {**{prefix + name: value for name, value in attributes.items()}, "data": f'{{"n":{number}}}', **more}


def numbers(count):
    return [event(n) for n in range(count)]
