"""Connections that do nothing, and guesses: neither keeps other clients out."""

import contextlib
import hashlib
import itertools
import json
import secrets
import shutil
import socket
import time

import network
from daemon import get, metrics, request, serve, upstream
from harness import PROGRAM, TIMEOUT_SECONDS, Skip, expect, expect_in, proof, scaled, until

# `secret`
USER = "{name: default, password_sha256: 2bb80d537b1da3e38bd30361aa855686bde0eacd7162fef6a25fe97bf527a25b}"
PROBES = ["/livez", "/readyz", "/healthz", "/startupz", "/metrics"]


def resp_address(daemon):
    host, _, port = daemon.ready["resp"].rpartition(":")
    return host, int(port)


def test_probes_are_answered_beside_idle_connections(cli):
    """The connection that was idle for longest makes room; an active one stays."""
    limit = shutil.which("prlimit")
    if limit is None:
        raise Skip("prlimit is not there")
    count = scaled(3000, 150)
    # 512 descriptors: 32 connections at the admin listener.
    command = (limit, "--nofile=512:512", str(PROGRAM))
    with upstream() as service, serve(cli, service.url, command=command) as daemon, contextlib.ExitStack() as idle:
        asking = socket.create_connection(daemon.admin, timeout=TIMEOUT_SECONDS)
        with proof("idle connections at the admin listener", count), asking:
            for number in range(count):
                connection = idle.enter_context(socket.create_connection(daemon.admin, timeout=TIMEOUT_SECONDS))
                if number % 3 == 0:
                    with contextlib.suppress(ConnectionError):
                        connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\n")
                if number % 10 == 0:
                    # A connection that is used is kept. The kernel queues connections that the daemon has not
                    # accepted: when this probe is answered there are none left to displace it.
                    expect(get(daemon.admin, "/livez").status, 200)
                    asking.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n")
                    expect_in(b"200 OK", asking.recv(65536))
                if number % 50 == 49:
                    expect([get(daemon.admin, path).status for path in PROBES], [200] * len(PROBES))
            assert metrics(daemon)['hapax_refused_total{reason="idle"}'] >= count - 64


