"""The API: every path answers as /openapi.json says, and what is wrong is told in a way that helps."""

import base64
import hashlib
import http.client
import json
import socket
import threading

import schema_check
from daemon import TIMEOUT_SECONDS, Reply, get, post, request, serve, upstream
from harness import expect, expect_in, until

TOKENS = {role: f"token-of-{role}-0123456789abcdef" for role in ("read", "write", "admin")}
TENANT_TOKEN = "token-of-acme-0123456789abcdef"


def digest(token):
    return "sha256:" + hashlib.sha256(token.encode()).hexdigest()


AUTH = "auth:\n  tokens:\n"
AUTH += "".join(f"    - {{name: {role}, hash: '{digest(token)}', role: {role}}}\n" for role, token in TOKENS.items())
AUTH += f"    - {{name: acme, hash: '{digest(TENANT_TOKEN)}', role: write, tenant: acme}}\n"

V1 = "/api/v1"

# For tests in which no event comes.
NOWHERE = "http://127.0.0.1:1"


class Api:
    """Requests with a token; every reply is held to the description."""

    def __init__(self, daemon, role="admin"):
        self.to = daemon.admin
        self.token = TOKENS.get(role, role)
        self.description = get(self.to, "/openapi.json").json

    def raw(self, method, path, body=None, **headers):
        fields = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        if body is not None:
            fields["Content-Type"] = "application/json"
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        for name, value in headers.items():
            fields[name.replace("_", "-")] = value
        return request(self.to, method, path, {n: v for n, v in fields.items() if v is not None}, body)

    def __call__(self, method, path, body=None, **headers):
        path = path if path.startswith("/openapi") else V1 + path
        reply = self.raw(method, path, body, **headers)
        self.check(method, path, reply)
        return reply

    def template(self, path):
        parts = path.split("?")[0].split("/")
        for template in self.description["paths"]:
            wanted = template.split("/")
            if len(wanted) == len(parts) and all(w == p or w[0:1] == "{" for w, p in zip(wanted, parts)):
                return template
        raise AssertionError(f"{path} is not described")

    def check(self, method, path, reply):
        """The reply is one that the description has, and looks as it says."""
        row = self.description["paths"][self.template(path)][method.lower()]
        expect_in(str(reply.status), row["responses"], f"statuses of {method} {path}: {reply.body!r}")
        response = row["responses"][str(reply.status)]
        if "content" not in response:
            expect(reply.body, b"")
            return
        (kind, content), *_ = response["content"].items()
        expect(reply.headers["content-type"], kind)
        if kind != "text/event-stream":
            expect(schema_check.faults(content["schema"], reply.json, self.description), [], f"{method} {path}")

    def claim(self, key, **members):
        return self("POST", "/claim", {"key": key, **members}).json


def api(cli, config="", role="admin", url=NOWHERE, **more):
    """A daemon and its API, as a context."""

    class Context:
        def __enter__(self):
            self.context = serve(cli, url, config=AUTH + config, **more)
            self.daemon = self.context.__enter__()
            return self.daemon, Api(self.daemon, role)

        def __exit__(self, *why):
            return self.context.__exit__(*why)

    return Context()


# ------------------------------------------------------------------ a claim and its end


def test_claim_complete_replay(cli):
    with api(cli) as (_, call):
        first = call.claim("order-17", owner="me", lease_ms=60000, ttl_ms=3600000)
        expect((first["outcome"], first["attempt"], first["tenant"], first["group"]), ("acquired", 1, "default", "default"))
        expect(len(first["attempt_id"]), 32)
        again = call.claim("order-17", owner="me", attempt_id=first["attempt_id"])
        expect((again["outcome"], again["token"]), ("acquired", first["token"]))
        other = call.claim("order-17")
        expect((other["outcome"], other["owner"], "token" in other), ("in_progress", "me", False))
        assert 0 < other["lease_left_ms"] <= 60000, other
        named = {"key": "order-17", "token": first["token"]}
        expect(call("POST", "/renew", {**named, "lease_ms": 30000}).json["outcome"], "applied")
        result = {"body": "receipt 4711"}
        expect(call("POST", "/complete", {**named, "result": result}).json["outcome"], "applied")
        replay = call.claim("order-17")
        expect((replay["outcome"], "token" in replay), ("replay", False))
        expect(replay["result"], {"kind": "bytes", "class": "ok", "status": 0, "body": "receipt 4711"})
        call("POST", "/release", {**named, "error": "too late"}).is_problem(409, "urn:hapax:problem:fenced")
        call("POST", "/renew", {**named, "token": 1}).is_problem(409, "stop the work")


