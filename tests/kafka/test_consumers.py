"""consumers: in the configuration of `hapax serve`, against librdkafka's mock cluster. B10, D9."""

import contextlib
import hashlib
import json
import pathlib
import signal
import time

from consumers import (
    config,
    consume,
    consumers,
    duplicates,
    figure,
    health,
    letters_are_listed_and_sent_again,
    listed,
    originals,
    pauses_and_resumes,
    reload,
    row,
    said,
    starts_over,
    until_figure,
    with_token,
)
from daemon import dead_address, get, log_line, metrics, post, request, serve, upstream
from harness import expect, expect_in, until
from kafka import Kafka, Service, event
from spans import CONSUMER, SPAN, TRACE, collector, named
from test_outage import Redis

TOKEN = "0123456789abcdef0123456789abcdef"


def numbers(*which):
    return [(f"k{n}", json.dumps({"n": n}), event(n)) for n in which]


def test_a_message_and_an_event_are_one(cli):
    with Kafka({"orders": 1}) as kafka, Service() as service, upstream() as behind:
        kafka.produce("orders", numbers(1, 2, 2))
        text = config(row(**{"from": kafka.url("orders")}, to=service.url))
        with serve(cli, behind.url, config=text) as daemon:
            until_figure(daemon, 3, "acknowledged_total")
            # By HTTP what came by Kafka, and by Kafka what came by HTTP.
            reply = post(daemon.gateway, "A-1", b'{"n":1}')
            expect((reply.status, reply.decision), (200, "replay"))
            expect(post(daemon.gateway, "A-9", b'{"n":9}').decision, "acquired")
            kafka.produce("orders", numbers(9))
            until_figure(daemon, 4, "acknowledged_total")
            # The same, with another payload.
            expect(post(daemon.gateway, "A-1", b'{"n":7}').status, 422)

            expect(figure(daemon, "messages_total", decision="acquired"), 2)
            expect(figure(daemon, "messages_total", decision="replay"), 2)
            expect(figure(daemon, "duplicates_total", cause="producer"), 1)
            expect(figure(daemon, "duplicates_total", cause="other_door"), 1)
            expect(figure(daemon, "runs_total", outcome="ok"), 2)
            expect((figure(daemon, "up"), figure(daemon, "paused", reason="store"), figure(daemon, "starts_total")), (1, 0, 1))
            until_figure(daemon, 0, "lag_messages")
            status, part = health(daemon)
            expect((status, part["status"], part["reason"]), (200, "ok", "1 of 1 running"))
            line = next(line for line in said(daemon, "duplicate job blocked") if line["decision"] == "replay")
            expect(
                (line["consumer"], line["cause"], line["original"], line["job_id"], line["queue"]),
                ("orders", "producer", "orders/0/1", "A-2", "default/default"),
            )
            expect((line["event_type"], line["original_job_id"]), ("order.paid", "A-2"))
            # Those who look on see it with its cause.
            until(lambda: len(duplicates(daemon)) == 3, "it is noted")
            first = [note for note in duplicates(daemon) if note["door"] == "consumer"]
            expect(sorted((note["key"], note["cause"]) for note in first), [("/shop:A-2", "producer"), ("/shop:A-9", "other_door")])
            expect({(note["event"]["type"], note["event"]["source"]) for note in first}, {("order.paid", "/shop")})
            expect({note["original"]["event"]["id"] for note in first}, {"A-2", "A-9"})
        expect(service.effects, {("/shop", "A-1"): 1, ("/shop", "A-2"): 1})
        expect(len(behind.requests), 1)
        expect(kafka.committed("g", "orders"), 4)


