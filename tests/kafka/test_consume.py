"""`hapax consume` from Kafka: handlers, keys, duplicates and their causes, dead letters, stops."""

import json
import os
import shutil
import socket
import subprocess

from harness import Skip, expect, expect_in, finish, is_proof, until
from kafka import Consume, Kafka, Service, event


def numbers(count):
    return [(f"k{n}", f'{{"n":{n}}}', event(n)) for n in range(count)]


def test_events_reach_a_service_once(cli):
    with Kafka({"orders": 3}) as kafka, Service() as service:
        kafka.produce("orders", numbers(40) + numbers(10))
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until_acknowledged(50)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["in_hand"]), (40, 10, 0))
        expect(figures["causes"]["producer"], 10)
        expect(len(service.effects), 40)
        expect(set(service.effects.values()), {1})
        # Committed is what is done, all of it.
        expect(kafka.committed("g", "orders"), 50)
        headers, body = service.requests[0]
        expect((headers["ce-source"], headers["ce-type"], headers["content-type"]), ("/shop", "order.paid", "application/json"))
        expect(json.loads(body)["n"], int(headers["ce-id"][2:]))
        assert int(headers["hapax-token"]) > 0 and headers["hapax-attempt"] == "1", headers
        said = consume.all("duplicate")[0]
        expect((said["event_type"], said["event_source"]), ("order.paid", "/shop"))
        expect_in("A-", said["event_id"])
        expect_in("orders/", said["original"])
        assert said["place"] != said["original"], said

        # Read from the beginning again: all of it is swallowed, and known for what it is. (The mock takes
        # no offsets from outside of a group, so that another group stands for one that was set back.)
        consume = Consume(cli, "--from", kafka.url("orders", group="again"), "--to", service.url)
        consume.until_acknowledged(50)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"]), (0, 50))
        expect((figures["causes"]["reread"], figures["causes"]["producer"]), (40, 10))
        expect(set(service.effects.values()), {1})


