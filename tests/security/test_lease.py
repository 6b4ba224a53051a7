"""A node that is stopped, or whose store is slow, past its lease: another one has run it, and it must not run it again."""

import contextlib
import datetime
import os
import pathlib
import select
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time

import api
from certificates import Authority
from daemon import demo, post, serve
from harness import TIMEOUT_SECONDS, Skip, expect, proof, scaled, until

LEASE_SECONDS = 1
LEASE = f"defaults: {{lease: {LEASE_SECONDS}s, on_lapse: retry}}\nstore: {{timeout: 30s}}\nlog: {{rate: none}}\n"


class Redis:
    def __init__(self, folder):
        if shutil.which("redis-server") is None:
            raise Skip("redis-server is not installed (tools/setup test)")
        self.socket = folder / "redis"
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--save", ""], stdout=subprocess.DEVNULL
        )
        ping = ["redis-cli", "-s", str(self.socket), "ping"]
        until(lambda: subprocess.run(ping, capture_output=True, check=False).stdout == b"PONG\n", "Redis answers")
        self.url = f"redis+unix:{self.socket}"

    def close(self):
        self.process.kill()
        self.process.wait()


class Line:
    """Between a node and Redis. When a request with the mark passes, `met` is called, and replies wait for `release`."""

    def __init__(self, folder, target):
        self.url = f"redis+unix:{folder / 'line'}"
        self.target, self.mark, self.met, self.is_asked = str(target), None, None, False
        self.held, self.open = threading.Event(), threading.Event()
        self.open.set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(folder / "line"))
        self.listener.listen()
        threading.Thread(target=self.accept, daemon=True).start()

    def hold(self, mark, met=lambda: None):
        self.held.clear()
        self.mark, self.met = mark, met

    def release(self):
        self.open.set()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self.listener.accept()
                threading.Thread(target=self.carry, args=(near,), daemon=True).start()

    def carry(self, near):
        with contextlib.suppress(OSError), near, socket.socket(socket.AF_UNIX) as far:
            far.connect(self.target)
            while True:
                for ready in select.select([near, far], [], [])[0]:
                    data = ready.recv(1 << 16)
                    if not data:
                        return
                    if ready is near:
                        self.watch(data)
                        far.sendall(data)
                    else:
                        # The store has granted it: the next claim comes second.
                        if self.is_asked:
                            self.is_asked = False
                            self.held.set()
                        self.open.wait()
                        near.sendall(data)

    def watch(self, data):
        if self.mark is not None and self.mark in data:
            self.mark, self.is_asked = None, True
            self.open.clear()
            self.met()

    def close(self):
        self.release()
        self.listener.close()


