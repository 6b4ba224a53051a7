"""The event that a key was claimed for: kept with its record, and named wherever a duplicate is (A10, E12)."""

import json

import api
from daemon import log_line, post, post_batch, post_structured, serve, structured, upstream
from harness import expect, expect_in, until
from redis_wire import Wire, door
from test_api import AUTH, Api, Listener
from test_resp import fields

ROUTE = "gateway:\n  routes:\n    - {path: /, key: 'field:data.order'}\n"
CONFIG = AUTH + "log: {rate: 1000}\n" + ROUTE
TIME = "2026-11-18T05:00:00.000Z"


def blocked(daemon):
    lines = [log_line(line) for line in list(daemon.lines)]
    return [line for line in lines if line.get("msg") == "duplicate job blocked"]


def send(daemon, form, number, event_id, **attributes):
    data = {"order": number}
    if form == "binary":
        headers = {f"ce_{name}": value for name, value in attributes.items()}
        return post(daemon.gateway, event_id, json.dumps(data).encode(), **headers)
    event = structured(event_id, data, **attributes)
    return post_structured(daemon.gateway, event) if form == "structured" else post_batch(daemon.gateway, [event])


def test_duplicates_name_the_original(cli):
    """In each form of an event: log, API, stream, explain and lookup have the first event beside the second."""
    store = f"file:{cli.folder}/store"
    forms = ("binary", "structured", "batched")
    with upstream() as service, serve(cli, service.url, store=store, config=CONFIG) as daemon:
        call = Api(daemon)
        listener = Listener(call, "?decision=replay")
        for number, form in enumerate(forms):
            send(daemon, form, number, f"first-{form}", time="2026-11-18T06:00:00+01:00")
            send(daemon, form, number, f"again-{form}", type="order.again", source="/till")
        expect(len(service.requests), len(forms))
        until(lambda: len(blocked(daemon)) == len(forms) == len(listener.decisions), "each is told")
        notes = {note["key"]: note for note in call("GET", "/duplicates").json["duplicates"]}
        for number, form in enumerate(forms):
            first = {"id": f"first-{form}", "type": "order.paid", "source": "/shop", "time": TIME}
            again = {"id": f"again-{form}", "type": "order.again", "source": "/till"}
            line = blocked(daemon)[number]
            told = {name: line[f"original_{field}"] for name, field in zip(first, ("job_id", "type", "source", "time"))}
            expect((told, line["job_id"], line["event_type"], line["event_source"]), (first, *again.values()), form)
            note = notes[str(number)]
            expect((note["event"], note["original"]["event"]), (again, first), form)
            path = f"/keys/default/default/{number}"
            record, story = call("GET", path).json, call("GET", f"{path}/explain").json
            expect((record["event"], story["event"], line["original_token"]), (first, first, record["token"]), form)
        told = {json.loads(event["data"])["original"]["event"]["id"] for event in listener.events if "data" in event}
        expect(told, {f"first-{form}" for form in forms})
        listener.close()
    found = cli.run("lookup", "0", "--store", store, "-o", "json").json
    expect(found["event"], {"id": "first-binary", "type": "order.paid", "source": "/shop", "time": TIME})
    shown = cli.run("lookup", "0", "--store", store).out
    for line in ("event id     first-binary", "event type   order.paid", "event source /shop", "event time   2026-11-18T05:00:00Z"):
        expect_in(line, shown)
    said = cli.run("explain", "0", "--store", store).out
    expect_in("It was claimed for the event with id 'first-binary', type 'order.paid', source '/shop', time '2026-", said)
    expect(cli.run("explain", "0", "--store", store, "-o", "json").json["event"], found["event"])


def test_a_scope_may_remember_nothing(cli):
    """remember: off. The duplicate's own event is told as before; the original has a token only."""
    config = CONFIG + "scopes:\n  - {scope: default/default, remember: off}\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        for event_id in ("1", "2"):
            send(daemon, "binary", 17, event_id)
        until(lambda: blocked(daemon), "it is told")
        (line,) = blocked(daemon)
        expect((line["job_id"], [name for name in line if name.startswith("original")]), ("2", ["original_token"]))
        call = Api(daemon)
        (note,) = call("GET", "/duplicates").json["duplicates"]
        expect((note["event"]["id"], "event" in note["original"]), ("2", False))
        assert "event" not in call("GET", "/keys/default/default/17").json
        call("POST", "/claim", {"key": "claimed", "event": {"id": "3"}})
        call("POST", "/claim", {"key": "claimed", "group": "elsewhere", "event": {"id": "3"}})
        assert "event" not in call("GET", "/keys/default/default/claimed").json
        expect(call("GET", "/keys/default/elsewhere/claimed").json["event"], {"id": "3"})
        story = call("GET", "/keys/default/default/17/explain").json
        assert "event" not in story and "claimed for" not in str(story), story


def test_records_without_an_event(cli):
    """Marks, SET and requests of the proxy, whose key is all that they have."""
    config = AUTH + "proxy:\n  routes:\n    - {path: /, credential: none}\n"
    options = ("--proxy", "127.0.0.1:0", "--resp", "127.0.0.1:0")
    with upstream() as service, serve(cli, service.url, *options, config=config) as daemon:
        call = Api(daemon)
        call("POST", "/check", {"key": "mark"})
        call("POST", "/claim", {"key": "claim"})
        with Wire(door(daemon)) as wire:
            wire.pipeline([["SET", "set", "v", "NX"], ["HAPAX.CLAIM", "resp"]])
        for _ in range(2):
            api.post(daemon.proxy, "/", "p")
        records = call("GET", "/keys").json["keys"]
        expect((len(records), [record for record in records if "event" in record]), (5, []))
        until(lambda: blocked(daemon), "it is told")
        assert "original_job_id" not in blocked(daemon)[0], blocked(daemon)


def test_the_redis_listener_shows_the_event(cli):
    """A10: HAPAX.LOOKUP has the parts of the event; a key without one has no such fields."""
    options = ("--resp", "127.0.0.1:0")
    with upstream() as service, serve(cli, service.url, *options, config=CONFIG) as daemon, Wire(door(daemon)) as wire:
        send(daemon, "binary", 1, "first", time=TIME)
        found = fields(wire.ask("HAPAX.LOOKUP", "1"))
        told = {name: value for name, value in found.items() if name.startswith("event_")}
        whole = {"event_id": "first", "event_type": "order.paid", "event_source": "/shop", "event_time_ms": 1794978000000}
        expect(told, whole)
        wire.ask("HAPAX.CLAIM", "none")
        expect([name for name in fields(wire.ask("HAPAX.LOOKUP", "none")) if name.startswith("event_")], [])


def test_long_attributes_are_cut(cli):
    """At 255 bytes, between characters; in memory and on disk alike, and from the thread for large events."""
    long = "x" * 254 + "ü" * 100
    with upstream() as service, serve(cli, service.url, config=CONFIG) as daemon:
        send(daemon, "structured", 1, long, type=long, source=long)
        event = {**structured("large", {"order": 2, "much": "y" * 400000}), "time": "2026-11-18T05:00:00Z"}
        expect(post_structured(daemon.gateway, event).status, 200)
        call = Api(daemon)
        cut = call("GET", "/keys/default/default/1").json["event"]
        expect(cut, {"id": "x" * 254, "type": "x" * 254, "source": "x" * 254})
        large = call("GET", "/keys/default/default/2").json["event"]
        expect(large, {"id": "large", "type": "order.paid", "source": "/shop", "time": TIME})
