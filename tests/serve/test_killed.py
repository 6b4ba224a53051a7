"""Either side killed in the middle of a request: nothing is lost, and nothing runs twice beyond the policy."""

import http.client
import resource
import signal
import socket
import threading

from daemon import DemoUpstream, Serve, demo, post, serve
from harness import expect, scaled, until

QUICK = "defaults:\n  lease: 300ms\n"


def send_until_done(get_gateway, event_id, done):
    """A sender as they are: again until somebody says 200."""
    while True:
        try:
            reply = post(get_gateway(), event_id)
        except (OSError, http.client.HTTPException):
            continue
        if reply.status == 200:
            done.append((event_id, reply.body))
            return


def test_the_upstream_is_killed(cli):
    first = DemoUpstream(cli, "--delay", "10m")
    with serve(cli, first.url) as daemon:
        replies = []
        thread = threading.Thread(target=lambda: replies.append(post(daemon.gateway, "1")))
        thread.start()
        until(lambda: first.count()["received"] == 1, "it has the event")
        first.kill()
        thread.join()
        replies[0].is_problem(502, "upstream-lost")
        post(daemon.gateway, "1").is_problem(502, "upstream-unreachable")
        second = DemoUpstream(cli, listen=first.ready)
        try:
            expect(post(daemon.gateway, "1").decision, "acquired")
            expect(post(daemon.gateway, "1").decision, "replay")
            expect(second.count(), {"received": 1, "executed": 1, "keys": 1})
        finally:
            second.kill()


def test_hapax_is_killed_before_the_upstream_answers(cli):
    """The claim outlives it: 409 until the lease has lapsed, then the second attempt runs."""
    store = f"file:{cli.folder}/store"
    slow = DemoUpstream(cli, "--delay", "10m")
    daemon = Serve(cli, slow.url, store=store, config=QUICK)
    thread = threading.Thread(target=lambda: send_and_lose(daemon))
    thread.start()
    until(lambda: slow.count()["received"] == 1, "it has the event")
    daemon.kill()
    thread.join()
    slow.kill()
    with demo(cli) as service, serve(cli, service.url, store=store, config=QUICK) as daemon:
        decisions = []
        until(lambda: decisions.append(post(daemon.gateway, "1").decision) or decisions[-1] == "acquired", "it ran")
        expect(set(decisions[:-1]) - {"in_progress"}, set())
        expect(post(daemon.gateway, "1").decision, "replay")
        expect(service.count()["executed"], 1)


def send_and_lose(daemon):
    try:
        post(daemon.gateway, "1")
    except (OSError, http.client.HTTPException):
        return
    raise AssertionError("it was answered")


def test_hapax_is_killed_again_and_again(cli):
    """Senders repeat until 200. Every event is done; one runs twice only if hapax died during its run."""
    store = f"file:{cli.folder}/store"
    kills = scaled(proof=100, usual=4)
    gateway, done = [], []
    with demo(cli, "--delay", "5ms") as service:
        daemon = Serve(cli, service.url, store=store, config=QUICK)
        gateway.append(daemon.gateway)
        for number in range(kills):
            threads = [
                threading.Thread(target=send_until_done, args=(lambda: gateway[-1], f"{number}-{index}", done))
                for index in range(20)
            ]
            for thread in threads:
                thread.start()
            before = service.count()["received"]
            until(lambda: service.count()["received"] > before or len(done) == 20 * (number + 1), "something runs")
            daemon.kill()
            daemon = Serve(cli, service.url, store=store, config=QUICK)
            gateway.append(daemon.gateway)
            for thread in threads:
                thread.join()
        for number in range(kills):
            for index in range(20):
                event_id = f"{number}-{index}"
                reply = post(gateway[-1], event_id)
                expect((reply.decision, reply.body), ("replay", dict(done)[event_id]), event_id)
        count = service.count()
        expect(count["keys"], 20 * kills)
        assert 20 * kills <= count["executed"] <= 40 * kills, count
        daemon.end()


def test_a_client_that_leaves_cancels_nothing(cli):
    with demo(cli, "--delay", "100ms") as service, serve(cli, service.url) as daemon:
        with socket.create_connection(daemon.gateway) as connection:
            connection.sendall(
                b"POST / HTTP/1.1\r\nHost: x\r\nce-specversion: 1.0\r\nce-id: 1\r\nce-source: /shop\r\n"
                b"ce-type: order.paid\r\nContent-Type: application/json\r\nContent-Length: 12\r\n\r\n" + b'{"total":42}'
            )
            until(lambda: service.count()["received"] == 1, "it was forwarded")
        until(lambda: post(daemon.gateway, "1").decision == "replay", "it is done")
        expect(service.count(), {"received": 1, "executed": 1, "keys": 1})


def test_a_store_that_fails_for_good(cli):
    """A write that fails latches file:. Nobody is told that it was done; the daemon ends with 74, and a new one knows."""
    store = f"file:{cli.folder}/store"
    with demo(cli) as service:
        # The signal would end the process before the write could fail.
        previous = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        try:
            daemon = Serve(cli, service.url, store=store, config=QUICK)
        finally:
            signal.signal(signal.SIGXFSZ, previous)
        expect(post(daemon.gateway, "before").decision, "acquired")
        resource.prlimit(daemon.process.pid, resource.RLIMIT_FSIZE, (1, 1))
        post(daemon.gateway, "1").is_problem(503, "uncertain")
        expect(daemon.process.wait(timeout=60), 74, "exit status")
        assert any("the store failed" in line for line in daemon.lines)
        expect(service.count()["received"], 1)
        with serve(cli, service.url, store=store, config=QUICK) as daemon:
            expect(post(daemon.gateway, "before").decision, "replay")
            until(lambda: post(daemon.gateway, "1").status == 200, "it ran")
            expect(service.count(), {"received": 2, "executed": 2, "keys": 2})
