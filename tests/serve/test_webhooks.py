"""Webhooks of known senders at the proxy (E18): their deliveries, in the documented form, run once (E21, A6).

Each sender delivers twice, at the same time, and after a failure. A delivery here is (headers, body); a retry of a
sender may differ from the first try in whatever its documentation does not promise.
"""

import base64
import contextlib
import hashlib
import hmac
import json
import signal
import threading
import time
import urllib.parse

from api import api, ask, expect_ran, expect_replayed, proxy
from daemon import get, log_line, metrics
from harness import expect, until

JSON = ("Content-Type", "application/json")


def github(number, retry=0):
    body = {"zen": "Design for failure.", "hook_id": 30, "hook": {"type": "Repository", "id": 30, "events": ["push"]}}
    headers = [
        ("User-Agent", "GitHub-Hookshot/044aadd"), ("X-GitHub-Hook-ID", "30"), ("X-GitHub-Event", "ping"), JSON,
        ("X-GitHub-Delivery", f"72d3162e-cc78-11e3-81ab-4c9367dc{number:04}"),
    ]
    return headers, json.dumps(body).encode()


def paypal(number, retry=0):
    body = {
        "id": f"WH-COC11055RA711503B-4YM959094A14403{number:02}T", "event_version": "1.0", "resource_type": "sale",
        "event_type": "PAYMENT.SALE.COMPLETED", "resource": {"id": "2FY57107YS3937627", "state": "completed"},
    }
    headers = [
        JSON, ("PAYPAL-TRANSMISSION-ID", f"103e3700-8b0c-11e6-8695-6b62a8a99ac{retry}"),
        ("PAYPAL-TRANSMISSION-TIME", f"2016-10-05T14:57:4{retry}Z"), ("PAYPAL-AUTH-ALGO", "SHA256withRSA"),
    ]
    return headers, json.dumps(body).encode()


def shopify(number, retry=0):
    headers = [
        JSON, ("X-Shopify-Topic", "orders/create"), ("X-Shopify-Shop-Domain", "shop.myshopify.com"),
        ("X-Shopify-API-Version", "2026-10"), ("X-Shopify-Event-Id", f"98880550-7158-44d4-b7cd-2c97c8a{number:05}"),
        ("X-Shopify-Webhook-Id", f"b54557e4-bdd9-4b37-8a5f-bf7d70b{retry:05}"),
    ]
    return headers, b'{"id":820982911946154508,"email":"jon@example.com"}'


def slack(number, retry=0):
    body = {
        "token": "XXYYZZ", "team_id": "T123ABC456", "type": "event_callback", "event_id": f"Ev123ABC4{number:02}",
        "event_time": 1234567890, "event": {"type": "app_mention", "user": "U061F7AUR", "ts": "1515449522.000016"},
    }
    headers = [JSON] + ([("X-Slack-Retry-Num", str(retry)), ("X-Slack-Retry-Reason", "http_timeout")] if retry else [])
    return headers, json.dumps(body).encode()


def sns(number, retry=0):
    body = {
        "Type": "Notification", "MessageId": f"22b80b92-fdea-4c2c-8f9d-bdfb0c7bf3{number:02}", "Message": "Hello world!",
        "TopicArn": "arn:aws:sns:us-west-2:123456789012:MyTopic", "Timestamp": "2012-05-02T00:54:06.655Z",
        "SignatureVersion": "1", "Signature": "EXAMPLEw6JRN...",
    }
    return [("x-amz-sns-message-type", "Notification"), ("Content-Type", "text/plain; charset=UTF-8")], json.dumps(body).encode()


def standard(number, retry=0):
    body = {"type": "contact.created", "timestamp": "2022-11-03T20:26:10.344522Z", "data": {"id": "1f81eb52"}}
    headers = [JSON, ("webhook-id", f"msg_2KWPBgLlAfxdpx2AI54pPJ85f{number:02}"), ("webhook-timestamp", str(1674087231 + retry))]
    return headers, json.dumps(body).encode()


