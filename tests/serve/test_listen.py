"""The stream of decisions, when those who listen are slow, or may no longer."""

import select
import signal
import socket

from daemon import get
from harness import expect, expect_in, is_sanitized, until
from test_api import V1, Api, Listener, api, digest
from test_proxy import memory_kib

# So long that a few thousand of them fill what the kernel holds for a connection.
LONG = "k" * 1000

# No more than a door notes between two looks.
ROUND = 200


class Deaf:
    """Has asked for the stream, and reads nothing of it."""

    def __init__(self, call):
        self.socket = socket.socket()
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        self.socket.connect(call.to)
        head = f"GET {V1}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {call.token}\r\n\r\n"
        self.socket.sendall(head.encode())

    @property
    def is_dropped(self):
        poll = select.poll()
        poll.register(self.socket, 0)
        return bool(poll.poll(0))


def test_a_listener_that_does_not_read_is_dropped(cli):
    """No other client notices, and nothing is kept for it beyond what the row has."""
    with api(cli) as (daemon, call):
        others = Listener(call)
        until(lambda: others.events, "the stream has begun")
        deaf = [Deaf(call) for _ in range(3)]
        told = 0
        before = None
        while not all(client.is_dropped for client in deaf):
            call("POST", "/check", [{"key": f"{LONG}{number}"} for number in range(ROUND)])
            told += ROUND
            until(lambda: others.count("decision") == told, "who reads is told all of them")
            # The row of the last decisions is there from then on.
            before = memory_kib(daemon) if told == 8 * ROUND else before
            assert told < 500 * ROUND, "no client was dropped"
        # What three connections may hold, and no more: not what was told meanwhile. A sanitizer keeps what is freed.
        assert is_sanitized() or memory_kib(daemon) - before < 2 * 1024, (before, memory_kib(daemon), told)
        expect_in('"missed"', missed(call, others))
        for client in deaf:
            client.socket.close()
        others.close()


def missed(call, listener):
    """What a client gets that reconnects after a long time."""
    process = listener.events[-1]["id"].partition("-")[0]
    late = Listener(call, last_id=f"{process}-1")
    until(lambda: late.events and any("event" in event for event in late.events), "it is told")
    first = next(event for event in late.events if "event" in event)
    late.close()
    return f'"{first["event"]}"'


def test_whoever_loses_a_token_loses_the_stream(cli):
    """A reload ends streams; a client that may still listen continues after what it had."""
    with api(cli) as (daemon, call):
        gone, stays = Listener(Api(daemon, "read")), Listener(call)
        call("POST", "/check", {"key": "a"})
        until(lambda: gone.decisions and stays.decisions, "both are told")
        text = daemon.config.read_text()
        line = next(line for line in text.splitlines(keepends=True) if "name: read" in line)
        daemon.config.write_text(text.replace(line, ""))
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(lambda line: "configuration reloaded" in line)
        for listener in (gone, stays):
            until(lambda one=listener: not one.thread.is_alive(), "the stream has ended")
        Api(daemon, "read")("GET", "/events").is_problem(401)
        call("POST", "/check", {"key": "b"})
        again = Listener(call, last_id=stays.events[-1]["id"])
        until(lambda: again.decisions, "it goes on")
        expect(again.decisions, [("acquired", "b")])
        again.close()


def test_no_more_listeners_than_there_is_room_for(cli):
    with api(cli) as (daemon, call):
        clients = [Listener(call) for _ in range(100)]
        call("GET", "/events").is_problem(503, "too many clients are already listening")
        clients.pop().close()
        late = []

        def is_back():
            reply = socket.create_connection(call.to)
            reply.sendall(f"GET {V1}/events HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {call.token}\r\n\r\n".encode())
            late.append(reply)
            return b" 200 " in reply.recv(100)

        until(is_back, "there is room again")
        for client in clients:
            client.close()
        for reply in late:
            reply.close()


def test_tokens_are_compared_by_their_digest(cli):
    """Nothing that is sent or logged holds a token."""
    with api(cli) as (daemon, call):
        call("GET", "/keys")
        Api(daemon, "token-of-nobody-0123456789abcdef")("GET", "/keys").is_problem(401)
        texts = [get(daemon.admin, "/openapi.json").body.decode(), call("GET", "/config").body.decode(), *daemon.lines]
        for text in texts:
            for secret in ("token-of-nobody", call.token, digest(call.token)):
                assert secret not in text, text