def test_a_claim_names_its_event(cli):
    """A10: duplicates, lookups and listings show the event of the first delivery."""
    event = {"id": "evt_1", "type": "order.créé", "source": "/shop", "time": "2026-11-18T09:00:00.250Z"}
    with api(cli) as (_, call):
        token = call.claim("k", event=event)["token"]
        expect(call.claim("k", event={"id": "evt_2"})["event"], event)
        call("POST", "/complete", {"key": "k", "token": token, "result": {"body": "paid"}})
        replay = call.claim("k")
        expect((replay["outcome"], replay["event"]), ("replay", event))
        expect(call("GET", "/keys/default/default/k").json["event"], event)
        expect(call("GET", "/keys").json["keys"][0]["event"], event)
        # Controls go both ways as Base64.
        call.claim("controls", event={"id_base64": "YQoB", "source": "a\n\u0001"})
        shown = call("GET", "/keys/default/default/controls").json["event"]
        expect(shown, {"id_base64": "YQoB", "source_base64": "YQoB"})
        # A part that is missing stays so; a long one is cut between characters; and none is none.
        call.claim("some", event={"id": "a" + "€" * 200, "time": None})
        expect(call("GET", "/keys/default/default/some").json["event"], {"id": "a" + "€" * 84})
        for number, none in enumerate(({}, None, {"id": ""})):
            call.claim(f"none{number}", event=none)
            expect("event" in call("GET", f"/keys/default/default/none{number}").json, False)
        # A mark has none, and no other operation takes one.
        call("POST", "/check", {"key": "m", "event": event}).is_problem(400, "unknown member 'event'")
        call("POST", "/complete", {"key": "k", "token": token, "event": event}).is_problem(400, "unknown member 'event'")
        marks = call("POST", "/operations", [{"op": "check", "key": "m", "event": event, "record": True}]).json
        expect("event" in marks[0]["record"], False)


def test_only_who_acquired_is_told_the_token(cli):
    """A caller that sends back what it got cannot end another caller's claim."""
    same, other = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()
    with api(cli) as (_, call):

        def told(outcome, fingerprint):
            answers = [call("POST", path, {"key": "k", "fingerprint": fingerprint}).json for path in ("/claim", "/check")]
            named = {"key": "k", "fingerprint": fingerprint}
            operations = [{"op": "claim", "attempt_id": "ab" * 16, **named}, {"op": "check", "record": True, **named}]
            answers += call("POST", "/operations", operations).json
            expect([(answer["outcome"], "token" in answer) for answer in answers], [(outcome, False)] * 4)

        token = call.claim("k", fingerprint=same, lease_ms=60000)["token"]
        told("in_progress", same)
        told("mismatch", other)
        naive = call.claim("k", fingerprint=same)
        call("POST", "/complete", {"key": "k", "token": naive.get("token")}).is_problem(400)
        # The record's own views have it.
        expect(call("GET", "/keys/default/default/k").json["token"], token)
        look = [{"op": "lookup", "key": "k", "record": True}]
        expect(call("POST", "/operations", look).json[0]["record"]["token"], token)
        call("POST", "/park", {"key": "k", "token": token})
        told("parked", same)
        call("POST", "/complete", {"key": "k", "token": token})
        told("replay", same)
        told("mismatch", other)


def test_another_payload_is_told_nothing_of_the_run(cli):
    """A10: owner, error and event are for callers with the same payload, whatever the state."""
    same, other = hashlib.sha256(b"1").hexdigest(), hashlib.sha256(b"2").hexdigest()
    with api(cli) as (_, call):

        def shown(fingerprint):
            claim = {"op": "claim", "key": "k", "attempt_id": "ab" * 16, "fingerprint": fingerprint, "record": True}
            record = call("POST", "/operations", [claim]).json[0]["record"]
            told = {name for name in ("owner", "error", "event", "result") if record.get(name)}
            expect(told, {"owner", "error", "event", "result"} & set(call.claim("k", fingerprint=fingerprint)))
            return sorted(told)

        token = call.claim("k", fingerprint=same, owner="me", event={"id": "evt_1"})["token"]
        expect(shown(same), ["event", "owner"])
        expect(shown(other), [])
        call("POST", "/park", {"key": "k", "token": token, "error": "timeout"})
        expect(shown(same), ["error", "event", "owner"])
        expect(shown(other), [])
        call("POST", "/complete", {"key": "k", "token": token, "result": {"body": "paid"}})
        expect(shown(same), ["event", "result"])
        expect(shown(other), [])


def test_release_park_resolve(cli):
    with api(cli) as (_, call):
        token = call.claim("a")["token"]
        expect(call("POST", "/release", {"key": "a", "token": token, "error": "no luck"}).json["outcome"], "applied")
        expect(call.claim("a")["attempt"], 2)
        token = call.claim("b")["token"]
        call("POST", "/resolve", {"key": "b", "as": "retry"}).is_problem(409, "lease has not lapsed")
        expect(call("POST", "/park", {"key": "b", "token": token, "error": "timeout"}).json["outcome"], "applied")
        parked = call("GET", "/keys?state=parked").json
        expect([record["key"] for record in parked["keys"]], ["b"])
        story = call("GET", "/keys/default/default/b/explain").json
        expect((story["state"], story["next_claim"]), ("parked", "parked"))
        expect_in("timeout", " ".join(story["explanation"]))
        # What it suggests can be sent as it is.
        action = next(action for action in story["actions"] if action["body"]["as"] == "done")
        done = call(action["method"], action["path"].removeprefix(V1), {**action["body"], "result": {"body": "by hand"}})
        expect(done.json["outcome"], "applied")
        expect(call.claim("b")["result"]["body"], "by hand")
        expect(call("GET", "/keys?state=parked").json["keys"], [])
        call("POST", "/resolve", {"key": "absent", "as": "done"}).is_problem(404)
        token = call.claim("c")["token"]
        expect(call("POST", "/resolve", {"key": "c", "as": "retry", "force": True}).json["outcome"], "applied")
        expect(call("GET", "/keys/default/default/c").json["state"], "failed")
        # The token is the record's until the next claim: its former holder has done the work after all.
        expect(call("POST", "/complete", {"key": "c", "token": token}).json["outcome"], "applied")


