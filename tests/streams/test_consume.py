"""`hapax consume` from Redis Streams: handlers, keys, duplicates, members that die, dead letters, bad input, stops."""

import json
import os
import threading

from harness import TIMEOUT_SECONDS, expect, expect_in
from streams import Consume, Redis, Service, Stream, event, numbers


def test_lag_is_what_waits_at_the_broker(cli):
    gate = threading.Event()
    with Stream() as stream, Service(lambda headers, body: gate.wait(TIMEOUT_SECONDS) and 200) as service:
        stream.fill(numbers(10))
        consume = Consume(cli, "--from", stream.url(prefetch=2), "--to", service.url)
        consume.until(lambda f: (f.get("lag") or 0) > 0, "some wait behind those in hand")
        gate.set()
        consume.until(lambda f: f.get("lag") == 0 and f.get("acknowledged") == 10, "none waits")
        consume.stop()


def test_events_reach_a_service_once(cli):
    with Stream() as stream, Service() as service:
        stream.fill(numbers(40) + numbers(10))
        consume = Consume(cli, "--from", stream.url(), "--to", service.url)
        consume.until_acknowledged(50)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["in_hand"]), (40, 10, 0))
        expect(figures["causes"]["producer"], 10)
        expect((len(service.effects), set(service.effects.values())), (40, {1}))
        expect((stream.pending(), stream.members()), (0, []), "nothing is pending, and the member is gone")
        headers, body = service.requests[0]
        expect((headers["ce-source"], headers["ce-type"], headers["content-type"]), ("/shop", "order.paid", "application/json"))
        expect(json.loads(body)["n"], int(headers["ce-id"][2:]))
        assert int(headers["hapax-token"]) > 0 and headers["hapax-attempt"] == "1", headers
        said = consume.all("duplicate")[0]
        expect_in(f"{stream.name}/", said["original"])
        assert said["place"] != said["original"], said

        # Another group reads all of it again: swallowed, and known for what it is.
        consume = Consume(cli, "--from", stream.url(group="again"), "--to", service.url)
        consume.until_acknowledged(50)
        figures = consume.stop()
        expect((figures["ok"], figures["causes"]["reread"], figures["causes"]["producer"]), (0, 40, 10))


def test_fields_are_events_or_objects(cli):
    whole = {"specversion": "1.0", "type": "order.paid", "source": "/shop", "id": "A-1", "data": {"n": 1}}
    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    entries = [
        event(1),
        event(1, prefix="ce_"),
        event(1, prefix="ce-"),
        {"content-type": "application/cloudevents+json", "data": json.dumps(whole)},
        {"id": "7", "name": "é", "traceparent": trace},
        {"id": "7", "name": "other"},
        {"Idempotency-Key": "k", "a": b"\xff\x00"},
        {"Idempotency-Key": "k", "a": b"\xff\x00"},
    ]
    with Stream() as stream, Service() as service:
        ids = stream.fill(entries)
        consume = Consume(cli, "--from", stream.url(), "--to", service.url)
        consume.until_acknowledged(8)
        figures = consume.stop()
        # A field "id" of an entry that is not an event is the entry's own.
        expect((figures["ok"], figures["duplicates"], figures["mismatches"]), (4, 4, 0))
        sent = {headers["ce-id"]: (headers, body) for headers, body in service.requests}
        headers, body = next(pair for pair in sent.values() if b"name" in pair[1] and "é".encode() in pair[1])
        expect_in(ids[4], headers["ce-id"])
        expect((json.loads(body), headers["traceparent"]), ({"id": "7", "name": "é", "traceparent": trace}, trace))
        expect(json.loads(sent["k"][1]), {"Idempotency-Key": "k", "a_base64": "/wA="})


