"""`hapax consume` from RabbitMQ: handlers, keys, duplicates, dead letters, bad input, stops."""

import json
import os
import threading

from harness import TIMEOUT_SECONDS, expect, expect_in, finish, until
from rabbit import ADDRESS, Consume, Proxy, Queue, Service, event, numbers

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"


def test_lag_is_what_waits_at_the_broker(cli):
    gate = threading.Event()
    with Queue() as queue, Service(lambda headers, body: gate.wait(TIMEOUT_SECONDS) and 200) as service:
        queue.fill(numbers(10))
        consume = Consume(cli, "--from", queue.url(prefetch=2), "--to", service.url)
        consume.until(lambda f: f.get("lag") == 8, "eight wait behind the two in hand")
        gate.set()
        consume.until(lambda f: f.get("lag") == 0 and f.get("acknowledged") == 10, "none waits")
        consume.stop()


def test_events_reach_a_service_once(cli):
    with Queue() as queue, Service() as service:
        queue.fill(numbers(40) + numbers(10))
        consume = Consume(cli, "--from", queue.url(), "--to", service.url)
        consume.until_acknowledged(50)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["in_hand"]), (40, 10, 0))
        expect(figures["causes"]["producer"], 10)
        expect((len(service.effects), set(service.effects.values())), (40, {1}))
        expect(queue.ready(queue.name), 0)
        headers, body = service.requests[0]
        expect((headers["ce-source"], headers["ce-type"], headers["content-type"]), ("/shop", "order.paid", "application/json"))
        expect(json.loads(body)["n"], int(headers["ce-id"][2:]))
        assert int(headers["hapax-token"]) > 0 and headers["hapax-attempt"] == "1", headers
        expect(consume.all("duplicate")[0]["original"], queue.name)


def test_all_forms_of_an_event_are_one(cli):
    whole = {"specversion": "1.0", "type": "t", "source": "/s", "id": "1", "data": {"n": 1}}
    attributes = {"specversion": "1.0", "type": "t", "source": "/s", "id": "1"}
    forms = [
        (json.dumps(whole), {"content_type": "application/cloudevents+json"}),
        ('{"n":1}', {"content_type": "application/json", "headers": {"cloudEvents:" + k: v for k, v in attributes.items()}}),
        ('{"n":1}', {"content_type": "application/json", "headers": {"cloudEvents_" + k: v for k, v in attributes.items()}}),
        ('{"n":1}', {"content_type": "application/json", "headers": {"ce-" + k: v for k, v in attributes.items()}}),
    ]
    with Queue({}) as queue, Service() as service:
        queue.fill(forms)
        consume = Consume(cli, "--from", queue.url(), "--to", service.url, "--form", "structured")
        consume.until_acknowledged(4)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["mismatches"]), (1, 3, 0))


