"""A store that goes away and comes back: a real server, stopped and started again."""

import contextlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import threading
import time

from daemon import demo, get, log_line, metrics, post, request, serve, structured, upstream
from harness import ROOT, TIMEOUT_SECONDS, Skip, expect, is_proof, scaled, until
from redis_wire import Wire, door

# Of `store.timeout`, and of the processor if it is not set.
DEFAULT_TIMEOUT_SECONDS = 5


class Redis:
    """A server on a unix socket that keeps what it has over a restart."""

    def __init__(self, cli):
        if shutil.which("redis-server") is None:
            raise Skip("redis-server is not installed (tools/setup test)")
        self.folder = cli.folder / "redis"
        self.folder.mkdir()
        self.socket = self.folder / "socket"
        self.url = f"redis+unix:{self.socket}"
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", "0", "--unixsocket", str(self.socket), "--dir", str(self.folder)]
            + ["--appendonly", "yes", "--appendfsync", "always", "--save", ""],
            stdout=subprocess.DEVNULL,
        )
        ping = ["redis-cli", "-s", str(self.socket), "ping"]
        until(lambda: subprocess.run(ping, capture_output=True, check=False).stdout == b"PONG\n", "Redis answers")

    def freeze(self):
        """It is there, and says nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self):
        self.process.send_signal(signal.SIGCONT)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.socket.unlink(missing_ok=True)

    def close(self):
        self.process.kill()
        self.process.wait()


class Postgres:
    """A server that tests/postgres/with_postgres has made, with a ledger in it; its stop is a crash."""

    def __init__(self, cli):
        self.holder = subprocess.Popen(
            [ROOT / "tests/postgres/with_postgres", "--", "sh", "-c", 'echo "$HAPAX_TEST_POSTGRES"; echo "$PGHOST"; cat'],
            env=cli.env(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        place = self.holder.stdout.readline().strip()
        if "# SKIP" in place:
            self.close()
            raise Skip(place.partition("# SKIP ")[2])
        self.folder = pathlib.Path(self.holder.stdout.readline().strip())
        self.url = f"postgres:///postgres{place}"
        cli.run("store", "migrate", self.url)

    def start(self):
        subprocess.run([self.folder / "start"], check=True, stdin=subprocess.DEVNULL)

    def stop(self):
        pid_file = self.folder / "data/postmaster.pid"
        os.kill(int(pid_file.read_text(encoding="ascii").split()[0]), signal.SIGQUIT)
        until(lambda: not pid_file.exists(), "PostgreSQL is gone")

    def close(self):
        self.holder.stdin.close()
        self.holder.wait(timeout=TIMEOUT_SECONDS)


@contextlib.contextmanager
def running(kind, cli):
    server = kind(cli)
    try:
        yield server
    finally:
        server.close()


def redis(cli):
    return running(Redis, cli)


def config(cli, policy, journal="journal.db", lease="30s"):
    return (
        f"store: {{journal: 'sqlite:{cli.folder / journal}', timeout: 1s}}\n"
        f"defaults: {{on_store_failure: {policy}, lease: {lease}}}\nlog: {{rate: none}}\n"
    )


def said(daemon, message):
    lines = (log_line(line) for line in list(daemon.lines) if message in line)
    return [fields for fields in lines if fields.get("msg") == message]


def is_away(daemon):
    """Whether the daemon has noticed."""
    return any(fields["condition"] == "store_down" for fields in said(daemon, "condition began"))


def test_events_go_on_without_the_store(cli):
    """E13, A6: no event refused, each written down, and what is written down arrives."""
    with redis(cli) as server, demo(cli) as service:
        store = server.url
        with serve(cli, service.url, store=store, config=config(cli, "continue")) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            server.stop()
            count = scaled(200, 20)
            for number in range(count):
                expect(post(daemon.gateway, f"during {number}").status, 200)
            # Duplicates within the outage are still duplicates, on this node.
            for number in range(count):
                expect(post(daemon.gateway, f"during {number}").status, 200)
            expect(service.count()["executed"], 1 + count)
            server.start()
            until(lambda: said(daemon, "store available"), "the store is back")
            expect(post(daemon.gateway, "before").status, 200)
            for number in range(count):
                expect(post(daemon.gateway, f"during {number}").status, 200)
            expect(service.count()["executed"], 1 + count)
            expect(said(daemon, "key ran twice during a store outage"), [])
        # Everything that was let through is in the store, for other nodes to see.
        keys = cli.run("keys", "--store", store, "--state", "done", "-o", "json").lines
        expect(len(keys), 1 + count)
        expect(cli.run("journal", "list", f"sqlite:{cli.folder / 'journal.db'}", "-o", "json").lines, [])


def test_what_ran_on_another_node_too_is_counted(cli):
    with redis(cli) as server, demo(cli) as service:
        store = server.url
        with serve(cli, service.url, store=store, config=config(cli, "continue")) as daemon:
            expect(post(daemon.gateway, "1").status, 200)
            server.stop()
            for number in range(2, 8):
                expect(post(daemon.gateway, str(number)).status, 200)
            server.start()
            # Faster than this node is back: another one runs three of them.
            with serve(cli, service.url, store=store) as other:
                twice = [number for number in (2, 3, 4) if post(other.gateway, str(number)).decision == "acquired"]
            until(lambda: said(daemon, "store available"), "the store is back")
            until(lambda: len(said(daemon, "key ran twice during a store outage")) == len(twice), "all are reported")
            expect(service.count()["executed"], 7 + len(twice))


def test_a_scope_that_refuses_is_refused(cli):
    with redis(cli) as server, demo(cli) as service:
        store = server.url
        with serve(cli, service.url, store=store, config=config(cli, "refuse")) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            server.stop()
            quickest = DEFAULT_TIMEOUT_SECONDS
            for number in range(5):
                begin = time.monotonic()
                post(daemon.gateway, f"during {number}").is_problem(503)
                quickest = min(quickest, time.monotonic() - begin)
            assert quickest < DEFAULT_TIMEOUT_SECONDS, "the configured timeout bounds a refusal"
            expect(service.count()["executed"], 1)
            server.start()
            until(lambda: post(daemon.gateway, "after").status == 200, "events are taken again")
            expect(service.count()["executed"], 2)


def test_many_at_once_through_an_outage(cli):
    """No event is refused whenever it comes, before, during or after."""
    with redis(cli) as server, demo(cli) as service:
        store = server.url
        with serve(cli, service.url, store=store, config=config(cli, "continue")) as daemon:
            statuses, stop = [], threading.Event()

            def send(name):
                number = 0
                while not stop.is_set():
                    statuses.append(post(daemon.gateway, f"{name}-{number}").status)
                    number += 1

            senders = [threading.Thread(target=send, args=(str(i),)) for i in range(4)]
            for sender in senders:
                sender.start()
            until(lambda: len(statuses) > 50, "events flow")
            server.stop()
            until(lambda: is_away(daemon), "the store is away")
            before = len(statuses)
            until(lambda: len(statuses) > before + 50, "events flow")
            server.start()
            until(lambda: said(daemon, "store available"), "the store is back")
            before = len(statuses)
            until(lambda: len(statuses) > before + 50, "events flow")
            stop.set()
            for sender in senders:
                sender.join(TIMEOUT_SECONDS)
            expect(set(statuses), {200})
            expect(service.count()["executed"], len(statuses))


class Node:
    """A daemon with a journal of its own, and what it was sent."""

    def __init__(self, cli, daemon, journal):
        self.cli, self.daemon, self.url = cli, daemon, f"sqlite:{cli.folder / journal}"
        self.done = []  # events that it ran, in order
        self.refused = []  # statuses that no sender wants to see

    def send(self, event):
        """As a sender does: again while it is in progress, and until it is done."""
        while not self.refused:
            reply = post(self.daemon.gateway, event)
            if reply.status == 200:
                if reply.decision == "acquired":
                    self.done.append(event)
                return
            if reply.status != 409:
                self.refused.append((event, reply.status, reply.body))
            time.sleep(0.02)

    def said(self, message):
        return len(said(self.daemon, message))

    def journal(self):
        return {line["key"] for line in self.cli.run("journal", "list", self.url, "-o", "json").lines}


class Load:
    """Senders: every event goes to one of two nodes and, when it is done there, every third to the other one as well."""

    def __init__(self, nodes, senders=4):
        self.nodes, self.stopped = nodes, threading.Event()
        self.threads = [threading.Thread(target=self.send, args=(name,)) for name in range(senders)]
        for thread in self.threads:
            thread.start()

    def send(self, name):
        number = 0
        while not self.stopped.is_set():
            first = (number + name) % 2
            self.nodes[first].send(f"{name}-{number}")
            if number % 3 == 0:
                self.nodes[1 - first].send(f"{name}-{number}")
            number += 1

    def flows(self, count, seconds=0):
        """Until so many more events were done by each node, and so much time has passed."""
        marks, begin = [len(node.done) + count for node in self.nodes], time.monotonic()
        until(
            lambda: time.monotonic() - begin >= seconds
            and all(len(node.done) >= mark or node.refused for node, mark in zip(self.nodes, marks)),
            "events flow",
        )

    def stop(self):
        self.stopped.set()
        for thread in self.threads:
            thread.join(TIMEOUT_SECONDS)


def go_through_an_outage(server, nodes, seconds):
    """Load before, during and after it. What each node ran while the store was away for sure."""
    load = Load(nodes)
    try:
        load.flows(20)
        server.stop()
        for node in nodes:
            until(lambda: is_away(node.daemon) or node.refused, "the store is away")
        load.flows(20)  # what was under way when it went has ended
        begins = [len(node.done) for node in nodes]
        load.flows(30, seconds)
        during = [set(node.done[begin:]) for node, begin in zip(nodes, begins)]
        for node, events in zip(nodes, during):
            expect({f"/shop:{event}" for event in events} - node.journal(), set(), "ran, and not in the journal")
        server.start()
        for node in nodes:
            until(lambda: node.said("store available") or node.refused, "the store is back")
        load.flows(20)
    finally:
        load.stop()
    return during


def drill(cli, kind, name):
    """E13: no event refused, each of the outage in a journal, and what ran twice is what is reported."""
    seconds, begin = 10 if is_proof() else 0, time.monotonic()
    with running(kind, cli) as server, demo(cli) as service:
        settings = {journal: config(cli, "continue", journal, "5s") for journal in ("a.db", "b.db")}
        with serve(cli, service.url, store=server.url, config=settings["a.db"]) as a, \
                serve(cli, service.url, store=server.url, config=settings["b.db"]) as b:
            nodes = [Node(cli, a, "a.db"), Node(cli, b, "b.db")]
            during = go_through_an_outage(server, nodes, seconds)
            expect([node.refused for node in nodes], [[], []], "events refused")
            until(lambda: not any(node.journal() for node in nodes), "the journals are empty")
            count = service.count()
            twice = sum(node.said("key ran twice during a store outage") for node in nodes)
        done = len(cli.run("keys", "--store", server.url, "--state", "done", "-o", "json").lines)
        is_right = (count["executed"] - count["keys"], count["keys"]) == (twice, done)
        print(
            f"# proof: {seconds or 'a few'} s without {name}, events {count['keys']} {time.monotonic() - begin:.1f}s"
            f" {'ok' if is_right else 'FAILED'}",
            flush=True,
        )
        expect(twice, count["executed"] - count["keys"], "reported as run twice, against what did")
        expect(done, count["keys"], "done in the store, against events that ran")
        # Else nothing was shown.
        assert twice > 0 and all(during), (twice, during)


def test_drill_redis(cli):
    drill(cli, Redis, "Redis")


def test_drill_postgres(cli):
    drill(cli, Postgres, "PostgreSQL")


def test_a_store_that_says_nothing_holds_nobody_up(cli):
    """Probes, scrapes and signals are answered while the store takes a minute to be given up."""
    patience = 60
    with redis(cli) as server, demo(cli) as service:
        with serve(
            cli, service.url, store=f"redis+unix:{server.socket}", config=f"store: {{timeout: {patience}s}}\n"
        ) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            expect(get(daemon.admin, "/actuator/deduplication").json["missCount"], 1)
            server.freeze()
            begin = time.monotonic()
            for _ in range(3):
                # Figures are those that were known before.
                expect(metrics(daemon)["hapax_ready"], 1)
                expect(get(daemon.admin, "/actuator/deduplication").json["missCount"], 1)
                expect(get(daemon.admin, "/readyz").status, 200)
                expect(get(daemon.admin, "/livez?verbose").status, 200)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for(lambda line: log_line(line).get("msg") == "configuration reloaded")
            # And the end comes without the store.
            daemon.end()
            took = time.monotonic() - begin
            assert took < patience / 2, f"it took {took} s: a loop waited for the store"


def test_a_store_that_is_back_is_seen(cli):
    with redis(cli) as server, demo(cli) as service:
        with serve(cli, service.url, store=f"redis+unix:{server.socket}", config="store: {timeout: 1s}\n") as daemon:
            until(lambda: get(daemon.admin, "/readyz").status == 200, "it is ready")
            server.freeze()
            until(lambda: get(daemon.admin, "/readyz").status == 503, "it is not ready")
            expect(get(daemon.admin, "/livez").status, 200)
            figures = metrics(daemon)
            expect((figures["hapax_store_up"], figures["hapax_ready"]), (0, 0))
            server.thaw()
            until(lambda: get(daemon.admin, "/readyz").status == 200, "it is ready")
            until(lambda: metrics(daemon)["hapax_store_up"] == 1, "it is up")


def test_a_result_that_cannot_be_stored(cli):
    """The sender learns it with the reply, of a batch, too: told to retry, it would run it twice."""
    quick = "store: {timeout: 1s}\ndefaults: {lease: 3s}\n"
    batch = {"Content-Type": "application/cloudevents-batch+json"}, json.dumps([structured("2")]).encode()
    with redis(cli) as server, upstream() as service:
        with serve(cli, service.url, store=f"redis+unix:{server.socket}", config=quick) as daemon:
            replies = []
            threads = [
                threading.Thread(target=lambda: replies.append(post(daemon.gateway, "1", path="/hold"))),
                threading.Thread(target=lambda: replies.append(request(daemon.gateway, "POST", "/hold", *batch))),
            ]
            for thread in threads:
                thread.start()
                service.arrived.acquire()
            server.freeze()
            service.release.set()
            for thread in threads:
                thread.join()
            expect([(reply.status, reply.headers.get("hapax-stored")) for reply in replies], [(200, "no")] * 2)
            runs = 'hapax_runs_total{tenant="default",group="default",outcome="%s"}'
            until(lambda: metrics(daemon).get(runs % "unstored") == 2, "they are counted")
            expect(metrics(daemon)[runs % "ok"], 0)
            server.thaw()


def verbose(daemon):
    reply = get(daemon.admin, "/readyz?verbose")
    return reply.status, reply.body.decode()


def test_readiness_and_metrics_of_an_outage(cli):
    """A daemon that goes on is ready, and says that it goes on, and by how much."""
    with redis(cli) as server, demo(cli) as service:
        store = f"redis+unix:{server.socket}"
        with serve(cli, service.url, "--resp", "127.0.0.1:0", store=store, config=config(cli, "continue")) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            expect(metrics(daemon)["hapax_store_away"], 0)
            server.stop()
            for number in range(7):
                expect(post(daemon.gateway, f"during {number}").status, 200)
            until(lambda: "use the journal" in verbose(daemon)[1], "it says so")
            until(lambda: "[+]journal ok: 7 records" in verbose(daemon)[1], "it says how many")
            status, text = verbose(daemon)
            expect(status, 200)
            assert "[-]store failed (optional): unavailable: " in text, text
            until(lambda: metrics(daemon)["hapax_store_away"] == 1, "the breaker is open")
            until(lambda: metrics(daemon)["hapax_journal_records"] == 7, "all are counted")
            figures = metrics(daemon)
            expect(figures["hapax_journal_continued_total"], 7)
            # A9: the store did not answer, although the events ran.
            expect(figures['hapax_check_errors_total{door="gateway",reason="check_failed"}'], 7)
            expect(figures['idempotency_errors_total{door="gateway",reason="check_failed"}'], 7)
            # The same at the other doors.
            with Wire(door(daemon)) as wire:
                wire.pipeline([["HAPAX.CHECK", "during"]] * 2)
            expect(metrics(daemon)['hapax_check_errors_total{door="resp",reason="check_failed"}'], 2)
            assert figures["hapax_store_outages_total"] >= 1, figures
            expect((figures["hapax_store_up"], figures["hapax_ready"]), (0, 1))
            server.start()
            until(lambda: metrics(daemon)["hapax_journal_records"] == 0, "all is written to the store")
            until(lambda: metrics(daemon)["hapax_store_away"] == 0, "the breaker is closed")
            figures = metrics(daemon)
            expect(figures['hapax_journal_reconciled_total{became="kept"}'], 8)
            expect(figures['hapax_journal_reconciled_total{became="twice"}'], 0)
            until(lambda: "[+]store ok" in verbose(daemon)[1], "all is well")
            assert "[+]clock ok: " in verbose(daemon)[1], verbose(daemon)


def test_a_daemon_that_refuses_is_not_ready(cli):
    with redis(cli) as server, demo(cli) as service:
        store = f"redis+unix:{server.socket}"
        with serve(cli, service.url, store=store, config=config(cli, "refuse")) as daemon:
            until(lambda: verbose(daemon)[0] == 200, "it is ready")
            server.stop()
            until(lambda: verbose(daemon)[0] == 503, "it is not ready")
            assert "[-]store failed: unavailable: " in verbose(daemon)[1], verbose(daemon)
            expect(get(daemon.admin, "/livez").status, 200)
            server.start()
            until(lambda: verbose(daemon)[0] == 200, "it is ready")