def test_failures_are_tried_again_and_then_dead_letters(cli):
    counts = {}

    def answer(headers, _):
        name = headers["ce-id"]
        counts[name] = counts.get(name, 0) + 1
        if name == "A-0":
            return 500
        if name == "A-1":
            return 422
        return 503 if name == "A-2" and counts[name] < 3 else 200

    with Stream() as stream, Service(answer) as service:
        ids = stream.fill(numbers(5))
        arguments = ["--from", stream.url(), "--to", service.url, "--attempts", "4", "--backoff", "5ms"]
        consume = Consume(cli, *arguments)
        consume.until_acknowledged(5)
        figures = consume.stop()
        expect((figures["ok"], figures["definitive"], figures["dead_letters"]), (3, 1, 2))
        expect(counts, {"A-0": 4, "A-1": 1, "A-2": 3, "A-3": 1, "A-4": 1})
        letters = {entry["id"]: entry for entry in stream.entries(f"{stream.name}.dead")}
        letter = letters[b"A-0"]
        expect({name: value.decode() for name, value in letter.items() if not name.startswith("hapax-")}, event(0))
        expect((letter["hapax-dead-reason"], letter["hapax-dead-attempts"]), (b"attempts", b"4"))
        expect((letter["hapax-dead-place"].decode(), letter["hapax-dead-key"]), (f"{stream.name}/{ids[0]}", b"/shop:A-0"))
        expect_in(b"500", letter["hapax-dead-error"])
        expect(letters[b"A-1"]["hapax-dead-reason"], b"definitive")

        # A dead letter that is sent again, when what was wrong is right, runs; a second time it is known.
        service.answer = lambda headers, body: 200
        stream.fill([letter, letter])
        consume = Consume(cli, *arguments)
        consume.until_acknowledged(2)
        figures = consume.stop()
        expect((figures["ok"], figures["causes"]["dead_letter"]), (1, 1))


def test_bad_input_goes_by_policy_and_wedges_nothing(cli):
    with Stream() as stream, Service() as service:
        bad = [
            event(1, specversion="0.3x"),
            event(1, prefix="ce_", **{"ce_bad-name": "x"}),
            {"content-type": "application/cloudevents+json", "data": "{"},
            {f"h{n}": "x" for n in range(200)},
            {"other": "1"},
        ]
        good = [{"order": "1"}, {"order": "2", "": ""}, {"order": "3", "blob": "x" * (10 << 20)}]
        stream.fill(bad + good)
        consume = Consume(cli, "--from", stream.url(), "--to", service.url, "--strategy", "field:data.order")
        consume.until_acknowledged(len(bad) + len(good))
        figures = consume.stop()
        reasons = sorted(entry["hapax-dead-reason"].decode() for entry in stream.entries(f"{stream.name}.dead"))
        expect(reasons, ["malformed"] * 3 + ["no-key", "too-large"])
        expect((figures["ok"], figures["dead_letters"]), (3, len(bad)))


def test_what_a_dead_member_left_is_taken_over(cli):
    with Stream() as stream, Service() as service:
        ids = stream.fill(numbers(12))
        stream.do("XGROUP", "CREATE", stream.name, "g", "0")
        stream.do("XREADGROUP", "GROUP", "g", "dead", "COUNT", "8", "STREAMS", stream.name, ">")
        # Deleted while it was pending: there is nothing to deliver any more.
        stream.do("XDEL", stream.name, ids[0], ids[5])
        consume = Consume(cli, "--from", stream.url(min_idle="100ms"), "--to", service.url)
        consume.until_acknowledged(10)
        consume.until(lambda _: len(consume.all("source_failed")) > 0, "what was deleted is told")
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"]), (10, 0))
        expect_in("deleted before", consume.all("source_failed")[0]["why"])
        expect(stream.pending(), 0)