def stripe(number, retry=0):
    """pending_webhooks changes between tries."""
    body = {
        "id": f"evt_1NG8Du2eZvKYlo2CUI79vX{number:02}", "object": "event", "api_version": "2019-02-19", "created": 1686089970,
        "data": {"object": {"id": "seti_1NG8Du2eZvKYlo2C9XMqbR0x", "object": "setup_intent"}}, "livemode": False,
        "pending_webhooks": 3 - retry, "request": {"id": None, "idempotency_key": None}, "type": "setup_intent.created",
    }
    return [JSON, ("User-Agent", "Stripe/1.0 (+https://stripe.com/docs/webhooks)")], json.dumps(body, indent=2).encode()


def twilio(number, retry=0):
    headers = [
        ("Content-Type", "application/x-www-form-urlencoded; charset=UTF-8"), ("User-Agent", "TwilioProxy/1.1"),
        ("I-Twilio-Idempotency-Token", f"d8f5d3a7-3e9c-4d1e-bd7f-8f0b1b9c{number:04}"),
    ]
    return headers, b"AccountSid=AC0123&Body=Hello+world&From=%2B14158675309&MessageSid=SM0123&To=%2B18005551212"


SENDERS = {
    "github": github, "paypal": paypal, "shopify": shopify, "slack": slack, "sns": sns, "standard-webhooks": standard,
    "stripe": stripe, "twilio": twilio,
}

# The seconds after which the sender gives up, as documented; or ten, if it does not say.
PATIENCE = {"github": 10, "shopify": 5, "slack": 3, "sns": 15, "standard-webhooks": 15, "twilio": 15}


def send(daemon, path, delivery, method="POST"):
    headers, body = delivery
    return ask(daemon.proxy, method, path, body, credential=None, fields=headers)


@contextlib.contextmanager
def webhooks(cli, *rows, **more):
    """A route with its preset for each sender, or these rows; what comes to the service, and the daemon."""
    rows = rows or [f"{{path: /{name}, preset: {name}}}" for name in SENDERS]
    config = "proxy:\n  routes:\n" + "".join(f"    - {row}\n" for row in rows)
    with api() as service, proxy(cli, service.url, config=config, **more) as daemon:
        yield service, daemon


def answer_with(service, *statuses):
    """The next requests get these statuses; then 200."""
    left = list(statuses)

    def answer(handler, number, *_):
        status = left.pop(0) if left else 200
        handler.send_response(status)
        handler.send_header("Content-Length", "4")
        handler.end_headers()
        handler.wfile.write(b"%4d" % number)

    service.answer = answer


def test_a_delivery_twice(cli):
    """The second gets the stored answer, though its bytes may differ; the next delivery runs."""
    with webhooks(cli) as (service, daemon):
        for name, delivery in SENDERS.items():
            before = len(service.requests)
            expect_ran(send(daemon, f"/{name}", delivery(1)), b"run %d" % (before + 1))
            expect_replayed(send(daemon, f"/{name}", delivery(1, retry=1)), b"run %d" % (before + 1))
            expect_ran(send(daemon, f"/{name}", delivery(2)), b"run %d" % (before + 2))
            got = service.requests[before]
            expect((got.method, got.path, got.body), ("POST", f"/{name}", delivery(1)[1]), name)
        # An action of a shop that is one event for two topics is two deliveries.
        headers, body = shopify(1)
        expect_ran(send(daemon, "/shopify", ([*headers[2:], ("X-Shopify-Topic", "orders/paid")], body)), b"run 17")


def test_two_deliveries_at_the_same_time(cli):
    """One runs. The other waits a little, and is then told to retry: never 2xx before the work is done.

    Amazon SNS does not retry after a 4xx, so it gets 503.
    """
    rows = [f"{{path: /hold/{name}, preset: {name}, wait: 10ms, max_run: 1m}}" for name in SENDERS]
    with webhooks(cli, *rows) as (service, daemon):
        replies = []
        threads = []
        for name, delivery in SENDERS.items():
            threads.append(threading.Thread(target=lambda n=name, d=delivery: replies.append(send(daemon, f"/hold/{n}", d(1)))))
            threads[-1].start()
            service.arrived.acquire()
            reply = send(daemon, f"/hold/{name}", delivery(1, retry=1)).is_problem(503 if name == "sns" else 409, "outstanding")
            expect((reply.decision, reply.headers["retry-after"]), ("in_progress", "1"), name)
            # Slack would never retry.
            expect("x-slack-no-retry" in reply.headers, False)
        service.release.set()
        for thread in threads:
            thread.join()
        expect(sorted(reply.decision for reply in replies), ["acquired"] * len(SENDERS))
        for name, delivery in SENDERS.items():
            expect(send(daemon, f"/hold/{name}", delivery(1, retry=2)).decision, "replay", name)
        expect(len(service.requests), len(SENDERS))