def test_structured_events_in_both_directions(cli):
    whole = {"specversion": "1.0", "type": "t", "source": "/s", "id": "1", "data": {"n": 1}}
    with Kafka({"orders": 1}) as kafka, Service() as service:
        kafka.produce(
            "orders",
            [
                (None, json.dumps(whole), {"content-type": "application/cloudevents+json"}),
                # The same event in the other form.
                (None, '{"n":1}', {"ce_specversion": "1.0", "ce_type": "t", "ce_source": "/s", "ce_id": "1", "content-type": "application/json"}),
                (None, "raw text", {"eventId": "e2", "content-type": "text/plain", "traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}),
            ],
        )
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url, "--form", "structured")
        consume.until_acknowledged(3)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"]), (2, 1))
        sent = {json.loads(body)["id"]: (headers, json.loads(body)) for headers, body in service.requests}
        expect(sent["1"][1], whole)
        expect(sent["e2"][0]["content-type"], "application/cloudevents+json")
        expect_in("0af7651916cd43dd8448eb211c80319c", sent["e2"][0]["traceparent"])
        expect((sent["e2"][1]["data"], sent["e2"][1]["type"]), ("raw text", "dev.hapax.message"))
        expect_in("/orders", sent["e2"][1]["source"])


def test_a_command_gets_data_and_facts(cli):
    out = cli.folder / "effects"
    script = f'printf "%s|%s|%s|%s|%s|%s|%s\\n" "$(cat)" "$HAPAX_KEY" "$HAPAX_TOPIC" "$HAPAX_PARTITION" "$HAPAX_OFFSET" "$HAPAX_ATTEMPT" "$TRACEPARENT" >>{out}'
    with Kafka({"orders": 1}) as kafka:
        kafka.produce("orders", [("k", '{"order":7}', {}), ("k", '{"order":8}', {"traceparent": "00-a-b-01"}), ("k", '{"order":7}', {})])
        consume = Consume(cli, "--from", kafka.url("orders"), "--exec", script, "--strategy", "field:data.order")
        consume.until_acknowledged(3)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"]), (2, 1))
    expect(out.read_text().splitlines(), ['{"order":7}|7|orders|0|0|1|', '{"order":8}|8|orders|0|1|1|00-a-b-01'])


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

    with Kafka({"orders": 1, "orders.dead": 1}) as kafka, Service(answer) as service:
        kafka.produce("orders", numbers(5))
        arguments = ["--from", kafka.url("orders"), "--to", service.url, "--attempts", "4", "--backoff", "5ms"]
        consume = Consume(cli, *arguments)
        consume.until_acknowledged(5)
        figures = consume.stop()
        expect((figures["ok"], figures["definitive"], figures["dead_letters"]), (3, 1, 2))
        expect(counts, {"A-0": 4, "A-1": 1, "A-2": 3, "A-3": 1, "A-4": 1})
        letters = {headers["ce_id"]: (key, data, headers) for key, data, headers in kafka.read("orders.dead", 2)}
        expect(letters["A-0"][:2], ("k0", '{"n":0}'))
        headers = letters["A-0"][2]
        expect((headers["hapax-dead-reason"], headers["hapax-dead-attempts"]), ("attempts", "4"))
        expect((headers["hapax-dead-place"], headers["hapax-dead-key"]), ("orders/0/0", "/shop:A-0"))
        expect_in("500", headers["hapax-dead-error"])
        expect(letters["A-1"][2]["hapax-dead-reason"], "definitive")

        # A dead letter that is sent again, when what was wrong is right, runs; a second time it is known.
        service.answer = lambda headers, body: 200
        again = [letters["A-0"], letters["A-0"]]
        kafka.produce("orders", again)
        consume = Consume(cli, *arguments)
        consume.until_acknowledged(2)
        figures = consume.stop()
        expect((figures["ok"], figures["causes"]["dead_letter"]), (1, 1))


def test_bad_input_goes_by_policy_and_wedges_nothing(cli):
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka, Service() as service:
        bad = [
            ("a", "{}", {"ce_id": "1"}),
            ("a", "{", {"content-type": "application/cloudevents+json"}),
            ("a", "[]", {"content-type": "application/cloudevents-batch+json"}),
            ("a", "{}", {**event(1), "ce_bad-name": "x"}),
            ("a", "{}", {f"h{n}": "x" for n in range(200)}),
            ("a", '{"other":1}', {}),
        ]
        good = [
            ("a", '{"order":1}', {}),
            ("a", '{"order":2}', {"empty": None}),
            ("b", json.dumps({"order": 3, "blob": "x" * 300000}), {}),
        ]
        kafka.produce("orders", bad + good)
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url, "--strategy", "field:data.order")
        consume.until_acknowledged(len(bad) + len(good))
        figures = consume.stop()
        expect((figures["ok"], figures["dead_letters"]), (3, len(bad)))
        reasons = sorted(headers["hapax-dead-reason"] for _, _, headers in kafka.read("orders.dead", len(bad)))
        expect(reasons, ["malformed"] * 4 + ["no-key", "too-large"])


def test_a_tombstone_is_delivered(cli):
    with Kafka({"orders": 1}) as kafka, Service() as service:
        kafka.produce("orders", [("gone", None, {})])
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until_acknowledged(1)
        consume.stop()
        expect(service.requests[0][1], b"")


def test_the_same_key_with_another_payload_is_a_dead_letter(cli):
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka, Service() as service:
        kafka.produce("orders", [("k", '{"n":1}', event(1)), ("k", '{"n":2}', event(1))])
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until_acknowledged(2)
        expect(consume.stop()["mismatches"], 1)
        expect(kafka.read("orders.dead", 1)[0][2]["hapax-dead-reason"], "mismatch")


