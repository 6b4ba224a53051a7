"""Either side killed in the middle of a request: nothing is lost, and nothing runs twice beyond the policy."""

import collections
import contextlib
import http.client
import resource
import signal
import socket
import subprocess
import sys
import threading

from daemon import DemoUpstream, Serve, demo, post, serve
from harness import TIMEOUT_SECONDS, expect, proof, scaled, until

QUICK = "defaults:\n  lease: 300ms\n"


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


# A service that writes down what it runs before it answers, where it survives the service.
SERVICE = """
import http.server, os, sys, time
out = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        self.rfile.read(int(self.headers["Content-Length"]))
        os.write(out, (self.headers["ce-id"] + "\\n").encode())
        time.sleep(0.005)
        # No two runs answer alike.
        answer = str(time.monotonic_ns()).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, *_):
        pass

http.server.ThreadingHTTPServer.request_queue_size = 128
server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler)
# The caller may be dead.
server.handle_error = lambda *_: None
print(server.server_port, flush=True)
server.serve_forever()
"""


class Service:
    def __init__(self, cli, port=0):
        self.path = cli.folder / "ran"
        self.process = subprocess.Popen(
            [sys.executable, "-c", SERVICE, str(port), str(self.path)], env=cli.env(), stdout=subprocess.PIPE
        )
        self.port = int(self.process.stdout.readline())
        self.url = f"http://127.0.0.1:{self.port}"

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def ran(self):
        """How often each event ran."""
        return collections.Counter(self.path.read_text(encoding="ascii").split() if self.path.exists() else [])


def send_until_settled(gateways, event_id, ends):
    """Again until it is done, or a person has to decide; to the daemon that was started last."""
    while True:
        with contextlib.suppress(OSError, http.client.HTTPException):
            reply = post(gateways[-1], event_id)
            if reply.status == 200 or reply.decision == "parked":
                ends[event_id] = reply
                return


def senders(gateways, names, ends):
    threads = [threading.Thread(target=send_until_settled, args=(gateways, name, ends)) for name in names]
    for thread in threads:
        thread.start()
    return threads


def join(threads):
    for thread in threads:
        thread.join(TIMEOUT_SECONDS)


def expect_said_again(gateway, ends):
    """Whatever was said once is said again: the answer of the run that was completed, and of no other."""
    for name, end in ends.items():
        reply = post(gateway, name)
        if end.decision == "parked":
            expect(reply.decision, "parked", name)
        else:
            expect((reply.decision, reply.body), ("replay", end.body), name)


def kill_the_upstream(cli, on_lapse, kills, crowd=20):
    """Kill it with events under way, again and again. How they ended, how often each ran, what was under way."""
    service, ends, cut = Service(cli), {}, collections.Counter()
    with serve(cli, service.url, config=f"defaults:\n  on_lapse: {on_lapse}\n") as daemon:
        for number in range(kills):
            names = [f"{number}-{index}" for index in range(crowd)]
            threads = senders([daemon.gateway], names, ends)
            until(lambda: any(name in service.ran() for name in names), "something runs")
            settled = set(ends)
            service.kill()
            cut.update((service.ran().keys() & set(names)) - settled)
            service = Service(cli, service.port)
            join(threads)
        expect(len(ends), kills * crowd, "events that came to an end")
        expect_said_again(daemon.gateway, ends)
    ran = service.ran()
    service.kill()
    return ends, ran, cut


def expect_retried(ends, ran, cut):
    """on_lapse retry: every event is done; twice ran only what was under way at the kill."""
    expect([name for name, end in ends.items() if end.decision == "parked"], [])
    expect(set(ran), set(ends), "events that ran")
    for name, count in ran.items():
        assert count <= 1 + cut[name], f"{name} ran {count} times"


def expect_parked(ends, ran):
    """on_lapse park: nothing runs twice, and what is not done is parked, not lost."""
    expect([name for name, count in ran.items() if count > 1], [])
    for name, end in ends.items():
        assert end.decision == "parked" or ran[name] == 1, f"{name} is {end.decision}, and ran {ran[name]} times"


def test_the_upstream_is_killed_again_and_again(cli):
    kills = scaled(proof=100, usual=3)
    with proof("gateway, upstream killed, on_lapse retry, kills", kills):
        expect_retried(*kill_the_upstream(cli, "retry", kills))


def test_an_upstream_that_is_killed_runs_nothing_twice(cli):
    kills = scaled(proof=100, usual=3)
    with proof("gateway, upstream killed, on_lapse park, kills", kills):
        ends, ran, _ = kill_the_upstream(cli, "park", kills)
        expect_parked(ends, ran)


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


def kill_hapax(cli, on_lapse, kills, crowd=20):
    """Kill it with events under way, again and again. How they ended, how often each ran, what was under way.

    Under way is all that was sent and not answered, forwarded or not: what hapax has given to the service runs there
    although hapax is dead. Its claim holds until it lapses; what then becomes of it is on_lapse, the only way
    to a second run. Each event is under way at one kill at most, so that is one run more at most.
    """
    store, config = f"file:{cli.folder}/store", f"{QUICK}  on_lapse: {on_lapse}\n"
    service, ends, cut = Service(cli), {}, collections.Counter()
    daemon = Serve(cli, service.url, store=store, config=config)
    gateways = [daemon.gateway]
    try:
        for number in range(kills):
            names = [f"{number}-{index}" for index in range(crowd)]
            threads = senders(gateways, names, ends)
            until(lambda: any(name in service.ran() for name in names), "something runs")
            cut.update(set(names) - set(ends))
            daemon.kill()
            daemon = Serve(cli, service.url, store=store, config=config)
            gateways.append(daemon.gateway)
            join(threads)
        expect(len(ends), kills * crowd, "events that came to an end")
        expect_said_again(daemon.gateway, ends)
        daemon.end()
        return ends, service.ran(), cut
    finally:
        daemon.kill()
        service.kill()


def test_hapax_is_killed_again_and_again(cli):
    kills = scaled(proof=100, usual=4)
    with proof("gateway, hapax killed, on_lapse retry, kills", kills):
        expect_retried(*kill_hapax(cli, "retry", kills))


def test_a_hapax_that_is_killed_runs_nothing_twice(cli):
    kills = scaled(proof=100, usual=4)
    with proof("gateway, hapax killed, on_lapse park, kills", kills):
        ends, ran, _ = kill_hapax(cli, "park", kills)
        expect_parked(ends, ran)


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
    """A write that fails latches file:. No sender gets a 2xx; the daemon ends with 74, and a new one knows."""
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
        assert any("store failed" in line for line in daemon.lines)
        expect(service.count()["received"], 1)
        with serve(cli, service.url, store=store, config=QUICK) as daemon:
            expect(post(daemon.gateway, "before").decision, "replay")
            until(lambda: post(daemon.gateway, "1").status == 200, "it ran")
            expect(service.count(), {"received": 2, "executed": 2, "keys": 2})