def test_a_delivery_after_a_failure(cli):
    """No 4xx of the handler is final: after a fix, the redelivery runs (A6). The sender sees every status."""
    failures = (500, 400, 404, 410, 422, 302)
    with webhooks(cli) as (service, daemon):
        for name, delivery in SENDERS.items():
            answer_with(service, *failures)
            for retry, status in enumerate((*failures, 200)):
                reply = send(daemon, f"/{name}", delivery(1, retry))
                expect((reply.status, reply.decision), (status, "acquired"), name)
                expect(service.requests[-1].headers["hapax-attempt"], str(retry + 1))
            expect(send(daemon, f"/{name}", delivery(1, 9)).decision, "replay", name)


def test_a_lost_answer(cli):
    """The outcome is unknown: the next delivery runs, and nothing waits for a person."""
    rows = [f"{{path: /drop/{name}, preset: {name}}}" for name in SENDERS]
    with webhooks(cli, *rows) as (service, daemon):
        for name, delivery in SENDERS.items():
            send(daemon, f"/drop/{name}", delivery(1)).is_problem(502, "lost")
        answer_with(service)
        for name, delivery in SENDERS.items():
            reply = send(daemon, f"/drop/{name}", delivery(1))
            expect((reply.status, reply.decision), (200, "acquired"), name)


def test_a_forged_delivery_without_a_secret(cli):
    """The handler refuses it, and the real one with the same id runs; while it runs, the real one is told to retry."""
    with webhooks(cli, "{path: /, preset: stripe, wait: 10ms}") as (service, daemon):
        headers, body = stripe(1)
        answer_with(service, 400)
        expect(send(daemon, "/", (headers, body.replace(b"setup_intent", b"payment"))).status, 400)
        reply = send(daemon, "/", (headers, body))
        expect((reply.status, reply.decision, service.requests[-1].body), (200, "acquired", body))


def test_what_passes(cli):
    """Handshakes are not deliveries: each reaches the handler, and its answer is not stored."""
    handshake = {"token": "XXYYZZ", "challenge": "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P", "type": "url_verification"}
    confirmation = {**json.loads(sns(1)[1]), "Type": "SubscriptionConfirmation", "SubscribeURL": "https://sns.us-west-2.amazonaws.com/"}
    farewell = {**confirmation, "Type": "UnsubscribeConfirmation"}
    with webhooks(cli) as (service, daemon):
        for name, headers, body in (
            ("slack", [JSON], handshake),
            ("sns", sns(1)[0], confirmation),
            ("sns", sns(1)[0], farewell),
        ):
            for _ in range(2):
                before = len(service.requests)
                reply = send(daemon, f"/{name}", (headers, json.dumps(body).encode()))
                expect((reply.status, reply.decision, reply.body), (200, None, b"run %d" % (before + 1)), name)
        # The notification has an id of its own, and that of the confirmation was not used up.
        expect(send(daemon, "/sns", sns(1)).decision, "acquired")
        # Other requests have no id: a wrong URL, or a stranger.
        for name in SENDERS:
            send(daemon, f"/{name}", ([JSON], b"{}")).is_problem(400, "missing")
        expect(send(daemon, "/slack", ([], b""), method="GET").decision, None)