def test_duplicates_can_be_diverted(cli):
    with Kafka({"orders": 1, "orders.duplicate": 1}) as kafka, Service() as service:
        kafka.produce("orders", numbers(3) + numbers(3))
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url, "--on-duplicate", "divert")
        consume.until_acknowledged(6)
        expect(consume.stop()["diverted"], 3)
        found = kafka.read("orders.duplicate", 3)
        expect({headers["hapax-duplicate-cause"] for _, _, headers in found}, {"producer"})
        expect(sorted(headers["ce_id"] for _, _, headers in found), ["A-0", "A-1", "A-2"])


def test_duplicates_can_be_tagged(cli):
    """The handler, a service or a command, gets them as what they are; the store hears nothing of it."""
    out = cli.folder / "facts"
    script = f'echo "$HAPAX_EVENT_ID|$HAPAX_DUPLICATE|$HAPAX_ORIGINAL|$HAPAX_FIRST_SEEN|$HAPAX_TOKEN" >>{out}'
    with Kafka({"orders": 1}) as kafka, Service() as service:
        kafka.produce("orders", numbers(2) + numbers(2))
        tags = ["--on-duplicate", "tag", "--order", "partition"]
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url, *tags)
        consume.until_acknowledged(4)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["tagged"]), (2, 2, 2))
        firsts, twins = service.requests[:2], service.requests[2:]
        for headers, _ in firsts:
            assert "hapax-duplicate" not in headers and int(headers["hapax-token"]) > 0, headers
        for number, (headers, body) in enumerate(twins):
            expect((headers["ce-id"], body.decode()), (f"A-{number}", f'{{"n":{number}}}'))
            expect((headers["hapax-duplicate"], headers["hapax-original"]), ("producer", f"orders/0/{number}"))
            expect_in("T", headers["hapax-first-seen"])
            assert "hapax-token" not in headers, headers
        found = json.loads(cli.run("lookup", "/shop:A-1", "-o", "json").out)
        expect((found["state"], found["attempt"]), ("done", 1))
        # Another group reads all of it again, by the same store.
        consume = Consume(cli, "--from", kafka.url("orders", group="again"), "--exec", script, *tags)
        consume.until_acknowledged(4)
        figures = consume.stop()
        expect((figures["ok"], figures["tagged"]), (0, 4))
    lines = [line.split("|") for line in out.read_text().splitlines()]
    expect([line[:3] for line in lines][:3:2], [["A-0", "reread", "orders/0/0"], ["A-0", "producer", "orders/0/0"]])
    expect({line[4] for line in lines}, {"0"})
    assert all(line[3].endswith("Z") for line in lines), lines


def test_topics_by_pattern_and_a_static_member(cli):
    with Kafka({"shop.orders": 1, "shop.returns": 2, "other": 1}) as kafka, Service() as service:
        for topic in kafka.topics:
            kafka.produce(topic, [("k", topic, {})])
        consume = Consume(cli, "--from", kafka.url("^shop\\..*", instance="one"), "--to", service.url)
        consume.until_acknowledged(2)
        expect(consume.stop()["received"], 2)
        expect(sorted(body for _, body in service.requests), [b"shop.orders", b"shop.returns"])


def test_a_static_member_that_comes_again_disturbs_nobody(cli):
    if not os.environ.get("HAPAX_KAFKA_REAL"):
        raise Skip("for proofs: the mock cluster knows no static members")
    with Kafka({"orders": 2}) as kafka, Service() as service:

        def join(name):
            store = f"file:{cli.folder / name}"
            return Consume(cli, "--from", kafka.url("orders", instance=name), "--to", service.url, "--store", store)

        def until_it_has_a_part(member):
            def received(figures):
                kafka.produce("orders", numbers(20))
                return figures.get("received", 0) > 0

            member.until(received, "it has a partition")

        one, two = join("one"), join("two")
        until_it_has_a_part(two)
        until_it_has_a_part(one)
        before = one.figures()["rebalances"]
        two.stop()
        two = join("two")
        until_it_has_a_part(two)
        expect(one.figures()["rebalances"], before, "rebalances of the one that stayed")
        one.stop()
        two.stop()