def test_a_reload_starts_stops_and_changes(cli):
    with Kafka({"orders": 1, "returns": 1, "orders.dead": 1}) as kafka, Service() as service, Service() as other:
        orders, returns = kafka.url("orders"), kafka.url("returns", group="r")
        text = config(row(**{"from": orders}, to=service.url))
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            kafka.produce("orders", numbers(1))
            until_figure(daemon, 1, "acknowledged_total")

            # One more: the first goes on as it is.
            second = row(**{"from": returns}, name="returns", to=other.url)
            reload(daemon, config(row(**{"from": orders}, to=service.url), second))
            kafka.produce("returns", numbers(5))
            until_figure(daemon, 1, "acknowledged_total", "returns")
            expect((figure(daemon, "starts_total"), figure(daemon, "up")), (1, 1))

            # One changed by its text, one by its scope: both start again, and count on. Another group of the broker
            # gets all of it again.
            changed = row(**{"from": kafka.url("orders", group="again")}, to=other.url, attempts=3)
            reload(daemon, config(changed, second, more="defaults: {lease: 31s}"))
            until_figure(daemon, 2, "starts_total")
            until_figure(daemon, 2, "starts_total", "returns")
            kafka.produce("orders", numbers(2))
            until_figure(daemon, 3, "acknowledged_total")
            expect(figure(daemon, "duplicates_total", cause="reread"), 1)
            expect(sorted(name for _, name in other.effects), ["A-2", "A-5"])
            expect(kafka.committed("g", "orders"), 1)

            # What is wrong is refused as a whole.
            daemon.config.write_text(config(changed, row(**{"from": "pigeon://h/t"}, name="new", exec="cat")), encoding="utf-8")
            daemon.process.send_signal(signal.SIGHUP)
            refused = daemon.wait_for(lambda line: log_line(line) if "configuration rejected" in line else None)
            expect_in("unknown source 'pigeon'", refused["error"])
            expect(figure(daemon, "starts_total"), 2)

            # Gone.
            reload(daemon, config(second, more="defaults: {lease: 31s}"))
            expect(figure(daemon, "up"), None)
            expect(figure(daemon, "starts_total", "returns"), 2)
            until(lambda: kafka.committed("again", "orders") == 2, "what it had done is committed")


def test_one_is_switched_off_and_on(cli):
    """D7: enabled: false, by a reload, without touching anything else."""
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka, Service() as service:

        def text(is_on):
            return config(row(**{"from": kafka.url("orders")}, to=service.url, enabled=is_on), more=with_token())

        with serve(cli, None, "--gateway", "off", config=text(True)) as daemon:
            kafka.produce("orders", numbers(1))
            until_figure(daemon, 1, "acknowledged_total")
            reload(daemon, text(False))
            until_figure(daemon, 0, "up")
            expect(consumers(daemon)["orders"]["state"], "disabled")
            expect((health(daemon)[1]["status"], health(daemon)[1]["reason"]), ("ok", "0 of 1 running"))
            # What it has done is still counted.
            expect(figure(daemon, "acknowledged_total"), 1)
            kafka.produce("orders", numbers(2))
            reload(daemon, text(True))
            until_figure(daemon, 2, "acknowledged_total")
        with serve(cli, None, "--gateway", "off", config=text(False)) as daemon:
            expect((figure(daemon, "up"), figure(daemon, "starts_total")), (0, 0))
        expect(service.effects, {("/shop", "A-1"): 1, ("/shop", "A-2"): 1})


def test_it_is_paused_and_resumed(cli):
    with Kafka({"orders": 1, "orders.dead": 1, "beside": 1, "beside.dead": 1}) as kafka, Service() as service:

        def fill(topic):
            return lambda *which: kafka.produce(topic, numbers(*which))

        pauses_and_resumes(cli, kafka.url("orders"), service, fill("orders"), kafka.url("beside", group="beside"), fill("beside"))
        until(lambda: kafka.committed("g", "orders") == 3, "all is committed")