def test_the_time_of_each_sender(cli):
    """It gets an answer before it gives up, even if it waits first and runs then."""
    for name in SENDERS:
        path = cli.folder / f"{name}.yaml"
        path.write_text(
            "upstream: {url: 'http://127.0.0.1:9'}\nlisten: {proxy: '127.0.0.1:0', gateway: off}\n"
            f"proxy: {{routes: [{{preset: {name}}}]}}\n",
            encoding="utf-8",
        )
        route = json.loads(cli.run("config", "dump", str(path), "-o", "json").out)["proxy"]["routes"][0]
        spent = sum(seconds(route[setting]) for setting in ("wait", "max_run"))
        assert 1 < spent < PATIENCE.get(name, 10), (name, spent)
        assert seconds(route["ttl"]) >= 86400, name
        # A change of its route is what counts.
        expect((route["preset"], route["on_lapse"], route["fingerprint"]), (name, "retry", "none"))


def seconds(text):
    units = {"ms": 0.001, "s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800}
    number = text.rstrip("msdhw")
    return float(number) * units[text[len(number) :]]


def test_settings_of_the_route_replace_those_of_its_preset(cli):
    with webhooks(cli, "{path: /, preset: stripe, key: 'field:data.type', required: false, outcomes: {definitive: [422]}}") as (
        service,
        daemon,
    ):
        answer_with(service, 422, 400)
        for decision in ("acquired", "replay"):
            reply = send(daemon, "/", stripe(1))
            expect((reply.status, reply.decision), (422, decision))
        expect(send(daemon, "/", ([JSON], b"{}")).status, 400)
        expect(metrics(daemon)['hapax_unprotected_runs_total{tenant="default",group="default",reason="no_key"}'], 1)
        until(lambda: len(service.requests) == 2, "two ran")


# ------------------------------------------------------------------ signatures

SECRETS = {name: f"secret of {name}" for name in ("github", "shopify", "slack", "stripe", "twilio")}
SECRETS["standard-webhooks"] = "whsec_" + base64.b64encode(b"secret of standard").decode()
PUBLIC_URL = "https://hooks.example.com"


def sign(name, delivery, secret=None, when=None, path=None):
    """The delivery with the signature of its sender, as its documentation says how to make one."""
    headers, body = delivery
    key = (secret or SECRETS[name]).encode()
    when = str(int(when or time.time()))

    def digest(*parts, function=hashlib.sha256):
        return hmac.new(key, b"".join(parts), function)

    if name == "github":
        signature = [("X-Hub-Signature-256", "sha256=" + digest(body).hexdigest())]
    elif name == "shopify":
        signature = [("X-Shopify-Hmac-Sha256", base64.b64encode(digest(body).digest()).decode())]
    elif name == "slack":
        signature = [
            ("X-Slack-Request-Timestamp", when),
            ("X-Slack-Signature", "v0=" + digest(f"v0:{when}:".encode(), body).hexdigest()),
        ]
    elif name == "standard-webhooks":
        headers = [(field, value) for field, value in headers if field != "webhook-timestamp"]
        key = base64.b64decode(key.removeprefix(b"whsec_"))
        made = digest(f"{dict(headers)['webhook-id']}.{when}.".encode(), body).digest()
        signature = [("webhook-timestamp", when), ("webhook-signature", "v1," + base64.b64encode(made).decode())]
    elif name == "stripe":
        signature = [("Stripe-Signature", f"t={when},v1={digest(f'{when}.'.encode(), body).hexdigest()},v0={'0' * 64}")]
    else:
        fields = "".join(a + b for a, b in sorted(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)))
        made = digest((PUBLIC_URL + (path or f"/{name}") + fields).encode(), function=hashlib.sha1).digest()
        signature = [("X-Twilio-Signature", base64.b64encode(made).decode())]
    return [*headers, *signature], body


@contextlib.contextmanager
def signed(cli, names=SECRETS, more=""):
    """Routes with a secret."""
    rows = []
    for name in names:
        path = cli.folder / f"{name}.secret"
        path.write_text(SECRETS[name] + "\n", encoding="utf-8")
        rows.append(f"{{path: /{name}, preset: {name}, secret_file: '{path}', public_url: '{PUBLIC_URL}'{more}}}")
    with webhooks(cli, *rows) as (service, daemon):
        yield service, daemon