def test_a_lost_store_is_warmed_up_by_the_past_of_the_topic(cli):
    with Kafka({"orders": 3, "orders.dead": 1}) as kafka, Service() as service:
        bad = [("a", "{}", {"ce_id": "no event"})]
        kafka.produce("orders", numbers(30) + bad)
        first = ["--to", service.url, "--store", f"file:{cli.folder / 'first'}"]
        consume = Consume(cli, "--from", kafka.url("orders"), *first)
        consume.until_acknowledged(31)
        expect(consume.stop()["dead_letters"], 1)

        # Another store, which knows nothing: the producer's repeats are recognized all the same, and what is new runs.
        kafka.produce("orders", numbers(35))
        second = ["--to", service.url, "--store", f"file:{cli.folder / 'second'}"]
        consume = Consume(cli, "--from", kafka.url("orders", warm_up="10m"), *second)
        consume.until_acknowledged(31 + 35)
        figures = consume.stop()
        expect((figures["warmed"], figures["ok"], figures["duplicates"], figures["dead_letters"]), (30, 5, 30, 0))
        expect([event["why"] for event in consume.all("warm_up")], ["reading the past of 3 partitions", "30 past messages marked"])
        expect(set(service.effects.values()), {1})
        expect(kafka.committed("g", "orders"), 31 + 35)

        # Set back to the beginning (by another group), without a warm-up: all of it is known.
        consume = Consume(cli, "--from", kafka.url("orders", group="again"), *second)
        consume.until_acknowledged(31 + 35)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["warmed"]), (0, 65, 0))
        expect(len(service.effects), 35)


def test_a_warm_up_reads_as_many_messages_as_it_is_told(cli):
    with Kafka({"orders": 1}) as kafka, Service() as service:
        kafka.produce("orders", numbers(20))
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url, "--store", f"file:{cli.folder / 'first'}")
        consume.until_acknowledged(20)
        consume.stop()
        kafka.produce("orders", numbers(20))
        more = ["--store", f"file:{cli.folder / 'second'}", "--order", "partition"]
        consume = Consume(cli, "--from", kafka.url("orders", warm_up="7"), "--to", service.url, *more)
        consume.until_acknowledged(7 + 20)
        figures = consume.stop()
        expect((figures["warmed"], figures["ok"], figures["duplicates"]), (7, 13, 7))
        # Where there is no past, it begins at once.
        consume = Consume(cli, "--from", kafka.url("orders", group="new", warm_up="7"), "--to", service.url, *more)
        consume.until_acknowledged(40)
        expect(consume.stop()["warmed"], 0)


def test_a_warm_up_can_be_stopped_before_its_end(cli):
    if os.environ.get("HAPAX_KAFKA_REAL"):
        raise Skip("a real broker cannot be told to refuse offsets")
    with Kafka({"orders": 2}) as kafka, Service() as service:
        kafka.tell("refuse 10000")
        consume = Consume(cli, "--from", kafka.url("orders", warm_up="10m"), "--to", service.url)
        consume.until(lambda _: consume.all("warm_up"), "the past is asked for")
        expect(consume.stop()["warmed"], 0)


