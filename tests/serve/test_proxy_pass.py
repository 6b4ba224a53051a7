"""What passes the proxy: other methods, and requests without a key."""

import socket

from api import CHUNKED, api, ask, post, proxy
from daemon import metrics, raw
from harness import expect, until


def test_other_methods_pass(cli):
    """As often as they come, with or without a key; nothing is claimed, and nothing of ours is added."""
    with api() as service, proxy(cli, service.url) as daemon:
        for number, method in enumerate(("GET", "PUT", "DELETE", "OPTIONS", "PROPFIND"), 0):
            for again in (1, 2):
                body = b"data" if method == "PUT" else None
                reply = ask(daemon.proxy, method, "/x?y=z", body, "k", Hapax_Token="1", X_Mine="yes")
                expect((reply.status, reply.body), (200, b"run %d" % (2 * number + again)), method)
                expect([name for name in reply.headers if name.startswith(("hapax-", "idempotent"))], [])
                request = service.requests[-1]
                expect((request.method, request.path, request.body), (method, "/x?y=z", body or b""))
                expect([name for name in request.headers if name.startswith("hapax-")], [])
                expect((request.headers["x-mine"], request.headers["idempotency-key"]), ("yes", "k"))
                expect("content-length" in request.headers, body is not None)
                expect(request.headers["x-forwarded-proto"], "http")
        expect([name for name in metrics(daemon) if name.startswith("hapax_decisions_total{")], [])
        expect([name for name in metrics(daemon) if name.startswith("hapax_unprotected_runs_total{")], [])


def test_what_a_proxy_before_it_says_is_kept(cli):
    with api() as service, proxy(cli, service.url) as daemon:
        ask(daemon.proxy, "GET", "/", X_Forwarded_Proto="https", X_Forwarded_Host="shop.example", X_Forwarded_For="192.0.2.7")
        headers = service.requests[-1].headers
        expect((headers["x-forwarded-proto"], headers["x-forwarded-host"]), ("https", "shop.example"))


def test_a_post_without_a_key_passes(cli):
    with api() as service, proxy(cli, service.url) as daemon:
        for number in (1, 2):
            reply = ask(daemon.proxy, "POST", "/", b"{}")
            expect((reply.status, reply.body, reply.decision), (200, b"run %d" % number, None))
        expect(len(service.requests), 2)


def test_fields_and_shapes(cli):
    """HEAD has the length and no body; 204 and 304 have neither; chunks are passed on as chunks."""
    with api() as service, proxy(cli, service.url) as daemon:
        service.fields += [("Set-Cookie", "a=b"), ("Set-Cookie", "c=d"), ("X-Hop", "1"), ("Connection", "X-Hop")]
        reply = ask(daemon.proxy, "HEAD", "/size/1234")
        expect((reply.status, reply.body, reply.headers["content-length"]), (200, b"", "1234"))
        reply = ask(daemon.proxy, "GET", "/size/1234")
        expect((reply.body, reply.headers["content-length"]), (b"x" * 1234, "1234"))
        expect((reply.headers["set-cookie"], "x-hop" in reply.headers), ("c=d", False))
        for status in (204, 304):
            reply = ask(daemon.proxy, "GET", f"/status/{status}")
            expect((reply.status, reply.body), (status, b""))
            assert "content-length" not in reply.headers and "transfer-encoding" not in reply.headers
        reply = ask(daemon.proxy, "GET", "/chunked")
        expect((reply.body, reply.headers["transfer-encoding"]), (CHUNKED, "chunked"))
        reply = ask(daemon.proxy, "HEAD", "/chunked")
        expect((reply.status, reply.body), (200, b""))
        expect(ask(daemon.proxy, "GET", "/status/404").status, 404)
        expect(len(ask(daemon.proxy, "GET", "/size/3000000").body), 3000000)


