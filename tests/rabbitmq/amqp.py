"""amqp.py - AMQP 0-9-1, as far as tests need it: declare, publish with confirms, get.

Written from the specification, so that what hapax reads was not written by the library that it reads with.
"""

import socket
import struct

PROPERTIES = [
    ("content_type", 15),
    ("content_encoding", 14),
    ("headers", 13),
    ("delivery_mode", 12),
    ("priority", 11),
    ("correlation_id", 10),
    ("reply_to", 9),
    ("expiration", 8),
    ("message_id", 7),
    ("timestamp", 6),
    ("type", 5),
    ("user_id", 4),
    ("app_id", 3),
]


def short(text):
    data = text.encode()
    return bytes([len(data)]) + data


def long(data):
    return struct.pack(">I", len(data)) + data


def value(item):
    if isinstance(item, bool):
        return b"t" + bytes([item])
    if isinstance(item, int):
        return b"l" + struct.pack(">q", item)
    if isinstance(item, float):
        return b"d" + struct.pack(">d", item)
    if isinstance(item, str):
        return b"S" + long(item.encode())
    if isinstance(item, bytes):
        return b"S" + long(item)
    if isinstance(item, list):
        return b"A" + long(b"".join(value(one) for one in item))
    if isinstance(item, dict):
        return b"F" + table(item)
    return b"V"


def table(items):
    return long(b"".join(short(name) + value(item) for name, item in items.items()))


class Reader:
    def __init__(self, data, depth=0):
        self.data, self.at, self.depth = data, 0, depth

    def take(self, size):
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, form):
        return struct.unpack(">" + form, self.take(struct.calcsize(">" + form)))[0]

    def short(self):
        return self.take(self.number("B")).decode()

    def value(self):
        kind = self.take(1)
        if kind == b"t":
            return bool(self.number("B"))
        if kind in b"SxX":
            return self.take(self.number("I")).decode("utf-8", "replace")
        if kind == b"F":
            return self.table()
        if kind == b"A":
            inner = Reader(self.take(self.number("I")), self.depth + 1)
            items = []
            while inner.at < len(inner.data):
                items.append(inner.value())
            return items
        forms = {b"b": "b", b"B": "B", b"s": "h", b"u": "H", b"I": "i", b"i": "I", b"l": "q", b"L": "q", b"d": "d", b"f": "f", b"T": "Q"}
        return None if kind == b"V" else self.number(forms[kind])

    def table(self):
        inner = Reader(self.take(self.number("I")), self.depth + 1)
        items = {}
        # Tests send tables that are deeper than Python goes.
        if self.depth > 100:
            return items
        while inner.at < len(inner.data):
            name = inner.short()
            items[name] = inner.value()
        return items


def frame(kind, channel, payload):
    return struct.pack(">BHI", kind, channel, len(payload)) + payload + b"\xce"


