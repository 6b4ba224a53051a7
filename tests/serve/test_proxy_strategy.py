"""Routes of the proxy whose key comes from a strategy (E18, E21): of any header, of the body, of its content."""

import json
import threading

from api import api, ask, expect_ran, expect_replayed, proxy
from daemon import metrics
from harness import expect, until


def routes(*rows):
    return "proxy:\n  routes:\n" + "".join(f"    - {row}\n" for row in rows)


def send(daemon, path, body, credential=None, **headers):
    headers.setdefault("Content_Type", "application/json")
    body = body if isinstance(body, bytes) else json.dumps(body).encode()
    return ask(daemon.proxy, "POST", path, body, credential=credential, **headers)


def test_a_key_by_each_strategy(cli):
    config = routes(
        "{path: /field, key: 'field:data.id', credential: none}",
        "{path: /header, key: 'header:X-Delivery', credential: none, fingerprint: none}",
        "{path: /both, key: 'composite:data.id,header.X-Topic', credential: none}",
        "{path: /raw, key: content, credential: none}",
        "{path: /content, key: content, exclude: [data.sent_at], credential: none}",
    )
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        expect_ran(send(daemon, "/field", {"id": "a"}), b"run 1")
        expect_replayed(send(daemon, "/field", b' { "id" : "a" } '), b"run 1")
        expect_ran(send(daemon, "/field/other", {"id": "a"}), b"run 2")
        expect_ran(send(daemon, "/field", {"id": "b"}), b"run 3")
        expect_ran(send(daemon, "/header", {"n": 1}, X_Delivery="d"), b"run 4")
        expect_replayed(send(daemon, "/header", {"n": 2}, x_delivery="d"), b"run 4")
        expect_ran(send(daemon, "/both", {"id": "a"}, X_Topic="t"), b"run 5")
        expect_replayed(send(daemon, "/both", {"id": "a"}, X_Topic="t"), b"run 5")
        expect_ran(send(daemon, "/both", {"id": "a"}, X_Topic="u"), b"run 6")
        expect_ran(send(daemon, "/content", {"x": 1, "sent_at": 1}), b"run 7")
        expect_replayed(send(daemon, "/content", {"sent_at": 2, "x": 1}), b"run 7")
        expect_ran(send(daemon, "/raw", b"<xml/>", Content_Type="text/xml"), b"run 8")
        expect_replayed(send(daemon, "/raw", b"<xml/>", Content_Type="text/xml"), b"run 8")
        expect(len(service.requests), 8)


def test_the_rest_of_the_request_counts_as_before(cli):
    """422 for another payload, query or account; keys of one client are not those of another."""
    with api() as service, proxy(cli, service.url, config=routes("{path: /, key: 'field:data.id'}")) as daemon:
        expect_ran(send(daemon, "/?a=1", {"id": 7, "n": 1}, "Bearer a"), b"run 1")
        for path, body, headers in (
            ("/?a=1", {"id": 7, "n": 2}, {}),
            ("/?a=2", {"id": 7, "n": 1}, {}),
            ("/?a=1", {"id": 7, "n": 1}, {"Stripe_Account": "other"}),
        ):
            send(daemon, path, body, "Bearer a", **headers).is_problem(422, "different payloads")
        expect_replayed(send(daemon, "/?a=1", {"id": 7, "n": 1}, "Bearer a"), b"run 1")
        expect_ran(send(daemon, "/?a=1", {"id": 7, "n": 1}, "Bearer b"), b"run 2")
        send(daemon, "/", {"id": 7}).is_problem(400, "no credential")
        expect(len(service.requests), 2)


def test_a_request_without_a_part_of_its_key(cli):
    """E21: refused if the key is required, else it passes and is counted; or the scope takes its content."""
    config = "scopes: [{scope: default/hashed, on_missing: content}]\n" + routes(
        "{path: /strict, key: 'field:data.id', credential: none, required: true}",
        "{path: /header, key: 'header:X-Id', credential: none, required: true, fingerprint: none}",
        "{path: /hashed, key: 'field:data.id', credential: none, required: true, group: hashed}",
        "{path: /, key: 'field:data.id', credential: none}",
    )
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for body in ({}, {"id": None}, {"id": {}}, [], b"", b"{", b"a=1", b'{"id":1,"id":2}'):
            reply = send(daemon, "/strict", body).is_problem(400, "data.id" if body != b"" else "")
            expect(reply.json["title"], "A part of the key is missing")
        # A field that two readers could take for two values, or that does not reach the service, is none.
        for fields in ([("X-Id", "a"), ("x-id", "b")], [("X-Id", "a"), ("Connection", "x-id")], [("X_Id", "a")]):
            send(daemon, "/header", {}, fields=fields).is_problem(400, "header.X-Id")
        expect(service.requests, [])
        expect_ran(send(daemon, "/hashed", {"n": 1}), b"run 1")
        expect_replayed(send(daemon, "/hashed", {"n": 1}), b"run 1")
        for number in (2, 3):
            reply = send(daemon, "/", {"n": 1})
            expect((reply.body, reply.decision), (b"run %d" % number, None))
        expect(metrics(daemon)['hapax_unprotected_runs_total{tenant="default",group="default",reason="no_key"}'], 2)


def test_a_large_body(cli):
    """It is read by a thread, from a file, and has the key of a small one."""
    padding = "x" * 700_000
    with api() as service, proxy(cli, service.url, config=routes("{path: /, key: 'field:data.id', credential: none}")) as daemon:
        expect_ran(send(daemon, "/", {"padding": padding, "id": "large"}), b"run 1")
        replies = []
        threads = [
            threading.Thread(target=lambda: replies.append(send(daemon, "/", {"id": "large", "padding": padding}))) for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect([reply.body for reply in replies], [b"run 1"] * 4)
        send(daemon, "/", {"id": "large", "padding": padding + "y"}).is_problem(422, "different payloads")
        expect(len(service.requests), 1)


def test_the_time_of_a_route(cli):
    """max_run of a route replaces that of the scope."""
    config = routes("{path: /hold, key: 'header:X-Id', credential: none, max_run: 200ms, on_lapse: retry}")
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        send(daemon, "/hold", {}, X_Id="a").is_problem(504, "")
        service.release.set()
        until(lambda: send(daemon, "/hold", {}, X_Id="a").status == 200, "the next one runs")
        expect(len(service.requests), 2)