def test_wrong_urls_and_options_are_refused(cli):
    ok = ["--to", "http://127.0.0.1:1/"]
    for url, word in [
        ("kafka://h", "missing topic"),
        ("kafka:///t", "no server"),
        ("kafka://u:p@h/t", "sasl.username"),
        ("kafka://h/", "missing topic"),
        ("kafka://h/t?group", "must be group=NAME"),
        ("kafka://h/t?linger.ms", "NAME=VALUE"),
        ("kafka://h/t?enable.auto.commit=true", "hapax commits offsets of finished messages"),
        ("kafka://h/t?plugin.library.paths=x", "it loads code"),
        ("kafka://h/t?sasl.kerberos.kinit.cmd=x", "Kerberos runs kinit"),
        ("kafka://h/t?sasl.mechanisms=GSSAPI", "must be PLAIN"),
        ("kafka://h/t?security.protocol=sasl_ssl", "needs sasl.mechanisms"),
        ("kafka://h/t?no.such.property=1", "cannot set property"),
        ("kafka://h/t?nonsense=1", "unknown option 'nonsense'"),
        ("kafka://h/t?start=middle", "earliest|latest"),
        ("kafka://h/t?warm_up=", "warm_up=TIME|COUNT"),
        ("kafka://h/t?warm_up=long", "warm_up=TIME|COUNT"),
        ("kafka://h/t?warm_up=99999999999999999999", "warm_up=TIME|COUNT"),
        ("amqp2://h/t", "kafka://"),
    ]:
        cli.run("consume", "--from", url, *ok, code=64).says(word)
    secret = cli.run("consume", "--from", "kafka://h/t?sasl.password=hush&security.protocol=nonsense", *ok, code=64)
    assert "hush" not in secret.err, secret.err
    cli.run("consume", *ok, code=64).says("missing option --from")
    url = ["--from", "kafka://h/t"]
    cli.run("consume", *url, code=64).says("one of --to URL and --exec CMD")
    cli.run("consume", *url, *ok, "--exec", "true", code=64).says("one of --to URL and --exec CMD")
    cli.run("consume", *url, "--to", "ftp://x", code=64).says("http://")
    cli.run("consume", *url, *ok, "--strategy", "field:nonsense", code=64).says("nonsense")
    cli.run("consume", *url, *ok, "--strategy", "uuid7", code=64)
    cli.run("consume", *url, *ok, "--prefetch", "1000000", code=64).says("prefetch")


def test_a_job_that_ends_when_idle_says_whether_anybody_was_there(cli):
    """A cron job whose broker is away must not look like one that had nothing to do."""
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        port = closed.getsockname()[1]
        url = f"kafka://127.0.0.1:{port}/t?group=g&sasl.password=hush"
        refused = cli.run("consume", "--from", url, "--exec", "cat", "--idle-exit", "5s", code=69)
    expect_in("could not reach the broker", refused.err)
    expect_in(f"hint: check that it is running and that this host can connect to it: kafka://127.0.0.1:{port}/t", refused.err)
    assert "hush" not in refused.err, refused.err


def test_figures_for_people(cli):
    out = cli.folder / "effects"
    with Kafka({"orders": 1}) as kafka:
        # Of one key: the last has run when the one before it is settled.
        kafka.produce("orders", [("k", "{}", event(n)) for n in (1, 1, 2)])
        process = cli.start("consume", "--from", kafka.url("orders"), "--exec", f"echo $HAPAX_EVENT_ID >>{out}")
        until(lambda: out.exists() and "A-2" in out.read_text(), "all have run")
        process.terminate()
        lines, notes = finish(process, 0)
        fields = dict(line.split(maxsplit=1) for line in lines.decode().splitlines())
        expect((fields["ok"], fields["duplicates"], fields["producer"]), ("2", "1", "1 of the duplicates"))
        expect(fields["lag"], "0")
        expect_in(f"ready: kafka://{kafka.servers}/orders?group=g; records in {cli.store}", notes.decode())


def test_events_without_their_content_type(cli):
    """Version 1 of Python's SDK sends structured events with the content type of the data, or none (E18)."""
    plain = '{"specversion":"1.0","type":"t","source":"/shop","id":"A-%d","data":{"n":%d}}'
    with Kafka({"orders": 1}) as kafka, Service() as service:
        messages = [("k", plain % (1, 1), {}), ("k", plain % (1, 1), {"content-type": "application/json"})]
        binary = {name: value for name, value in event(2).items() if name != "content-type"}
        messages += [("k", plain % (2, 2), {}), ("k", '{"n":2}', binary)]
        kafka.produce("orders", messages)
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until_acknowledged(4)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["place_keys"]), (2, 2, 0))
        expect(service.effects, {("/shop", "A-1"): 1, ("/shop", "A-2"): 1})