def test_connections_of_an_address(cli):
    """At the admin and the Redis listener, too."""
    network.need()
    config = "http:\n  max_connections_per_address: 3\nresp:\n  max_connections_per_address: 3\n"
    with (
        upstream() as service,
        serve(cli, service.url, "--resp", "127.0.0.1:0", config=config) as daemon,
        contextlib.ExitStack() as kept,
    ):
        for to, asked, answer, refusal in (
            (daemon.admin, b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n", b" 200 OK", b" 429 "),
            (resp_address(daemon), b"PING\r\n", b"+PONG", b"-ERR max number of clients"),
        ):
            for machine, expected in ((1, [True] * 3 + [False]), (2, [True]), (None, [True] * 8)):
                said = []
                for _ in expected:
                    connection = kept.enter_context(network.connect(to, machine))
                    with contextlib.suppress(ConnectionError):
                        connection.sendall(asked)
                    said.append(connection.recv(4096))
                expect([answer in text for text in said], expected, f"{to} from {machine}")
                if False in expected:
                    expect_in(refusal, said[-1])


def test_redis_connections_that_are_idle(cli):
    """A part of a command does not justify waiting for the rest of it."""
    config = "resp:\n  idle_timeout: 300ms\n"
    with upstream() as service, serve(cli, service.url, "--resp", "127.0.0.1:0", config=config) as daemon:
        for sent, answered in ((b"", b""), (b"PING\r\n", b"+PONG\r\n"), (b"*2\r\n$4\r\nECHO\r\n$100\r\nx", b"")):
            with socket.create_connection(resp_address(daemon), timeout=TIMEOUT_SECONDS) as connection:
                connection.sendall(sent)
                said = b""
                with contextlib.suppress(ConnectionResetError):
                    while piece := connection.recv(4096):
                        said += piece
                expect(said, answered)


def guess(to, passwords):
    """What is said to one connection that sends these passwords until it is closed."""
    with socket.create_connection(to, timeout=TIMEOUT_SECONDS) as connection:
        said = b""
        with contextlib.suppress(ConnectionError):
            connection.sendall(b"".join(b"AUTH %s\r\n" % password for password in passwords))
            while piece := connection.recv(65536):
                said += piece
        return said


def login(to, name, password):
    """What is said to the first command of a connection."""
    with socket.create_connection(to, timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(f"AUTH {name} {password}\r\n".encode())
        return connection.recv(100)


def test_strangers_that_ask_for_the_description(cli):
    """It takes no token, and is answered by the loop that answers probes: it is made once, not for each of them."""
    with upstream() as service, serve(cli, service.url) as daemon:
        whole = get(daemon.admin, "/openapi.json").body
        with contextlib.ExitStack() as stack:
            for _ in range(scaled(200, 20)):
                client = stack.enter_context(socket.create_connection(daemon.admin, timeout=TIMEOUT_SECONDS))
                client.settimeout(0.1)
                with contextlib.suppress(OSError):
                    client.sendall(b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n" * 200)
            expect([get(daemon.admin, path).status for path in PROBES[:4]], [200] * 4)
        expect(get(daemon.admin, "/openapi.json").body, whole)


def test_guesses_at_the_redis_listener(cli):
    """Three for each connection, twenty for each address in a minute, whatever is sent."""
    config = f"resp:\n  users: [{USER}]\n"
    count = scaled(20000, 200)
    guesses = (b"wrong-%d" % number for number in itertools.count())
    with upstream() as service, serve(cli, service.url, "--resp", "127.0.0.1:0", config=config) as daemon:
        to = resp_address(daemon)
        known = socket.create_connection(to, timeout=TIMEOUT_SECONDS)
        known.sendall(b"AUTH secret\r\n")
        expect(known.recv(100), b"+OK\r\n")
        began = time.monotonic()
        said = guess(to, itertools.islice(guesses, 100))
        expect(said.count(b"WRONGPASS"), 3)
        with proof("connections of 100 guesses each", count):
            looked_at = 3 + sum(
                guess(to, itertools.islice(guesses, 100)).count(b"WRONGPASS") for _ in range(count)
            )
        most = 20 + (time.monotonic() - began) / 3 + 1
        assert 20 <= looked_at <= most, f"{looked_at} of at most {most}"
        # A connection that was let in before goes on, and the password that it used counts on a new one.
        known.sendall(b"PING\r\n")
        expect(known.recv(100), b"+PONG\r\n")
        known.close()
        expect(login(to, "default", "secret"), b"+OK\r\n")
        counted = metrics(daemon)
        expect(counted['hapax_refused_total{reason="credential"}'], float(looked_at))
        assert counted['hapax_refused_total{reason="locked"}'] >= count / 2


def test_tokens_that_cannot_be_guessed(cli):
    """A token that `hapax config token` made is let in at a locked address, although it is new there. Others wait."""
    made = cli.run("config", "token", "-o", "json").json
    short = {"name": "short", "hash": "sha256:" + hashlib.sha256(b"secret").hexdigest(), "role": "read"}
    strong = f"{{name: strong, password_sha256: {made['row']['hash'].removeprefix('sha256:')}}}"
    config = (
        f"auth: {{max_failures: 1, tokens: {json.dumps([made['row'], short])}}}\nresp:\n  users: [{USER}, {strong}]\n"
    )

    def ask(token):
        return request(daemon.admin, "GET", "/api/v1/stats", {"Authorization": f"Bearer {token}"}).status

    with upstream() as service, serve(cli, service.url, "--resp", "127.0.0.1:0", config=config) as daemon:
        to = resp_address(daemon)
        # The address is locked for a minute.
        expect([ask("wrong"), ask("wrong")], [401, 429])
        for _ in range(2):
            expect_in(b"-ERR too many wrong passwords", login(to, "default", "secret"))
            expect(ask("secret"), 429)
        for _ in range(scaled(5000, 20)):
            # What looks like such a token, but is none, is ignored as well.
            guessed = "hapax_" + secrets.token_hex(32)
            expect_in(b"-ERR too many wrong passwords", login(to, "strong", guessed))
            expect(ask(guessed), 429)
        expect(login(to, "strong", made["token"]), b"+OK\r\n")
        expect(ask(made["token"]), 200)
        # Another user's name with it is wrong.
        expect_in(b"-ERR too many wrong passwords", login(to, "default", made["token"]))


def test_an_old_credential_that_is_repeated(cli):
    """It is one guess, however often it comes: a client that starts meanwhile is let in, whatever its password is."""
    token = "short"
    config = (
        f"auth: {{tokens: [{{name: a, hash: 'sha256:{hashlib.sha256(token.encode()).hexdigest()}', role: read}}]}}\n"
        f"resp:\n  users: [{USER}]\n"
    )
    with upstream() as service, serve(cli, service.url, "--resp", "127.0.0.1:0", config=config) as daemon:
        to = resp_address(daemon)
        for _ in range(scaled(10000, 50)):
            expect(guess(to, [b"old"] * 3).count(b"WRONGPASS"), 3)
            expect(request(daemon.admin, "GET", "/api/v1/stats", {"Authorization": "Bearer old"}).status, 401)
        expect(login(to, "default", "secret"), b"+OK\r\n")
        expect(request(daemon.admin, "GET", "/api/v1/stats", {"Authorization": f"Bearer {token}"}).status, 200)


def test_guesses_at_the_admin_listener(cli):
    """401 for the first ones, then 429 and Retry-After; probes are answered all the same."""
    made = cli.run("config", "token", "-o", "json").json
    new = [
        {"name": "new", "hash": "sha256:" + hashlib.sha256(b"short").hexdigest(), "role": "read"},
        {"name": "known", "hash": "sha256:" + hashlib.sha256(b"known").hexdigest(), "role": "read"},
    ]
    config = f"auth: {{max_failures: 10, tokens: {json.dumps([made['row'], *new])}}}\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:

        def ask(path, token, **headers):
            return request(daemon.admin, "GET", path, {"Authorization": f"Bearer {token}", **headers})

        expect(ask("/api/v1/stats", "known").status, 200)
        began = time.monotonic()
        count = scaled(5000, 60)
        paths = ("/metrics", "/api/v1/stats")
        replies = [ask(path, f"wrong-{number}-{path}") for number in range(count) for path in paths]
        most = 10 + (time.monotonic() - began) / 6 + 1
        looked_at = [reply.status for reply in replies].count(401)
        assert 10 <= looked_at <= most, f"{looked_at} of at most {most}"
        late = next(reply for reply in replies if reply.status == 429)
        assert 1 <= int(late.headers["retry-after"]) <= 6, late.headers
        expect([get(daemon.admin, path).status for path in PROBES[:4]], [200] * 4)
        # Another address is not held up by it, and neither is a token that was right from this one before.
        expect(ask("/api/v1/stats", "known", **{"X-Forwarded-For": "203.0.113.9"}).status, 200)
        expect(ask("/api/v1/stats", "known").status, 200)
        # One that is new waits until it is not locked any more.
        until(lambda: ask("/api/v1/stats", "short").status == 200, "the address is not locked any more")