class Broker:
    """One connection with one channel, which confirms."""

    def __init__(self, address, vhost="/"):
        host, port = address.rsplit(":", 1)
        self.address = address
        self.socket = socket.create_connection((host, int(port)), timeout=60)
        self.buffer = b""
        self.published = 0
        self.confirmed = 0
        self.socket.sendall(b"AMQP\x00\x00\x09\x01")
        self.wait(10, 10)
        self.send(0, 10, 11, table({}) + short("PLAIN") + long(b"\0guest\0guest") + short("en_US"))
        channel_max, frame_max, _ = struct.unpack(">HIH", self.wait(10, 30).take(8))
        self.frame_max = frame_max
        self.send(0, 10, 31, struct.pack(">HIH", channel_max, frame_max, 0))
        self.send(0, 10, 40, short(vhost) + short("") + b"\0")
        self.wait(10, 41)
        self.send(1, 20, 10, short(""))
        self.wait(20, 11)
        self.send(1, 85, 10, b"\0")
        self.wait(85, 11)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def send(self, channel, class_id, method_id, arguments):
        self.socket.sendall(frame(1, channel, struct.pack(">HH", class_id, method_id) + arguments))

    def read(self, size):
        while len(self.buffer) < size:
            part = self.socket.recv(1 << 20)
            if not part:
                raise AssertionError("the broker hung up")
            self.buffer += part
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def next(self):
        while True:
            kind, _, size = struct.unpack(">BHI", self.read(7))
            payload = self.read(size)
            self.read(1)
            if kind != 8:
                return kind, Reader(payload)

    def wait(self, class_id, *method_ids):
        """The next method, which must be one of these."""
        kind, reader = self.next()
        found = (reader.number("H"), reader.number("H")) if kind == 1 else (kind, 0)
        if found[0] != class_id or found[1] not in method_ids:
            raise AssertionError(f"wanted {class_id}, {method_ids}; the broker said {found}: {reader.data!r}")
        reader.method = found[1]
        return reader

    def declare(self, queue, arguments=None, passive=False):
        """How many messages are ready in it, and how many consumers it has."""
        arguments = {"x-queue-type": "quorum"} if arguments is None else arguments
        self.send(1, 50, 10, b"\0\0" + short(queue) + bytes([2 | passive]) + table(arguments))
        reader = self.wait(50, 11)
        reader.short()
        return reader.number("I"), reader.number("I")

    def ready(self, queue):
        return self.declare(queue, {}, passive=True)[0]

    def consumers(self, queue):
        return self.declare(queue, {}, passive=True)[1]

    def delete(self, queue):
        self.send(1, 50, 40, b"\0\0" + short(queue) + b"\0")
        self.wait(50, 41)

    def declare_exchange(self, exchange):
        self.send(1, 40, 10, b"\0\0" + short(exchange) + short("topic") + b"\2" + table({}))
        self.wait(40, 11)

    def bind(self, queue, exchange, key):
        self.send(1, 50, 20, b"\0\0" + short(queue) + short(exchange) + short(key) + b"\0" + table({}))
        self.wait(50, 21)

    def delete_exchange(self, exchange):
        self.send(1, 40, 20, b"\0\0" + short(exchange) + b"\0")
        self.wait(40, 21)

    def publish(self, queue, messages):
        """messages: (body, {property: value}); all are confirmed at the end."""
        out = []
        for body, properties in messages:
            body = body if isinstance(body, bytes) else body.encode()
            flags, encoded = 0, b""
            for name, bit in PROPERTIES:
                if name not in properties:
                    continue
                flags |= 1 << bit
                item = properties[name]
                if name == "headers":
                    encoded += item if isinstance(item, bytes) else table(item)
                elif name in ("delivery_mode", "priority"):
                    encoded += bytes([item])
                elif name == "timestamp":
                    encoded += struct.pack(">Q", item)
                else:
                    encoded += short(item)
            out.append(frame(1, 1, struct.pack(">HH", 60, 40) + b"\0\0" + short("") + short(queue) + b"\1"))
            out.append(frame(2, 1, struct.pack(">HHQH", 60, 0, len(body), flags) + encoded))
            step = self.frame_max - 8
            out += [frame(3, 1, body[at : at + step]) for at in range(0, len(body), step)]
            self.published += 1
        self.socket.sendall(b"".join(out))
        self.confirm(self.published)

    def confirm(self, last):
        """Until the broker has them all."""
        single = set()
        while self.confirmed < last:
            reader = self.wait(60, 80)
            tag, multiple = reader.number("Q"), reader.number("B")
            if multiple:
                self.confirmed = max(self.confirmed, tag)
            else:
                single.add(tag)
            while self.confirmed + 1 in single:
                self.confirmed += 1

    def get(self, queue):
        """(body, properties) of the next message, which is taken out; None: there is none."""
        self.send(1, 60, 70, b"\0\0" + short(queue) + b"\1")
        if self.wait(60, 71, 72).method == 72:
            return None
        _, reader = self.next()
        reader.take(4)
        size, flags = reader.number("Q"), reader.number("H")
        properties = {}
        for name, bit in PROPERTIES:
            if not flags & 1 << bit:
                continue
            if name == "headers":
                properties[name] = reader.table()
            elif name in ("delivery_mode", "priority"):
                properties[name] = reader.number("B")
            elif name == "timestamp":
                properties[name] = reader.number("Q")
            else:
                properties[name] = reader.short()
        body = b""
        while len(body) < size:
            body += self.next()[1].data
        return body, properties

    def bounce(self, queue, times):
        """Take the first message and give it back, so often."""
        while times > 0:
            self.send(1, 60, 70, b"\0\0" + short(queue) + b"\0")
            reader = self.wait(60, 71, 72)
            if reader.method == 72:
                continue
            tag = reader.number("Q")
            _, header = self.next()
            header.take(4)
            left = header.number("Q")
            while left > 0:
                left -= len(self.next()[1].data)
            self.send(1, 60, 120, struct.pack(">QB", tag, 2))
            times -= 1

    def get_all(self, queue, count):
        found = [self.get(queue) for _ in range(count)]
        assert None not in found, f"{queue} had fewer than {count}"
        return found