def test_a_broker_that_is_away_harms_nobody(cli):
    dead = dead_address().removeprefix("http://")
    with Kafka({"orders": 1}) as kafka, Service() as service, upstream() as behind:
        kafka.produce("orders", numbers(1))
        text = config(
            row(**{"from": f"kafka://{dead}/t?group=g"}, name="lost", exec="cat"),
            row(**{"from": kafka.url("orders")}, to=service.url),
        )
        with serve(cli, behind.url, config=text) as daemon:
            until(lambda: time.sleep(0.05) or said(daemon, "source failed"), "it is told")
            status, part = health(daemon)
            expect(part["status"], "failed")
            expect((status, part["optional"]), (200, True))
            expect_in("lost: ", part["reason"])
            until_figure(daemon, 1, "acknowledged_total")
            expect(post(daemon.gateway, "1").status, 200)
            expect(get(daemon.admin, "/readyz").status, 200)
            assert figure(daemon, "source_failures_total", "lost") > 0


def test_it_waits_for_a_store_that_refuses(cli):
    token = f"{{name: t, role: admin, hash: 'sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}'}}"
    more = f"store: {{max_keys: 2}}\nauth: {{open_metrics: true, tokens: [{token}]}}"
    bearer = {"Authorization": f"Bearer {TOKEN}"}
    with Kafka({"orders": 1}) as kafka, Service() as service:
        text = config(row(**{"from": kafka.url("orders")}, to=service.url, backoff="10ms", backoff_max="50ms"), more=more)
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            kafka.produce("orders", numbers(1, 2, 3))
            until_figure(daemon, 2, "acknowledged_total")
            until_figure(daemon, 1, "paused", reason="store")
            status, part = health(daemon)
            expect((status, part["status"]), (200, "failed"))
            expect_in("orders: paused, the store is unavailable", part["reason"])
            expect(len(service.effects), 2)
            # Room is made: it goes on, and nothing is lost or given up.
            path = "/api/v1/keys/default/default/%2Fshop%3AA-1"
            expect(request(daemon.admin, "DELETE", path, bearer).status, 204)
            until_figure(daemon, 3, "acknowledged_total")
            until_figure(daemon, 0, "paused", reason="store")
            expect(figure(daemon, "dead_letters_total"), 0)
            expect(set(service.effects.values()), {1})

            # The API cannot make the daemon run a command.
            patch = json.dumps({"consumers": [{"name": "x", "from": "kafka://h/t", "exec": "true"}]}).encode()
            refused = request(daemon.admin, "PATCH", "/api/v1/config", {**bearer, "Content-Type": "application/json"}, patch)
            refused.is_problem(409, "cannot change consumers here")


def test_an_outage_of_the_store_is_waited_out_or_journalled(cli):
    """Scopes say which: nothing is lost or given up either way, and who waits runs nothing twice."""
    redis = Redis(cli)
    careful, eager = cli.folder / "careful", cli.folder / "eager"
    more = (
        f"store: {{timeout: 500ms, journal: 'file:{cli.folder}/journal'}}\n"
        "scopes: [{scope: default/eager, on_store_failure: continue}]"
    )
    with Kafka({"orders": 1}) as kafka, contextlib.closing(redis):
        common = {"backoff": "10ms", "backoff_max": "200ms"}
        text = config(
            *(
                row(**{"from": kafka.url("orders", group=path.name)}, **common, name=path.name, group=path.name,
                    exec=f"echo $HAPAX_EVENT_ID >>{path}")
                for path in (careful, eager)
            ),
            more=more,
        )
        with serve(cli, None, "--gateway", "off", config=text, store=redis.url) as daemon:
            kafka.produce("orders", numbers(1))
            for name in ("careful", "eager"):
                until_figure(daemon, 1, "acknowledged_total", name)
            redis.stop()
            kafka.produce("orders", numbers(1, 2))
            until_figure(daemon, 1, "paused", "careful", reason="store")
            until(lambda: "A-2" in eager.read_text(), "one goes on")
            expect(figure(daemon, "dead_letters_total", "careful"), 0)
            expect(careful.read_text().split(), ["A-1"])
            redis.start()
            for name in ("careful", "eager"):
                until_figure(daemon, 3, "acknowledged_total", name)
            until_figure(daemon, 0, "paused", "careful", reason="store")
            expect(careful.read_text().split(), ["A-1", "A-2"])