def test_a_member_that_comes_back_takes_up_its_own(cli):
    go = cli.folder / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.02; done"
    with Stream() as stream:
        ids = stream.fill(numbers(4))
        arguments = ["--from", stream.url(instance="one", min_idle="10m"), "--exec", script, "--lease", "500ms", "--backoff", "20ms"]
        consume = Consume(cli, *arguments)
        consume.until(lambda f: f.get("running") == 4, "all run")
        consume.kill()
        stream.do("XDEL", stream.name, ids[1])
        go.touch()
        consume = Consume(cli, *arguments)
        consume.until_acknowledged(3)
        figures = consume.stop()
        expect((figures["ok"], stream.pending(), stream.members()), (3, 0, ["one"]))
        expect_in("deleted before", consume.all("source_failed")[0]["why"])


def test_what_is_in_hand_is_kept_from_others(cli):
    go = cli.folder / "go"
    script = f"while [ ! -e {go} ]; do sleep 0.02; done"
    with Stream() as stream:
        stream.fill(numbers(2))
        consume = Consume(cli, "--from", stream.url(min_idle="300ms"), "--exec", script)
        consume.until(lambda f: f.get("running") == 2, "both run")
        idle = []

        def is_kept_twice():
            pending = stream.do("XPENDING", stream.name, "g", "-", "+", "1")[0]
            idle.append(pending[2])
            # It is ours again, and that does not count as a delivery.
            return sum(b < a for a, b in zip(idle, idle[1:])) >= 2 and pending[3] == 1

        consume.until(lambda _: is_kept_twice(), "its idle time started again, twice")
        go.touch()
        consume.until_acknowledged(2)
        expect(consume.stop()["received"], 2)


def test_a_group_that_vanished_is_made_again(cli):
    with Stream() as stream, Service() as service:
        stream.fill(numbers(3))
        consume = Consume(cli, "--from", stream.url(), "--to", service.url)
        consume.until_acknowledged(3)
        stream.do("DEL", stream.name)
        stream.fill(numbers(5))
        consume.until(lambda f: len(service.effects) == 5, "the new ones are done")
        consume.until_acknowledged(8)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"]), (5, 3))
        why = consume.all("source_failed")[0]["why"]
        assert "NOGROUP" in why or "no longer exists" in why, why


def test_a_key_that_is_no_stream_is_told_and_waited_for(cli):
    with Stream() as stream, Service() as service:
        stream.do("SET", stream.name, "x")
        consume = Consume(cli, "--from", stream.url(), "--to", service.url)
        consume.until(lambda _: consume.all("source_failed"), "it is told")
        expect_in("WRONGTYPE", consume.all("source_failed")[0]["why"])
        stream.do("DEL", stream.name)
        stream.fill(numbers(2))
        consume.until_acknowledged(2)
        expect(consume.stop()["ok"], 2)


def test_duplicates_can_be_diverted(cli):
    with Stream() as stream, Service() as service:
        stream.fill(numbers(3) + numbers(3))
        consume = Consume(cli, "--from", stream.url(), "--to", service.url, "--on-duplicate", "divert")
        consume.until_acknowledged(6)
        expect(consume.stop()["diverted"], 3)
        found = stream.entries(f"{stream.name}.duplicate")
        expect({entry["hapax-duplicate-cause"] for entry in found}, {b"producer"})
        expect(sorted(entry["id"] for entry in found), [b"A-0", b"A-1", b"A-2"])


def test_wrong_urls_are_refused(cli):
    ok = ["--to", "http://127.0.0.1:1/"]
    for url, word in [
        ("redis://h", "missing stream"),
        ("redis://h/", "missing stream"),
        ("redis://h/%zz", "invalid stream"),
        ("redis://h/s?group=", "must be group=NAME"),
        ("redis://h/s?min_idle=1ms", "min_idle"),
        ("redis://h/s?start=middle", "earliest|latest"),
        ("redis://h/s?prefetch=0", "prefetch"),
        ("redis://h/s?size_max=1G", "size_max"),
        ("redis://h/s?nonsense=1", "nonsense"),
        ("redis://h/s?prefix=p", "unknown option 'prefix' in the URL of a Redis source; use stream=NAME"),
        ("redis://h/s?ca=/c", "option 'ca' in the URL of a Redis source needs TLS"),
        ("redis+unix:/x?group=g", "missing stream"),
    ]:
        cli.run("consume", "--from", url, *ok, code=64).says(word)
    secret = cli.run("consume", "--from", "redis://u:hush@h/s?nonsense=1", *ok, code=64)
    assert "hush" not in secret.err, secret.err