def test_an_offset_as_key_is_told_once_and_counted(cli):
    out = cli.folder / "effects"
    with Kafka({"orders": 1}) as kafka:
        kafka.produce("orders", [("k", '{"order_id":7}', {})] * 3 + [("k", "{}", event(1))])
        url, command = kafka.url("orders"), f"echo $HAPAX_OFFSET >>{out}"
        consume = Consume(cli, "--from", url, "--exec", command, "-v")
        consume.until_acknowledged(4)
        figures = consume.stop()
        expect((figures["ok"], figures["place_keys"]), (4, 3))
        told = consume.all("place_key")
        expect([(found["place"], found["strategy"]) for found in told], [("orders/0/0", "field:data.order_id")])
        ended = [(found["place"], found["outcome"]) for found in consume.all("ended")]
        expect(ended, [(f"orders/0/{n}", "ok") for n in range(4)])
        expect(consume.all("ended")[3]["key"], "/shop:A-1")
        expect(len(consume.all("source_reached")), 1)


def test_a_broker_that_is_away_is_waited_for(cli):
    with Kafka({"orders": 1}) as kafka, Service() as service:
        kafka.produce("orders", numbers(5))
        kafka.tell("down 1")
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until(lambda _: consume.all("source_failed"), "it is told that the broker is away")
        kafka.tell("up 1")
        consume.until_acknowledged(5)
        expect(consume.stop()["ok"], 5)


def test_term_finishes_what_runs_and_gives_back_the_rest(cli):
    started, go = cli.folder / "started", cli.folder / "go"
    script = f"echo x >>{started}; while [ ! -e {go} ]; do sleep 0.02; done"
    with Kafka({"orders": 1}) as kafka:
        kafka.produce("orders", numbers(6))
        consume = Consume(cli, "--from", kafka.url("orders"), "--exec", script, "--parallel", "2", "--order", "none")
        consume.until(lambda f: f.get("running") == 2 and f.get("received") == 6, "two run")
        consume.process.terminate()
        consume.until(lambda f: f.get("given_back") == 4, "the rest is given back")
        go.touch()
        figures = consume.wait()
        expect((figures["ok"], figures["acknowledged"]), (2, 2))
        expect(kafka.committed("g", "orders"), 2)
        consume = Consume(cli, "--from", kafka.url("orders"), "--exec", script)
        consume.until_acknowledged(4)
        expect(consume.stop()["ok"], 4)
    expect(len(started.read_text().splitlines()), 6)


def test_a_late_command_is_stopped_and_that_is_ambiguous(cli):
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka:
        kafka.produce("orders", numbers(1))
        arguments = ["--exec", "sleep 600", "--timeout", "1s", "--attempts", "2", "--backoff", "5ms"]
        consume = Consume(cli, "--from", kafka.url("orders"), *arguments)
        consume.until_acknowledged(1)
        figures = consume.stop()
        expect((figures["ambiguous"], figures["dead_letters"]), (2, 1))
        expect_in("exceeded its time", kafka.read("orders.dead", 1)[0][2]["hapax-dead-error"])


def test_a_member_whose_handlers_are_slow_does_not_hold_up_its_group(cli):
    go = cli.folder / "go"
    slow = f"while [ ! -e {go} ]; do sleep 0.02; done"
    with Kafka({"orders": 2}) as kafka:
        kafka.produce("orders", numbers(40))
        url = ["--from", kafka.url("orders"), "--order", "none"]
        first = Consume(cli, *url, "--exec", slow, "--prefetch", "2", "--parallel", "2")
        # It has no room for more, and holds more than that back.
        first.until(lambda f: f.get("running") == 2, "two run")
        second = Consume(cli, *url, "--exec", "true")
        second.until(lambda f: f.get("ok", 0) > 0, "the second has a partition, and works")
        go.touch()
        second.until(lambda f: kafka.committed("g", "orders") == 40, "all is done")
        expect(first.stop()["ok"] + second.stop()["ok"], 40)


