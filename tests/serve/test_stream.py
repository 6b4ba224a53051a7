"""Responses that are too large to keep: they go to the first caller as they come."""

import hashlib
import http.client
import os
import re
import socket
import sqlite3
import threading
import time

from daemon import EVENT, Reply, post, post_batch, serve, structured
from harness import TIMEOUT_SECONDS, expect, until

MIB = 1024 * 1024
PIECE = bytes(range(256)) * 256


class Source:
    """A service that answers each request with `size` bytes, of which it sends `sent` and then closes.

    `at_end`: what it waits for before the last byte.
    """

    def __init__(self, size, sent=None, status=200, framed=True):
        self.size, self.limit, self.status, self.framed = size, size if sent is None else sent, status, framed
        self.sent = 0
        self.requests = 0
        self.at_end = threading.Event()
        self.at_end.set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self.serve, args=(connection,), daemon=True).start()

    def serve(self, connection):
        try:
            with connection, connection.makefile("rb") as reader:
                connection.settimeout(TIMEOUT_SECONDS)
                self.answer(connection, reader)
        except OSError:
            pass

    def answer(self, connection, reader):
        length = 0
        while (line := reader.readline().strip()) != b"":
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        reader.read(length)
        self.requests += 1
        self.sent = 0
        frame = b"Content-Length: %d\r\n" % self.size if self.framed else b""
        connection.sendall(b"HTTP/1.1 %d X\r\nX-Kept: yes\r\n%s\r\n" % (self.status, frame))
        while self.sent < self.limit:
            piece = PIECE[: min(len(PIECE), self.limit - self.sent)]
            if self.sent + len(piece) == self.size:
                connection.sendall(piece[:-1])
                self.at_end.wait(TIMEOUT_SECONDS)
                piece = piece[-1:]
                self.sent = self.size - 1
            connection.sendall(piece)
            self.sent += len(piece)

    def digest(self):
        digest = hashlib.sha256()
        for offset in range(0, self.size, len(PIECE)):
            digest.update(PIECE[: min(len(PIECE), self.size - offset)])
        return digest.hexdigest()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.at_end.set()
        self.listener.close()


def begin(to, event_id, version=11, buffer=None):
    """Post, and return the connection and its response with nothing of the body read."""
    connection = http.client.HTTPConnection(*to, timeout=TIMEOUT_SECONDS)
    connection._http_vsn, connection._http_vsn_str = version, f"HTTP/1.{version - 10}"
    if buffer is not None:
        connection.sock = socket.socket()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer)
        connection.sock.settimeout(TIMEOUT_SECONDS)
        connection.sock.connect(to)
    connection.request("POST", "/", b'{"total":42}', {**EVENT, "ce-id": event_id})
    return connection, connection.getresponse()


def peak_bytes(daemon):
    with open(f"/proc/{daemon.process.pid}/status", encoding="ascii") as status:
        return int(re.search(r"^VmHWM:\s+(\d+) kB", status.read(), re.MULTILINE).group(1)) * 1024


def stalled(source):
    """Nothing more goes through without a reader; or everything did."""
    before = source.sent
    time.sleep(0.1)
    return before > 0 and before == source.sent


def is_replay(daemon, event_id, size, status=200):
    """Is it done? Then others get status and headers, and are told how much is left out."""
    reply = post(daemon.gateway, event_id)
    if reply.decision != "replay":
        expect((reply.status, reply.decision), (409, "in_progress"))
        return False
    expect((reply.status, reply.body, reply.headers["x-kept"]), (status, b"", "yes"))
    expect(reply.headers["hapax-body-omitted"], str(size))
    return True


def test_a_response_of_64_mib(cli):
    """In flat memory, however slowly it is read; and no end of it before the completion."""
    # A sanitizer keeps what is freed for a while: that is not held.
    options = ":".join(filter(None, [os.environ.get("ASAN_OPTIONS"), "quarantine_size_mb=1"]))
    env = cli.env(HAPAX_STORE=None, ASAN_OPTIONS=options)
    with Source(64 * MIB) as source, serve(cli, source.url, env=env) as daemon:
        before = peak_bytes(daemon)
        source.at_end.clear()
        connection, response = begin(daemon.gateway, "1")
        expect((response.status, response.headers["Hapax-Decision"]), (200, "acquired"))
        until(lambda: stalled(source), "the service waits for the client")
        expect(post(daemon.gateway, "1").status, 409)
        digest = hashlib.sha256()
        left = source.size - 1
        while left > 0:
            piece = response.read(min(left, MIB))
            digest.update(piece)
            left -= len(piece)
        source.at_end.set()
        digest.update(response.read())
        expect(digest.hexdigest(), source.digest())
        # A client that has the end of it finds it done.
        assert is_replay(daemon, "1", source.size)
        connection.request("POST", "/", b'{"total":42}', {**EVENT, "ce-id": "1"})
        expect(Reply(connection.getresponse()).decision, "replay", "on the same connection")
        connection.close()
        expect(source.requests, 1)
        grown = peak_bytes(daemon) - before
        assert grown < 16 * MIB, f"{grown} bytes"


