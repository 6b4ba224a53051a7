"""The outbox in the daemon: rows reach their sink, a failure is reported and affects no other row."""

import contextlib
import functools
import http.server
import os
import queue
import signal
import socket
import sqlite3
import subprocess
import threading

import daemon as daemons
from conditions import begins, ends
from daemon import get, log_line, metrics, post, upstream
from harness import TIMEOUT_SECONDS, expect, expect_in, until
from test_api import AUTH as TOKENS_ONLY
from test_api import TOKENS, Api

AUTH = TOKENS_ONLY.replace("auth:\n", "auth:\n  open_metrics: true\n")
POSTGRES = os.environ.get("HAPAX_TEST_POSTGRES")


class Sink:
    """A service that accepts CloudEvents. answers: by topic, the status; else 200. While held, it does not answer."""

    def __init__(self, port=0):
        self.taken = []
        self.answers = {}
        self.release = threading.Event()
        self.release.set()
        self.arrived = threading.Semaphore(0)
        self.connections = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def setup(self):
                super().setup()
                outer.connections.append(self.connection)

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                topic = self.path.rsplit("/", 1)[1]
                outer.arrived.release()
                outer.release.wait(TIMEOUT_SECONDS)
                status = outer.answers.get(topic, 200)
                if status == 200:
                    outer.taken.append((topic, self.headers["ce-id"], body))
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", port), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}/in/"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def ids(self):
        return [event[1] for event in list(self.taken)]

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()
        # Those that are kept, too: it is away.
        for connection in self.connections:
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)


@contextlib.contextmanager
def sinking(**options):
    sink = Sink(**options)
    try:
        yield sink
    finally:
        sink.close()


class Shop:
    """A database with an outbox, empty."""

    def __init__(self, cli, kind, init=True):
        self.cli = cli
        name = f"shop_{cli.folder.name}".replace("-", "_").lower()
        self.url = f"sqlite:{cli.folder}/shop.db" if kind == "sqlite" else f"postgres:///postgres{POSTGRES}&schema={name}"
        if init:
            self.init()

    def init(self):
        self.cli.run("outbox", "init", "--db", self.url)

    def add(self, event, topic="orders", key="k"):
        self.cli.run("outbox", "add", "--db", self.url, "-t", topic, "--ordering-key", key, "--id", event, input=b'{"n":1}')

    def config(self, sink, more=""):
        return AUTH + f"outbox:\n  url: '{self.url}'\n  sink: '{sink}'\n  retry: 20ms\n{more}"


def on_both(test):
    """As two tests: SQLite, and PostgreSQL where there is a server."""
    kinds = ["sqlite"] + (["postgres"] if POSTGRES else [])
    for kind in kinds:
        case = functools.partial(test, kind=kind)
        functools.update_wrapper(case, test)
        case.__name__ = f"test_{test.__name__}_{kind}"
        del case.__wrapped__
        globals()[case.__name__] = case
    return test


def serve(cli, url, **more):
    options = [] if url else ["--gateway", "off"]
    return daemons.serve(cli, url, *options, **more)


def health(daemon):
    return get(daemon.admin, "/healthz?verbose").body.decode()


def counted(daemon, name):
    return metrics(daemon).get(name)


@on_both
def published(cli, kind):
    """In order, once, and everybody who looks on is told."""
    shop = Shop(cli, kind)
    with sinking() as sink, serve(cli, None, config=shop.config(sink.url)) as daemon:
        until(lambda: "[+]outbox ok" in health(daemon), "it has begun")
        for number in range(5):
            shop.add(f"e{number}")
        until(lambda: counted(daemon, "hapax_outbox_published_total") == 5, "all are published")
        expect(sink.taken, [("orders", f"e{number}", b'{"n":1}') for number in range(5)])
        until(lambda: counted(daemon, "hapax_outbox_pending_rows") == 0, "nothing is pending")
        expect([counted(daemon, f"hapax_outbox_{name}") for name in ("up", "partitions", "lag_seconds")], [1, 64, 0])
        reply = Api(daemon, "read")("GET", "/outbox").json
        expect((reply["pending"], reply["parked"], reply["partitions"], reply["events"]), (0, 0, 64, []))
        expect((reply["relay"]["state"], reply["relay"]["reason"], reply["relay"]["published"]), ("running", None, 5))
        expect([relay["partitions"] for relay in reply["relays"]], [64])
        expect_in(f"pid {daemon.process.pid}", reply["relays"][0]["owner"])
        # The command shows the same relay.
        expect(cli.run("outbox", "status", "--db", shop.url, "-o", "json").json["relays"], 1)
    # It has given its partitions back.
    expect(cli.run("outbox", "status", "--db", shop.url, "-o", "json").json["partitions"], 0)


