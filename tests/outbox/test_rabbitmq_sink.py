#!/usr/bin/env python3
"""test_rabbitmq_sink HAPAX - hapax outbox relay to a broker that answers in an order that no real one can be made to."""

import contextlib
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading

PROGRAM = sys.argv[1]
PREAMBLE = b"AMQP\x00\x00\x09\x01"
START_OK, OPEN, CONNECTION_CLOSE = (10, 11), (10, 40), (10, 50)
CHANNEL_OPEN, CHANNEL_CLOSE, CONFIRM_SELECT = (20, 10), (20, 40), (85, 10)


def short(text):
    return bytes([len(text)]) + text


def long(text):
    return struct.pack(">I", len(text)) + text


def method(channel, number, arguments=b""):
    payload = struct.pack(">HH", *number) + arguments
    return struct.pack(">BHI", 1, channel, len(payload)) + payload + b"\xce"


BLOCKED = method(0, (10, 60), short(b"low on memory"))
ACK = method(1, (60, 80), struct.pack(">QB", 1, 0))
CLOSE = method(1, CHANNEL_CLOSE, struct.pack(">H", 406) + short(b"PRECONDITION_FAILED") + struct.pack(">HH", 60, 40))
ANSWERS = {
    START_OK: method(0, (10, 30), struct.pack(">HIH", 16, 131072, 0)),
    OPEN: method(0, (10, 41), short(b"")),
    CHANNEL_OPEN: method(1, (20, 11), long(b"")),
    CHANNEL_CLOSE: method(1, (20, 41)),
    CONNECTION_CLOSE: method(0, (10, 51)),
    CONFIRM_SELECT: method(1, (85, 11)),
}


class Broker:
    """Answers each published message with the next of answers, then with an ack."""

    def __init__(self, answers):
        self.answers = list(answers)
        self.published = 0
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"amqp://guest:guest@127.0.0.1:{self.listener.getsockname()[1]}/"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            threading.Thread(target=self.serve, args=(self.listener.accept()[0],), daemon=True).start()

    def serve(self, connection):
        with contextlib.suppress(OSError), connection:
            self.answer(connection)

    def answer(self, connection):
        stream = connection.makefile("rb")
        if stream.read(8) != PREAMBLE:
            return
        connection.sendall(method(0, (10, 10), b"\x00\x09" + long(b"") + long(b"PLAIN") + long(b"en_US")))
        body_left = None
        while len(head := stream.read(7)) == 7:
            kind, _, size = struct.unpack(">BHI", head)
            payload = stream.read(size + 1)[:-1]
            if kind == 1 and struct.unpack(">HH", payload[:4]) in ANSWERS:
                connection.sendall(ANSWERS[struct.unpack(">HH", payload[:4])])
            elif kind == 2:
                body_left = struct.unpack(">Q", payload[4:12])[0]
            elif kind == 3:
                body_left -= len(payload)
            if body_left == 0:
                body_left = None
                self.published += 1
                connection.sendall(self.answers.pop(0) if self.answers else ACK)


def hapax(*arguments, data=b""):
    return subprocess.run([PROGRAM, "outbox", *arguments], input=data, check=True, capture_output=True, timeout=120).stdout.decode()


def main():
    # The broker closes the channel at the first message, and so the row is sent alone. Then it confirms it, and closes
    # the channel after that. It is blocked in between: the sink reads on until the end.
    broker = Broker([CLOSE, BLOCKED + ACK + CLOSE])
    with tempfile.TemporaryDirectory() as folder:
        db = f"--db=sqlite:{pathlib.Path(folder) / 'shop.db'}"
        hapax("init", db)
        hapax("add", db, "-t", "orders", "--id", "e1", data=b"x")
        hapax("relay", db, "--until-empty", "--to", broker.url)
        status = hapax("status", db, "-o", "json")
    is_sent = '"parked":0' in status and '"sent":1' in status and broker.published == 2
    print("1..1")
    print(f"# {status.strip()}, published {broker.published} times")
    print(f"{'ok' if is_sent else 'not ok'} 1 - a row that was confirmed stays sent, although the channel closes")
    return 0 if is_sent else 1


sys.exit(main())