def test_what_is_no_event_has_its_usual_keys(cli):
    messages = [
        ("a", {"message_id": "m-1", "type": "order.made", "timestamp": 1700000000, "headers": {"traceparent": TRACE}}),
        ("a", {"message_id": "m-1"}),
        ("b", {"headers": {"id": "debezium-1"}}),
        ("b", {"headers": {"id": "debezium-1"}}),
        ("c", {"headers": {"x-deduplication-header": "d-1", "n": 7, "yes": True, "nothing": None, "inner": {"a": [1, {}]}}}),
        ("c", {"message_id": "other", "headers": {"x-deduplication-header": "d-1"}}),
    ]
    with Queue() as queue, Service() as service:
        queue.fill(messages)
        consume = Consume(cli, "--from", queue.url(), "--to", service.url)
        consume.until_acknowledged(6)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"]), (3, 3))
        sent = {headers["ce-id"]: headers for headers, _ in service.requests}
        expect(sorted(sent), ["d-1", "debezium-1", "m-1"])
        expect((sent["m-1"]["ce-type"], sent["m-1"]["traceparent"]), ("order.made", TRACE))
        expect_in("2023-11-14T22:13:20", sent["m-1"]["ce-time"])
        expect(sent["m-1"]["ce-source"], f"amqp://{ADDRESS}/{queue.name}")


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

    with Queue() as queue, Service(answer) as service:
        messages = numbers(5)
        # What must not follow a letter, and what must.
        messages[0][1].update(expiration="600000", user_id="guest", correlation_id="c", message_id="m", priority=3)
        messages[0][1]["headers"].update({"CC": [f"{queue.name}.duplicate"], "inner": {"a": [1, "x"]}, "n": 7})
        queue.declare(f"{queue.name}.duplicate")
        queue.fill(messages)
        expect(queue.get(f"{queue.name}.duplicate")[0], b'{"n":0}', "CC works")
        arguments = ["--from", queue.url(), "--to", service.url, "--attempts", "4", "--backoff", "5ms"]
        consume = Consume(cli, *arguments)
        consume.until_acknowledged(5)
        figures = consume.stop()
        expect((figures["ok"], figures["definitive"], figures["dead_letters"]), (3, 1, 2))
        expect(counts, {"A-0": 4, "A-1": 1, "A-2": 3, "A-3": 1, "A-4": 1})
        letters = {p["headers"]["cloudEvents:id"]: (body, p) for body, p in queue.get_all(f"{queue.name}.dead", 2)}
        body, properties = letters["A-0"]
        headers = properties["headers"]
        expect((body, headers["n"], headers["inner"]), (b'{"n":0}', 7, {"a": [1, "x"]}))
        expect((properties["correlation_id"], properties["message_id"], properties["priority"]), ("c", "m", 3))
        expect((properties["content_type"], properties["delivery_mode"]), ("application/json", 2))
        assert "expiration" not in properties and "user_id" not in properties and "CC" not in headers, properties
        expect((headers["hapax-dead-reason"], headers["hapax-dead-attempts"]), ("attempts", "4"))
        expect((headers["hapax-dead-place"], headers["hapax-dead-key"]), (queue.name, "/shop:A-0"))
        expect((headers["hapax-dead-exchange"], headers["hapax-dead-routing-key"]), ("", queue.name))
        expect_in("500", headers["hapax-dead-error"])
        expect(letters["A-1"][1]["headers"]["hapax-dead-reason"], "definitive")
        expect(queue.ready(f"{queue.name}.duplicate"), 0, "the letter went nowhere else")

        # A dead letter that is sent again, when what was wrong is right, runs; a second time it is known.
        service.answer = lambda headers, body: 200
        queue.fill([letters["A-0"], letters["A-0"]])
        consume = Consume(cli, *arguments)
        consume.until_acknowledged(2)
        figures = consume.stop()
        expect((figures["ok"], figures["causes"]["dead_letter"]), (1, 1))


def test_letters_wait_for_an_exchange_that_takes_them(cli):
    with Queue() as queue, Service(lambda headers, body: 422) as service:
        exchange = f"{queue.name}-letters"
        queue.fill(numbers(3))
        url = queue.url(dead_exchange=exchange)
        consume = Consume(cli, "--from", url, "--to", service.url, "--backoff", "5ms", "--backoff-max", "50ms")
        consume.until(lambda _: any("no exchange" in e["why"] for e in consume.all("undelivered")), "there is no exchange")
        queue.declare_exchange(exchange)
        consume.until(lambda _: any("NO_ROUTE" in e["why"] for e in consume.all("undelivered")), "no queue is bound")
        consume.until(lambda f: f.get("received") == 3, "all are in hand")
        expect(consume.figures()["acknowledged"], 0, "nothing is dropped meanwhile")
        queue.declare(f"{queue.name}.dead")
        queue.bind(f"{queue.name}.dead", exchange, "#.dead")
        consume.until_acknowledged(3)
        expect(consume.stop()["dead_letters"], 3)
        letters = {p["headers"]["cloudEvents:id"] for _, p in queue.get_all(f"{queue.name}.dead", 3)}
        expect(letters, {"A-0", "A-1", "A-2"})
        queue.delete_exchange(exchange)