def test_check_and_fingerprints(cli):
    with api(cli) as (_, call):
        one, two = "11" * 32, "22" * 32
        expect(call("POST", "/check", {"key": "e", "fingerprint": one}).json["outcome"], "acquired")
        expect(call("POST", "/check", {"key": "e", "fingerprint": one}).json["outcome"], "replay")
        expect(call("POST", "/check", {"key": "e", "fingerprint": two}).json["outcome"], "mismatch")
        told = call("POST", "/check", {"key": "e"}).json
        expect((told["outcome"], told["unverified"]), ("replay", True))
        forever = call("POST", "/check", {"key": "f", "ttl_ms": None}).json
        expect(forever["expires_at"], None)


def test_a_batch_is_answered_one_by_one(cli):
    with api(cli) as (_, call):
        keys = [{"key": f"k{number}"} for number in range(50)] + [{"key": "k1"}]
        answers = call("POST", "/claim", keys).json
        expect([answer["outcome"] for answer in answers], ["acquired"] * 50 + ["in_progress"])
        ends = [{"key": answer["key"], "token": answer["token"]} for answer in answers[:50]]
        ends[7]["token"] += 1000
        told = call("POST", "/complete", ends).json
        expect([answer.get("outcome") for answer in told], ["applied"] * 7 + [None] + ["applied"] * 42)
        expect(told[7]["failure"], "fenced")
        expect(call("POST", "/claim", []).json, [])
        resolved = call("POST", "/resolve", [{"key": "k7", "as": "done", "force": True}, {"key": "none", "as": "done"}])
        expect([answer["outcome"] for answer in resolved.json], ["applied", "absent"])
        too_many = [{"key": str(number)} for number in range(1025)]
        call("POST", "/claim", too_many).is_problem(413, "limit 1024")


def test_bytes_that_are_no_text(cli):
    with api(cli) as (_, call):
        key = base64.b64encode(b"\xff\xfe\x01").decode()
        body = base64.b64encode(bytes(range(256))).decode()
        first = call("POST", "/claim", {"key_base64": key}).json
        expect((first["key_base64"], "key" in first), (key, False))
        call("POST", "/complete", {"key_base64": key, "token": first["token"], "result": {"body_base64": body}})
        record = call("GET", "/keys/default/default/%FF%FE%01").json
        expect((record["key_base64"], record["result"]["body_base64"]), (key, body))
        look = {"op": "lookup", "key_base64": base64.b64encode(b"\0").decode()}
        expect(call("POST", "/operations", look).json["outcome"], "absent")
        expect(call("DELETE", "/keys/default/default/%ff%fe%01").status, 204)
        call("GET", "/keys/default/default/%FF%FE%01").is_problem(404)
        slash = call.claim("a/b c%", tenant="té", group="g+h")
        expect(slash["outcome"], "acquired")
        expect(call("GET", "/keys/t%C3%A9/g+h/a%2Fb%20c%25").json["key"], "a/b c%")


def test_a_scope_has_one_slash(cli):
    """No claim makes a record whose scope the gateway refuses, and that settings and --scope cannot name."""
    with api(cli) as (_, call):
        for name, value, why in (("tenant", "a/b", "the tenant has a slash"), ("group", "a/", "the group has a slash"), ("group", "*", "stands for all")):
            for path in ("/claim", "/check"):
                call("POST", path, {"key": "k", name: value}).is_problem(400, why)
            call("POST", "/operations", {"op": "set", "key": "k", name: value}).is_problem(400)
        expect(call("POST", "/operations", {"op": "lookup", "key": "k", "tenant": "a/b"}).json["outcome"], "absent")


def test_scope_settings_apply(cli):
    config = "scopes:\n  - {scope: default/slow, lease: 2h, ttl: 3d, on_lapse: park}\n"
    with api(cli, config) as (_, call):
        token = call.claim("k", group="slow")["token"]
        record = call("GET", "/keys/default/slow/k").json
        expect((record["ttl_ms"], record["on_lapse"]), (3 * 86400000, "park"))
        assert record["lease_left_ms"] > 3600000, record
        call("POST", "/complete", {"key": "k", "group": "slow", "token": token})
        expect(call("POST", "/check", {"key": "c", "group": "slow"}).json["outcome"], "acquired")
        expect(call("GET", "/keys/default/slow/c").json["ttl_ms"], 3 * 86400000)


