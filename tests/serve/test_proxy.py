"""The proxy (C9): an HTTP API runs once for each Idempotency-Key, whosever it is."""

import contextlib
import hashlib
import http.client
import json
import pathlib
import signal
import socket
import threading

from api import CHUNKED, api, ask, expect_ran, expect_replayed, post, proxy
from daemon import DemoUpstream, Serve, dead_address, demo, metrics, raw, request
from harness import expect, expect_in, expect_match, scaled, until


def test_a_request_runs_once_for_its_key(cli):
    """In quotes or bare it is the same key."""
    with api() as service, proxy(cli, service.url) as daemon:
        expect_ran(post(daemon.proxy, "/charges", "order-17"), b"run 1")
        expect_replayed(post(daemon.proxy, "/charges", "order-17"), b"run 1")
        expect_replayed(post(daemon.proxy, "/charges", '"order-17"'), b"run 1")
        expect_replayed(post(daemon.proxy, "/charges", '"order-17";v=1'), b"run 1")
        expect_ran(post(daemon.proxy, "/charges", "order-18"), b"run 2")
        expect_ran(ask(daemon.proxy, "PATCH", "/charges/1", b"{}", "order-17"), b"run 3")
        expect_replayed(ask(daemon.proxy, "PATCH", "/charges/1", b"{}", "order-17"), b"run 3")
        expect_ran(ask(daemon.proxy, "POST", "/charges/2", None, "bare"), b"run 4")
        expect_ran(post(daemon.proxy, "/charges", "bestellung-ü".encode()), b"run 5")
        expect_replayed(post(daemon.proxy, "/charges", "bestellung-ü".encode()), b"run 5")
        expect(len(service.requests), 5)


def test_what_the_upstream_gets(cli):
    with api() as service, proxy(cli, service.url + "/base") as daemon:
        reply = post(
            daemon.proxy, "/charges?expand=1", "k", fields=[("Hapax-Token", "1"), ("Hapax-Attempt", "9"), ("X-Mine", "yes")],
            Connection="X-Hop", X_Hop="gone", Host="api.example", X_Forwarded_For="10.0.0.1", Authorization="Bearer a",
        )
        expect(reply.status, 200)
        request = service.requests[0]
        expect((request.method, request.path, request.body), ("POST", "/base/charges?expand=1", b'{"amount":42}'))
        got = request.headers
        expect((got["idempotency-key"], got["authorization"], got["x-mine"]), ("k", "Bearer a", "yes"))
        expect((got["host"], got["x-forwarded-host"]), (service.url.removeprefix("http://"), "api.example"))
        assert int(got["hapax-token"]) > 1, got
        expect((got["hapax-attempt"], "x-hop" in got), ("1", False))


def test_keys_that_cannot_be_read(cli):
    """400 with a problem; nothing is forwarded."""
    with api() as service, proxy(cli, service.url) as daemon:
        for key in ("", " ", "a,b", "a b", '"a', '"a"b', '""', '"a", "b"', "x" * 256, "a\tb", b"caf\xe9", b"a\xc2\x85"):
            reply = post(daemon.proxy, "/", key).is_problem(400, "byte")
            expect(reply.json["title"], "The Idempotency-Key is invalid", repr(key))
        post(daemon.proxy, "/", "a", fields=[("idempotency-key", "a")]).is_problem(400, "twice")
        post(daemon.proxy, "/", "a", Connection="close, idempotency-key").is_problem(400, "Connection")
        expect_ran(post(daemon.proxy, "/", "x" * 255), b"run 1")
        expect(len(service.requests), 1)


def test_a_key_that_is_required(cli):
    config = "proxy:\n  routes:\n    - {path: /strict, required: true, header: X-Request-Id}\n    - {path: /}\n"
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for key in (None, "a"):
            reply = ask(daemon.proxy, "POST", "/strict/x", b"", key).is_problem(400, "requires correct usage")
            expect(reply.json["title"], "X-Request-Id is missing")
        expect_ran(ask(daemon.proxy, "POST", "/strict/x", b"", X_Request_Id="a"), b"run 1")
        expect_replayed(ask(daemon.proxy, "POST", "/strict/x", b"", X_Request_Id="a"), b"run 1")
        expect(ask(daemon.proxy, "GET", "/strict/x").body, b"run 2")
        reply = ask(daemon.proxy, "POST", "/else", b"")
        expect((reply.body, reply.decision), (b"run 3", None))
        expect(metrics(daemon)['hapax_unprotected_runs_total{tenant="default",group="default",reason="no_key"}'], 1)