def test_term_finishes_what_runs(cli):
    started, go = cli.folder / "started", cli.folder / "go"
    script = f"cat >>{started}; echo >>{started}; while [ ! -e {go} ]; do sleep 0.02; done"
    with Kafka({"orders": 1}) as kafka:
        kafka.produce("orders", numbers(1, 2, 3))
        settings = {"from": kafka.url("orders"), "exec": script, "parallel": 1}
        store = f"file:{cli.folder}/store"
        with serve(cli, None, "--gateway", "off", config=config(row(**settings)), store=store) as daemon:
            until_figure(daemon, 1, "running_messages")
            until_figure(daemon, 3, "received_total")
            daemon.process.terminate()
            daemon.wait_for(lambda line: "draining" in line)
            go.touch()
            daemon.end(how=None)
        expect(kafka.committed("g", "orders"), 1)
        # Another group, as the mock cluster takes its time to see that a member is gone.
        settings["from"] = kafka.url("orders", group="again")
        with serve(cli, None, "--gateway", "off", config=config(row(**settings)), store=store) as daemon:
            until_figure(daemon, 3, "acknowledged_total")
            expect(figure(daemon, "duplicates_total", cause="reread"), 1)
    expect([json.loads(line)["n"] for line in started.read_text().splitlines()], [1, 2, 3])


def test_a_retry_storm(cli):
    """E18, scenario 2: an export fails half way, and the queue makes five new jobs of it. Without hapax, and with it."""
    jobs = [("k", json.dumps({"job": n, "dataset": "customers"}), {"eventId": f"job-{n}"}) for n in range(1, 7)]

    def handler(name):
        """Exports in two halves; the network fails between them the first time."""
        folder = cli.folder / name
        folder.mkdir()
        half = f"echo half >>{folder}/halves; if mkdir {folder}/failed 2>/dev/null; then exit 1; fi"
        return folder, f"cat >/dev/null; {half}; echo export >>{folder}/exports"

    naked, naked_script = handler("naked")
    once, once_script = handler("once")
    common = {"backoff": "10ms", "key": "content", "exclude": ["data.job"], "order": "none"}
    with Kafka({"jobs": 3}) as kafka:
        text = config(
            row(**{"from": kafka.url("jobs", group="naked")}, **common, name="naked", exec=naked_script, group="naked"),
            row(**{"from": kafka.url("jobs", group="once")}, **common, name="once", exec=once_script, group="once"),
            more="scopes: [{scope: default/naked, enabled: false}]",
        )
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            kafka.produce("jobs", jobs)
            for name in ("naked", "once"):
                until_figure(daemon, 6, "acknowledged_total", name)
            expect(figure(daemon, "runs_total", "naked", outcome="ok"), 6)
            expect(figure(daemon, "runs_total", "once", outcome="ok"), 1)
            expect(figure(daemon, "messages_total", "once", decision="replay"), 5)
    expect(len((naked / "exports").read_text().split()), 6, "the damage without")
    expect(len((once / "exports").read_text().split()), 1, "with hapax")
    expect(len((once / "halves").read_text().split()), 2, "the failed run, and the one that counts")


def test_what_is_wrong_is_told_before_it_starts(cli):
    path = cli.folder / "wrong.yaml"
    path.write_text(config(row(**{"from": "amqp9://u:hush@h/q"}, to="http://h/")), encoding="utf-8")
    refused = cli.run("config", "check", str(path), code=78)
    expect_in("wrong.yaml:1:13: consumer 'orders': from: unknown source 'amqp9'", refused.err)
    assert "hush" not in refused.err
    cli.run("serve", "--config", str(path), "--store", "memory:", code=78)
    path.write_text(config(row(**{"from": "kafka://h/t?sasl.password=hush"}, to="http://h/")), encoding="utf-8")
    expect(cli.run("config", "check", str(path)).out, f"ok: {path}\n")
    dump = cli.run("config", "dump", str(path), "-o", "json")
    expect(dump.json["consumers"][0]["from"], "kafka://h/t?sasl.password=***")
    assert "hush" not in dump.out