# ------------------------------------------------------------------ looking on


def test_listing_in_pages(cli):
    with api(cli) as (_, call):
        names = {f"order-{number:03}" for number in range(250)}
        call("POST", "/check", [{"key": name, "group": "orders"} for name in sorted(names)])
        call("POST", "/check", [{"key": f"other-{number}"} for number in range(30)])
        found, cursor, pages = [], None, 0
        while pages == 0 or cursor:
            query = "/keys?group=orders&prefix=order-&state=done&limit=100" + (f"&cursor={cursor}" if cursor else "")
            page = call("GET", query).json
            found += [record["key"] for record in page["keys"]]
            cursor, pages = page["cursor"], pages + 1
            assert pages < 10, pages
        expect(set(found), names)
        expect(call("GET", "/keys?state=failed").json, {"keys": [], "cursor": None})
        cursor = call("GET", "/keys?limit=10").json["cursor"]
        call("GET", f"/keys?limit=10&group=orders&cursor={cursor}").is_problem(400, "start again")
        call("GET", f"/keys?cursor={cursor[:-1]}0{cursor[-1]}").is_problem(400, "start again")
        call("GET", "/keys?cursor=zz").is_problem(400, "cursor")
        record = call("GET", "/keys?prefix=order-000&whole=true").json["keys"][0]
        expect(record["result"], None)


def test_figures_reset_and_gc(cli):
    with api(cli) as (_, call):
        call("POST", "/check", [{"key": "a"}, {"key": "a"}, {"key": "b", "ttl_ms": 1}])
        stats = call("GET", "/stats").json
        expect((stats["decisions"]["acquired"], stats["decisions"]["replay"], stats["since"]), (2, 1, None))
        expect(stats["hit_rate"], 0.3333)
        expect([(row["tenant"], row["decisions"]["replay"]) for row in stats["last_24h"]], [("default", 1)])
        since = call("POST", "/stats/reset").json["since"]
        stats = call("GET", "/stats").json
        expect((stats["decisions"]["acquired"], stats["hit_rate"], stats["since"]), (0, None, since))
        expect(call("GET", "/stats?hours=true").json["hours"][0]["decisions"]["acquired"], 2)
        call("POST", "/check", {"key": "a"})
        expect(call("GET", "/stats").json["decisions"]["replay"], 1)
        until(lambda: call("POST", "/gc").json["remaining"] == 1, "what has expired is swept")
        expect(call("POST", "/gc", {"count_max": 5}).json["removed"], 0)


def test_recent_duplicates_of_every_door(cli):
    with upstream() as service, api(cli, url=service.url) as (daemon, call):
        expect(post(daemon.gateway, "1").decision, "acquired")
        expect(post(daemon.gateway, "1").decision, "replay")
        post(daemon.gateway, "1", b'{"total":43}').is_problem(422)
        call.claim("held", group="api")
        call.claim("held", group="api")
        told = call("GET", "/duplicates").json
        expect(told["total"], 3)
        by_cause = {note["cause"]: note for note in told["duplicates"]}
        expect(sorted(by_cause), ["concurrent", "other_payload", "redelivered"])
        again = by_cause["redelivered"]
        event = {"id": "1", "type": "order.paid", "source": "/shop"}
        expect((again["door"], again["event"], again["decision"]), ("gateway", event, "replay"))
        expect(again["original"]["event"], event)
        record = call("GET", "/keys?limit=5&group=default").json["keys"][0]
        expect((again["key"], again["original"]["first_seen"]), (record["key"], record["first_seen"]))
        assert again["age_ms"] >= 0, again
        expect((by_cause["concurrent"]["door"], by_cause["concurrent"]["key"]), ("admin", "held"))
        only = call("GET", "/duplicates?group=api&limit=1").json
        expect([note["key"] for note in only["duplicates"]], ["held"])


# ------------------------------------------------------------------ the stream


class Listener:
    """Reads events in a thread of its own."""

    def __init__(self, call, query="", last_id=None):
        self.connection = http.client.HTTPConnection(*call.to, timeout=TIMEOUT_SECONDS)
        headers = {"Authorization": f"Bearer {call.token}"}
        if last_id:
            headers["Last-Event-ID"] = last_id
        self.connection.request("GET", f"{V1}/events{query}", headers=headers)
        self.socket = self.connection.sock
        self.response = self.connection.getresponse()
        expect(self.response.status, 200)
        expect(self.response.getheader("content-type"), "text/event-stream")
        self.events = []
        self.thread = threading.Thread(target=self.read, daemon=True)
        self.thread.start()

    def read(self):
        event = {}
        try:
            for line in self.response:
                name, _, value = line.decode().rstrip("\n").partition(": ")
                if name:
                    event[name] = value
                elif event:
                    self.events.append(event)
                    event = {}
        except (http.client.HTTPException, OSError, AttributeError, ValueError):
            pass

    @property
    def decisions(self):
        events = [event for event in list(self.events) if event.get("event") == "decision"]
        return [(data["decision"], data["key"]) for data in (json.loads(event["data"]) for event in events)]

    def count(self, kind):
        return sum(event.get("event") == kind for event in list(self.events))

    def close(self):
        # First, or the closer waits for the reader, until the next heartbeat.
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.connection.close()
        self.response.close()