def test_the_same_key_with_another_payload(cli):
    """422, also while the first still runs: before 409, and without waiting for it."""
    with api() as service, proxy(cli, service.url) as daemon:
        replies = []
        thread = threading.Thread(target=lambda: replies.append(post(daemon.proxy, "/hold?a=1", "k")))
        thread.start()
        service.arrived.acquire()
        others = [("/hold?a=1", b"{}", {}), ("/hold?a=2", b'{"amount":42}', {}), ("/hold", b'{"amount":42}', {})]
        others.append(("/hold?a=1", b'{"amount":42}', {"Content_Type": "text/json"}))
        for path, body, headers in others * 2:
            reply = post(daemon.proxy, path, "k", body, **headers).is_problem(422, "different payloads")
            expect((reply.json["title"], reply.decision), ("Idempotency-Key is already used", "mismatch"))
            if not thread.is_alive():
                continue
            service.release.set()
            thread.join()
        expect_ran(replies[0], b"run 1")
        expect_replayed(post(daemon.proxy, "/hold?a=1", "k"), b"run 1")
        expect(len(service.requests), 1)


def test_requests_while_the_first_runs(cli):
    """They wait and get its response; when they have waited long enough, 409 and Retry-After."""
    config = "proxy:\n  routes:\n    - {path: /hold/short, wait: 50ms}\n    - {path: /}\n"
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        replies = []

        def send(path):
            replies.append(post(daemon.proxy, path, "k"))

        threads = [threading.Thread(target=send, args=(path,)) for path in ("/hold/short", "/hold")]
        for thread in threads:
            thread.start()
            service.arrived.acquire()
        reply = post(daemon.proxy, "/hold/short", "k").is_problem(409, "outstanding")
        expect(reply.json["title"], "A request is outstanding for this Idempotency-Key")
        expect((reply.decision, reply.headers["retry-after"]), ("in_progress", "1"))
        threads += [threading.Thread(target=send, args=("/hold",)) for _ in range(5)]
        for thread in threads[2:]:
            thread.start()
        until(lambda: metrics(daemon)["hapax_runs_waiting"] == 5, "all wait")
        service.release.set()
        for thread in threads:
            thread.join()
        expect({reply.status for reply in replies}, {200})
        expect(sorted(reply.decision for reply in replies), ["acquired"] * 2 + ["replay"] * 5)
        expect(len(service.requests), 2)


def test_whose_key_it_is(cli):
    """One key, two credentials: no client gets what belongs to another."""
    config = """
proxy:
  routes:
    - {path: /principal, credential: "header:X-User"}
    - {path: /public, credential: none}
    - {path: /, credential_cookies: [session, device]}
"""
    different = [
        {"Authorization": "Bearer a"},
        {"Authorization": "Bearer b"},
        {"Authorization": "Bearer a", "Cookie": "session=a"},
        {"Authorization": "Bearer a", "X_API_Key": "a"},
        {"X_API_Key": "a"},
        {"Cookie": "session=a"},
        {"Cookie": "session=b"},
        {"Cookie": "device=a"},
        {"Cookie": "session=a; device=a"},
        {"Cookie": "session=a; session=b"},
    ]
    same = [
        ({"Authorization": "Bearer a"}, {"Authorization": "Bearer a", "Cookie": "other=b; session="}),
        ({"Cookie": "session=a"}, {"Cookie": "theme=x; session=a;lang=y; junk"}),
    ]
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for number, headers in enumerate(different, 1):
            expect_ran(post(daemon.proxy, "/", "k", credential=None, **headers), b"run %d" % number)
        for number, headers in enumerate(different, 1):
            expect_replayed(post(daemon.proxy, "/", "k", credential=None, **headers), b"run %d" % number)
        for first, again in same:
            bodies = [post(daemon.proxy, "/", "k", credential=None, **headers).body for headers in (first, again)]
            expect(bodies[0], bodies[1])
        twice = [("Authorization", "Bearer a"), ("Authorization", "Bearer b")]
        post(daemon.proxy, "/", "k", fields=twice).is_problem(400, "twice")
        post(daemon.proxy, "/", "k", Authorization="Bearer a", Connection="Authorization").is_problem(400, "Connection")
        count = len(service.requests)
        post(daemon.proxy, "/principal", "k", Authorization="Bearer a").is_problem(400, "X-User")
        expect(post(daemon.proxy, "/principal", "k", X_User="ann", Authorization="Bearer a").decision, "acquired")
        expect(post(daemon.proxy, "/principal", "k", X_User="ann", Authorization="Bearer b").decision, "replay")
        expect(post(daemon.proxy, "/principal", "k", X_User="bob", Authorization="Bearer a").decision, "acquired")
        expect(post(daemon.proxy, "/public", "k", Authorization="Bearer a").decision, "acquired")
        expect(post(daemon.proxy, "/public", "k", Authorization="Bearer b").decision, "replay")
        expect(len(service.requests), count + 3)