def test_over_tls_and_only_to_whom_we_trust(cli):
    address, authority = os.environ["HAPAX_TEST_RABBITMQ_TLS"], os.environ["HAPAX_TEST_RABBITMQ_CA"]
    with Queue({}) as queue, Service() as service:
        queue.fill(numbers(3))
        url = f"amqps://guest:guest@{address}/{queue.name}"
        consume = Consume(cli, "--from", url, "--to", service.url)
        consume.until(lambda _: consume.all("source_failed"), "the certificate is unknown")
        expect_in("ca=FILE", consume.all("source_failed")[0]["why"])
        expect(consume.stop()["received"], 0)
        consume = Consume(cli, "--from", f"{url}?ca={authority}", "--to", service.url)
        consume.until_acknowledged(3)
        expect(consume.stop()["ok"], 3)


def nested(depth):
    """A header table of one table in the other; no client library writes that."""
    inner = b"\0\0\0\0"
    for _ in range(depth):
        inner = (len(inner) + 3).to_bytes(4, "big") + b"\1aF" + inner
    return inner


def test_bad_input_goes_by_policy_and_wedges_nothing(cli):
    with Queue() as queue, Service() as service:
        bad = [
            ("{}", {"headers": {"cloudEvents:id": "1"}}),
            ("{", {"content_type": "application/cloudevents+json"}),
            ("[]", {"content_type": "application/cloudevents-batch+json"}),
            ("{}", event(1, **{"cloudEvents:bad-name": "x"})),
            ("{}", {"headers": {f"h{n}": "x" for n in range(200)}}),
            # Its headers fill a frame: there is no room for the reason beside them.
            ("{}", {"headers": {"big": "x" * 127000}}),
            ('{"other":1}', {}),
            (b"\xff\xfe", {"headers": {"bytes": b"\xff"}}),
            ("", {}),
            ("{}", {"headers": nested(2000)}),
        ]
        good = [
            ('{"order":1}', {}),
            ('{"order":2}', {"headers": {"empty": None, "long": "x" * 60000}}),
            (json.dumps({"order": 3, "blob": "x" * (10 << 20)}), {}),
        ]
        queue.fill(bad + good)
        consume = Consume(cli, "--from", queue.url(), "--to", service.url, "--strategy", "field:data.order")
        consume.until_acknowledged(len(bad) + len(good))
        figures = consume.stop()
        letters = queue.get_all(f"{queue.name}.dead", figures["dead_letters"])
        reasons = sorted(properties["headers"]["hapax-dead-reason"] for _, properties in letters)
        expect(reasons, ["malformed"] * 4 + ["no-key"] * 5 + ["too-large"])
        expect((figures["ok"], figures["dead_letters"]), (3, len(bad)))
        omitted = [p["headers"] for _, p in letters if "hapax-dead-headers" in p["headers"]]
        assert omitted and all("big" not in headers for headers in omitted), omitted


def test_a_message_without_an_id_stops_it_before_anything_is_acknowledged(cli):
    """E18, first steps: a queue without IDs does not become dead letters; the error names what fits."""
    body = '{"total":1,"customer_id":7,"order_id":"o-%d"}'
    cases = [
        ([(body % 1, {}), (body % 2, {})], "field:data.order_id"),
        ([('{"uuid":"u","order_id":3}', {}), ("x", {})], "field:data.uuid"),
        ([("x", {"headers": {"X-Trace-Id": "t", "X-Order-Id": "o"}})], "header:X-Order-Id"),
        ([("x", {"headers": {"X-Event-Id": "e"}})], "header:X-Event-Id"),
        ([("x", {"correlation_id": "c"}), ("", {})], "content"),
        ([('["id"]', {})], "content"),
    ]
    for messages, strategy in cases:
        with Queue({}) as queue, Service() as service:
            # One with an ID behind them does not run, either.
            queue.fill([*messages, ("x", {"message_id": "m"})])
            refused = cli.run("consume", "--from", queue.url(), "--to", service.url, code=65)
            expect_in(f"a message of '{queue.name}' has no ID", refused.err)
            expect_in(f"hint: set '--strategy {strategy}'", refused.err)
            until(lambda: queue.ready(queue.name) == len(messages) + 1, "the broker has all of them")
            expect(service.effects, {})
    with Queue({}) as queue, Service() as service:
        queue.fill([(body % 1, {}), (body % 2, {}), (body % 1, {})])
        consume = Consume(cli, "--from", queue.url(), "--to", service.url, "--strategy", "field:data.order_id")
        consume.until_acknowledged(3)
        figures = consume.stop()
        expect((figures["ok"], figures["duplicates"], figures["dead_letters"]), (2, 1, 0))