@on_both
def parked_and_retried(cli, kind):
    """What the sink refuses holds up its own key only, is listed with the reason, and goes out when a person says so."""
    shop = Shop(cli, kind)
    with sinking() as sink, serve(cli, None, config=shop.config(sink.url, "  retry_max: 1h\n")) as daemon:
        sink.answers["bad"] = 422
        shop.add("poison", topic="bad")
        until(lambda: counted(daemon, "hapax_outbox_errors_total{reason=\"parked\"}") == 1, "it is parked")
        shop.add("behind")
        shop.add("other", key="another")
        until(lambda: sink.ids == ["other"], "the other key is published")
        call, reader = Api(daemon, "write"), Api(daemon, "read")
        until(lambda: call("GET", "/outbox").json["parked"] == 1, "the database says so")
        (event,) = call("GET", "/outbox").json["events"]
        expect((event["id"], event["topic"], event["ordering_key"], event["attempts"]), ("poison", "bad", "k", 1))
        expect_in("422", event["error"])
        reader("POST", "/outbox/poison/retry").is_problem(403, "write")
        call("POST", "/outbox/absent/retry").is_problem(404, "no event with that id")
        call("POST", "/outbox/other/retry").is_problem(409, "not parked")
        call("POST", "/outbox/other/park").is_problem(409, "was already sent")
        call("POST", f"/outbox/{'x' * 256}/park").is_problem(400, "limit 255")
        sink.answers.clear()
        expect(call("POST", "/outbox/poison/retry").json, {"outcome": "applied", "id": "poison"})
        until(lambda: sink.ids == ["other", "poison", "behind"], "both are published, in order")
        audit = [(entry["action"], entry["outcome"], entry["detail"]["id"]) for entry in call("GET", "/audit").json["entries"]]
        expect(audit[0], ("outbox.retry", "applied", "poison"))
        expect_in(("outbox.retry", "absent", "absent"), audit)
        expect_in(("outbox.park", "refused", "other"), audit)


def said(daemon, msg):
    """The lines of the log with that msg, so far."""
    return [line for line in map(log_line, list(daemon.lines)) if line.get("msg") == msg]


def left(shop):
    return shop.cli.run("outbox", "status", "--db", shop.url, "-o", "json").json


@on_both
def sent_rows_are_deleted(cli, kind):
    """E4: after `retention`, with a line and a figure. A parked row stays."""
    shop = Shop(cli, kind)
    with sinking() as sink, serve(cli, None, config=shop.config(sink.url, "  retention: 100ms\n")) as daemon:
        sink.answers["bad"] = 422
        shop.add("poison", topic="bad")
        for number in range(3):
            shop.add(f"e{number}", key="other")
        until(lambda: counted(daemon, "hapax_outbox_purged_total") == 3, "the sent rows are deleted")
        expect([left(shop)[state] for state in ("sent", "parked")], [0, 1])
        until(lambda: said(daemon, "outbox events deleted"), "a line says so")


@on_both
def retention_of_a_command(cli, kind):
    """E4: 0 and forever keep sent rows."""
    shop = Shop(cli, kind)
    with sinking() as sink:
        relay = ["outbox", "relay", "--db", shop.url, "--to", sink.url, "--until-empty", "-o", "json"]
        shop.add("e1")
        expect(cli.run(*relay).json["purged"], 0)
        expect(cli.run(*relay, "--retention", "0").json["purged"], 0)
        expect(cli.run(*relay, "--retention", "forever").json["purged"], 0)
        expect(left(shop)["sent"], 1)
        reply = cli.run(*relay, "--retention", "1ms")
        expect(reply.json["purged"], 1)
        expect_in("deleted sent events: 1 rows", reply.err)
        expect(left(shop)["sent"], 0)
        expect_in("retention", cli.run(*relay, "--retention", "soon", code=64).err)