def test_the_same_key_for_another_operation(cli):
    """Method, host and path are part of it; the case of a host is not."""
    config = "proxy:\n  routes:\n    - {path: /, methods: [POST, PATCH, PUT, DELETE]}\n"
    different = [
        ("POST", "/charges", "api.example"),
        ("PATCH", "/charges", "api.example"),
        ("PUT", "/charges", "api.example"),
        ("DELETE", "/charges", "api.example"),
        ("POST", "/refunds", "api.example"),
        ("POST", "/charges/", "api.example"),
        ("POST", "/charges", "api.example:8081"),
        ("POST", "/charges", "other.example"),
    ]
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for again in (False, True):
            for number, (method, path, host) in enumerate(different, 1):
                reply = ask(daemon.proxy, method, path, b"{}", "k", Host=host)
                (expect_replayed if again else expect_ran)(reply, b"run %d" % number)
        expect_replayed(ask(daemon.proxy, "POST", "/charges", b"{}", "k", Host="API.Example"), b"run 1")
        expect(len(service.requests), len(different))


def test_one_operation_in_many_spellings(cli):
    """A retry in another encoding is a retry; and no client gets past a route by spelling."""
    config = "proxy:\n  routes:\n    - {path: /v1/charg%65s, required: true}\n    - {path: /}\n"
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        expect_ran(post(daemon.proxy, "/v1/charges/a-b%2fc", "k", Host="api.example"), b"run 1")
        for path, host in (
            ("/v1/charges/a-b%2Fc", "api.example:80"),
            ("/v1/%63harges/a%2Db%2fc", "API.example."),
            ("/v1/charges/%61-b%2fc", "api.example:443"),
        ):
            expect_replayed(post(daemon.proxy, path, "k", Host=host), b"run 1")
            ask(daemon.proxy, "POST", path, b"{}").is_problem(400, "key-missing")
        expect_ran(post(daemon.proxy, "/v1/charges/a-b/c", "k", Host="api.example"), b"run 2")
        # What goes on is what came.
        expect(service.requests[0].path, "/v1/charges/a-b%2fc")
        for path in ("/v1/x/../charges", "/v1/./charges", "/v1/%2e%2E/charges", "/.."):
            for method in ("POST", "GET"):
                ask(daemon.proxy, method, path, b"{}", "k").is_problem(400, "problem:path")
        for method in ("post", "Post", "pATCH"):
            ask(daemon.proxy, method, "/", b"{}", "k").is_problem(400, "upper case")
        expect(ask(daemon.proxy, "get", "/v1/charges").status, 200)
        expect(service.paths, ["/v1/charges/a-b%2fc", "/v1/charges/a-b/c", "/v1/charges"])


STORED = "Content-Type: text/kept\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\nConnection: X-Mine\r\n"
STORED += "X-Mine: yes\r\nX Y: no name\r\nX-Lines: a\nInjected: b\r\nno colon\r\n\r\nHTTP/1.1 200 OK\r\n\r\n<b>"