def test_an_offset_that_is_set_back_repeats_nothing(cli):
    with Kafka({"orders": 2}) as kafka, Service() as service:
        kafka.produce("orders", numbers(30))
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until_acknowledged(30)
        consume.stop()
        # The mock takes no offsets from outside of a group: there another group stands for one that was set back.
        group = "g" if kafka.is_real else "again"
        if kafka.is_real:
            kafka.reset("g", "orders")
            expect(kafka.committed("g", "orders"), 0)
        consume = Consume(cli, "--from", kafka.url("orders", group=group), "--to", service.url)
        consume.until_acknowledged(30)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["causes"]["reread"]), (0, 30, 30))
        expect(kafka.committed(group, "orders"), 30)
        expect(set(service.effects.values()), {1})


def test_messages_of_ten_mebibytes(cli):
    if not Kafka.is_real:
        raise Skip("the mock cluster keeps 5 MiB of a partition")
    size = 10 * 1024 * 1024
    with Kafka({"orders": 1, "orders.dead": 1}) as kafka, Service() as service:
        bytes_of = ("k", "x" * size, {"eventId": "bytes", "content-type": "text/plain"})
        json_of = ("k", json.dumps(["x" * size]), {"eventId": "json", "content-type": "application/json"})
        small = ("k", "small", {"eventId": "small", "content-type": "text/plain"})
        kafka.produce("orders", [bytes_of, json_of, bytes_of, small])
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until_acknowledged(4)
        figures = consume.stop()
        # Every one is settled; what is too large to be compared as JSON is a dead letter.
        expect(figures["ok"] + figures["duplicates"] + figures["dead_letters"], 4)
        expect((figures["duplicates"], service.requests[-1][1]), (1, b"small"))
        expect(max(len(body) for _, body in service.requests) >= size, True)


def test_a_producer_by_kcat(cli):
    if shutil.which("kcat") is None:
        raise Skip("kcat is not installed (tools/setup test)")
    with Kafka({"orders": 2}) as kafka, Service() as service:
        headers = [f"-H{name}={value}" for name, value in event(1).items()]
        for _ in range(2):
            subprocess.run(
                ["kcat", "-b", kafka.servers, "-P", "-t", "orders", "-K:", *headers],
                input='k:{"n":1}\n', text=True, check=True, timeout=60, capture_output=True,
            )
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until_acknowledged(2)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"]), (1, 1))


KAFKAJS = "2.2.4"

KAFKAJS_SCRIPT = """
const { Kafka, logLevel } = require("kafkajs");
const producer = new Kafka({ brokers: [process.argv[2]], logLevel: logLevel.NOTHING }).producer();
const headers = JSON.parse(process.argv[3]);
(async () => {
  await producer.connect();
  const message = { key: "k", value: '{"n":1}', headers };
  // The second one as a producer that got no answer sends it.
  await producer.send({ topic: "orders", messages: [message] });
  await producer.send({ topic: "orders", messages: [message, { key: "gone", value: null }] });
  await producer.disconnect();
})().catch((error) => { console.error(error); process.exit(1); });
"""


def test_a_producer_by_kafkajs(cli):
    if not is_proof():
        raise Skip("only for make proof: it needs the registry of npm")
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")
    done = subprocess.run(
        ["npm", "install", "--no-audit", "--no-fund", "--prefix", str(cli.folder), f"kafkajs@{KAFKAJS}"],
        capture_output=True, text=True, check=False, timeout=300,
    )
    if done.returncode != 0:
        raise Skip("the registry of npm was not reached")
    (cli.folder / "produce.js").write_text(KAFKAJS_SCRIPT)
    with Kafka({"orders": 2}) as kafka, Service() as service:
        subprocess.run(["node", cli.folder / "produce.js", kafka.servers, json.dumps(event(1))], check=True, timeout=120)
        consume = Consume(cli, "--from", kafka.url("orders"), "--to", service.url)
        consume.until_acknowledged(3)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["causes"]["producer"]), (2, 1, 1))