def test_decisions_as_they_are_made(cli):
    with api(cli) as (_, call):
        listener = Listener(call)
        until(lambda: listener.events, "the stream has begun")
        call("POST", "/check", [{"key": "a"}, {"key": "a"}])
        until(lambda: len(listener.decisions) == 2, "both are told")
        expect(listener.decisions, [("acquired", "a"), ("replay", "a")])
        last = listener.events[-1]
        schema = {"$ref": "#/components/schemas/Decision"}
        expect(schema_check.faults(schema, json.loads(last["data"]), call.description), [])
        listener.close()
        # A client that reconnects continues after what it had.
        call("POST", "/check", [{"key": "b"}, {"key": "a"}])
        second = Listener(call, last_id=last["id"])
        until(lambda: len(second.decisions) == 2, "what was missed is told")
        expect(second.decisions, [("acquired", "b"), ("replay", "a")])
        second.close()
        only = Listener(call, "?decision=mismatch,replay&group=g")
        call("POST", "/check", [{"key": "c", "group": "g"}, {"key": "c", "group": "g"}, {"key": "a"}])
        until(lambda: only.decisions, "one is told")
        expect(only.decisions, [("replay", "c")])
        only.close()
        # An id of another process: all that there is is new.
        other = Listener(call, "?last_event_id=00000000-7")
        until(lambda: len(other.decisions) >= 6, "all are told")
        other.close()
        call("GET", "/events?decision=replays").is_problem(400, "replays")


def test_the_stream_ends_with_the_daemon(cli):
    with api(cli) as (_, call):
        listener = Listener(call)
        until(lambda: listener.events, "the stream has begun")
    listener.thread.join(TIMEOUT_SECONDS)
    assert not listener.thread.is_alive()


# ------------------------------------------------------------------ audit and settings


def test_every_change_is_audited(cli):
    path = cli.folder / "audit.log"
    with api(cli, f"log: {{audit: '{path}'}}\n") as (daemon, call):
        token = call.claim("a")["token"]
        call("DELETE", "/keys/default/default/a").is_problem(409, "force=true")
        expect(call("DELETE", "/keys/default/default/a?force=true").status, 204)
        call("POST", "/complete", {"key": "a", "token": token}).is_problem(409)
        call.claim("p")
        call("POST", "/resolve", {"key": "p", "as": "done", "force": True})
        call("POST", "/stats/reset")
        call("POST", "/gc")
        call("PATCH", "/config", {"defaults": {"ttl": "2h"}})
        entries = call("GET", "/audit").json["entries"]
        actions = ["config.patch", "gc", "stats.reset", "resolve", "forget.force", "forget"]
        expect([entry["action"] for entry in entries], actions)
        expect({entry["who"] for entry in entries}, {"admin"})
        expect([entry["outcome"] for entry in entries], ["applied"] * 5 + ["busy"])
        forced = entries[4]
        expect((forced["key"], forced["before"]["state"], forced["after"]), ("a", "claimed", "absent"))
        expect((entries[3]["before"]["state"], entries[3]["after"]), ("claimed", "done"))
        expect(entries[0]["detail"], {"defaults": {"ttl": "2h"}})
        expect([entry["number"] for entry in call("GET", "/audit?before=3&limit=1").json["entries"]], [2])
        until(lambda: path.exists() and path.read_text().count("\n") == 6, "the file has them")
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        expect([line["action"] for line in lines], actions[::-1])
        expect(lines, entries[::-1])
        expect(path.stat().st_mode & 0o777, 0o600)


def test_changes_are_lines_of_the_log(cli):
    with api(cli) as (daemon, call):
        call("POST", "/check", {"key": "a"})
        expect(call("DELETE", "/keys/default/default/a").status, 204)
        line = daemon.wait_for(lambda line: json.loads(line) if '"msg":"audit"' in line else None)
        expect((line["who"], line["action"], line["idempotency_key"], line["before"]), ("admin", "forget", "a", "done"))