def test_dead_letters_are_listed_and_sent_again(cli):
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka:
        letters_are_listed_and_sent_again(cli, kafka.url("orders"), lambda *which: kafka.produce("orders", numbers(*which)))


def test_letters_of_two_topics_have_two_ids(cli):
    """D4: they have the same partition and offset, and one of them is sent."""
    with Kafka({"orders": 1, "orders.dead": 1, "bills": 1, "bills.dead": 1}) as kafka:
        for topic in ("orders", "bills"):
            kafka.produce(f"{topic}.dead", [("k", f'{{"of":"{topic}"}}', {"hapax-dead-place": f"{topic}/0/7"})])
        done = cli.folder / "done"
        text = config(row(**{"from": kafka.url("orders,bills")}, exec=f"cat >>{done}", key="content"), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            expect(sorted(letter["id"] for letter in listed(cli, daemon)), ["bills.dead/0/0", "orders.dead/0/0"])
            expect(consume(cli, daemon, "retry", "orders", "bills.dead/0/0", "-o", "json").json["retried"], 1)
            until_figure(daemon, 1, "acknowledged_total")
            expect([letter["id"] for letter in listed(cli, daemon)], ["orders.dead/0/0"])
    expect(done.read_text(), '{"of":"bills"}')


def test_a_letter_that_stays_lets_none_be_sent_twice(cli):
    """D4: it holds the offset; those behind it are sent once, and what was not looked at is told."""
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka:
        letters = [(key, data, {**headers, "hapax-dead-reason": "attempts"}) for key, data, headers in numbers(*range(1100))]
        letters[0][2]["hapax-dead-reason"] = "mismatch"
        kafka.produce("orders.dead", letters)
        text = config(row(**{"from": kafka.url("orders")}, exec="true"), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            done = consume(cli, daemon, "retry", "orders", "--match", "attempts", "-o", "json", code=75)
            expect_in("were not looked at", done.err)
            expect((done.json["retried"], done.json["left"]), (999, 100))
            until_figure(daemon, 999, "acknowledged_total")
            expect(figure(daemon, "received_total"), 999)


def test_a_look_at_dead_letters_leaves_nothing_behind(cli):
    """D4: no thread of a client stays."""
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka:
        text = config(row(**{"from": kafka.url("orders")}, exec="exit 1", attempts=1), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            kafka.produce("orders", numbers(1))
            until_figure(daemon, 1, "dead_letters_total")
            threads = pathlib.Path(f"/proc/{daemon.process.pid}/task")
            counts = [(len(listed(cli, daemon)), len(list(threads.iterdir()))) for _ in range(3)]
            expect(counts, [(1, counts[0][1])] * 3)


def test_a_duplicate_names_the_original(cli):
    """A10, E12: by its CloudEvents attributes, or by its place. With remember: off, by nothing."""
    with Kafka({"orders": 1}) as kafka, Service() as service:
        again = event(1, ce_id="B-1", ce_type="order.again")
        kafka.produce("orders", [("a", '{"n":1}', event(1)), ("a", '{"n":1}', again), ("b", '{"n":2}', {}), ("b", '{"n":2}', {})])
        text = config(row(**{"from": kafka.url("orders")}, to=service.url, key="field:data.n"))
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            until_figure(daemon, 4, "acknowledged_total")
            expected = [("B-1", "A-1", "order.paid", "/shop"), ("orders/0/3", "orders/0/2", None, None)]
            expect(sorted(originals(daemon, 2)), expected)
            assert all(line["original_time"] for line in said(daemon, "duplicate job blocked") if line["decision"] == "replay")
            ids = {note["event"]["id"]: note["original"]["event"]["id"] for note in duplicates(daemon)}
            expect((ids["B-1"], ids["orders/0/3"]), ("A-1", "orders/0/2"))
            reload(daemon, text + "defaults: {remember: off}\n")
            kafka.produce("orders", [("c", '{"n":3}', event(3)), ("c", '{"n":3}', event(3))])
            until_figure(daemon, 6, "acknowledged_total")
            expect(originals(daemon, 3)[2], ("A-3", None, None, None))


def test_it_starts_over(cli):
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka, Service() as service:
        if kafka.is_real:
            starts_over(cli, kafka.url("orders"), service, lambda *which: kafka.produce("orders", numbers(*which)))
            return
        # The mock takes no offsets from outside of a group that has had members, as Kafka while it has them.
        kafka.produce("orders", numbers(1))
        there = ("--scope", "acme/orders", "--store", f"sqlite:{cli.folder}/k.db")
        url = kafka.url("orders")
        cli.run("consume", "--from", url, "--exec", "true", "--idle-exit", "5s", *there)
        cli.run("consume", "rebuild", "--from", url, "--yes", *there, code=69).says("has members")
        expect(len(cli.run("keys", *there, "-o", "json").out.splitlines()) > 0, True)
        done = cli.run("consume", "rebuild", "--from", kafka.url("orders", group="new"), "--yes", "-o", "json", *there)
        expect(done.json["forgotten"], 1)
        expect(kafka.committed("new", "orders"), 0)


def test_messages_are_traced(cli):
    """E13: a run is a child of the producer's span, its handler a child of the run; a duplicate has a link to it."""
    trace = {"traceparent": f"00-{TRACE}-{SPAN}-01", "tracestate": "rojo=1"}
    out = cli.folder / "trace"
    with Kafka({"orders": 1, "jobs": 1}) as kafka, collector() as sink, Service(lambda headers, _: bad(headers)) as service:
        seen = []

        def bad(headers):
            seen.append(headers)
            return 503 if headers["ce-id"] == "A-2" and headers["hapax-attempt"] == "1" else 200

        rows = [
            row(**{"from": kafka.url("orders")}, to=service.url, order="partition", backoff="10ms"),
            row(**{"from": kafka.url("jobs"), "name": "jobs"}, exec=f"echo $TRACEPARENT >>{out}"),
        ]
        kafka.produce("orders", [("k", '{"n":1}', event(1, **trace)), ("k", '{"n":1}', event(1)), ("k", "{}", event(2))])
        kafka.produce("jobs", [("k", "{}", event(3, **trace))])
        with serve(cli, None, "--gateway", "off", config=config(*rows, more=sink.config())) as daemon:
            found = sink.events(5)
            run = [span for span in found["A-1"] if span.trace == TRACE]
            process, check, call = (named(run, name) for name in ("process_cloud_event", "idempotency_check", "POST"))
            expect((process.kind, process.parent, check.parent, call.parent), (CONSUMER, SPAN, process.id, process.id))
            assert process.begin <= check.begin <= check.end <= call.begin <= call.end <= process.end, [s.document for s in run]
            expect((process.attributes["hapax.consumer"], process.attributes["hapax.decision"]), ("orders", "acquired"))
            expect((call.attributes["http.response.status_code"], call.attributes["server.address"]), ("200", "127.0.0.1"))
            expect((seen[0]["traceparent"], seen[0]["tracestate"]), (f"00-{TRACE}-{call.id}-01", "rojo=1"))
            replay = named([span for span in found["A-1"] if span.trace != TRACE], "process_cloud_event")
            expect((replay.links, replay.attributes["hapax.decision"], replay.failed), ([(TRACE, process.id)], "replay", False))
            # Each attempt is a run of its own.
            failed = next(span for span in found["A-2"] if span.name == "POST" and span.failed)
            expect(failed.attributes["http.response.status_code"], "503")
            expect(len([span for span in found["A-2"] if span.name == "process_cloud_event"]), 2)
            # A command continues the run.
            expect(out.read_text(), f"00-{TRACE}-{named(found['A-3'], 'process_cloud_event').id}-01\n")
            expect(len(found["A-3"]), 2)
            until(lambda: metrics(daemon)["hapax_trace_exported_spans_total"] == 3 + 2 + 6 + 2, "they are counted")