def orders_of(shop):
    """SQL on the business tables of the shop, in its schema."""
    if shop.url.startswith("sqlite:"):
        path = shop.url.removeprefix("sqlite:")

        def run(sql):
            with contextlib.closing(sqlite3.connect(path)) as db, db:
                db.execute(sql.replace("SHOP.", ""))

        return run, ""
    url, schema = shop.url.split("&schema=")

    def ask(sql):
        subprocess.run(["psql", "-q", "-v", "ON_ERROR_STOP=1", "-d", url, "-c", sql.replace("SHOP", schema)],
                       check=True, capture_output=True, timeout=TIMEOUT_SECONDS)

    return ask, schema + "."


@on_both
def audits(cli, kind):
    """E4: an order without an event is noticed while the relay publishes, and so is that it has one again."""
    shop = Shop(cli, kind)
    run, schema = orders_of(shop)
    run("CREATE TABLE SHOP.orders (id TEXT)")
    run("INSERT INTO SHOP.orders VALUES ('e1'), ('e2')")
    shop.add("e1")
    config = f"""  audits:
    - {{name: orders, query: "SELECT id FROM {schema}orders -- all", every: 1s}}
    - {{query: "SELECT 'k', 2; ", by: ordering_key, every: 1s}}
    - {{name: wrong, query: "SELECT id FROM nowhere", every: 1s}}
    - {{name: writes, query: "DELETE FROM {schema}orders", every: 1s}}
"""

    def missing(name):
        return counted(daemon, f'hapax_outbox_audit_missing_rows{{audit="{name}"}}')

    with sinking() as sink, serve(cli, None, config=shop.config(sink.url, config)) as daemon:
        until(lambda: missing("orders") == 1, "the order without an event is found")
        until(lambda: said(daemon, "outbox audit: events are missing"), "a line says so")
        (line,) = said(daemon, "outbox audit: events are missing")
        expect((line["audit"], line["checked"], line["missing"], line["example"]), ("orders", 2, 1, "e2"))
        begins(daemon, "outbox_incomplete", "orders", "1 of 2 rows have no event")
        until(lambda: missing("audit-2") == 0, "the other one is complete")
        until(lambda: counted(daemon, 'hapax_outbox_audit_failures_total{audit="writes"}'), "the last one has run")
        expect((missing("wrong"), missing("writes")), (None, None))
        until(lambda: len(said(daemon, "outbox audit failed")) == 2, "a line for each that fails")
        failed = {line["audit"]: line["error"] for line in said(daemon, "outbox audit failed")}
        expect(set(failed), {"wrong", "writes"})
        expect_in("nowhere", failed["wrong"])
        shop.add("e2")
        until(lambda: missing("orders") == 0, "nothing is missing any more")
        until(lambda: len(said(daemon, "outbox audit: no event is missing")) == 2, "a line says so")
        expect([line["audit"] for line in said(daemon, "outbox audit: no event is missing")], ["audit-2", "orders"])
        expect(len(said(daemon, "outbox audit: events are missing")), 1)
        until(lambda: sink.ids == ["e1", "e2"], "it is published")
        ends(daemon, "outbox_incomplete", "orders")


