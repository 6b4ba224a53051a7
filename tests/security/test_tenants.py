"""A token of one tenant sees that tenant: every path of the admin listener, one after the other."""

import hashlib
import json
import re

from api import api, expect_replayed, proxy
from api import ask as ask_api
from api import post as pay
from daemon import post, request, serve, upstream
from harness import expect, until
from redis_wire import OFF, Wire, door

SECRET = "initech-42"

# What a token of the tenant acme with the role admin gets. own: only what is acme's; 403: the page cannot be divided;
# open: for everybody, and tells nothing of any tenant.
VERDICTS = {
    "POST /api/v1/claim": "own",
    "POST /api/v1/renew": "own",
    "POST /api/v1/complete": "own",
    "POST /api/v1/release": "own",
    "POST /api/v1/park": "own",
    "POST /api/v1/check": "own",
    "POST /api/v1/resolve": "own",
    "POST /api/v1/operations": "own",
    "GET /api/v1/keys": "own",
    "GET /api/v1/keys/{tenant}/{group}/{key}": "own",
    "DELETE /api/v1/keys/{tenant}/{group}/{key}": "own",
    "GET /api/v1/keys/{tenant}/{group}/{key}/explain": "own",
    "GET /api/v1/stats": 403,
    "GET /api/v1/conditions": 403,
    "POST /api/v1/stats/reset": 403,
    "POST /api/v1/gc": 403,
    "GET /api/v1/duplicates": "own",
    "GET /api/v1/events": "own",
    "GET /api/v1/outbox": 403,
    "POST /api/v1/outbox/{id}/retry": 403,
    "POST /api/v1/outbox/{id}/park": 403,
    "GET /api/v1/consumers": 403,
    "POST /api/v1/consumers/{name}/pause": 403,
    "POST /api/v1/consumers/{name}/resume": 403,
    "POST /api/v1/consumers/{name}/rebuild": 403,
    "POST /api/v1/consumers/{name}/retry": 403,
    "GET /api/v1/consumers/{name}/dead-letters": 403,
    "GET /api/v1/audit": 403,
    "GET /api/v1/config": 403,
    "PATCH /api/v1/config": 403,
    "GET /openapi.json": "open",
    "GET /metrics": 403,
    "GET /actuator/deduplication": 403,
    "GET /livez": "open",
    "GET /readyz": "open",
    "GET /healthz": "open",
    "GET /startupz": "open",
}

OPERATIONS = {"claim", "renew", "complete", "release", "park", "check", "resolve", "operations"}


def make_token(cli, *options):
    made = cli.run("config", "token", "-o", "json", "--role", "admin", *options).json
    return made["token"], json.dumps(made["row"])


def ask(daemon, token, method, path, body=None):
    headers = {"Authorization": f"Bearer {token}"}
    if body is not None:
        headers["Content-Type"] = "application/json"
    return request(daemon.admin, method, path, headers, None if body is None else json.dumps(body).encode())


def two_tenants(cli):
    (all_token, all_row), (own_token, own_row) = make_token(cli, "--name", "all"), make_token(cli, "--name", "a", "--tenant", "acme")
    return all_token, own_token, f"auth:\n  tokens:\n    - {all_row}\n    - {own_row}\n"


def fill(daemon, token):
    for tenant, key in (("acme", "mine"), ("initech", SECRET)):
        for _ in range(2):
            reply = ask(daemon, token, "POST", "/api/v1/check", {"tenant": tenant, "group": "g", "key": key})
            expect(reply.status, 200)


def target(path, tenant, key):
    for name, value in (("tenant", tenant), ("group", "g"), ("key", key), ("id", "1"), ("name", "orders")):
        path = path.replace("{" + name + "}", value)
    return path


def body_of(path, tenant, key):
    name = path.rsplit("/", 1)[1]
    if name not in OPERATIONS:
        return {} if name in ("config",) else None
    body = {"tenant": tenant, "group": "g", "key": key}
    if name in ("renew", "complete", "release", "park"):
        body["token"] = 1
    if name == "resolve":
        body["as"] = "retry"
    if name == "operations":
        body["op"] = "lookup"
    return body


def test_every_path_has_a_verdict(cli):
    """What is added to the API is added here."""
    with serve(cli, None, "--gateway", "off") as daemon:
        paths = request(daemon.admin, "GET", "/openapi.json").json["paths"]
        known = {f"{method.upper()} {path}" for path, methods in paths.items() for method in methods if method != "parameters"}
        missing = {row for row in known if row not in VERDICTS}
        expect(missing, set(), "paths without a verdict")