def test_what_a_store_has_is_not_believed(cli):
    """A record from outside: its fields cannot end the reply where they like, or begin another."""
    auth = f"auth:\n  tokens:\n    - {{name: w, hash: 'sha256:{hashlib.sha256(b'secret' * 4).hexdigest()}', role: write}}\n"
    with api() as service, proxy(cli, service.url, config=auth) as daemon:
        expect_ran(post(daemon.proxy, "/status/500", "k"), b"run 1", 500)

        def call(method, path, **body):
            headers = {"Authorization": "Bearer " + "secret" * 4, "Content-Type": "application/json"}
            reply = request(daemon.admin, method, f"/api/v1{path}", headers, json.dumps(body).encode())
            expect(reply.status, 200, repr(reply.body))
            return reply.json

        key = call("GET", "/keys?state=failed")["keys"][0]["key"]
        call("POST", "/resolve", key=key, result={"kind": "http", "status": 200, "headers": STORED, "body": "kept"}, **{"as": "done"})
        for _ in range(2):
            reply = expect_replayed(post(daemon.proxy, "/status/500", "k"), b"kept")
            expect((reply.headers["content-type"], reply.headers["content-length"]), ("text/kept", "4"))
            expect(set(reply.headers) & {"transfer-encoding", "connection", "injected", "x y", "x-lines"}, set())
        expect(len(service.requests), 1)


def test_a_response_is_replayed_as_it_was(cli):
    """Exact bytes, however they came; fields that describe it, and none that is for one client only."""
    with api() as service, proxy(cli, service.url) as daemon:
        service.fields = [
            ("content-type", "application/octet-stream"), ("ETag", '"v1"'), ("Location", "/charges/1"), ("Vary", "Accept"),
            ("Link", "</1>; rel=next"), ("Link", "</2>; rel=last"), ("X-Trace", "1"), ("Set-Cookie", "session=a"),
            ("WWW-Authenticate", "Bearer"), ("Authentication-Info", "x=y"), ("Hapax-Decision", "forged"),
            ("Idempotent-Replayed", "true"), ("Connection", "X-Hop"), ("X-Hop", "1"),
        ]
        kept = {"content-type", "etag", "location", "vary", "link"}
        only_first = {"x-trace", "set-cookie", "www-authenticate", "authentication-info"}
        for path, body in (("/chunked", CHUNKED), ("/size/3", b"xxx"), ("/size/0", b"")):
            first = post(daemon.proxy, path, "k")
            expect((first.status, first.body, first.decision), (200, body, "acquired"))
            again = expect_replayed(post(daemon.proxy, path, "k"), body)
            expect(set(again.headers) & (kept | only_first | {"x-hop"}), kept)
            expect(set(first.headers) & (kept | only_first | {"x-hop"}), kept | only_first)
            expect({name: again.headers[name] for name in kept}, {name: first.headers[name] for name in kept})
            expect(again.headers["content-length"], str(len(body)))
        expect(len(service.requests), 3)


def test_a_response_without_a_body(cli):
    with api() as service, proxy(cli, service.url) as daemon:
        for status in (204, 304):
            for check in (expect_ran, expect_replayed):
                reply = check(post(daemon.proxy, f"/status/{status}", "k"), b"", status)
                assert "content-length" not in reply.headers and "transfer-encoding" not in reply.headers
        expect(len(service.requests), 2)


def test_fields_that_a_route_replays(cli):
    config = "proxy:\n  routes:\n    - {path: /, replay_headers: [X-Trace, Content-Type]}\n"
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        service.fields = [("X-Trace", "1"), ("ETag", '"v1"'), ("Content-Type", "a/b")]
        post(daemon.proxy, "/", "k")
        again = expect_replayed(post(daemon.proxy, "/", "k"), b"run 1")
        expect((again.headers["x-trace"], again.headers["content-type"], "etag" in again.headers), ("1", "a/b", False))


def test_a_response_that_is_too_large_to_keep(cli):
    """The first one gets all of it; all others that it is done, and how large it was."""
    with api() as service, proxy(cli, service.url, config="store:\n  max_result: 1KiB\n") as daemon:
        expect(post(daemon.proxy, "/size/1024", "k").body, b"x" * 1024)
        expect_replayed(post(daemon.proxy, "/size/1024", "k"), b"x" * 1024)
        first = post(daemon.proxy, "/size/500000", "k")
        expect((first.status, len(first.body), first.decision), (200, 500000, "acquired"))
        again = expect_replayed(post(daemon.proxy, "/size/500000", "k"), b"")
        expect((again.headers["hapax-body-omitted"], again.headers["content-type"]), ("500000", "text/plain"))
        expect(len(service.requests), 2)