def test_connections_are_kept(cli):
    """After each shape the connection goes on; HTTP/1.0 gets what it can read."""
    with api() as service, proxy(cli, service.url) as daemon:
        targets = ["HEAD /size/10", "GET /status/304", "GET /size/5", "GET /status/204", "HEAD /status/404", "GET /size/2"]
        text = "".join(f"{target} HTTP/1.1\r\nHost: x\r\n\r\n" for target in targets)
        answer = raw(daemon.proxy, text.encode())
        expect(answer.count(b"HTTP/1.1 "), len(targets))
        assert answer.endswith(b"\r\n\r\nxx"), answer
        answer = raw(daemon.proxy, b"GET /size/5 HTTP/1.0\r\nHost: x\r\n\r\n")
        assert b"Content-Length: 5\r\n" in answer and answer.endswith(b"\r\n\r\nxxxxx"), answer
        answer = raw(daemon.proxy, b"GET /chunked HTTP/1.0\r\nHost: x\r\n\r\n")
        assert b"chunked" not in answer.split(b"\r\n\r\n")[0] and answer.endswith(b"\r\n\r\n" + CHUNKED), answer


def read_until(connection, end):
    text = b""
    while end not in text:
        piece = connection.recv(65536)
        assert piece, text
        text += piece
    return text


def test_a_response_is_streamed(cli):
    """Its beginning is there before its end was made; when its client goes, so does its connection."""
    with api() as service, proxy(cli, service.url) as daemon:
        with socket.create_connection(daemon.proxy, timeout=60) as connection:
            connection.sendall(b"GET /slow/3 HTTP/1.1\r\nHost: x\r\n\r\n")
            read_until(connection, b"piece 0\n")
            expect(metrics(daemon)['hapax_http_requests_in_progress{door="proxy"}'], 1)
            service.release.set()
            read_until(connection, b"0\r\n\r\n")
        service.release.clear()
        with socket.create_connection(daemon.proxy, timeout=60) as connection:
            connection.sendall(b"GET /slow/endless HTTP/1.1\r\nHost: x\r\n\r\n")
            read_until(connection, b"piece 0\n")
        service.release.set()
        until(lambda: metrics(daemon)['hapax_http_requests_in_progress{door="proxy"}'] == 0, "it was given up")


def test_a_response_that_stops(cli):
    """A client that has the beginning is reset, never told that it has the whole."""
    with api() as service, proxy(cli, service.url, config="defaults:\n  max_run: 200ms\n") as daemon:
        answer = raw(daemon.proxy, b"GET /slow/3 HTTP/1.1\r\nHost: x\r\n\r\n", shut=False)
        assert b"piece 0" in answer and not answer.endswith(b"0\r\n\r\n"), answer
        service.release.set()


def test_bodies_pass(cli):
    with api() as service, proxy(cli, service.url) as daemon:
        for size in (0, 1, 300000, 16 * 1024 * 1024):
            expect(ask(daemon.proxy, "PUT", "/", b"y" * size).status, 200, str(size))
            expect(len(service.requests[-1].body), size)
        expect(ask(daemon.proxy, "GET", "/size/1", b"a body").body, b"x")
        expect(service.requests[-1].body, b"a body")


def test_the_gateway_beside_it(cli):
    """Both doors of one daemon, each with its own rules."""
    with api() as service, proxy(cli, service.url, "--gateway", "127.0.0.1:0") as daemon:
        event = {"ce_specversion": "1.0", "ce_type": "t", "ce_source": "/s", "ce_id": "1"}
        expect(ask(daemon.gateway, "POST", "/", b"x", **event).decision, "acquired")
        expect(ask(daemon.gateway, "POST", "/", b"x", **event).decision, "replay")
        expect(post(daemon.proxy, "/", "k").decision, "acquired")
        expect(ask(daemon.gateway, "GET", "/").status, 405)
        expect(ask(daemon.proxy, "GET", "/").status, 200)
        for door in ("gateway", "proxy"):
            until(lambda name=f'hapax_connections{{door="{door}"}}': metrics(daemon)[name] == 0, "all have left")
