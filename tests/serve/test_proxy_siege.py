"""The proxy under clients that are slow, many, or gone, and when it is told to end or to read its file again."""

import contextlib
import http.client
import resource
import signal
import socket

from api import ask, expect_ran, expect_replayed, post, proxy
from api import api as service_of
from daemon import demo, metrics, request
from harness import TIMEOUT_SECONDS, Skip, expect, is_sanitized, proof, scaled, until
from test_proxy import memory_kib
from test_service import Keeper

# What a client has sent before it falls silent: nothing, a part of a head, a part of a body.
BEGUN = (b"", b"POST / HTTP/1.1\r\nHost: x\r\nIdempotency-K", b"POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\nContent-Length: 9\r\n\r\n{")

CLIENT = {"Authorization": "Bearer client"}


def room_for(count):
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    room = limits[1] if limits[1] != resource.RLIM_INFINITY else 1 << 20
    if room < 2 * count + 200:
        raise Skip(f"no more than {room} descriptors")
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(room, 4 * count + 1000), limits[1]))


def test_half_open_connections_hold_nobody_up(cli):
    count = scaled(proof=5000, usual=150)
    room_for(count)
    config = "http: {head_timeout: 1h, body_timeout: 1h, idle_timeout: 1h}\n"
    with proof("half-open connections at the proxy", count), service_of() as service:
        with proxy(cli, service.url, config=config) as daemon:
            kept = http.client.HTTPConnection(*daemon.proxy, timeout=TIMEOUT_SECONDS)
            before = memory_kib(daemon)
            held = []
            for number in range(count):
                held.append(socket.create_connection(daemon.proxy, timeout=TIMEOUT_SECONDS))
                held[-1].sendall(BEGUN[number % len(BEGUN)])
            until(lambda: metrics(daemon)['hapax_connections{door="proxy"}'] == count, "all are there")
            for number in range(20):
                expect_ran(post(daemon.proxy, "/fresh", f"k{number}"), b"run %d" % (2 * number + 1))
                reply = request(None, "POST", "/kept", {"Idempotency-Key": f"k{number}", **CLIENT}, b"{}", kept)
                expect((reply.status, reply.decision), (200, "acquired"))
            # A few KiB for each of them, whatever they have begun. A sanitizer keeps what is freed.
            assert is_sanitized() or memory_kib(daemon) - before < 8 * count + 4096, (before, memory_kib(daemon))
            kept.close()
            for connection in held:
                connection.close()
            expect(len(service.requests), 40)


def test_one_byte_at_a_time_is_no_progress(cli):
    """Slow loris: it is told 408 in the end, however it drips; who is served meanwhile does not notice."""
    config = "http: {head_timeout: 300ms, body_timeout: 300ms}\n"
    with service_of() as service, proxy(cli, service.url, config=config) as daemon:
        slow = [socket.create_connection(daemon.proxy, timeout=TIMEOUT_SECONDS) for _ in range(30)]
        for number, connection in enumerate(slow):
            connection.sendall(BEGUN[1 + number % 2])
        dropped, served = set(), 0
        while len(dropped) < len(slow):
            for connection in set(slow) - dropped:
                try:
                    connection.sendall(b"x" if connection in slow[0::2] else b"")
                    connection.setblocking(False)
                    with contextlib.suppress(BlockingIOError):
                        expect(connection.recv(4096).split(b"\r\n")[0], b"HTTP/1.1 408 Request Timeout")
                        dropped.add(connection)
                    connection.setblocking(True)
                except ConnectionError:
                    dropped.add(connection)
            expect(post(daemon.proxy, "/", f"k{served}").decision, "acquired")
            served += 1
        for connection in slow:
            connection.close()
        expect(len(service.requests), served)


class Payer(Keeper):
    """Pays once after the other, each with a key of its own."""

    def call(self, connection):
        try:
            key = {"Idempotency-Key": f"{self.name}-{self.answered}"}
            reply = request(None, "POST", "/", {**key, **CLIENT}, b"{}", connection)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            return False
        except (http.client.HTTPException, OSError) as error:
            self.broken.append(repr(error))
            return False
        self.answered += 1
        self.lost += reply.decision == "replay"
        if reply.status != 200:
            self.broken.append((reply.status, reply.body))
        return reply.headers.get("connection") != "close"


def test_the_end_under_load(cli):
    """TERM while clients are paying: each payment that was made has its answer."""
    rounds = scaled(proof=20, usual=1)
    with proof("proxy, ended under load", rounds):
        for number in range(rounds):
            with demo(cli) as service, proxy(cli, service.url, config="drain: {delay: 0s}\n") as daemon:
                payers = [Payer(daemon.proxy, f"{number}-{payer}") for payer in range(8)]
                until(lambda all_of=payers: all(payer.answered > 2 for payer in all_of), "all of them are at it")
                daemon.end()
                for payer in payers:
                    payer.thread.join()
                expect([(payer.broken, payer.lost) for payer in payers], [([], 0)] * len(payers))
                expect(service.count()["executed"], sum(payer.answered for payer in payers))


def test_reloads_under_load(cli):
    """Good files and broken ones by turns: no client notices, and the last good one is active."""
    with demo(cli) as service:
        # Every reload has its line, however many there are in a second.
        route = "log: {rate: none}\nproxy:\n  routes:\n    - {path: /, wait: %ds}\n"
        with proxy(cli, service.url, config=route % 5) as daemon:
            payers = [Payer(daemon.proxy, f"p{payer}") for payer in range(4)]
            until(lambda: all(payer.answered > 2 for payer in payers), "all of them are at it")
            for number in range(scaled(proof=100, usual=5)):
                is_good = number % 2 == 0
                daemon.config.write_text(route % (6 + number) if is_good else "proxy:\n  routes:\n    - {path: /, wiat: 1s}\n")
                daemon.process.send_signal(signal.SIGHUP)
                line = daemon.wait_for(lambda text: text if "configuration reloaded" in text or "configuration rejected" in text else None)
                expect("configuration reloaded" in line, is_good, line)
                if not is_good:
                    assert "did you mean 'wait'?" in line, line
            first = ask(daemon.proxy, "POST", "/", b"{}", "last")
            expect_replayed(ask(daemon.proxy, "POST", "/", b"{}", "last"), first.body)
            daemon.end()
            for payer in payers:
                payer.thread.join()
            expect([(payer.broken, payer.lost) for payer in payers], [([], 0)] * len(payers))
            expect(service.count()["executed"], sum(payer.answered for payer in payers) + 1)