def test_a_token_of_one_tenant(cli):
    """Nothing of another tenant: no key, no name, no figure."""
    all_token, own_token, config = two_tenants(cli)
    with serve(cli, None, "--gateway", "off", config=config) as daemon:
        fill(daemon, all_token)
        for row, verdict in VERDICTS.items():
            method, path = row.split()
            if path == "/api/v1/events":
                continue
            foreign = ask(daemon, own_token, method, target(path, "initech", SECRET), body_of(path, "initech", SECRET))
            if verdict == 403 or "{tenant}" in path or path.rsplit("/", 1)[1] in OPERATIONS:
                expect(foreign.status, 403, f"{row} of another tenant")
            assert SECRET.encode() not in foreign.body.replace(target(path, "initech", SECRET).encode(), b""), f"{row}: {foreign.body}"
            if verdict != 403 and method == "GET":
                own = ask(daemon, own_token, method, target(path, "acme", "mine"))
                expect(own.status, 200, row)
                assert SECRET.encode() not in own.body and b"initech" not in own.body, f"{row}: {own.body}"
        for path in ("/api/v1/keys", "/api/v1/duplicates", "/api/v1/events"):
            ask(daemon, own_token, "GET", path + "?tenant=initech").is_problem(403, "tenant 'acme'")
        # Nothing was changed, and a token for all tenants sees everything.
        expect(ask(daemon, all_token, "GET", f"/api/v1/keys/initech/g/{SECRET}").status, 200)
        for path in ("/metrics", "/actuator/deduplication", "/api/v1/stats"):
            expect(ask(daemon, all_token, "GET", path).status, 200, path)


def test_metrics_that_are_open_are_for_everybody(cli):
    """An operator who opens them has decided that; a token takes nothing away."""
    all_token, own_token, config = two_tenants(cli)
    with serve(cli, None, "--gateway", "off", config=config + "  open_metrics: true\n") as daemon:
        fill(daemon, all_token)
        for token in (all_token, own_token):
            expect(ask(daemon, token, "GET", "/metrics").status, 200)
        expect(ask(daemon, own_token, "GET", "/actuator/deduplication").status, 403)


def test_info_tells_nothing_of_other_tenants(cli):
    """The Redis listener has one figure for all keys: not for a user of one tenant among several."""
    rows = "".join(
        f"    - {{name: {name}, password_sha256: {hashlib.sha256(b'p').hexdigest()}, tenant: {name}}}\n" for name in ("acme", "initech")
    )
    with serve(cli, None, *OFF, config="resp:\n  users:\n" + rows) as daemon:
        with Wire(door(daemon)) as wire:
            expect(wire.ask("AUTH", "initech", "p"), b"+OK\r\n")
            for number in range(7):
                expect(wire.ask("SET", f"k{number}", "v"), b"+OK\r\n")
        with Wire(door(daemon)) as wire:
            expect(wire.ask("AUTH", "acme", "p"), b"+OK\r\n")
            info = wire.ask("INFO").decode()
            assert "db0:" not in info and re.search(r"hapax_done:0\b", info), info
            expect(wire.ask("DBSIZE"), b":0\r\n")


def test_new_keys_of_a_tenant_have_a_limit(cli):
    """store.max_keys_per_tenant: what is there goes on at every listener, what is new waits; other tenants are not held up."""
    all_token, _, config = two_tenants(cli)
    rows = "".join(
        f"    - {{name: {name}, password_sha256: {hashlib.sha256(b'p').hexdigest()}, tenant: {name}, group: g}}\n" for name in ("acme", "initech")
    )
    config += f"resp:\n  users:\n{rows}store:\n  max_keys_per_tenant: 5\n"
    config += "gateway:\n  routes:\n    - {path: /acme, tenant: acme, group: g}\n    - {path: /initech, tenant: initech, group: g}\n"
    with upstream() as service, serve(cli, service.url, "--resp", "127.0.0.1:0", config=config) as daemon:
        expect([post(daemon.gateway, f"e{number}", path="/acme").status for number in range(4)], [200] * 4)
        claim = {"tenant": "acme", "group": "g", "key": "held"}
        token = ask(daemon, all_token, "POST", "/api/v1/claim", claim).json["token"]
        new = iter(range(1000000))
        until(lambda: post(daemon.gateway, f"new{next(new)}", path="/acme").status == 503, "the tenant is above its limit")
        reply = post(daemon.gateway, "one-more", path="/acme")
        expect((reply.status, reply.headers["retry-after"]), (503, "1"))
        # Replays and ends of claims.
        reply = post(daemon.gateway, "e0", path="/acme")
        expect((reply.status, reply.decision), (200, "replay"))
        ended = ask(daemon, all_token, "POST", "/api/v1/complete", {**claim, "token": token})
        expect(ended.status, 200, ended.body)
        # The API and the Redis listener.
        for name in ("claim", "check"):
            refused = ask(daemon, all_token, "POST", f"/api/v1/{name}", {**claim, "key": "api-new"})
            expect(refused.status, 503, refused.body)
        expect(ask(daemon, all_token, "POST", "/api/v1/check", claim).json["outcome"], "replay")
        with Wire(door(daemon)) as wire:
            expect(wire.ask("AUTH", "acme", "p"), b"+OK\r\n")
            expect(wire.ask("SET", "redis-new", "v", "NX")[:5], b"-OOM ")
            expect(wire.ask("HAPAX.CLAIM", "redis-new")[:5], b"-OOM ")
            expect(wire.ask("SET", "redis-new", "v", "XX"), b"$-1\r\n")
            expect(wire.ask("SET", "held", "v", "NX"), b"$-1\r\n")
            # A transaction with one of them does nothing.
            for words in (("MULTI",), ("SET", "a", "1"), ("SET", "b", "2")):
                wire.ask(*words)
            replies = wire.ask("EXEC")
            assert replies.count(b"-OOM ") == 2, replies
        # Another tenant.
        expect([post(daemon.gateway, f"e{number}", path="/initech").status for number in range(3)], [200] * 3)
        expect(ask(daemon, all_token, "POST", "/api/v1/check", {"tenant": "initech", "group": "g", "key": "x"}).status, 200)


