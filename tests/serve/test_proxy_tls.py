"""The proxy behind TLS: a client's certificate says whose Idempotency-Key it is."""

import http.client
import json

from api import api, proxy
from certificates import Authority
from daemon import request
from harness import TIMEOUT_SECONDS, expect


def test_a_certificate_is_a_credential(cli):
    """One key, two certificates: no cross replay. Authorization counts beside them; without one, no identity."""
    authority = Authority(cli.folder)
    server, ann, bob = authority.issue("server"), authority.issue("ann"), authority.issue("bob")
    config = f"tls: {{certificate: {server.path}, key: {server.key}, client_ca: {authority.path}, client_auth: optional, admin: {{enabled: false}}}}\n"

    def charge(daemon, client, **headers):
        connection = http.client.HTTPSConnection(
            "127.0.0.1", daemon.proxy[1], timeout=TIMEOUT_SECONDS, context=authority.context(client)
        )
        try:
            headers = {"Host": "api.example", "Idempotency-Key": "k", **headers}
            reply = request(None, "POST", "/charges", headers, b"{}", connection)
            return reply.decision, reply.body
        finally:
            connection.close()

    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for number, client in enumerate((ann, bob), 1):
            expect(charge(daemon, client), ("acquired", b"run %d" % number))
        for number, client in enumerate((ann, bob), 1):
            expect(charge(daemon, client), ("replay", b"run %d" % number))
        decision, body = charge(daemon, None)
        expect((decision, json.loads(body)["type"]), (None, "urn:hapax:problem:credential-missing"))
        expect(charge(daemon, None, Authorization="Bearer a"), ("acquired", b"run 3"))
        expect(charge(daemon, ann, Authorization="Bearer a"), ("acquired", b"run 4"))
        expect(charge(daemon, bob, Authorization="Bearer a"), ("acquired", b"run 5"))
        expect(charge(daemon, ann, Authorization="Bearer a"), ("replay", b"run 4"))
        expect(len(service.requests), 5)
        expect({request.headers["x-forwarded-proto"] for request in service.requests}, {"https"})
