"""A request that is not an event: a clear answer, nothing forwarded, nothing marked."""

import re

from daemon import EVENT, expect_marked, get, post, post_batch, post_structured, raw, request, serve, structured, upstream
from harness import expect, expect_in

HEAD = b"POST / HTTP/1.1\r\nHost: x\r\n"
FIELDS = b"ce-specversion: 1.0\r\nce-id: 1\r\nce-source: /shop\r\nce-type: t\r\nContent-Type: text/plain\r\n"
NEXT = b"POST /next HTTP/1.1\r\nHost: x\r\n" + FIELDS.replace(b"ce-id: 1", b"ce-id: smuggled") + b"Content-Length: 1\r\n\r\nx"

# Two readers could see one request or two. The codec's own table is far longer (tests/unit/http1_requests.h);
# these show that nothing gets past the door.
SMUGGLING = [
    b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
    b"Content-Length: 0\r\nContent-Length: 5\r\n\r\n",
    b"Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello",
    b"Content-Length: +5\r\n\r\nhello",
    b"Content-Length: 5, 5\r\n\r\nhello",
    b"Content-Length : 5\r\n\r\nhello",
    b"Content-Length:\r\n 5\r\n\r\nhello",
    b"Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: identity\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding:\x0bchunked\r\n\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n0x5\r\nhello\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n5\nhello\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n5;\x00\r\nhello\r\n0\r\n\r\n",
    b"Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n",
    b"Transfer-Encoding: chunked\r\n\r\n5\r\nhelloXX0\r\n\r\n",
    b"X: a\rContent-Length: 5\r\n\r\nhello",
    b"X: a\nContent-Length: 5\r\n\r\nhello",
    b"X: a\x00b\r\nContent-Length: 5\r\n\r\nhello",
    b"Host: y\r\nContent-Length: 5\r\n\r\nhello",
]