def test_a_client_that_goes_away(cli):
    """The outcome is kept all the same."""
    with Source(32 * MIB) as source, serve(cli, source.url) as daemon:
        connection, response = begin(daemon.gateway, "1")
        response.read(MIB)
        until(lambda: stalled(source), "the service waits for the client")
        response.close()
        connection.close()
        until(lambda: is_replay(daemon, "1", source.size), "it is done")
        expect(source.requests, 1)


def test_a_service_that_dies_in_the_middle(cli):
    """The outcome is unknown: the client cannot take it for whole, and the next delivery runs."""
    for version in (11, 10):
        with Source(8 * MIB, sent=2 * MIB) as source, serve(cli, source.url) as daemon:
            connection, response = begin(daemon.gateway, "1", version)
            expect(response.status, 200)
            try:
                body = response.read()
                raise AssertionError(f"{len(body)} bytes were taken for all, HTTP {version}")
            except (http.client.IncompleteRead, ConnectionResetError):
                pass
            connection.close()
            source.limit = source.size
            connection, response = begin(daemon.gateway, "1", version)
            expect((response.headers["Hapax-Decision"], len(response.read())), ("acquired", source.size))
            connection.close()
            expect(source.requests, 2)


def test_those_who_waited_and_batches(cli):
    """They get status and headers; a batch has no body of one event to pass on."""
    with Source(4 * MIB) as source, serve(cli, source.url, config="defaults:\n  wait: 60s\n") as daemon:
        source.at_end.clear()
        connection, response = begin(daemon.gateway, "1")
        done = []
        thread = threading.Thread(target=lambda: done.append(is_replay(daemon, "1", source.size)))
        thread.start()
        source.at_end.set()
        expect(len(response.read()), source.size)
        connection.close()
        thread.join()
        expect(done, [True])
        reply = post_batch(daemon.gateway, [structured("1"), structured("2")])
        expect((reply.status, reply.body), (200, b""))
        assert is_replay(daemon, "2", source.size)
        expect(source.requests, 2)


def test_a_failure_with_a_large_body(cli):
    with Source(2 * MIB, status=500) as source, serve(cli, source.url) as daemon:
        for attempt in (1, 2):
            reply = post(daemon.gateway, "1")
            expect((reply.status, reply.decision, len(reply.body)), (500, "acquired", source.size))
            expect(source.requests, attempt)
    with Source(2 * MIB, status=302) as source, serve(cli, source.url) as daemon:
        post(daemon.gateway, "1").is_problem(502, "redirect")


def test_a_client_that_is_too_slow_for_the_run(cli):
    """It is not the service that is late: the client is cut off, and what happened is kept."""
    config = "defaults:\n  max_run: 3s\nhttp:\n  send_timeout: 1h\n"
    with Source(32 * MIB) as source, serve(cli, source.url, config=config) as daemon:
        connection, _ = begin(daemon.gateway, "1", buffer=4096)
        until(lambda: is_replay(daemon, "1", source.size), "it is done")
        connection.close()
        expect(source.requests, 1)


def test_a_response_that_ends_with_its_connection(cli):
    """It has no other end: that of a service that died looks the same, and is taken for whole."""
    with Source(1000, sent=900, framed=False) as source, serve(cli, source.url) as daemon:
        expect(len(post(daemon.gateway, "1").body), 900)
        expect((post(daemon.gateway, "1").decision, source.requests), ("replay", 1))
    with Source(2 * MIB, sent=MIB, framed=False) as source, serve(cli, source.url) as daemon:
        expect(len(post(daemon.gateway, "1").body), MIB)
        assert is_replay(daemon, "1", MIB)


def test_a_completion_that_cannot_be_stored(cli):
    """The reply comes all the same, and says so: in its head, or behind a body that was on its way."""
    path = cli.folder / "ledger.db"
    for size, place in ((100, "head"), (2 * MIB, "trailer")):
        config = "store:\n  timeout: 100ms\n"
        with Source(size) as source, serve(cli, source.url, store=f"sqlite:{path}", config=config) as daemon:
            source.at_end.clear()
            with socket.create_connection(daemon.gateway, timeout=TIMEOUT_SECONDS) as client:
                head = "".join(f"{name}: {value}\r\n" for name, value in {**EVENT, "ce-id": place}.items())
                client.sendall(f"POST / HTTP/1.1\r\nHost: x\r\n{head}Connection: close\r\nContent-Length: 2\r\n\r\n{{}}".encode())
                until(lambda: source.requests == 1, "the service has it")
                writer = sqlite3.connect(path, timeout=TIMEOUT_SECONDS, isolation_level=None)
                writer.execute("BEGIN IMMEDIATE")
                source.at_end.set()
                answer = b""
                while piece := client.recv(MIB):
                    answer += piece
                writer.execute("ROLLBACK")
                writer.close()
            head, body = answer.split(b"\r\n\r\n", 1)
            expect(b"Hapax-Stored: no" in head.split(b"\r\n"), place == "head", f"{head}")
            expect(body.endswith(b"\r\n0\r\nHapax-Stored: no\r\n\r\n"), place == "trailer", f"{body[-60:]}")