def test_outcomes(cli):
    """3xx is done here, 404 fails permanently."""
    with api() as service, proxy(cli, service.url) as daemon:
        for status in (200, 201, 299, 301, 302, 307, 400, 402, 404, 405, 410, 422, 499):
            expect(post(daemon.proxy, f"/status/{status}", "k").decision, "acquired", str(status))
            expect_replayed(post(daemon.proxy, f"/status/{status}", "k"), b"run %d" % len(service.requests), status)
        for status in (401, 403, 408, 409, 421, 425, 429, 500, 502, 503, 504):
            for attempt in (1, 2):
                reply = post(daemon.proxy, f"/status/{status}", "k")
                expect((reply.status, reply.decision), (status, "acquired"), str(status))
                expect(service.requests[-1].headers["hapax-attempt"], str(attempt), str(status))


def test_outcomes_of_a_route(cli):
    config = """
proxy:
  routes:
    - path: /
      outcomes: {ok: [409], definitive: [500], transient: [2xx, 404], ambiguous: [5xx]}
"""
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for status in (409, 500, 400):
            post(daemon.proxy, f"/status/{status}", "k")
            expect(post(daemon.proxy, f"/status/{status}", "k").decision, "replay", str(status))
        for status in (200, 404, 401):
            post(daemon.proxy, f"/status/{status}", "k")
            expect(post(daemon.proxy, f"/status/{status}", "k").decision, "acquired", str(status))
        reply = post(daemon.proxy, "/status/503", "k")
        expect((reply.status, reply.decision), (503, "acquired"))
        post(daemon.proxy, "/status/503", "k").is_problem(409, "parked")
        expect(service.paths.count("/status/503"), 1)


def test_a_response_that_is_lost_is_parked(cli):
    """Sent, and no answer: the outcome is unknown, so it does not run again until a person has decided."""
    store = f"sqlite:{cli.folder}/ledger.db"
    with api() as service, proxy(cli, service.url, store=store) as daemon:
        for key in ("done", "again"):
            post(daemon.proxy, "/drop", key).is_problem(502, "upstream-lost")
            reply = post(daemon.proxy, "/drop", key).is_problem(409, "hapax resolve")
            expect((reply.decision, "retry-after" in reply.headers), ("parked", False))
        post(daemon.proxy, "/drop", "done", b"{}").is_problem(422)
        expect(len(service.requests), 2)
        keys = [row["key"] for row in cli.run("keys", "--store", store, "-o", "json").lines]
        expect(sorted(key.split("/")[1] for key in keys), ["again", "done"])
        for key in keys:
            expect_match("^[0-9a-f]{32}/", key)
            cli.run("resolve", key, "--store", store, "--done" if key.endswith("done") else "--retry")
        expect_replayed(post(daemon.proxy, "/drop", "done"), b"")
        post(daemon.proxy, "/drop", "again").is_problem(502, "upstream-lost")
        expect(len(service.requests), 3)


def test_a_response_beyond_a_limit_is_a_lost_one(cli):
    """It was sent, so the client is not told to retry as if it was not: 502, and parked."""
    with api() as service, proxy(cli, service.url) as daemon:
        for key, fields in {
            "fields": [(f"X-{number}", "y") for number in range(200)],
            "head": [("X", "y" * 64_000)],
            "length": [("Content-Length", "18446744073709551616")],
        }.items():
            service.fields = fields
            reply = post(daemon.proxy, "/", key).is_problem(502, "upstream-lost")
            expect((reply.decision, "retry-after" in reply.headers), ("acquired", False))
            post(daemon.proxy, "/", key).is_problem(409, "parked")
        expect(len(service.requests), 3)


def test_a_route_that_retries(cli):
    config = "proxy:\n  routes:\n    - {path: /, on_lapse: retry}\n"
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for attempt in ("1", "2"):
            post(daemon.proxy, "/drop", "k").is_problem(502, "upstream-lost")
            expect(service.requests[-1].headers["hapax-attempt"], attempt)


def test_an_upstream_that_is_not_there(cli):
    """Nothing was sent, so nothing is parked."""
    with proxy(cli, dead_address()) as daemon:
        for _ in range(2):
            post(daemon.proxy, "/", "k").is_problem(502, "upstream-unreachable")
        ask(daemon.proxy, "GET", "/").is_problem(502, "upstream-unreachable")