def test_not_an_event(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        to = daemon.gateway
        for name in EVENT:
            if name.startswith("ce-"):
                post(to, "1", **{name: None}).is_problem(400, name)
                post(to, "1", **{name: ""}).is_problem(400, name)
        request(to, "POST", "/", {**EVENT}, b"{}").is_problem(400, "ce-id")
        post(to, "1", ce_specversion="0.3").is_problem(400, "1.0")
        post(to, "1", ce_time="yesterday").is_problem(400, "ce-time")
        post(to, "1", ce_datacontenttype="text/plain").is_problem(400, "datacontenttype")
        post(to, "%C0%A0").is_problem(400)
        post(to, "1", Content_Type="application/cloudevents+avro").is_problem(415, "avro")
        post(to, "1", Content_Type="application/cloudevents+json; charset=utf-16").is_problem(415, "utf-16")
        request(to, "POST", "/", {"Content-Type": "application/cloudevents+json"}, b"{").is_problem(400, "line 1")
        request(to, "POST", "/", {"Content-Type": "application/cloudevents+json"}, b"[]").is_problem(400)
        request(to, "POST", "/", {"Content-Type": "application/cloudevents-batch+json"}, b"{}").is_problem(400)
        twice = b'{"specversion":"1.0","id":"1","id":"2","source":"/s","type":"t"}'
        request(to, "POST", "/", {"Content-Type": "application/cloudevents+json"}, twice).is_problem(400)
        post_structured(to, {**structured("1"), "id": 7}).is_problem(400, "id")
        post_batch(to, [structured("1"), {"id": "2"}]).is_problem(400, "event 1")
        post_batch(to, [structured(str(number)) for number in range(1001)]).is_problem(413)
        expect(service.requests, [])
        expect(get(daemon.admin, "/actuator/deduplication").json["requestCount"], 0)
        expect_marked(daemon)


def test_not_for_this_door(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        for method in ("GET", "PUT", "DELETE", "PATCH", "TRACE", "BREW"):
            reply = request(daemon.gateway, method, "/").is_problem(405, "POST")
            expect(reply.headers["allow"], "OPTIONS, POST")
        reply = request(daemon.gateway, "HEAD", "/")
        expect((reply.status, reply.body), (405, b""))
        expect(service.requests, [])
        expect_marked(daemon)


def test_not_a_request(cli):
    """Framing errors: answered, and the connection is closed, so that nothing behind them is read."""
    with upstream() as service, serve(cli, service.url) as daemon:
        to = daemon.gateway
        table = [
            (b"nonsense\r\n\r\n", 400),
            (b"GET / HTTP/2.0\r\nHost: x\r\n\r\n", 505),
            (b"POST / HTTP/1.1\r\n\r\n", 400),
            (b"POST /" + b"a" * 9000 + b" HTTP/1.1\r\nHost: x\r\n\r\n", 414),
            (HEAD + b"X: " + b"a" * 17000 + b"\r\n\r\n", 431),
            (HEAD + b"X: a\r\n" * 101 + b"\r\n", 431),
            (HEAD + b"Transfer-Encoding: gzip\r\n\r\n", 400),
            (b"M" * 33 + b" / HTTP/1.1\r\nHost: x\r\n\r\n", 501),
            (HEAD + FIELDS + b"Content-Length: 99999999999\r\n\r\n", 413),
            (HEAD + b"Expect: 200-maybe\r\n" + FIELDS + b"Content-Length: 1\r\n\r\nx", 417),
        ]
        for data, status in table:
            answer = raw(to, data + NEXT, shut=False)
            expect(len(re.findall(rb"HTTP/1\.1 \d\d\d ", answer)), 1, f"answers to {data[:60]!r}")
            expect_in(b"HTTP/1.1 %d " % status, answer, f"answer to {data[:60]!r}")
            expect_in(b"application/problem+json", answer)
            expect_in(b"Connection: close", answer)
        expect(service.requests, [])
        expect_marked(daemon)


def test_smuggling(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        for attack in SMUGGLING:
            answer = raw(daemon.gateway, HEAD + FIELDS + attack + NEXT, shut=False)
            expect(len(re.findall(rb"HTTP/1\.1 \d\d\d ", answer)), 1, f"answers to {attack!r}: {answer!r}")
            assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")), (attack, answer)
            expect(service.requests, [], f"{attack!r}")
            expect_marked(daemon)


def test_one_reading_reaches_the_upstream(cli):
    """Chunks, extensions and trailers arrive as one body with one length."""
    with upstream() as service, serve(cli, service.url) as daemon:
        body = b"Transfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n2\r\nde\r\n0\r\nce-id: trailer\r\nHapax-Token: 1\r\n\r\n"
        answer = raw(daemon.gateway, HEAD + FIELDS + body)
        expect_in(b"HTTP/1.1 200 ", answer)
        _, headers, data = service.requests[0]
        expect((data, headers["Content-Length"], headers["ce-id"]), (b"abcde", "5", "1"))
        assert "Transfer-Encoding" not in headers


def test_many_fields_of_one_name(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        twice = FIELDS + b"ce-id: 2\r\nContent-Length: 1\r\n\r\nx"
        expect_in(b"HTTP/1.1 400 ", raw(daemon.gateway, HEAD + twice))
        twice = FIELDS + b"Content-Type: text/html\r\nContent-Length: 1\r\n\r\nx"
        expect_in(b"HTTP/1.1 400 ", raw(daemon.gateway, HEAD + twice))
        expect(service.requests, [])
        expect_marked(daemon)


def test_bad_settings(cli):
    good = ["serve", "--store", "memory:", "--gateway", "127.0.0.1:0", "--admin", "off"]
    cli.run("serve", "--store", "memory:", code=78).says("no upstream for the gateway", "--upstream")
    cli.run(*good, "--upstream", "ftp://x", code=78).says("--upstream")
    cli.run(*good, "--upstream", "http://127.0.0.1:1", "--gateway", "nonsense", code=78).says("--gateway")
    cli.run(*good, "--upstream", "http://127.0.0.1:1", "--store", "nowhere:", code=69)
    cli.run(*good, "--upstream", "http://127.0.0.1:1", "--config", "/nonexistent.yaml", code=66).says("/nonexistent.yaml")
    cli.run(*good, "--upstream", "http://127.0.0.1:1", "--admin", "0.0.0.0:0", code=78).says("listen.admin")
    path = cli.folder / "bad.yaml"
    path.write_text("defaults:\n  tll: 1h\n", encoding="utf-8")
    cli.run(*good, "--config", str(path), code=78).says("bad.yaml:2:3", "did you mean 'ttl'")
    with upstream() as service, serve(cli, service.url) as daemon:
        taken = "%s:%d" % daemon.gateway
        cli.run(*good, "--upstream", service.url, "--gateway", taken, "--loops", "1", code=69).says(taken, "in use")
