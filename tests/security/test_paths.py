"""Requests that say one thing here and another behind: paths that leave their route, fields in disguise."""

import itertools
import urllib.parse

from api import api, ask, expect_ran, post, proxy
from daemon import request
from harness import expect, proof, scaled

DOTS = ["..", "%2e%2e", ".%2E", "%252e%252e", "%25252e.", "%c0%ae%c0%ae", "..;", "..;a=b", "%2e%2e;", "..%3b", "..%20", "..%00"]
SLASHES = ["/", "%2f", "%2F", "%5c", "%5C", "%252f", "%255c", "%c0%af", "%c1%9c", "//", "/;/"]
ROUTES = """
proxy:
  routes:
    - {path: /v1/charges, required: true}
    - {path: /v1}
    - {path: /}
gateway:
  routes:
    - {path: /v1/events, upstream: '%s/strict'}
    - {path: /v1, upstream: '%s/lax'}
"""
EVENT = {"ce-specversion": "1.0", "ce-type": "t", "ce-source": "/s", "ce-id": "1", "Content-Type": "application/json"}


def both(cli, service):
    return proxy(cli, service.url, "--gateway", "127.0.0.1:0", config=ROUTES % (service.url, service.url))


def leads_to(path):
    """Where a service lands that decodes until nothing is left, and walks."""
    while "%" in path:
        path, before = urllib.parse.unquote(path, errors="replace"), path
        if path == before:
            break
    walked = []
    for segment in path.replace("\\", "/").split("/"):
        segment = segment.split(";")[0].strip()
        if segment == "..":
            walked = walked[:-1]
        elif segment not in ("", "."):
            walked.append(segment)
    return "/" + "/".join(walked)


def test_no_path_leaves_its_route(cli):
    """Every spelling of /v1/../admin, at both listeners: 400, and nothing is forwarded."""
    paths = [f"/v1{first}{dots}{then}admin" for first, dots, then in itertools.product(SLASHES, DOTS, SLASHES)]
    paths += [path.replace("admin", "x") + "?y=/../z" for path in paths[::7]] + ["/v1/..", "/..", "/v1/.", "/v1/%2e", "/v1/x/."]
    paths = paths[:: scaled(proof=1, usual=9)]
    with api() as service, both(cli, service) as daemon, proof("paths that leave their route", 2 * len(paths)):
        for number, path in enumerate(paths):
            for method, key in (("POST", f"k{number}"), ("GET", None)):
                ask(daemon.proxy, method, path, b"{}", key).is_problem(400, "path")
            request(daemon.gateway, "POST", path, EVENT, b"{}").is_problem(400, "path")
        expect(service.paths, [])


def test_no_spelling_evades_a_route(cli):
    """What a service decodes to a path of the strict route is not taken by the lax one."""
    evading = ["/v1%2fcharges", "/v1%2Fcharges/1", "/v1%5ccharges", "/v1%252fcharges", "/v1;a=b/charges", "/v1/;/charges"]
    evading += ["//v1/charges", "/v1//charges", "/v1/charges;a/1", "/v1/charges%3ba", "/v1/charges%252f1", "/v1%2f%63harges"]
    with api() as service, both(cli, service) as daemon:
        for path in evading:
            expect(leads_to(path).startswith("/v1/charges"), True, path)
            for key in ("k", None):
                ask(daemon.proxy, "POST", path, b"{}", key).is_problem(400, "problem:")
            request(daemon.gateway, "POST", path.replace("charges", "events"), EVENT, b"{}").is_problem(400, "path")
        expect(service.paths, [])


def test_harmless_paths_go_as_they_came(cli):
    harmless = ["/v1/x", "/v1/a%2Fb", "/v1/a%5cb", "/v1/a;v=1/b;w=2", "/v1/...", "/v1/.x", "/v1/x..", "/v1/%C3%A4", "/v1/%C0", "/v1/a%20b"]
    harmless += ["/v1/100%25", "/v1/a%252Fb", "/.well-known/x", "/v1/charges/a%2Fb", "/v1/x//y", "/"]
    with api() as service, both(cli, service) as daemon:
        for number, path in enumerate(harmless, 1):
            expect_ran(post(daemon.proxy, path, "k"), b"run %d" % number)
        expect(service.paths, harmless)
        events = [path for path in harmless if path.startswith("/v1/")]
        for number, path in enumerate(events):
            expect(request(daemon.gateway, "POST", path, {**EVENT, "ce-id": f"h{number}"}, b"{}").status, 200, path)
        expect(service.paths[len(harmless) :], ["/lax" + path for path in events])


def test_a_route_that_is_written_encoded(cli):
    config = "proxy:\n  routes:\n    - {path: /caf%C3%A9, required: true}\n    - {path: /a%2Fb, required: true}\n    - {path: /}\n"
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for path in ("/caf%c3%a9/x", "/a%2fb/c"):
            expect(post(daemon.proxy, path, "k").decision, "acquired")
            ask(daemon.proxy, "POST", path, b"{}").is_problem(400, "key-missing")
        for path in ("/caf%25C3%25A9", "/caf%c3%a9%2fx/y", "/a%252fb"):
            reply = ask(daemon.proxy, "POST", path, b"{}")
            expect(reply.status, 400, path)
        expect(len(service.requests), 2)


def test_fields_in_disguise_stay_behind(cli):
    """CGI and WSGI take X_User for X-User. Of a response everything passes."""
    forged = ["X_User", "X_API_Key", "Idempotency_Key", "Hapax_Token", "Content_Type", "Content_Length", "Transfer_Encoding", "Cookie_"]
    forged += ["X.User", "X!User", "X~User", "X'User", "X+User", "X|User", "X-Forwarded_For", "ce_id", "_"]
    with api() as service, both(cli, service) as daemon:
        service.fields = [("X_Answer", "yes"), ("X.Answer", "yes")]
        reply = post(daemon.proxy, "/v1", "k", fields=[(name, "forged") for name in forged])
        expect((reply.status, reply.headers.get("x_answer"), reply.headers.get("x.answer")), (200, "yes", "yes"))
        expect(ask(daemon.proxy, "GET", "/v1", fields=[(name, "forged") for name in forged]).status, 200)
        fields = {**EVENT, **{name: "forged" for name in forged}, "X-User": "mine"}
        expect(request(daemon.gateway, "POST", "/v1", fields, b"{}").status, 200)
        expect(len(service.requests), 3)
        for got in service.requests:
            expect([value for value in got.headers.values() if value == "forged"], [])
        expect(service.requests[2].headers["x-user"], "mine")