def test_it_is_ready_when_the_broker_has_accepted_it(cli):
    """Not before the connection and the password are accepted."""
    with Queue() as queue, Service() as service:
        wrong = queue.url().replace("guest:guest", "guest:wrong")
        refused = cli.run("consume", "--from", wrong, "--to", service.url, "--idle-exit", "2s", code=69)
        assert "ready" not in refused.err, refused.err
        expect_in("could not reach the broker", refused.err)
        process = cli.start("consume", "--from", queue.url(), "--to", service.url, "-v")
        line = process.stderr.readline().decode()
        expect_in(f"ready: amqp://{ADDRESS}/{queue.name}; records in", line)
        queue.fill([*numbers(1), *numbers(1)])
        lines = [process.stderr.readline().decode() for _ in range(2)]
        expect_in("key '/shop:A-0': ok", lines[0])
        expect_in("key '/shop:A-0': duplicate (producer)", lines[1])
        process.terminate()
        finish(process, 0)


def test_a_message_without_an_id_goes_by_policy(cli):
    with Queue({}) as queue, Service() as service:
        queue.fill([("x", {}), ("", {})])
        consume = Consume(cli, "--from", queue.url(), "--to", service.url, "--strategy", "header:message-id")
        consume.until_acknowledged(2)
        expect(consume.stop()["dead_letters"], 2)
        queue.fill([("x", {}), ("x", {}), ("", {})])
        consume = Consume(cli, "--from", queue.url(), "--to", service.url, "--on-missing", "content")
        consume.until_acknowledged(3)
        figures = consume.stop()
        # What is empty has no content to know it by.
        expect((figures["ok"], figures["duplicates"], figures["dead_letters"]), (1, 1, 1))


def test_duplicates_can_be_diverted(cli):
    with Queue() as queue, Service() as service:
        queue.fill(numbers(3) + numbers(3))
        consume = Consume(cli, "--from", queue.url(), "--to", service.url, "--on-duplicate", "divert")
        consume.until_acknowledged(6)
        expect(consume.stop()["diverted"], 3)
        found = [properties["headers"] for _, properties in queue.get_all(f"{queue.name}.duplicate", 3)]
        expect({headers["hapax-duplicate-cause"] for headers in found}, {"producer"})
        expect(sorted(headers["cloudEvents:id"] for headers in found), ["A-0", "A-1", "A-2"])


def test_wrong_urls_are_refused(cli):
    ok = ["--to", "http://127.0.0.1:1/"]
    for url, word in [
        ("amqp://h", "missing queue"),
        ("amqp://h/", "missing queue"),
        ("amqp://h/v/", "missing queue"),
        ("amqp:///q", "host or port"),
        ("amqp://h/%zz", "invalid queue"),
        ("amqp://h/q?prefetch=0", "must be prefetch=1..10000"),
        ("amqp://h/q?prefetch=99999", "must be prefetch=1..10000"),
        ("amqp://h/q?size_max=x", "bytes"),
        ("amqp://h/q?queue=x", "in the path"),
        ("amqp://h/q?nonsense=1", "nonsense"),
    ]:
        cli.run("consume", "--from", url, *ok, code=64).says(word)
    secret = cli.run("consume", "--from", "amqp://u:hush@h/q?nonsense=1", *ok, code=64)
    assert "hush" not in secret.err, secret.err