@on_both
def audit_in_progress(cli, kind):
    """E4: a query without an end holds up neither rows nor the end of the daemon."""
    shop = Shop(cli, kind)
    endless = "SELECT pg_sleep(600)" if kind == "postgres" else (
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT max(i) FROM n")
    config = f"""  audits: [{{query: "{endless}"}}]
drain: {{timeout: 10m}}
"""
    with sinking() as sink, serve(cli, None, config=shop.config(sink.url, config)) as daemon:
        shop.add("e1")
        until(lambda: sink.ids == ["e1"], "it is published")
        daemon.end()


def test_parked_by_hand(cli):
    """An event that is tried again and again can be stopped; that is an attempt less for the sink, and no loss."""
    shop = Shop(cli, "sqlite")
    with sinking() as sink, serve(cli, None, config=shop.config(sink.url, "  attempts: 100000\n")) as daemon:
        sink.answers["orders"] = 500
        shop.add("slow")
        until(lambda: (counted(daemon, "hapax_outbox_errors_total{reason=\"retry\"}") or 0) >= 2, "it is tried again")
        call = Api(daemon, "write")
        # Between two attempts it is pending; while one is under way the mark of that counts.
        until(lambda: call.raw("POST", "/api/v1/outbox/slow/park").status == 200, "it is parked")
        expect(call("GET", "/outbox").json["parked"], 1)
        sink.answers.clear()
        expect(call("POST", "/outbox/slow/retry").status, 200)
        until(lambda: sink.ids == ["slow"], "it is published")


@on_both
def without_a_table(cli, kind):
    """What is wrong from the beginning is told, costs the daemon nothing, and is tried again."""
    shop = Shop(cli, kind, init=False)
    with sinking() as sink, upstream() as service, serve(cli, service.url, config=shop.config(sink.url)) as daemon:
        until(lambda: "[-]outbox failed (optional): degraded: " in health(daemon), "it is told")
        expect(get(daemon.admin, "/healthz").status, 200)
        expect(post(daemon.gateway, "1").decision, "acquired")
        expect(counted(daemon, "hapax_outbox_up"), 0)
        Api(daemon, "read")("GET", "/outbox").is_problem(503)
        shop.init()
        shop.add("first")
        until(lambda: sink.ids == ["first"], "it is published")
        expect_in("[+]outbox ok", health(daemon))


def test_an_outage(cli):
    """The sink goes away and comes back: nothing is parked, everything goes out."""
    shop = Shop(cli, "sqlite")
    with sinking() as first:
        port = first.port
        context = serve(cli, None, config=shop.config(first.url))
        daemon = context.__enter__()
        shop.add("before")
        until(lambda: first.ids == ["before"], "it is published")
    try:
        shop.add("meanwhile")
        until(lambda: "[-]outbox failed (optional): degraded: " in health(daemon), "the outage is told")
        begins(daemon, "outbox_paused")
        reply = Api(daemon, "read")("GET", "/outbox").json
        expect((reply["pending"], reply["relay"]["state"]), (1, "degraded"))
        until(lambda: counted(daemon, "hapax_outbox_lag_seconds") > 0, "the lag is seen")
        with sinking(port=port) as second:
            until(lambda: second.ids == ["meanwhile"], "it is published")
            until(lambda: "[+]outbox ok" in health(daemon), "all is well")
            expect(counted(daemon, "hapax_outbox_errors_total{reason=\"parked\"}"), 0)
            expect(counted(daemon, "hapax_outbox_published_total"), 2)
            ends(daemon, "outbox_paused")
    finally:
        context.__exit__(None, None, None)


def test_reload(cli):
    """Another sink, something wrong, nothing any more, and back: by HUP."""
    shop = Shop(cli, "sqlite")
    with sinking() as first, sinking() as second, serve(cli, None, config=shop.config(first.url)) as daemon:

        def reload(text, msg="configuration reloaded"):
            daemon.config.write_text(text)
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for(lambda line: log_line(line).get("msg") == msg)

        shop.add("1")
        until(lambda: first.ids == ["1"], "it is published")
        reload(shop.config(second.url))
        shop.add("2")
        until(lambda: second.ids == ["2"], "it is published elsewhere")
        reload(shop.config("gopher://nowhere/"), "configuration rejected, previous one stays active")
        shop.add("3")
        until(lambda: second.ids == ["2", "3"], "it goes on as before")
        until(lambda: counted(daemon, "hapax_outbox_published_total") == 3, "figures go on")
        reload(AUTH)
        Api(daemon, "admin")("GET", "/outbox").is_problem(404, "outbox.url")
        assert "]outbox" not in health(daemon), health(daemon)
        expect(counted(daemon, "hapax_outbox_up"), None)
        shop.add("4")
        reload(shop.config(first.url))
        until(lambda: first.ids == ["1", "4"], "it is relayed again")
        until(lambda: counted(daemon, "hapax_outbox_published_total") == 4, "figures go on")


def test_drained_at_the_end(cli):
    """What is under way at TERM is confirmed and marked before the daemon ends; the rest waits."""
    shop = Shop(cli, "sqlite")
    with sinking() as sink, serve(cli, None, config=shop.config(sink.url, "  batch: 1\n")) as daemon:
        sink.release.clear()
        shop.add("under-way")
        assert sink.arrived.acquire(timeout=TIMEOUT_SECONDS)
        shop.add("later")
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for(lambda line: log_line(line).get("msg") == "draining")
        # It does not end before the sink has answered; a while is enough to see one that would.
        with contextlib.suppress(queue.Empty):
            raise AssertionError(f"it went on: {daemon.queue.get(timeout=0.5)}")
        sink.release.set()
        daemon.end(how=None)
        expect(sink.ids, ["under-way"])
        status = cli.run("outbox", "status", "--db", shop.url, "-o", "json").json
        expect((status["sent"], status["pending"], status["partitions"]), (1, 1, 0))


def test_nothing_but_an_outbox(cli):
    """No gateway is needed then, nor is its port, unless an option asks for it."""
    shop = Shop(cli, "sqlite")
    with sinking() as sink, socket.socket() as taken:
        with contextlib.suppress(OSError):
            taken.bind(("127.0.0.1", 8080))
            taken.listen()
        path = cli.folder / "alone.yaml"
        path.write_text(shop.config(sink.url))
        arguments = ["serve", "--store", "memory:", "--admin", "127.0.0.1:0", "--config", str(path)]
        daemon = daemons.Process(arguments, cli.env(HAPAX_STORE=None), lambda line: log_line(line) if log_line(line).get("msg") == "ready" else None)
        try:
            expect(daemon.ready["gateway"], "off")
            shop.add("alone")
            until(lambda: sink.ids == ["alone"], "it is published")
            daemon.end()
        finally:
            daemon.kill()
        cli.run(*arguments, "--gateway", "127.0.0.1:0", code=78).says("no upstream for the gateway", "--upstream")
    expect_in("gateway: off", cli.run("config", "dump", str(path)).out)


def test_no_outbox(cli):
    with serve(cli, None, config=AUTH) as daemon:
        call = Api(daemon, "admin")
        call("GET", "/outbox").is_problem(404, "relays no outbox")
        call("POST", "/outbox/x/retry").is_problem(404, "urn:hapax:problem:no-outbox")
        call("POST", "/outbox/x/park").is_problem(404, "outbox.sink")
        expect([name for name in metrics(daemon) if name.startswith("hapax_outbox")], [])
        assert "]outbox" not in health(daemon), health(daemon)


def test_configuration(cli):
    """What cannot be relayed is refused where it is written; passwords are never shown."""
    path = cli.folder / "hapax.yaml"

    def refuses(text, *parts):
        path.write_text(f"outbox: {{{text}}}\n")
        result = cli.run("config", "check", str(path), code=78)
        for part in parts:
            expect_in(part, result.err)

    refuses("url: 'sqlite:x.db'", "outbox.sink", "set the URL that rows are published to")
    refuses("sink: 'http://host/'", "outbox.url", "set the database")
    refuses("url: 'mysql://host/db', sink: 'http://host/'", "mysql", "postgres://")
    refuses("url: 'sqlite:x.db', sink: 'gopher://host/'", "gopher", "unknown sink")
    refuses("url: 'sqlite:x.db', sink: 'http://host/', batch: 1001", "batch")
    refuses("url: 'sqlite:x.db', snk: 'http://host/'", "did you mean 'sink'?")
    path.write_text("outbox: {url: 'postgres://u:geheim@host/db', sink: 'http://host/'}\n")
    expect_in("host/db", cli.run("config", "dump", str(path)).out)
    assert "geheim" not in cli.run("config", "dump", str(path)).out
    with serve(cli, None, config=AUTH + "outbox: {url: 'postgres://u:geheim@127.0.0.1:1/db', sink: 'http://127.0.0.1:1/'}\n") as daemon:
        until(lambda: "[-]outbox" in health(daemon), "it is told")
        for text in (Api(daemon, "admin")("GET", "/config").body.decode(), health(daemon), "".join(daemon.lines)):
            assert "geheim" not in text, text
        expect(TOKENS["admin"] in "".join(daemon.lines), False)