def test_a_plain_set_counts(cli):
    """A Redis SET without NX makes keys, too: it leads to the limit, and is refused there."""
    rows = "".join(
        f"    - {{name: {name}, password_sha256: {hashlib.sha256(b'p').hexdigest()}, tenant: {name}}}\n" for name in ("acme", "initech")
    )
    with serve(cli, None, *OFF, config=f"resp:\n  users:\n{rows}store:\n  max_keys_per_tenant: 5\n") as daemon, Wire(door(daemon)) as wire:
        expect(wire.ask("AUTH", "initech", "p"), b"+OK\r\n")
        # One key, however often it is set.
        expect([wire.ask("SET", "k", f"{number}") for number in range(50)], [b"+OK\r\n"] * 50)
        expect(wire.ask("AUTH", "acme", "p"), b"+OK\r\n")
        new = iter(range(1000000))
        until(lambda: wire.ask("SET", f"new{next(new)}", "v")[:5] == b"-OOM ", "the tenant is above its limit")
        expect(wire.ask("SET", "new0", "v"), b"+OK\r\n")
        expect(wire.ask("SET", "one-more", "v", "GET")[:5], b"-OOM ")
        expect(wire.ask("GET", "one-more"), b"$-1\r\n")
        expect(wire.ask("AUTH", "initech", "p"), b"+OK\r\n")
        expect([wire.ask("SET", f"k{number}", "v") for number in range(3)], [b"+OK\r\n"] * 3)


def test_the_proxy_has_the_limit_too(cli):
    """A request with a new Idempotency-Key is refused before the upstream sees it; a replay is not, nor a request without a key."""
    rows = (("acme", "acme"), ("status", "acme"), ("initech", "initech"))
    routes = "".join(f"    - {{path: /{path}, tenant: {tenant}, group: g}}\n" for path, tenant in rows)
    config = f"store:\n  max_keys_per_tenant: 5\nproxy:\n  routes:\n{routes}"
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        first = [pay(daemon.proxy, "/acme", f"k{number}") for number in range(4)]
        expect([reply.status for reply in first], [200] * 4)
        expect(pay(daemon.proxy, "/status/503", "failed").status, 503)
        new = iter(range(1000000))
        until(lambda: pay(daemon.proxy, "/acme", f"new{next(new)}").status == 503, "the tenant is above its limit")
        count = len(service.requests)
        refused = pay(daemon.proxy, "/acme", "one-more").is_problem(503)
        expect(refused.headers["retry-after"], "1")
        # What the client libraries of such APIs look at.
        assert refused.json["error"], refused.json
        expect(len(service.requests), count)
        expect_replayed(pay(daemon.proxy, "/acme", "k0"), first[0].body)
        expect(pay(daemon.proxy, "/acme", "k0", b'{"amount":43}').status, 422)
        expect(len(service.requests), count)
        # What failed may run again.
        expect(pay(daemon.proxy, "/status/503", "failed").status, 503)
        expect(len(service.requests), count + 1)
        # Nothing of this makes a key.
        expect(ask_api(daemon.proxy, "GET", "/acme").status, 200)
        expect(ask_api(daemon.proxy, "POST", "/acme", b"{}").status, 200)
        # Another tenant.
        expect([pay(daemon.proxy, "/initech", f"k{number}").status for number in range(3)], [200] * 3)
