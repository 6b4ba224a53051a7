"""consumers: in the configuration of `hapax serve`, from Redis Streams."""

from consumers import (
    BEARER,
    config,
    consume,
    figure,
    health,
    keeps_the_keys_of_others,
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
from daemon import get, metrics, post, serve, upstream
from harness import expect, expect_in, until
from redis_wire import Wire, door
from streams import Service, Stream, event


def test_a_message_and_an_event_are_one(cli):
    with Stream() as stream, Service() as service, upstream() as behind:
        ids = stream.fill([event(1), event(2), event(2), {"content-type": "application/cloudevents+json", "data": "{"}])
        text = config(row(**{"from": stream.url(min_idle="1s")}, to=service.url))
        with serve(cli, behind.url, config=text) as daemon:
            until_figure(daemon, 4, "acknowledged_total")
            # By HTTP what came by the stream, and by the stream what came by HTTP.
            reply = post(daemon.gateway, "A-1", b'{"n":1}')
            expect((reply.status, reply.decision), (200, "replay"))
            expect(post(daemon.gateway, "A-9", b'{"n":9}').decision, "acquired")
            stream.fill([event(9)])
            until_figure(daemon, 5, "acknowledged_total")
            expect(figure(daemon, "duplicates_total", cause="producer"), 1)
            expect(figure(daemon, "duplicates_total", cause="other_door"), 1)
            expect(figure(daemon, "dead_letters_total"), 1)
            expect((figure(daemon, "up"), figure(daemon, "runs_total", outcome="ok")), (1, 2))
            until_figure(daemon, 0, "lag_messages")
            status, part = health(daemon)
            expect((status, part["status"], part["reason"]), (200, "ok", "1 of 1 running"))
            line = next(line for line in said(daemon, "duplicate job blocked") if line["decision"] == "replay")
            expect((line["consumer"], line["cause"], line["job_id"]), ("orders", "producer", "A-2"))
            expect((line["place"], line["original"]), (f"{stream.name}/{ids[2]}", f"{stream.name}/{ids[1]}"))
            # The common figures have its messages, too (A9, B11), and the time of its handler (D11).
            figures = metrics(daemon)
            outcomes = 'hapax_events_total{event_type="order.paid",group="default",outcome="%s"}'
            expect([figures[outcomes % name] for name in ("processed", "duplicate", "failed")], [3, 3, 0])
            expect(figures['duplicate_events_skipped_total{event_type="order.paid"}'], 3)
            expect(figures['hapax_decisions_total{tenant="default",group="default",door="consumer",decision="replay"}'], 2)
            # Once more for each time that it was in progress.
            assert figures['idempotency_check_duration_seconds_count{door="consumer"}'] >= 4, figures
            assert figures['idempotency_cache_operations_total{operation="check"}'] >= 6, figures
            expect(figures['idempotency_cache_operations_total{operation="mark"}'], 3)
            expect(figures['hapax_invalid_events_total{door="consumer",reason="malformed"}'], 1)
            expect(figures['hapax_consumer_handler_duration_seconds_count{consumer="orders"}'], 2)

            # The server throws us out: it is told, and goes on.
            stream.kill_others()
            until(lambda: said(daemon, "source failed"), "it is told")
            stream.fill([event(3)])
            until(lambda: ("/shop", "A-3") in service.effects, "it goes on")
            assert figure(daemon, "source_failures_total") >= 1
        expect(service.effects, {("/shop", f"A-{n}"): 1 for n in (1, 2, 3)})
        expect(len(behind.requests), 1)
        expect(stream.entries(f"{stream.name}.dead")[0]["hapax-dead-reason"], b"malformed")
        expect((stream.pending(), stream.members()), (0, []))


def test_a_stop_gives_back_what_has_not_begun(cli):
    started, go = cli.folder / "started", cli.folder / "go"
    script = f"cat >>{started}; echo >>{started}; while [ ! -e {go} ]; do sleep 0.02; done"
    with Stream() as stream:
        stream.fill([event(1), event(2), event(3)])
        text = config(row(**{"from": stream.url()}, exec=script, parallel=1))
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            until_figure(daemon, 1, "running_messages")
            until_figure(daemon, 3, "received_total")
            daemon.process.terminate()
            expect_in("draining", daemon.wait_for(lambda line: line if "draining" in line else None))
            go.touch()
            daemon.end(how=None)
        expect(stream.pending(), 2)
    expect(len(started.read_text().split()), 1)


def test_it_is_paused_and_resumed(cli):
    with Stream() as stream, Stream() as beside, Service() as service:

        def fill(at):
            return lambda *which: at.fill([event(n) for n in which])

        pauses_and_resumes(cli, stream.url(min_idle="1s"), service, fill(stream), beside.url(), fill(beside))
        expect(stream.pending(), 0)


def test_dead_letters_are_listed_and_sent_again(cli):
    with Stream() as stream:
        letters_are_listed_and_sent_again(cli, stream.url(min_idle="1s"), lambda *which: stream.fill([event(n) for n in which]))
        expect(stream.entries(f"{stream.name}.dead"), [])


def test_a_letter_stays_until_its_message_is_stored(cli):
    """D4: published first, then removed."""
    with Stream() as stream, Service(lambda *_: 422) as service:
        text = config(row(**{"from": stream.url(min_idle="1s")}, to=service.url, attempts=1), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            stream.fill([event(1)])
            until_figure(daemon, 1, "dead_letters_total")
            consume(cli, daemon, "pause", "orders")
            until_figure(daemon, 0, "in_hand_messages")
            # Redis refuses to add to it.
            stream.do("DEL", stream.name)
            stream.do("SET", stream.name, "no stream")
            consume(cli, daemon, "retry", "orders", "--all", code=69).says("could not send 1 dead letter, kept")
            expect(len(stream.entries(f"{stream.name}.dead")), 1)
            expect(len(listed(cli, daemon)), 1)
            stream.do("DEL", stream.name)
            consume(cli, daemon, "retry", "orders", "--all")
            expect((len(stream.entries(f"{stream.name}.dead")), len(stream.entries())), (0, 1))
            # The permanent failure was forgotten: it runs.
            service.answer = lambda *_: 200
            consume(cli, daemon, "resume", "orders")
            until(lambda: service.effects == {("/shop", "A-1"): 1}, "it runs")


def test_letters_behind_one_that_stays_are_sent(cli):
    """D4: more than one call handles."""
    with Stream() as stream:
        dead = [event(n, **{"hapax-dead-reason": "mismatch" if n == 0 else "attempts"}) for n in range(1100)]
        stream.fill(dead, f"{stream.name}.dead")
        text = config(row(**{"from": stream.url()}, exec="true"), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            done = consume(cli, daemon, "retry", "orders", "--match", "attempts", "-o", "json")
            expect((done.json["retried"], done.json["left"]), (1099, 0))
            expect((len(stream.entries()), len(stream.entries(f"{stream.name}.dead"))), (1099, 1))
            # By a group of its own: the group's own name may have another use there.
            expect([info[1] for info in stream.do("XINFO", "GROUPS", f"{stream.name}.dead")], [b"g.letters"])


def test_every_key_of_a_letter_may_run_again(cli):
    """D4, E20: also that of the old strategy, and one made of the original topic."""
    old = {"key": "field:data.n", "key_also": "event-id", "key_also_until": "2999-01-31"}
    for keying in (old, {"key": "composite:meta.topic,data.n"}):
        with Stream() as stream, Service(lambda *_: 422) as service:
            text = config(row(**{"from": stream.url()}, to=service.url, attempts=1, **keying), more=with_token())
            with serve(cli, None, "--gateway", "off", config=text) as daemon:
                stream.fill([event(1)])
                until_figure(daemon, 1, "dead_letters_total")
                service.answer = lambda *_: 200
                consume(cli, daemon, "retry", "orders", "--all")
                until_figure(daemon, 2, "acknowledged_total")
                expect(service.effects, {("/shop", "A-1"): 1}, keying)


def test_a_duplicate_names_the_original(cli):
    """A10, E12: by its CloudEvents attributes, or by its place."""
    with Stream() as stream, Service() as service:
        ids = stream.fill([event(1), event(1, id="B-1"), {"n": "2"}, {"n": "2"}])
        text = config(row(**{"from": stream.url()}, to=service.url, key="field:data.n", order="partition"))
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            until_figure(daemon, 4, "acknowledged_total")
            places = tuple(f"{stream.name}/{ids[index]}" for index in (3, 2))
            expect(originals(daemon, 2), [("B-1", "A-1", "order.paid", "/shop"), (*places, None, None)])


def test_a_group_with_members_does_not_start_over(cli):
    """D5: a member, of whatever daemon, would pass old messages before their keys are forgotten."""
    with Stream() as stream, Service() as service:
        text = config(row(**{"from": stream.url()}, to=service.url, tenant="acme", group="orders"))
        store = f"sqlite:{cli.folder}/live.db"
        there = ("--from", stream.url(), "--scope", "acme/orders", "--store", store, "--yes")
        with serve(cli, None, "--gateway", "off", config=text, store=store) as daemon:
            stream.fill([event(1), event(2)])
            until_figure(daemon, 2, "acknowledged_total")
            cli.run("consume", "rebuild", *there, code=69).says("has members")
            expect(stream.unread(), 0)
            expect(len(cli.run("keys", "--scope", "acme/orders", "--store", store, "-o", "json").out.splitlines()), 2)
        cli.run("consume", "rebuild", *there)
        expect(stream.unread(), 2)


def test_a_consumer_that_stops_does_not_start_over(cli):
    """D5: it is switched off, but its last run goes on."""
    started, go = cli.folder / "started", cli.folder / "go"
    script = f"touch {started}; while [ ! -e {go} ]; do sleep 0.02; done"
    with Stream() as stream:

        def text(is_on):
            orders = row(**{"from": stream.url()}, exec=script, enabled=is_on, tenant="acme", group="orders")
            return config(orders, more=with_token())

        with serve(cli, None, "--gateway", "off", config=text(True)) as daemon:
            stream.fill([event(1)])
            until(started.exists, "it runs")
            reload(daemon, text(False))
            consume(cli, daemon, "rebuild", "orders", "--yes", code=69).says("still finishing its runs")
            go.touch()
            until(lambda: stream.members() == [], "it has left")
            consume(cli, daemon, "rebuild", "orders", "--yes")


def test_it_starts_over(cli):
    with Stream() as stream, Service() as service:
        starts_over(cli, stream.url(min_idle="1s"), service, lambda *which: stream.fill([event(n) for n in which]))


def test_a_large_scope_is_forgotten_in_parts(cli):
    """D5: no request takes longer than a client waits; the command asks again until nothing is left."""
    keys = 100_001
    with Stream() as stream:
        stream.fill([event(1)])
        url = stream.url(min_idle="1s")
        cli.run("consume", "--from", url, "--exec", "true", "--idle-exit", "1s", "--store", "memory:")
        text = config(row(**{"from": url}, exec="true", enabled=False), more=with_token())
        with serve(cli, None, "--gateway", "off", "--resp", "127.0.0.1:0", config=text) as daemon:
            with Wire(door(daemon)) as wire:
                for first in range(0, keys, 10_000):
                    wire.pipeline([["SET", f"k{n}", "v"] for n in range(first, min(first + 10_000, keys))])
            done = consume(cli, daemon, "rebuild", "orders", "--shared-scope", "--yes", "-o", "json")
            expect(done.json["forgotten"], keys)
            entries = get(daemon.admin, "/api/v1/audit", **BEARER).json["entries"]
            parts = [entry["detail"] for entry in entries if entry["action"] == "consumer.rebuild"]
            expect([(part["forgotten"], part["done"]) for part in parts], [(1, True), (keys - 1, False)])


def test_it_keeps_the_keys_of_others(cli):
    with Stream() as stream:
        keeps_the_keys_of_others(cli, stream.url(min_idle="1s"), lambda *which: stream.fill([event(n) for n in which]))


def test_a_pause_that_is_not_stored_is_refused(cli):
    """D7: another client has claimed the record that keeps it."""
    store = f"sqlite:{cli.folder}/busy.db"
    with Stream() as stream:
        text = config(row(**{"from": stream.url()}, exec="true"), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text, store=store) as daemon:
            consume(cli, daemon, "resume", "orders")
            cli.run("claim", "orders", "--scope", "hapax/consumers", "--store", store, "--lease", "10m")
            for action in ("pause", "resume"):
                consume(cli, daemon, action, "orders", code=69).says("claimed or parked")
                entry = get(daemon.admin, "/api/v1/audit", **BEARER).json["entries"][0]
                expect((entry["action"], entry["outcome"]), (f"consumer.{action}", "busy"))


def test_no_claim_pauses_a_consumer(cli):
    """D7: only what the API has set does. An event cannot name the tenant of the daemon's own records."""
    store = f"sqlite:{cli.folder}/own.db"
    cli.run("claim", "orders", "--scope", "hapax/consumers", "--store", store, "--lease", "10m")
    with Stream() as stream:
        text = config(row(**{"from": stream.url()}, exec="true"), more=with_token())
        with serve(cli, None, "--gateway", "off", config=text, store=store) as daemon:
            def states():
                found = consume(cli, daemon, "list", "-o", "json").json["consumers"]
                return [(one["name"], one["state"]) for one in found]

            # It waits until it knows whether it is paused.
            until(lambda: states() != [("orders", "waiting")], "it has looked")
            expect(states(), [("orders", "running")])
    bad = cli.folder / "reserved.yaml"
    bad.write_text(config(row(**{"from": "redis://localhost/s?group=g"}, exec="true", tenant="hapax")))
    expect_in("the tenant 'hapax' is reserved", cli.run("config", "check", str(bad), code=78).err)


def test_letters_that_cannot_be_read_are_an_error(cli):
    """D4: a key that is not a stream has no letters, but that is not what an operator asked."""
    with Stream() as stream:
        text = config(row(**{"from": stream.url()}, exec="true"), more=with_token())
        stream.do("SET", f"{stream.name}.dead", "no stream")
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            for action in (("dead-letters", "orders"), ("retry", "orders", "--all")):
                consume(cli, daemon, *action, code=69).says("could not read the dead letters", "WRONGTYPE")
            stream.do("DEL", f"{stream.name}.dead")
            expect(consume(cli, daemon, "dead-letters", "orders").out, "0 dead letters\n")
            expect_in("DEAD SINCE START", consume(cli, daemon, "list").out)


def test_a_mistyped_scope_does_not_start_over(cli):
    """D5: no key is forgotten there, and every message would be a duplicate, or run under other keys."""
    with Stream() as stream:
        stream.fill([event(1)])
        store = ("--store", f"sqlite:{cli.folder}/typo.db")
        cli.run("consume", "--from", stream.url(), "--exec", "true", "--idle-exit", "1s", "--scope", "acme/orders", *store)
        there = ("consume", "rebuild", "--from", stream.url(), "--yes", *store)
        cli.run(*there, "--scope", "acme/ordres", code=64).says("the scope 'acme/ordres' has no keys; nothing changed")
        expect(stream.unread(), 0)
        expect(cli.run(*there, "--scope", "acme/orders").out, "1 key forgotten; the group starts over\n")
        expect(stream.unread(), 1)
        cli.run(*there, "--scope", "acme/orders", code=64).says("--empty-scope")
        cli.run(*there, "--scope", "acme/orders", "--empty-scope")


def test_a_list_of_large_letters_ends_early(cli):
    """D4: at 8 MiB, and it says so; headers that are not text are base64."""
    with Stream() as stream:
        text = config(row(**{"from": stream.url()}, exec="true", enabled=False), more=with_token())
        large = {**event(1), "hapax-dead-reason": b"\xff", "data": '"' * 60000}
        stream.do("XGROUP", "CREATE", stream.name, "g", "0", "MKSTREAM")
        stream.fill([large] * 80, f"{stream.name}.dead")
        with serve(cli, None, "--gateway", "off", config=text) as daemon:
            found = consume(cli, daemon, "dead-letters", "orders", "--limit", "1000", "-o", "json").json
            expect((found["more"], len(found["letters"])), (True, 8 * 1024 * 1024 // 120300))
            expect(found["letters"][0]["reason_base64"], "/w==")
            expect_in("10 dead letters; there may be more", consume(cli, daemon, "dead-letters", "orders", "-n", "10").out)
            stream.do("XTRIM", f"{stream.name}.dead", "MAXLEN", "3")
            found = consume(cli, daemon, "dead-letters", "orders", "-o", "json").json
            expect((found["more"], len(found["letters"])), (False, 3))