def test_a_queue_that_is_not_there_is_waited_for_or_made(cli):
    with Queue() as queue, Service() as service:
        queue.delete(queue.name)
        consume = Consume(cli, "--from", queue.url(), "--to", service.url)
        consume.until(lambda _: consume.all("source_failed"), "it is told that there is no queue")
        expect_in("declare it first", consume.all("source_failed")[0]["why"])
        queue.declare(queue.name)
        queue.fill(numbers(2))
        consume.until_acknowledged(2)
        # It continues when its queue is deleted and created again.
        said = len(consume.all("source_failed"))
        queue.delete(queue.name)
        consume.until(lambda _: len(consume.all("source_failed")) > said, "the end is told")
        queue.declare(queue.name)
        queue.fill(numbers(3))
        consume.until_acknowledged(5)
        expect(consume.stop()["ok"], 3)
        queue.delete(queue.name)
        consume = Consume(cli, "--from", queue.url(declare="quorum"), "--to", service.url)
        consume.until(lambda f: f.get("lag") == 0, "it is there")
        # A new connection creates it again, too.
        queue.delete(queue.name)
        consume.until(lambda f: f.get("rebalances") == 2, "it is there again")
        queue.fill([(f'{{"n":{n}}}', event(n)) for n in range(3, 5)])
        consume.until_acknowledged(2)
        expect(consume.stop()["ok"], 2)
        expect(queue.ready(queue.name), 0)


def test_a_queue_that_is_back_at_once_is_consumed(cli):
    """A consumer that asks for it from time to time would not see that it was gone."""
    classic = {"x-queue-type": "classic"}
    with Queue(classic) as queue, Service() as service:
        queue.fill(numbers(2))
        consume = Consume(cli, "--from", queue.url(), "--to", service.url)
        consume.until_acknowledged(2)
        queue.delete(queue.name)
        queue.declare(queue.name, classic)
        queue.fill(numbers(3))
        consume.until_acknowledged(5)
        expect_in("canceled the consumer", consume.all("source_failed")[0]["why"])
        expect(consume.stop()["ok"], 3)


def test_a_connection_that_is_cut_repeats_nothing(cli):
    with Queue() as queue, Proxy() as proxy, Service() as service:
        queue.fill(numbers(20))

        def answer(_headers, _body):
            # In the middle of it, and before the acknowledgement.
            if len(service.requests) in (3, 9):
                proxy.cut()
            return 200

        service.answer = answer
        consume = Consume(cli, "--from", queue.url(proxy.address), "--to", service.url, "--parallel", "2")
        consume.until(lambda f: len(service.effects) == 20 and f.get("lag") == 0 and f.get("in_hand") == 0, "all is done")
        figures = consume.stop()
        expect((figures["ok"], set(service.effects.values())), (20, {1}))
        expect(queue.ready(queue.name), 0)
        causes = figures["causes"]
        expect(causes["redelivered"], figures["duplicates"], "the cause of all of them")


def test_term_finishes_what_runs_and_gives_back_the_rest(cli):
    started, go = cli.folder / "started", cli.folder / "go"
    script = f"echo x >>{started}; while [ ! -e {go} ]; do sleep 0.02; done"
    with Queue() as queue:
        queue.fill(numbers(6))
        consume = Consume(cli, "--from", queue.url(), "--exec", script, "--parallel", "2", "--order", "none")
        consume.until(lambda f: f.get("running") == 2 and f.get("received") == 6, "two run")
        consume.process.terminate()
        consume.until(lambda f: f.get("given_back") == 4, "the rest is given back")
        go.touch()
        figures = consume.wait()
        expect((figures["ok"], figures["acknowledged"]), (2, 2))
        # A quorum queue takes a while to have back what was not acknowledged.
        until(lambda: queue.ready(queue.name) == 4, "the broker has them back")
        consume = Consume(cli, "--from", queue.url(), "--exec", script)
        consume.until_acknowledged(4)
        expect(consume.stop()["ok"], 4)
    expect(len(started.read_text().splitlines()), 6)