def freeze(node):
    """Stop it, and wait until every thread of it stands: on a busy machine that takes a while."""
    os.kill(node.process.pid, signal.SIGSTOP)
    tasks = pathlib.Path(f"/proc/{node.process.pid}/task")

    def stands(task):
        return (task / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T"

    until(lambda: all(stands(task) for task in tasks.iterdir()), "it stands still")


def outlive(since):
    """Its lease is over by its own count, too: the store's clock may run faster, as one does that is being set right."""
    until(lambda: time.monotonic() > since + LEASE_SECONDS, "its lease is over by its own count")


@contextlib.contextmanager
def two_nodes(cli, start, **more):
    """One behind a line that the test holds, one straight at the store."""
    redis = Redis(cli.folder)
    line = Line(cli.folder, redis.socket)
    try:
        with start(store=line.url, **more) as slow, start(store=redis.url, **more) as quick:
            yield line, slow, quick
    finally:
        line.close()
        redis.close()


def race(line, slow, quick, send, mark, stops):
    """The slow node's claim is answered only when the quick one has run it: what both senders get."""
    replies = {}

    def run():
        replies["slow"] = send(slow)

    line.hold(mark, (lambda: freeze(slow)) if stops else (lambda: None))
    sender = threading.Thread(target=run)
    sender.start()
    assert line.held.wait(TIMEOUT_SECONDS), "the claim was granted"
    since = time.monotonic()
    if stops:
        # The answer waits in its socket: it sees it when it goes on.
        line.release()
    until(lambda: replies.update(quick=send(quick)) or replies["quick"].status == 200, "the other node took over")
    outlive(since)
    if stops:
        os.kill(slow.process.pid, signal.SIGCONT)
    line.release()
    sender.join(TIMEOUT_SECONDS)
    return replies


def test_the_gateway_does_not_forward_under_a_lease_that_is_over(cli):
    with demo(cli) as service:
        start = lambda store: serve(cli, service.url, store=store, config=LEASE)  # noqa: E731
        count = scaled(proof=20, usual=2)
        with two_nodes(cli, start) as (line, slow, quick), proof("claims answered too late, gateway", 2 * count):
            assert any("lease is shorter than store.timeout" in said for said in list(slow.lines)), "it was warned of"
            for number in range(2 * count):
                name = f"late-{number}"
                replies = race(line, slow, quick, lambda node: post(node.gateway, name), name.encode(), number % 2 == 0)
                expect((replies["quick"].status, replies["slow"].status), (200, 200))
                expect((replies["quick"].decision, replies["slow"].decision), ("acquired", "replay"))
                expect(service.count()["executed"], number + 1)


def test_the_proxy_does_not_forward_under_a_lease_that_is_over(cli):
    with api.api() as service:
        config = LEASE + "proxy: {routes: [{path: /, on_lapse: retry}]}\n"
        start = lambda store: api.proxy(cli, service.url, store=store, config=config)  # noqa: E731
        with two_nodes(cli, start) as (line, slow, quick):
            for number in range(scaled(proof=20, usual=2)):
                name = f"late-{number}"
                send = lambda node: api.post(node.proxy, "/charges", name, Host="charges.test")  # noqa: E731, B023
                replies = race(line, slow, quick, send, name.encode(), number % 2 == 0)
                expect((replies["quick"].status, replies["slow"].status), (200, 200))
                expect((replies["quick"].decision, replies["slow"].decision), ("acquired", "replay"))
                expect(len(service.requests), number + 1)


def test_a_claim_that_is_late_and_still_ours_runs_once(cli):
    """No other claim took over: asked again, it holds for a whole lease."""
    with demo(cli) as service:
        start = lambda store: serve(cli, service.url, store=store, config=LEASE)  # noqa: E731
        with two_nodes(cli, start) as (line, slow, _):
            replies = []
            line.hold(b"alone", lambda: freeze(slow))
            sender = threading.Thread(target=lambda: replies.append(post(slow.gateway, "alone")))
            sender.start()
            assert line.held.wait(TIMEOUT_SECONDS), "the claim was granted"
            line.release()
            store = f"redis+unix:{cli.folder / 'redis'}"

            def is_lapsed():
                ends = [key["lease_ends_at"] for key in cli.run("keys", "--store", store, "-o", "json").lines]
                return bool(ends) and datetime.datetime.fromisoformat(ends[0]) < datetime.datetime.now(datetime.timezone.utc)

            until(is_lapsed, "its lease has lapsed")
            os.kill(slow.process.pid, signal.SIGCONT)
            sender.join(TIMEOUT_SECONDS)
            expect((replies[0].status, replies[0].decision), (200, "acquired"))
            expect(service.count()["executed"], 1)


class Shy:
    """A service behind TLS. The handshake of its first connection waits for `shake`; `done` says that it is over."""

    def __init__(self, certificate):
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.context.load_cert_chain(certificate.path, certificate.key)
        self.requests, self.come, self.shake, self.done = [], threading.Event(), threading.Event(), threading.Event()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://localhost:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                plain, _ = self.listener.accept()
                threading.Thread(target=self.answer, args=(plain, not self.come.is_set()), daemon=True).start()
                self.come.set()

    def answer(self, plain, is_first):
        if is_first:
            self.shake.wait()
        with contextlib.suppress(OSError), self.context.wrap_socket(plain, server_side=True) as connection:
            while request := connection.recv(1 << 16):
                self.requests.append(request)
                connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        if is_first:
            self.done.set()

    def close(self):
        self.shake.set()
        self.listener.close()


def outlast(service, slow, quick, send):
    """The slow node stands still in the handshake until the quick one has run it: what both senders get."""
    replies = {}
    sender = threading.Thread(target=lambda: replies.update(slow=send(slow)))
    sender.start()
    assert service.come.wait(TIMEOUT_SECONDS), "it was sent, as far as a connection"
    since = time.monotonic()
    freeze(slow)
    until(lambda: replies.update(quick=send(quick)) or replies["quick"].status == 200, "the other node took over")
    outlive(since)
    os.kill(slow.process.pid, signal.SIGCONT)
    service.shake.set()
    sender.join(TIMEOUT_SECONDS)
    assert service.done.wait(TIMEOUT_SECONDS), "the connection ended"
    return replies


def test_nothing_is_sent_after_a_handshake_that_outlasts_the_lease(cli):
    """What the sender is told is true, and a retry brings what the other node has run."""
    authority = Authority(cli.folder)
    certificate = authority.issue("upstream")
    env = cli.env(HAPAX_STORE=None, SSL_CERT_FILE=str(authority.path))
    config = LEASE + "proxy: {routes: [{path: /, on_lapse: retry, wait: 0s}]}\n"
    redis = Redis(cli.folder)
    doors = {
        "gateway": lambda node: post(node.gateway, "shy"),
        "proxy": lambda node: api.post(node.proxy, "/charges", "shy", Host="charges.test"),
    }
    try:
        for door, send in doors.items():
            service = Shy(certificate)
            start = lambda: serve(cli, service.url, "--proxy", "127.0.0.1:0", store=redis.url, config=config, env=env)  # noqa: E731, B023
            with start() as slow, start() as quick:
                replies = outlast(service, slow, quick, send)
                refusal = replies["slow"].is_problem(503, "urn:hapax:problem:lease-lapsed")
                expect(refusal.headers["retry-after"], "1")
                expect(refusal.json.get("error", {}).get("type"), "api_error" if door == "proxy" else None)
                expect(send(slow).decision, "replay")
                expect(len(service.requests), 1, door)
            service.close()
    finally:
        redis.close()