def test_the_upstream_is_killed(cli):
    first = DemoUpstream(cli, "--delay", "10m")
    with proxy(cli, first.url) as daemon:
        replies = []
        thread = threading.Thread(target=lambda: replies.append(post(daemon.proxy, "/", "k")))
        thread.start()
        until(lambda: first.count()["received"] == 1, "it has the request")
        first.kill()
        thread.join()
        replies[0].is_problem(502, "upstream-lost")
        post(daemon.proxy, "/", "k").is_problem(409, "parked")
        post(daemon.proxy, "/", "next").is_problem(502, "upstream-unreachable")
        second = DemoUpstream(cli, listen=first.ready)
        try:
            post(daemon.proxy, "/", "k").is_problem(409, "parked")
            expect(post(daemon.proxy, "/", "next").decision, "acquired")
            expect(second.count(), {"received": 1, "executed": 1, "keys": 1})
        finally:
            second.kill()


def test_hapax_is_killed(cli):
    """What ran then is parked when its lease is over; until then it is in progress. What was done is replayed."""

    def charge(daemon, path="/"):
        # The port is another one after a restart, and the host is part of the key.
        return post(daemon.proxy, path, "k", Host="api.example")

    store = f"file:{cli.folder}/store"
    config = "defaults:\n  lease: 300ms\nproxy:\n  routes:\n    - {path: /, wait: 0s}\n"
    options = ["--gateway", "off", "--proxy", "127.0.0.1:0"]
    with api() as service:
        daemon = Serve(cli, service.url, *options, store=store, config=config)
        expect_ran(charge(daemon), b"run 1")
        thread = threading.Thread(target=lose, args=(lambda: charge(daemon, "/hold"),))
        thread.start()
        until(lambda: len(service.requests) == 2, "it has the request")
        daemon.kill()
        thread.join()
        service.release.set()
        with proxy(cli, service.url, store=store, config=config) as daemon:
            expect_replayed(charge(daemon), b"run 1")
            replies = []
            until(lambda: replies.append(charge(daemon, "/hold")) or replies[-1].decision == "parked", "it is parked")
            expect({reply.status for reply in replies}, {409})
            expect({reply.decision for reply in replies} - {"in_progress"}, {"parked"})
            expect(len(service.requests), 2)


def lose(send):
    with contextlib.suppress(OSError, http.client.HTTPException):
        send()
        raise AssertionError("it was answered")