def test_settings_change_while_it_runs(cli):
    with api(cli, "defaults: {ttl: 1h}\n") as (daemon, call):
        runtime = daemon.config.parent / "conf.d" / "99-runtime.yaml"
        config = call("GET", "/config").json
        expect(config["defaults"]["ttl"], "1h")
        expect({token["hash"] for token in config["auth"]["tokens"]}, {"***"})
        changed = call("PATCH", "/config", {"defaults": {"ttl": "2h"}, "log": {"level": "debug"}}).json
        expect((changed["defaults"]["ttl"], changed["log"]["level"]), ("2h", "debug"))
        call("POST", "/check", {"key": "a"})
        expect(call("GET", "/keys/default/default/a").json["ttl_ms"], 7200000)
        # Patches add up; null takes one back.
        changed = call("PATCH", "/config", {"log": {"level": None, "rate": 7}}).json
        expect((changed["defaults"]["ttl"], changed["log"]["level"], changed["log"]["rate"]), ("2h", "info", 7))
        expect(json.loads(runtime.read_text()), {"defaults": {"ttl": "2h"}, "log": {"rate": 7}})
        before = runtime.read_text()
        call("PATCH", "/config", {"defaults": {"tll": "2h"}}).is_problem(422, "did you mean 'ttl'?")
        call("PATCH", "/config", {"defaults": {"ttl": "soon"}}).is_problem(422, "99-runtime.yaml:1:")
        call("PATCH", "/config", {"loops": 3}).is_problem(409, "cannot change 'loops' while the daemon runs")
        call("PATCH", "/config", []).is_problem(400, "object")
        expect(runtime.read_text(), before)
        expect(call("GET", "/config").json, changed)
        runtime.write_text("log:\n  rate: 9\n")
        call("PATCH", "/config", {"log": {"rate": 8}}).is_problem(409, "another file")


# ------------------------------------------------------------------ commands with --server


def test_commands_with_a_server(cli):
    """Every command that takes a store takes a daemon, and is told the same."""
    secret, reader = cli.folder / "token", cli.folder / "reader"
    secret.write_text(TOKENS["admin"] + "\n")
    reader.write_text(TOKENS["read"] + "\n")
    with api(cli) as (daemon, call):
        url = f"http://127.0.0.1:{daemon.admin[1]}"
        there = ["--server", url, "--auth-file", str(secret)]
        expect(cli.run("check", "a", *there).out, "first\n")
        expect(cli.run("check", "a", "-o", "json", *there, code=1).json["outcome"], "replay")
        expect(call("GET", "/keys/default/default/a").json["origin"], "check")
        token = cli.run("claim", "b", "--scope", "t/g", "-o", "json", *there).json["token"]
        cli.run("claim", "b", "--scope", "t/g", *there, code=75)
        cli.run("renew", "b", "--scope", "t/g", "--token", str(token), *there)
        cli.run("complete", "b", "--scope", "t/g", "--token", str(token), *there)
        cli.run("release", "b", "--scope", "t/g", "--token", str(token), *there, code=77)
        expect(cli.run("lookup", "b", "--scope", "t/g", "-o", "json", *there).json["state"], "done")
        expect({line["key"] for line in cli.run("keys", "-o", "json", *there).lines}, {"a", "b"})
        expect(cli.run("stats", "-o", "json", *there).json["keys"], 2)
        token = cli.run("claim", "p", "-o", "json", *there).json["token"]
        cli.run("park", "p", "--token", str(token), *there)
        expect_in("parked", cli.run("explain", "p", *there).out)
        cli.run("resolve", "p", "--done", *there)
        cli.run("gc", *there)
        cli.run("forget", "a", *there)
        cli.run("lookup", "a", *there, code=1)
        command = ["run", "--key", "r", *there, "--", "sh", "-c", f"echo ran >> {cli.folder}/runs; echo out"]
        expect([cli.run(*command).out, cli.run(*command).out], ["out\n", "out\n"])
        expect((cli.folder / "runs").read_text(), "ran\n")
        expect([entry["action"] for entry in call("GET", "/audit").json["entries"]][0], "forget")
        # By variables; and what is wrong.
        named = {"HAPAX_SERVER": url, "HAPAX_AUTH_FILE": str(reader), "HAPAX_STORE": None}
        expect(cli.run("lookup", "b", "--scope", "t/g", "-o", "json", env=named).json["state"], "done")
        cli.run("check", "c", env=named, code=None).says("without an API token")
        rows = b"key,expires_at\nc,2999-01-01\n"
        cli.run("store", "import", "--from", "-", "--write", env=named, input=rows, code=69).says("the role 'write'")
        cli.run("keys", "--server", url, code=None).says("401", "token")
        cli.run("keys", *there, "--store", "memory:", code=64).says("cannot use --store together with --server")
        cli.run("keys", "--server", "localhost:8099", code=64).says("is not the URL of a daemon", "http://HOST:8099")
        cli.run("keys", "--server", f"{url}?tokn_file=x", code=None).says("tokn_file")
        cli.run("keys", *there[:2], "--auth-file", "/nowhere", code=None).says("/nowhere")
    cli.run("check", "d", "--server", url, code=69)


# ------------------------------------------------------------------ who may