def test_over_tls_and_only_to_whom_we_trust(cli):
    port, authority = os.environ["HAPAX_TEST_REDIS_TLS"], os.environ["HAPAX_TEST_REDIS_CA"]
    with Stream() as stream, Service() as service:
        stream.fill(numbers(3))
        url = f"rediss://localhost:{port}/{stream.name}?group=g"
        consume = Consume(cli, "--from", url, "--to", service.url)
        consume.until(lambda _: consume.all("source_failed"), "the certificate is unknown")
        expect(consume.stop()["received"], 0)
        consume = Consume(cli, "--from", f"{url}&ca={authority}", "--to", service.url)
        consume.until_acknowledged(3)
        expect(consume.stop()["ok"], 3)


def test_connections_that_are_cut_repeat_nothing(cli):
    with Stream() as stream, Service() as service:
        stream.fill(numbers(30))
        mine = stream.do("CLIENT", "ID")

        def answer(_headers, _body):
            if len(service.requests) in (5, 15):
                Redis().kill_others(mine)
            return 200

        service.answer = answer
        consume = Consume(cli, "--from", stream.url(min_idle="200ms"), "--to", service.url, "--parallel", "2")
        consume.until(lambda f: f.get("acknowledged", 0) >= 30 and f.get("in_hand") == 0, "all is done")
        figures = consume.stop()
        expect((figures["ok"], set(service.effects.values()), stream.pending()), (30, {1}, 0))


def test_term_finishes_what_runs_and_gives_back_the_rest(cli):
    started, go = cli.folder / "started", cli.folder / "go"
    script = f"echo x >>{started}; while [ ! -e {go} ]; do sleep 0.02; done"
    with Stream() as stream:
        stream.fill(numbers(6))
        consume = Consume(cli, "--from", stream.url(), "--exec", script, "--parallel", "2", "--order", "none")
        consume.until(lambda f: f.get("running") == 2 and f.get("received") == 6, "two run")
        consume.process.terminate()
        consume.until(lambda f: f.get("given_back") == 4, "the rest is given back")
        go.touch()
        figures = consume.wait()
        expect((figures["ok"], figures["acknowledged"], stream.pending()), (2, 2, 4))
        # The next consumer need not wait for min_idle.
        consume = Consume(cli, "--from", stream.url(), "--exec", script)
        consume.until_acknowledged(4)
        expect(consume.stop()["ok"], 4)
        expect(stream.pending(), 0)
    expect(len(started.read_text().splitlines()), 6)


def test_a_strategy_changes_without_a_gap(cli):
    """E20: a message is a duplicate by the old key, too; the option needs its end."""
    done, store = cli.folder / "done", f"sqlite:{cli.folder}/also.db"
    with Stream() as stream:
        there = ("--from", stream.url(), "--exec", f"cat >/dev/null; echo run >>{done}", "--idle-exit", "1s", "--store", store)
        stream.fill([{"old": "1", "new": "7"}])
        cli.run("consume", *there, "--strategy", "field:data.old")
        stream.fill([{"old": "1", "new": "8"}, {"old": "2", "new": "9"}])
        change = ("--strategy", "field:data.new", "--strategy-also", "field:data.old")
        cli.run("consume", *there, *change, code=64).says("--strategy-also-until")
        cli.run("consume", *there, *change, "--strategy-also-until", "soon", code=64).says("invalid time 'soon'")
        cli.run("consume", *there, *change, "--strategy-also-until", "2999-01-01T00:00:00Z")
    expect(done.read_text().count("run"), 2, "the first, and the one that is new by both keys")
