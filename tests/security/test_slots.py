"""One address cannot take what is for all: connections, requests in progress, listeners."""

import contextlib
import http.client
import json
import resource
import threading

import network
from daemon import EVENT, log_line, metrics, post, request, serve, upstream
from harness import TIMEOUT_SECONDS, expect, expect_in, proof, scaled, until

PART = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 100000\r\n\r\nx"
OPTIONS = b"OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n"


def from_machine(number, to):
    """An HTTP connection from that machine."""
    return http.client.HTTPConnection(*to, timeout=TIMEOUT_SECONDS, source_address=(network.address(number), 0))


def post_as(to, event_id, path="/", connection=None, **headers):
    fields = {**EVENT, "ce-id": event_id, **{name.replace("_", "-"): value for name, value in headers.items()}}
    return request(to, "POST", path, fields, b'{"total":42}', connection)


def test_unfinished_bodies_take_no_slot(cli):
    """A request counts when all of it is there."""
    network.need()
    count = scaled(2100, 60)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    config = "" if count >= 2100 else "http:\n  max_requests: 8\n  max_requests_per_address: 8\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon, contextlib.ExitStack() as held:
        with proof("unfinished bodies", count):
            for number in range(count):
                # Of a few machines: one alone is not let in so often.
                held.enter_context(network.connect(daemon.gateway, 10 + number % 4)).sendall(PART)
            until(lambda: metrics(daemon)['hapax_connections{door="gateway"}'] == count, "all are there")
            for number in range(20):
                expect(post(daemon.gateway, f"local-{number}").status, 200)
                expect(post_as(None, f"far-{number}", connection=from_machine(2, daemon.gateway)).status, 200)


def is_kept(to, number, kept):
    """One more connection of that machine; False: it was sent away."""
    connection = kept.enter_context(network.connect(to, number))
    connection.sendall(OPTIONS)
    return b" 200 OK" in connection.recv(4096)


def test_connections_of_an_address(cli):
    """429 above its limit, for this address alone; the log reports when it begins."""
    network.need()
    with (
        upstream() as service,
        serve(cli, service.url, config="http:\n  max_connections_per_address: 4\n") as daemon,
        contextlib.ExitStack() as kept,
    ):
        expect([is_kept(daemon.gateway, 1, kept) for _ in range(4)], [True] * 4)
        with network.connect(daemon.gateway, 1) as connection:
            connection.sendall(OPTIONS)
            reply = connection.recv(4096)
        expect_in(b"HTTP/1.1 429 ", reply)
        expect_in(b"Retry-After: ", reply)
        expect(is_kept(daemon.gateway, 2, kept), True)
        # This machine, as its own reverse proxy, has no limit.
        expect([is_kept(daemon.gateway, None, kept) for _ in range(8)], [True] * 8)
        said = daemon.wait_for(lambda line: log_line(line) if "address limit reached" in line else None)
        expect((said["limit"], said["client"]), ("http.max_connections_per_address", network.address(1)))
        expect(metrics(daemon)['hapax_refused_total{reason="address"}'], 1.0)


def test_a_trusted_proxy_is_not_its_clients(cli):
    """What it passes on counts for whom it names last, and only what stands there last."""
    network.need()
    config = f"http:\n  max_requests_per_address: 2\n  max_connections_per_address: 1\n  trusted_proxies: [{network.address(9)}]\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        guilty = f"198.51.100.7, 203.0.113.9, {network.address(9)}"
        held = [
            threading.Thread(
                target=post_as,
                args=(None, f"held-{number}", "/hold", from_machine(9, daemon.gateway)),
                kwargs={"X_Forwarded_For": guilty},
            )
            for number in range(2)
        ]
        for thread in held:
            thread.start()
            service.arrived.acquire()

        def status(event_id, machine, **headers):
            connection = from_machine(machine, daemon.gateway)
            with contextlib.closing(connection):
                return post_as(None, event_id, connection=connection, **headers).status

        expect(status("a", 9, X_Forwarded_For="203.0.113.9"), 429)
        expect(status("b", 9, X_Forwarded_For="192.0.2.1, 203.0.113.9"), 429)
        expect(status("c", 9, X_Forwarded_For="203.0.113.9, 192.0.2.1"), 200)
        expect(status("d", 9), 200)
        # Another client claims this address, and is not believed.
        expect(status("e", 3, X_Forwarded_For="203.0.113.9"), 200)
        service.release.set()
        for thread in held:
            thread.join()
        until(lambda: status("a", 9, X_Forwarded_For="203.0.113.9") == 200, "there is room again")


def told(service, *names):
    fields = {name.lower(): value for name, value in service.requests[-1][1].items()}
    return [fields.get(name.lower()) for name in names]


FORGED = {"X_Forwarded_For": "6.6.6.6", "X_Forwarded_Host": "evil.example", "X_Forwarded_Proto": "https", "X_Real_IP": "6.6.6.6"}
FORGED |= {"X_Forwarded_Port": "666", "X_Forwarded_Prefix": "/evil", "Forwarded": "for=6.6.6.6"}


def test_forwarded_fields_of_strangers_are_dropped(cli):
    """An upstream that goes by them goes by what hapax has seen."""
    network.need()
    with upstream() as service:
        config = f"proxy:\n  routes:\n    - {{name: all, path: /, upstream: '{service.url}'}}\n"
        with serve(cli, service.url, "--proxy", "127.0.0.1:0", config=config) as daemon:
            names = ["X-Forwarded-For", "X-Real-IP", "Forwarded", "X-Forwarded-Port", "X-Forwarded-Prefix"]
            for door in (daemon.gateway, daemon.proxy):
                expect(post_as(None, f"1{door}", connection=from_machine(1, door), **FORGED).status, 200)
                expect(told(service, *names), [network.address(1), None, None, None, None])
                # Twice the same field: http.server shows the last one, which is ours.
                expect(post_as(door, f"2{door}", **FORGED).status, 200)
                expect(told(service, *names), ["127.0.0.1", "6.6.6.6", "for=127.0.0.1", "666", "/evil"])
            expect(told(service, "X-Forwarded-Host", "X-Forwarded-Proto"), ["evil.example", "https"])
            expect(post_as(None, "3", connection=from_machine(1, daemon.proxy), **FORGED).status, 200)
            expect(told(service, "X-Forwarded-Proto"), ["http"])
            assert told(service, "X-Forwarded-Host") != ["evil.example"]


def test_listeners_of_an_address(cli):
    """Streams of events are limited for each address."""
    made = cli.run("config", "token", "-o", "json").json
    config = f"auth: {{tokens: [{json.dumps(made['row'])}]}}\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon, contextlib.ExitStack() as kept:

        def status(**headers):
            connection = http.client.HTTPConnection(*daemon.admin, timeout=TIMEOUT_SECONDS)
            kept.enter_context(contextlib.closing(connection))
            connection.request("GET", "/api/v1/events", headers={"Authorization": f"Bearer {made['token']}", **headers})
            return connection.getresponse().status

        one, other = ({"X-Forwarded-For": address} for address in ("203.0.113.9", "203.0.113.10"))
        expect([status(**one) for _ in range(14)], [200] * 12 + [429] * 2)
        expect([status(**other), status()], [200, 200])