def refused(daemon):
    return metrics(daemon)['hapax_invalid_events_total{door="proxy",reason="signature"}']


def test_signed_deliveries(cli):
    with signed(cli) as (service, daemon):
        for name in SECRETS:
            delivery = SENDERS[name]
            expect(send(daemon, f"/{name}", sign(name, delivery(1))).decision, "acquired", name)
            expect(send(daemon, f"/{name}", sign(name, delivery(1, retry=1), when=time.time() - 100)).decision, "replay", name)
        expect(len(service.requests), len(SECRETS))
        # A handshake is signed, too.
        handshake = ([JSON], b'{"type":"url_verification","challenge":"c"}')
        send(daemon, "/slack", handshake).is_problem(401, "missing")
        expect(send(daemon, "/slack", sign("slack", handshake)).decision, None)
        expect(len(service.requests), len(SECRETS) + 1)


def test_a_signature_is_checked_before_the_claim(cli):
    """A forged delivery gets 401; it neither reaches the handler nor makes a key; the log and a metric say so."""
    with signed(cli) as (service, daemon):
        count = 0
        for name in SECRETS:
            delivery = SENDERS[name](1)
            other = (delivery[0], delivery[1].replace(b"a", b"b", 1))
            forged = [
                delivery,
                sign(name, delivery, secret="d3Jvbmc="),
                (sign(name, delivery)[0], other[1]),
                (sign(name, delivery)[0] + sign(name, delivery)[0][-1:], delivery[1]),
            ]
            if name in ("slack", "standard-webhooks", "stripe"):
                forged += [sign(name, delivery, when=time.time() + skew) for skew in (-600, 600)]
            for one in forged:
                reply = send(daemon, f"/{name}", one).is_problem(401, "signature")
                expect((reply.json["type"], reply.decision), ("urn:hapax:problem:signature", None))
            # Whatever the method.
            send(daemon, f"/{name}", delivery, method="PUT").is_problem(401)
            count += len(forged) + 1
        expect((service.requests, refused(daemon)), ([], count))
        expect(get(daemon.admin, "/api/v1/keys").json["keys"], [])
        lines = [line for line in map(log_line, daemon.lines) if line.get("msg") == "webhook signature rejected"]
        expect((lines[0]["level"], lines[0]["route"]), ("warn", "proxy-1"))
        assert len(lines) <= 30, "the rate of lines is limited"
        for name in SECRETS:
            expect(send(daemon, f"/{name}", sign(name, SENDERS[name](1))).decision, "acquired", name)


def test_no_letter_case_evades_a_signature(cli):
    """Many services read /Stripe as /stripe; the route for everything else must not take it there unsigned."""
    secret = cli.folder / "stripe.secret"
    secret.write_text(SECRETS["stripe"] + "\n", encoding="utf-8")
    rows = [f"{{path: /hooks/stripe, preset: stripe, secret_file: '{secret}'}}", "{path: /}"]
    with webhooks(cli, *rows) as (service, daemon):
        for path in ("/Hooks/stripe", "/hooks/STRIPE", "/hooks/Stripe/x", "/hooks//Stripe", "/hooks/%53tripe", "/HOOKS/stripe?x"):
            for method in ("POST", "GET"):
                send(daemon, path, stripe(1), method).is_problem(400, "letter case")
        expect(service.requests, [])
        for path in ("/Hooks", "/hooks/Stripes", "/Hooks/other"):
            expect(send(daemon, path, stripe(1)).status, 200, path)
        expect(send(daemon, "/hooks/stripe", sign("stripe", stripe(1))).decision, "acquired")


def test_a_forged_delivery_after_the_real_one(cli):
    """A client that guesses an id does not get the stored answer."""
    with signed(cli, ["stripe"]) as (service, daemon):
        expect(send(daemon, "/stripe", sign("stripe", stripe(1))).decision, "acquired")
        send(daemon, "/stripe", stripe(1)).is_problem(401, "Stripe-Signature")
        expect(len(service.requests), 1)