def test_roles(cli):
    with api(cli) as (daemon, call):
        reader, writer, stranger = Api(daemon, "read"), Api(daemon, "write"), Api(daemon, "")
        writer("POST", "/check", {"key": "a"})
        reader("POST", "/check", {"key": "b"}).is_problem(403, "write")
        reader("GET", "/keys/default/default/b").is_problem(404)
        expect(stranger("GET", "/keys").is_problem(401).headers["www-authenticate"], 'Bearer realm="hapax"')
        expect(stranger("GET", "/openapi.json").status, 200)
        Api(daemon, "token-of-nobody-0123456789abcdef")("GET", "/keys").is_problem(401)
        for method, path, body in (
            ("POST", "/stats/reset", None),
            ("POST", "/gc", None),
            ("PATCH", "/config", {}),
            ("DELETE", "/keys/default/default/a?force=true", None),
            ("POST", "/operations", [{"op": "forget", "key": "a", "force": True}]),
        ):
            writer(method, path, body).is_problem(403, "admin")
        expect(reader("POST", "/operations", {"op": "lookup", "key": "a"}).json["outcome"], "found")
        reader("POST", "/operations", {"op": "forget", "key": "a"}).is_problem(403, "write")
        token = writer.claim("c")["attempt_id"]
        look = {"op": "lookup", "key": "c", "record": True}
        expect(writer("POST", "/operations", look).json["record"]["attempt_id"], token)
        expect("attempt_id" in reader("POST", "/operations", look).json["record"], False)
        expect("attempt_id" in reader("GET", "/keys?whole=true&prefix=c").json["keys"][0], False)


def test_a_token_of_one_tenant(cli):
    with api(cli) as (daemon, call):
        acme = Api(daemon, TENANT_TOKEN)
        expect(acme("POST", "/check", {"key": "a", "tenant": "acme"}).json["outcome"], "acquired")
        call("POST", "/check", [{"key": "b", "tenant": "other"}, {"key": "b", "tenant": "other"}])
        acme("POST", "/check", {"key": "a"}).is_problem(403, "acme")
        acme("POST", "/check", [{"key": "c", "tenant": "acme"}, {"key": "c", "tenant": "other"}]).is_problem(403)
        call("GET", "/keys/acme/default/c").is_problem(404)
        acme("GET", "/keys/other/default/b").is_problem(403)
        acme("DELETE", "/keys/other/default/b").is_problem(403)
        acme("GET", "/keys/other/default/b/explain").is_problem(403)
        expect([record["key"] for record in acme("GET", "/keys").json["keys"]], ["a"])
        acme("GET", "/keys?tenant=other").is_problem(403)
        expect(acme("GET", "/duplicates").json["duplicates"], [])
        for path in ("/stats", "/audit", "/config"):
            acme("GET", path).is_problem(403, "acme")


def test_read_only_until_a_token_is_configured(cli):
    with serve(cli, NOWHERE) as daemon:
        stranger = Api(daemon, "")
        expect(stranger("GET", "/keys").json["keys"], [])
        stranger("POST", "/check", {"key": "a"}).is_problem(403, "auth.tokens")


def test_without_a_file_settings_stay(cli):
    hashed = digest(TOKENS["admin"])
    with serve(cli, NOWHERE, env=cli.env(HAPAX_STORE=None)) as daemon:
        expect(Api(daemon, "")("GET", "/config").json["listen"]["gateway"], "127.0.0.1:0")
        assert hashed not in get(daemon.admin, f"{V1}/config").body.decode()


# ------------------------------------------------------------------ what is wrong


BAD_BODIES = (
    (b"", 400, "line 1, column 1"),
    (b"{", 400, "line 1"),
    (b'{"key":"a",\n  "key":"b"}', 400, "line 2"),
    (b'{"key":"\xff"}', 400, "UTF-8"),
    (b"[[]]", 400, "object"),
    (b'"key"', 400, "object"),
    (b"{}", 400, "needs the member 'key'"),
    (b'{"kye":"a"}', 400, "did you mean 'key'?"),
    (b'{"key":"a","token":1}', 400, "unknown member 'token'"),
    (b'{"key":7}', 400, "'key' must be a string"),
    (b'{"key":""}', 400, "1 to 1024 bytes"),
    (b'{"key":"' + b"k" * 1025 + b'"}', 400, "1 to 1024 bytes"),
    (b'{"key":"a\\u0007"}', 400, "control character"),
    (b'{"key_base64":"AA"}', 400, "not Base64"),
    (b'{"key":"a","key_base64":"AAAA"}', 400, "exclude each other"),
    (b'{"key":"a","lease_ms":1.5}', 400, "whole number"),
    (b'{"key":"a","lease_ms":0}', 400, "from 1 to"),
    (b'{"key":"a","lease_ms":99999999999999999999}', 400, "from 1 to"),
    (b'{"key":"a","ttl_ms":"1h"}', 400, "whole number"),
    (b'{"key":"a","on_lapse":"explode"}', 400, "one of retry, park"),
    (b'{"key":"a","fingerprint":"12"}', 400, "64 digits"),
    (b'{"key":"a","attempt_id":"' + b"0" * 32 + b'"}', 400, "malformed"),
    (b'{"key":"a","event":"evt_1"}', 400, "line 1, column 20: an event must be an object"),
    (b'{"key":"a","event":{"id":7}}', 400, "line 1, column 26: 'id' must be a string"),
    (b'{"key":"a","event":{"id":"a\\u0000b"}}', 400, "line 1, column 26: 'id' must be UTF-8 without NUL"),
    (b'{"key":"a","event":{"id_base64":"/w=="}}', 400, "column 33: 'id_base64' must be UTF-8 without NUL"),
    (b'{"key":"a","event":{"time":"yesterday"}}', 400, "line 1, column 28: 'time' must be a time such as"),
    (b'{"key":"a","event":{"kind":"x"}}', 400, "an event has an unknown member 'kind'"),
    (b"[" * 200 + b"]" * 200, 413, "deep"),
)


