"""A store that goes away and comes back: a real Redis server, stopped and started again."""

import contextlib
import shutil
import signal
import subprocess
import threading
import time

from daemon import demo, get, log_line, metrics, post, serve, upstream
from harness import TIMEOUT_SECONDS, Skip, expect, until, scaled


class Redis:
    """A server on a unix socket that keeps what it has over a restart."""

    def __init__(self, cli):
        if shutil.which("redis-server") is None:
            raise Skip("redis-server is not installed (tools/setup test)")
        self.folder = cli.folder / "redis"
        self.folder.mkdir()
        self.socket = self.folder / "socket"
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


@contextlib.contextmanager
def redis(cli):
    server = Redis(cli)
    try:
        yield server
    finally:
        server.process.kill()
        server.process.wait()


def config(cli, policy):
    return (
        f"store: {{journal: 'sqlite:{cli.folder / 'journal.db'}', timeout: 500ms}}\n"
        f"defaults: {{on_store_failure: {policy}}}\n"
    )


def said(daemon, message):
    return [fields for fields in map(log_line, list(daemon.lines)) if fields.get("msg") == message]


def test_events_go_on_without_the_store(cli):
    """E13, A6: no event refused, each written down, and what is written down arrives."""
    with redis(cli) as server, demo(cli) as service:
        store = f"redis+unix:{server.socket}"
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
            until(lambda: said(daemon, "store back"), "the store is back")
            expect(post(daemon.gateway, "before").status, 200)
            for number in range(count):
                expect(post(daemon.gateway, f"during {number}").status, 200)
            expect(service.count()["executed"], 1 + count)
            expect(said(daemon, "ran twice in an outage of the store"), [])
        # Everything that was let through is in the store, for other nodes to see.
        keys = cli.run("keys", "--store", store, "--state", "done", "-o", "json").lines
        expect(len(keys), 1 + count)
        expect(cli.run("journal", "list", f"sqlite:{cli.folder / 'journal.db'}", "-o", "json").lines, [])


def test_what_ran_on_another_node_too_is_counted(cli):
    with redis(cli) as server, demo(cli) as service:
        store = f"redis+unix:{server.socket}"
        with serve(cli, service.url, store=store, config=config(cli, "continue")) as daemon:
            expect(post(daemon.gateway, "1").status, 200)
            server.stop()
            for number in range(2, 8):
                expect(post(daemon.gateway, str(number)).status, 200)
            server.start()
            # Faster than this node is back: another one runs three of them.
            with serve(cli, service.url, store=store) as other:
                twice = [number for number in (2, 3, 4) if post(other.gateway, str(number)).decision == "acquired"]
            until(lambda: said(daemon, "store back"), "the store is back")
            until(lambda: len(said(daemon, "ran twice in an outage of the store")) == len(twice), "all are reported")
            expect(service.count()["executed"], 7 + len(twice))


def test_a_scope_that_refuses_is_refused(cli):
    with redis(cli) as server, demo(cli) as service:
        store = f"redis+unix:{server.socket}"
        with serve(cli, service.url, store=store, config=config(cli, "refuse")) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            server.stop()
            for number in range(5):
                post(daemon.gateway, f"during {number}").is_problem(503)
            expect(service.count()["executed"], 1)
            server.start()
            until(lambda: post(daemon.gateway, "after").status == 200, "events are taken again")
            expect(service.count()["executed"], 2)


def test_many_at_once_through_an_outage(cli):
    """No event is refused whenever it comes, before, during or after."""
    with redis(cli) as server, demo(cli) as service:
        store = f"redis+unix:{server.socket}"
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
            until(lambda: said(daemon, "store away"), "the store is away")
            before = len(statuses)
            until(lambda: len(statuses) > before + 50, "events flow")
            server.start()
            until(lambda: said(daemon, "store back"), "the store is back")
            before = len(statuses)
            until(lambda: len(statuses) > before + 50, "events flow")
            stop.set()
            for sender in senders:
                sender.join(TIMEOUT_SECONDS)
            expect(set(statuses), {200})
            expect(service.count()["executed"], len(statuses))


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
            daemon.wait_for(lambda line: log_line(line).get("msg") == "the configuration was read again")
            # And the end comes without the store.
            daemon.end()
            took = time.monotonic() - begin
            assert took < patience / 2, f"it took {took} s: somebody waited for the store"


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
    """The sender is told so, with the reply; the run is counted when it is certain."""
    quick = "store: {timeout: 1s}\ndefaults: {lease: 3s}\n"
    with redis(cli) as server, upstream() as service:
        with serve(cli, service.url, store=f"redis+unix:{server.socket}", config=quick) as daemon:
            replies = []
            thread = threading.Thread(target=lambda: replies.append(post(daemon.gateway, "1", path="/hold")))
            thread.start()
            service.arrived.acquire()
            server.freeze()
            service.release.set()
            thread.join()
            expect((replies[0].status, replies[0].headers.get("hapax-stored")), (200, "no"))
            runs = 'hapax_runs_total{tenant="default",group="default",outcome="%s"}'
            until(lambda: metrics(daemon).get(runs % "unstored") == 1, "it is counted")
            expect(metrics(daemon)[runs % "ok"], 0)
            server.thaw()


def verbose(daemon):
    reply = get(daemon.admin, "/readyz?verbose")
    return reply.status, reply.body.decode()


def test_readiness_and_metrics_of_an_outage(cli):
    """A daemon that goes on is ready, and says that it goes on, and by how much."""
    with redis(cli) as server, demo(cli) as service:
        store = f"redis+unix:{server.socket}"
        with serve(cli, service.url, store=store, config=config(cli, "continue")) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            expect(metrics(daemon)["hapax_store_away"], 0)
            server.stop()
            for number in range(7):
                expect(post(daemon.gateway, f"during {number}").status, 200)
            until(lambda: "go on by the journal" in verbose(daemon)[1], "it says so")
            until(lambda: "[+]journal ok: 7 records" in verbose(daemon)[1], "it says how many")
            status, text = verbose(daemon)
            expect(status, 200)
            assert "[-]store failed (optional): away: " in text, text
            until(lambda: metrics(daemon)["hapax_store_away"] == 1, "the breaker is open")
            until(lambda: metrics(daemon)["hapax_journal_records"] == 7, "all are counted")
            figures = metrics(daemon)
            expect(figures["hapax_journal_continued_total"], 7)
            assert figures["hapax_store_outages_total"] >= 1, figures
            expect((figures["hapax_store_up"], figures["hapax_ready"]), (0, 1))
            server.start()
            until(lambda: metrics(daemon)["hapax_journal_records"] == 0, "all is written to the store")
            until(lambda: metrics(daemon)["hapax_store_away"] == 0, "the breaker is closed")
            figures = metrics(daemon)
            expect(figures['hapax_journal_reconciled_total{became="kept"}'], 7)
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
            assert "[-]store failed: away: " in verbose(daemon)[1], verbose(daemon)
            expect(get(daemon.admin, "/livez").status, 200)
            server.start()
            until(lambda: verbose(daemon)[0] == 200, "it is ready")