def test_a_hundred_at_once(cli):
    """One runs; all others wait for it, on whichever loop they came, and get its response."""
    with demo(cli, "--delay", "50ms") as service, proxy(cli, service.url, store=f"file:{cli.folder}/store") as daemon:
        rounds = scaled(proof=100, usual=2)
        for number in range(rounds):
            replies = []
            barrier = threading.Barrier(100)

            def send(key=f"k-{number}"):
                barrier.wait()
                replies.append(post(daemon.proxy, "/", key))

            threads = [threading.Thread(target=send) for _ in range(100)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            expect(len(replies), 100)
            expect({reply.status for reply in replies}, {200})
            expect({reply.body for reply in replies}, {b'{"executed":%d}\n' % (number + 1)})
            expect([reply.decision for reply in replies].count("acquired"), 1)
        expect(service.count(), {"received": rounds, "executed": rounds, "keys": rounds})


def memory_kib(daemon):
    status = pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text(encoding="ascii")
    return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


def test_a_body_that_is_far_too_large(cli):
    """1 GiB, announced or in chunks: 413, nothing is forwarded, and it is not held in memory."""
    gib = 1024 * 1024 * 1024
    with api() as service, proxy(cli, service.url) as daemon:
        expect(post(daemon.proxy, "/", "k", b"x" * 1000000).decision, "acquired")
        before = memory_kib(daemon)
        head = b"POST / HTTP/1.1\r\nHost: x\r\nIdempotency-Key: k\r\n"
        answer = raw(daemon.proxy, head + b"Content-Length: %d\r\n\r\n" % gib, shut=False)
        expect(answer.split(b"\r\n")[0], b"HTTP/1.1 413 Content Too Large")
        expect(send_chunks(daemon.proxy, head, gib).split(b"\r\n")[0], b"HTTP/1.1 413 Content Too Large")
        assert memory_kib(daemon) - before < 16 * 1024, (before, memory_kib(daemon))
        expect(len(service.requests), 1)


def send_chunks(to, head, size):
    """A body in chunks, until the other side has had enough of it; what that says."""
    chunk = b"10000\r\n" + b"x" * 65536 + b"\r\n"
    with socket.create_connection(to, timeout=60) as connection:
        connection.sendall(head + b"Transfer-Encoding: chunked\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            for _ in range(size // 65536):
                connection.sendall(chunk)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while piece := connection.recv(65536):
                answer += piece
        return answer


def test_large_bodies(cli):
    """In memory, in a file and hashed beside the loop: the same, or another payload."""
    with api() as service, proxy(cli, service.url) as daemon:
        for size in (256 * 1024, 256 * 1024 + 1, 5000000, 16 * 1024 * 1024):
            body = bytes(range(251)) * (size // 251 + 1)
            expect(post(daemon.proxy, f"/{size}", "k", body[:size]).decision, "acquired", str(size))
            assert service.requests[-1].body == body[:size], size
            expect(post(daemon.proxy, f"/{size}", "k", body[:size]).decision, "replay", str(size))
            post(daemon.proxy, f"/{size}", "k", body[: size - 1] + b"!").is_problem(422)


def test_a_client_that_leaves_cancels_nothing(cli):
    with demo(cli, "--delay", "100ms") as service, proxy(cli, service.url) as daemon:
        head = f"POST / HTTP/1.1\r\nHost: {daemon.proxy[0]}:{daemon.proxy[1]}\r\nIdempotency-Key: k\r\nAuthorization: Bearer client\r\n"
        with socket.create_connection(daemon.proxy) as connection:
            connection.sendall(head.encode() + b"Content-Type: application/json\r\nContent-Length: 13\r\n\r\n" + b'{"amount":42}')
            until(lambda: service.count()["received"] == 1, "it was forwarded")
        expect_replayed(post(daemon.proxy, "/", "k"), b'{"executed":1}\n')
        expect(service.count(), {"received": 1, "executed": 1, "keys": 1})


def test_scope_ttl_and_metrics(cli):
    config = """
proxy:
  routes:
    - {name: short, path: /short, ttl: 1ms}
    - {name: payments, path: /, tenant: acme, group: payments}
"""
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        expect(post(daemon.proxy, "/short", "k").decision, "acquired")
        until(lambda: post(daemon.proxy, "/short", "k").decision == "acquired", "it has expired")
        for path in ("/", "/", "/status/500"):
            post(daemon.proxy, path, "k")
        post(daemon.proxy, "/", "k", b"{}")
        for _ in range(2):
            expect(ask(daemon.proxy, "GET", "/status/404").status, 404)
        # What passes is counted when it is over, and its client may have all of it before.
        until(lambda: metrics(daemon)['hapax_http_requests_in_progress{door="proxy"}'] == 0, "all are over")
        values = metrics(daemon)
        labels = 'tenant="acme",group="payments",door="proxy",decision='
        for decision, count in (("acquired", 2), ("replay", 1), ("mismatch", 1), ("in_progress", 0)):
            expect(values.get(f'hapax_decisions_total{{{labels}"{decision}"}}', 0), count, decision)
        expect(values['hapax_http_requests_total{door="proxy",code="404"}'], 2)
        expect(values['hapax_http_requests_total{door="proxy",code="422"}'], 1)
        expect(values['hapax_handler_failures_total{route="payments",code="500"}'], 1)
        assert 'hapax_handler_failures_total{route="payments",code="404"}' not in values
        line = json.loads(daemon.wait_for(lambda text: text if "duplicate job blocked" in text and "acme" in text else None))
        expect((line["queue"], line["route"], "event_id" in line), ("acme/payments", "payments", False))
        expect_match("^[0-9a-f]{32}/k$", line["idempotency_key"])
        line = json.loads(daemon.wait_for(lambda text: text if "payload mismatch" in text else None))
        expect((line["route"], "event_id" in line), ("payments", False))


def test_routes_change_with_a_reload(cli):
    with api() as one, api() as two:
        config = 'proxy:\n  routes:\n    - {path: /a, upstream: "%s"}\n'
        with proxy(cli, None, config=config % one.url) as daemon:
            expect(post(daemon.proxy, "/a", "k").decision, "acquired")
            post(daemon.proxy, "/b", "k").is_problem(404, "no-route")
            daemon.config.write_text(config.replace("/a", "/") % two.url, encoding="utf-8")
            daemon.process.send_signal(1)
            daemon.wait_for(lambda line: "configuration reloaded" in line)
            expect(post(daemon.proxy, "/b", "k").decision, "acquired")
            expect(post(daemon.proxy, "/a", "k").decision, "replay")
            expect((len(one.requests), len(two.requests)), (1, 1))


def test_nowhere_to_send(cli):
    env = {"HAPAX_STORE": None}
    cli.run("serve", "--gateway", "off", "--proxy", "127.0.0.1:0", code=78, env=env).says("no upstream for the proxy")
    expect_in("--proxy ADDR", cli.run("serve", "--help").out)


def test_what_parks_does_not_go_on_without_the_store(cli):
    """serve, a reload and config check refuse it, and name route and scope."""
    route = "proxy:\n  routes:\n    - {name: pay, path: /, tenant: acme, group: pay, on_lapse: %s}\n"
    scope = f"store: {{journal: 'sqlite:{cli.folder}/journal.db'}}\nscopes: [{{scope: acme/*, on_store_failure: continue}}]\n"
    refused = "route 'pay' has on_lapse 'park', but its scope 'acme/*' has on_store_failure 'continue'"
    path = cli.folder / "parks.yaml"
    path.write_text("upstream: {url: 'http://127.0.0.1:9'}\n" + scope + route % "park", encoding="utf-8")
    expect_in(refused, cli.run("config", "check", path, code=78).err)
    expect_in(refused, cli.run("serve", "--config", path, "--proxy", "127.0.0.1:0", code=78).err)
    with api() as service, proxy(cli, service.url, config=scope + route % "retry") as daemon:
        daemon.config.write_text(scope + route % "park", encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        expect_in(refused, daemon.wait_for(lambda text: text if "configuration rejected" in text else None))


def test_every_problem_is_an_error_of_stripes(cli):
    """stripe-node looks at `error` alone, and takes a document without it for a charge, whatever its status is."""
    config = "http: {max_body: 64KiB, max_line: 256}\nproxy:\n  routes:\n    - {path: /v1, required: true}\n    - {path: /drop}\n"

    def told(reply, status, kind, again=None):
        expect((reply.status, reply.headers["content-type"]), (status, "application/problem+json"))
        error = reply.json["error"]
        expect((error["type"], reply.headers.get("stripe-should-retry")), (kind, again), repr(reply.body))
        expect(error["message"], ": ".join(part for part in (reply.json["title"], reply.json.get("detail")) if part))
        expect(reply.json["status"], status)
        return error

    with api() as service, proxy(cli, service.url, "--gateway", "127.0.0.1:0", config=config) as daemon:
        expect_ran(post(daemon.proxy, "/v1", "k"), b"run 1")
        told(post(daemon.proxy, "/v1", "k", b"other"), 422, "idempotency_error")
        told(post(daemon.proxy, "/v1", None), 400, "idempotency_error")
        told(post(daemon.proxy, "/v1", "a b"), 400, "idempotency_error")
        told(post(daemon.proxy, "/v1", "k", credential=None), 400, "idempotency_error")
        told(post(daemon.proxy, "/v1", "k", fields=[("Authorization", "a"), ("Authorization", "b")]), 400, "idempotency_error")
        told(post(daemon.proxy, "/drop", "k"), 502, "api_error")
        told(post(daemon.proxy, "/drop", "k"), 409, "idempotency_error", "false")
        told(post(daemon.proxy, "/nowhere", "k"), 404, "invalid_request_error")
        told(post(daemon.proxy, "/v1/..%2fx", "k"), 400, "invalid_request_error")
        # A request that is refused before its route is read.
        told(post(daemon.proxy, "/v1", "k", b"x" * 70000), 413, "invalid_request_error")
        told(post(daemon.proxy, "/v1/" + "x" * 300, "k"), 414, "invalid_request_error")
        told(post(daemon.proxy, "/v1", "k", Transfer_Encoding="chunked"), 400, "invalid_request_error")
        assert "error" not in post(daemon.gateway, "/", None).is_problem(400).json
        expect(len(service.requests), 2)
    config = "proxy:\n  routes:\n    - {path: /, wait: 0s}\n"
    with api() as service, proxy(cli, service.url, config=config, store=f"file:{cli.folder}/other") as daemon:
        thread = threading.Thread(target=lambda: post(daemon.proxy, "/hold", "k"))
        thread.start()
        service.arrived.acquire()
        error = told(post(daemon.proxy, "/hold", "k"), 409, "idempotency_error", "true")
        expect(error["code"], "idempotency_key_in_use")
        service.release.set()
        thread.join()