def test_bad_bodies(cli):
    with api(cli) as (_, call):
        for body, status, word in BAD_BODIES:
            call("POST", "/claim", body).is_problem(status, word)
        expect(call("GET", "/keys").json["keys"], [])
        call("POST", "/complete", {"key": "a"}).is_problem(400, "needs the member 'token'")
        call("POST", "/complete", {"key": "a", "token": 1, "result": {"bdoy": ""}}).is_problem(400, "did you mean 'body'?")
        call("POST", "/resolve", {"key": "a"}).is_problem(400, "needs the member 'as'")
        call("POST", "/gc", {"count_mx": 1}).is_problem(400, "did you mean 'count_max'?")
        call("POST", "/claim", {"key": "a"}, Content_Type="text/plain").is_problem(415, "application/json")
        call("POST", "/claim", {"key": "a"}, Content_Type=None).is_problem(415)


def test_bad_lines(cli):
    with api(cli) as (_, call):
        for path, word in (
            ("/keys?limt=3", "did you mean 'limit'?"),
            ("/keys?limit=0", "from 1 to 1000"),
            ("/keys?limit=x", "whole number"),
            ("/keys?state=absent", "one of claimed"),
            ("/keys?limit=1&limit=2", "twice"),
            ("/keys?prefix=%zz", "percent"),
            ("/keys?expired=1", "one of false, true"),
            ("/keys/default/default/%4", "hexadecimal"),
            ("/keys/default/default/" + "k" * 1025, "limit 1024"),
            ("/keys/" + "t" * 129 + "/default/k", "limit 128"),
            ("/stats?verbose", "unknown query parameter 'verbose'"),
        ):
            call("GET", path).is_problem(400, word)
        for path in ("/api", "/api/", "/api/v1", "/api/v2/keys", f"{V1}/kyes", f"{V1}/keys/a", f"{V1}/keys//b/c", f"{V1}/keys/"):
            call.raw("GET", path).is_problem(404, "openapi.json")
        for absent in ("alerts", "advice", "outbox"):
            call.raw("GET", f"{V1}/{absent}").is_problem(404)
        for method, path, allow in (
            ("GET", "/claim", "POST"),
            ("POST", "/keys", "GET, HEAD"),
            ("PUT", "/keys/a/b/c", "GET, HEAD, DELETE"),
            ("DELETE", "/config", "GET, HEAD, PATCH"),
            ("HEAD", "/events", "GET"),
        ):
            reply = call.raw(method, V1 + path)
            expect((reply.status, reply.headers["allow"]), (405, allow), f"{method} {path}")
        expect(call.raw("HEAD", f"{V1}/stats").status, 200)


def test_a_body_that_is_too_large(cli):
    with api(cli) as (daemon, call):
        connection = http.client.HTTPConnection(*daemon.admin, timeout=TIMEOUT_SECONDS)
        connection.putrequest("POST", f"{V1}/complete")
        connection.putheader("Content-Length", str(1 << 30))
        connection.endheaders()
        expect(Reply(connection.getresponse()).is_problem(413).status, 413)
        connection.close()
        # The largest result that a store keeps fits, and one above what this store keeps is left out.
        token = call.claim("large")["token"]
        body = base64.b64encode(bytes(16 << 20)).decode()
        done = call("POST", "/complete", {"key": "large", "token": token, "result": {"body_base64": body}})
        expect(done.json["outcome"], "applied")
        expect(call("GET", "/keys/default/default/large").json["result"]["omitted_bytes"], 16 << 20)


# ------------------------------------------------------------------ the description


def test_every_row_is_described_and_answers(cli):
    """Each path and method of the description, asked without anything: it answers as it says, and so do its roles."""
    with api(cli) as (daemon, call):
        rows = 0
        for path, methods in call.description["paths"].items():
            for method, row in methods.items():
                rows += 1
                real = path.replace("{tenant}", "t").replace("{group}", "g").replace("{key}", "k").replace("{id}", "i").replace("{name}", "n")
                if row["operationId"] == "listen":
                    continue
                body = {} if "requestBody" in row else None
                reply = call.raw(method.upper(), real, body)
                call.check(method.upper(), real, reply)
                if row["x-hapax-role"] != "none":
                    Api(daemon, "").raw(method.upper(), real, body).is_problem(401)
                expect(row["summary"][-1] != "." and row["summary"][0].isupper(), True, row["summary"])
        expect(rows, 31)
        expect(call.description["openapi"], "3.1.0")
        ids = [row["operationId"] for methods in call.description["paths"].values() for row in methods.values()]
        expect(len(set(ids)), len(ids))
        for schema in call.description["components"]["schemas"].values():
            assert set(schema) <= schema_check.KNOWN, schema