def test_the_id_is_signed_where_the_sender_signs_it(cli):
    """Stripe, Slack, Standard Webhooks: a signed delivery cannot be sent under another id.

    GitHub, Shopify and Twilio sign no id: there, who has a signed delivery can send it again as a new one. With the
    content as its key it is a duplicate all the same.
    """
    with signed(cli) as (_, daemon):
        headers, body = sign("standard-webhooks", standard(1))
        replayed = [(name, "msg_other") if name == "webhook-id" else (name, value) for name, value in headers]
        send(daemon, "/standard-webhooks", (replayed, body)).is_problem(401)
        headers, body = sign("github", github(1))
        replayed = [(name, "other") if name == "X-GitHub-Delivery" else (name, value) for name, value in headers]
        for decision in ("acquired", "replay"):
            expect(send(daemon, "/github", (headers, body)).decision, decision)
        expect(send(daemon, "/github", (replayed, body)).decision, "acquired")
    with signed(cli, ["github"], more=", key: content") as (_, daemon):
        expect(send(daemon, "/github", (headers, body)).decision, "acquired")
        expect(send(daemon, "/github", (replayed, body)).decision, "replay")


def test_a_large_signed_delivery(cli):
    """A reader checks it, before it makes its key."""
    with signed(cli, ["stripe", "twilio"]) as (service, daemon):
        large = (stripe(1)[0], json.dumps({"id": "evt_large", "padding": "x" * 700_000}).encode())
        send(daemon, "/stripe", (large[0], large[1])).is_problem(401)
        expect(send(daemon, "/stripe", sign("stripe", large)).decision, "acquired")
        expect(send(daemon, "/stripe", sign("stripe", large)).decision, "replay")
        form = (twilio(1)[0], b"&".join(b"f%d=%s" % (number, b"x" * 1000) for number in range(400)))
        expect(send(daemon, "/twilio", sign("twilio", form)).decision, "acquired")
        expect(len(service.requests), 2)


def test_a_secret_is_replaced(cli):
    """Both count while the file has both; after the next reload only the new one does."""
    with signed(cli, ["github"]) as (_, daemon):
        path = cli.folder / "github.secret"

        def accepted(secret, number):
            return send(daemon, "/github", sign("github", github(number), secret=secret)).status == 200

        expect((accepted(SECRETS["github"], 1), accepted("new", 2)), (True, False))
        path.write_text(f"{SECRETS['github']}\nnew\n", encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: accepted("new", 3), "the new secret counts")
        expect(accepted(SECRETS["github"], 4), True)
        path.write_text("new\r\n\n", encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: not accepted(SECRETS["github"], 5), "the old one does not")
        expect(accepted("new", 6), True)
        # A file without a secret must not open the route.
        path.write_text("\n", encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(lambda line: "has no secret" in line)
        expect((accepted("other", 7), accepted("new", 8)), (False, True))


def test_a_route_whose_secrets_cannot_be_used(cli):
    """The daemon does not start: it would let everything pass."""
    good = cli.folder / "good"
    good.write_text("x\n", encoding="utf-8")
    empty = cli.folder / "empty"
    empty.write_text("\n", encoding="utf-8")
    many = cli.folder / "many"
    many.write_text("x\n" * 9, encoding="utf-8")
    for settings, message in (
        (f"preset: github, secret_file: '{cli.folder}/none'", "none"),
        (f"preset: github, secret_file: '{empty}'", "has no secret"),
        (f"preset: github, secret_file: '{many}'", "too many"),
        (f"preset: standard-webhooks, secret_file: '{good}'", "not Base64"),
        (f"preset: twilio, secret_file: '{good}'", "needs public_url"),
        (f"preset: twilio, secret_file: '{good}', public_url: 'https://h/'", "without a slash"),
        (f"preset: sns, secret_file: '{good}'", "needs signature"),
        (f"signature: github, secret_file: '{good}'", "needs key"),
        ("preset: stripe, tolerance: 0s", "not between"),
    ):
        path = cli.folder / "hapax.yaml"
        path.write_text(f"proxy: {{routes: [{{upstream: 'http://h', {settings}}}]}}\n", encoding="utf-8")
        result = cli.run("config", "check", str(path), code=None)
        assert result.code != 0 and message in result.err, (settings, result.err)
