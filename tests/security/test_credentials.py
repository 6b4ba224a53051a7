"""Clients of the proxy that guess the keys of others: none gets a response that is not its own."""

import itertools

from api import api, ask, expect_ran, expect_replayed, post, proxy
from harness import expect, proof, scaled

# What hapax.yaml lists: each of them alone tells two clients apart.
FIELDS = """Authorization X-API-Key X-API-Token X-API-Secret Api-Key ApiKey Api-Token Access-Token X-Auth-Token X-Auth-Key
X-Access-Token X-Session-Token X-User-Token X-Client-Secret X-Token X-Goog-Api-Key Ocp-Apim-Subscription-Key X-Functions-Key
X-Shopify-Access-Token X-RapidAPI-Key X-Vault-Token Private-Token Job-Token DD-API-KEY PLAID-SECRET""".split()
ACCOUNTS = """Stripe-Account Stripe-Context X-Goog-User-Project OpenAI-Organization OpenAI-Project Xero-Tenant-Id X-Account-Id
X-Organization-Id X-Tenant-Id""".split()
SESSIONS = "proxy:\n  routes:\n    - {path: /, credential_cookies: [session, device]}\n"


def send(daemon, fields, path="/charges", **headers):
    return post(daemon.proxy, path, "guessed", credential=None, fields=list(fields), **headers)


def owns(service, reply):
    """Whether the response is to a request of this very client, made now."""
    expect((reply.status, reply.decision), (200, "acquired"))
    expect(reply.body, b"run %d" % len(service.requests))


def test_every_field_that_is_listed_tells_clients_apart(cli):
    with api() as service, proxy(cli, service.url) as daemon:
        for name in FIELDS:
            first = send(daemon, [(name, "A")])
            owns(service, first)
            owns(service, send(daemon, [(name, "B")]))
            expect_replayed(send(daemon, [(name.lower(), "A")]), first.body)
        expect(len(service.requests), 2 * len(FIELDS))


def test_one_shared_credential_hides_no_other(cli):
    """A Basic credential that all have, and what else there is: every combination is a client of its own."""
    parts = [
        [(), (("Authorization", "Basic c2hhcmVk"),)],
        [(), (("X-API-Key", "A"),), (("X-API-Key", "B"),), (("X-API-Key", "A"), ("X-API-Key", "B")), (("X-API-Key", "A, B"),)],
        [(), (("Cookie", "session=A"),), (("Cookie", "session=B"),), (("Cookie", "device=A"),), (("Cookie", "session=A; device=A"),)],
        [(), (("Private-Token", "A"),), (("X-Auth-Token", "A"),)],
    ]
    clients = [sum(choice, ()) for choice in itertools.product(*parts)][1:]
    clients = clients[:: scaled(proof=1, usual=3)]
    with api() as service, proxy(cli, service.url, config=SESSIONS) as daemon, proof("clients with one key", len(clients)):
        for fields in clients:
            owns(service, send(daemon, fields))
        for number, fields in enumerate(clients, 1):
            # In another order, with unknown cookies: still the same client, and no second charge.
            again = [*reversed([field for field in fields if field[0] != "X-API-Key"])]
            again += [field for field in fields if field[0] == "X-API-Key"] + [("Cookie", f"_ga=GA1.{number}; theme=dark")]
            expect_replayed(send(daemon, again), b"run %d" % number)
        expect(len(service.requests), len(clients))


def test_a_client_without_a_credential_gets_nothing(cli):
    """Neither a response nor a run; an empty or unnamed value is not a credential. A request without a key passes."""
    strangers = [
        [],
        [("Authorization", "")],
        [("X-API-Key", ""), ("x-api-key", "")],
        [("Cookie", "_ga=GA1.1")],
        [("Cookie", "session=")],
        [("Cookie", "sessions=A; xsession=A; =session")],
        [("X-Forwarded-User", "ann")],
        [("Proxy-Authorization", "Basic YTpi")],
        [("X_API_Key", "A")],
    ]
    with api() as service, proxy(cli, service.url, config=SESSIONS) as daemon:
        for fields in strangers:
            reply = send(daemon, fields).is_problem(400, "credential")
            expect(reply.json["type"], "urn:hapax:problem:credential-missing", repr(fields))
            assert ("credential_cookies" in reply.json["detail"]) == any(name == "Cookie" for name, _ in fields), reply.json
        expect(service.requests, [])
        expect(ask(daemon.proxy, "POST", "/charges", b"{}", credential=None).status, 200)


def test_sharing_must_be_written_down(cli):
    config = "proxy:\n  routes:\n    - {path: /public, credential: none}\n    - {path: /user, credential: 'header:X-User'}\n"
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        expect_ran(send(daemon, [], "/public"), b"run 1")
        expect_replayed(send(daemon, [("Authorization", "Bearer a")], "/public"), b"run 1")
        for fields in ([], [("X-User", "")], [("X-User", " ")], [("Authorization", "Bearer a")], [("X-User", "a"), ("X-User", "a")]):
            send(daemon, fields, "/user").is_problem(400, "X-User")
        expect(len(service.requests), 1)


def test_a_credential_that_stays_behind(cli):
    """Connection names it, so the upstream would answer another client: nothing runs."""
    with api() as service, proxy(cli, service.url, config=SESSIONS) as daemon:
        for name, value in (("Authorization", "A"), ("X-API-Key", "A"), ("Private-Token", "A"), ("Cookie", "session=A")):
            send(daemon, [(name, value), ("Connection", f"close, {name.lower()}")]).is_problem(400, "Connection")
        send(daemon, [("Authorization", "A"), ("Authorization", "B")]).is_problem(400, "twice")
        expect(service.requests, [])


def test_another_account_is_another_payload(cli):
    """422, never the response that was for another account; also when the account comes or goes."""
    config = "proxy:\n  routes:\n    - {path: /own, fingerprint_headers: [X-Shop]}\n    - {path: /}\n"
    ann = [("Authorization", "Bearer ann")]
    with api() as service, proxy(cli, service.url, config=config) as daemon:
        for name in ACCOUNTS:
            path = f"/{name}"
            ran = send(daemon, [*ann, (name, "A")], path)
            owns(service, ran)
            for other in ([(name, "B")], [], [(name, "A"), (name, "B")], [(name, "A, B")]):
                send(daemon, [*ann, *other], path).is_problem(422, "mismatch")
            expect_replayed(send(daemon, [(name.upper(), "A"), *ann], path), ran.body)
        ran = send(daemon, [*ann, ("X-Shop", "A"), ("Stripe-Account", "A")], "/own")
        send(daemon, [*ann, ("X-Shop", "B")], "/own").is_problem(422, "mismatch")
        expect_replayed(send(daemon, [*ann, ("x-shop", "A"), ("Stripe-Account", "B")], "/own"), ran.body)
        expect(len(service.requests), len(ACCOUNTS) + 1)
