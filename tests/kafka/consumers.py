"""consumers.py - consumers: of `hapax serve` for tests: their configuration, and what the daemon says of them."""

import hashlib
import json
import pathlib
import signal
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "serve"))

from daemon import get, log_line, metrics, request, serve  # noqa: E402
from harness import expect, expect_in, until  # noqa: E402

TOKEN = "0123456789abcdef0123456789abcdef"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


def row(**settings):
    """A consumer as YAML has it; JSON is YAML."""
    return json.dumps({"name": "orders", **settings})


def config(*rows, more=""):
    return f"consumers: [{', '.join(rows)}]\n{more}\n"


def figure(daemon, name, consumer="orders", **labels):
    text = "".join(f',{label}="{value}"' for label, value in labels.items())
    return metrics(daemon).get(f'hapax_consumer_{name}{{consumer="{consumer}"{text}}}')


def until_figure(daemon, value, name, consumer="orders", **labels):
    """A scrape costs more than a look at a file: not as often as until() would."""

    def holds():
        if figure(daemon, name, consumer, **labels) == value:
            return True
        time.sleep(0.05)
        return False

    until(holds, f"{name} of {consumer} is {value}")


def health(daemon):
    """What /healthz says of consumers, and its status."""
    reply = get(daemon.admin, "/healthz", Accept="application/json")
    found = {part["name"]: part for part in reply.json["components"]}
    return reply.status, found.get("consumers")


def duplicates(daemon):
    time.sleep(0.05)
    return [note for note in get(daemon.admin, "/api/v1/duplicates").json["duplicates"] if note["decision"] == "replay"]


def said(daemon, msg):
    return [found for found in map(log_line, list(daemon.lines)) if found.get("msg") == msg]


def reload(daemon, text):
    before = metrics(daemon)["hapax_config_reloads_total"]
    daemon.config.write_text(text, encoding="utf-8")
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: metrics(daemon)["hapax_config_reloads_total"] == before + 1, "it is read again")


def with_token(role="admin"):
    """For config(more=): a caller who may write; every caller may read the metrics."""
    token = f"{{name: alice, role: {role}, hash: 'sha256:{hashlib.sha256(TOKEN.encode()).hexdigest()}'}}"
    return f"auth: {{open_metrics: true, tokens: [{token}]}}\n"


def consume(cli, daemon, *arguments, **options):
    """`hapax consume ACTION` of that daemon."""
    secret = cli.folder / "token"
    secret.write_text(TOKEN)
    secret.chmod(0o600)
    host, port = daemon.admin
    return cli.run("consume", *arguments, "--server", f"http://{host}:{port}", "--auth-file", secret, **options)


def consumers(daemon):
    """What GET /consumers says of each."""
    return {found["name"]: found for found in get(daemon.admin, "/api/v1/consumers", **BEARER).json["consumers"]}


def pauses_and_resumes(cli, url, service, fill, beside_url, beside_fill):
    """D7, D9: it is paused and resumed, over a restart, and nothing is lost.

    service is a kafka.Service; fill(n, ...) sends these events. The consumer of beside_url is not
    paused: when it has done what was sent later, the other one has left out what was sent before.
    """
    beside = row(**{"from": beside_url}, exec="true", group="beside", name="beside")
    text = config(row(**{"from": url}, to=service.url), beside, more=with_token())
    store = f"sqlite:{cli.folder}/pause.db"
    with serve(cli, None, "--gateway", "off", config=text, store=store) as daemon:
        fill(1)
        until_figure(daemon, 1, "acknowledged_total")
        until_figure(daemon, 1, "up", consumer="beside")
        expect(consumers(daemon)["orders"]["state"], "running")
        expect(consume(cli, daemon, "pause", "orders", "--reason", "deploy").out, "orders: paused; runs in progress finish\n")
        until_figure(daemon, 1, "paused", reason="operator")
        found = consumers(daemon)["orders"]
        expect((found["state"], found["paused_by"], found["reason"]), ("paused", "alice", "deploy"))
        line = consume(cli, daemon, "list").out.splitlines()[1]
        expect_in("paused", line)
        expect_in("alice", line)
        until(lambda: health(daemon)[1]["status"] == "ok" or time.sleep(0.05), "a pause is not a failure")
        expect((said(daemon, "consumer paused")[0]["who"], said(daemon, "consumer paused")[0]["why"]), ("alice", "deploy"))
        audit = get(daemon.admin, "/api/v1/audit", **BEARER).json["entries"][0]
        expect((audit["who"], audit["action"], audit["outcome"]), ("alice", "consumer.pause", "applied"))
        fill(2)
        # Its connection stays: the broker still has it as a member.
        beside_fill(1)
        until_figure(daemon, 1, "acknowledged_total", consumer="beside")
        expect(len(service.effects), 1)
        expect(figure(daemon, "up"), 1)
    with serve(cli, None, "--gateway", "off", config=text, store=store) as daemon:
        until_figure(daemon, 1, "paused", reason="operator")
        fill(3)
        beside_fill(2)
        until_figure(daemon, 1, "acknowledged_total", consumer="beside")
        expect(len(service.effects), 1)
        consume(cli, daemon, "resume", "orders", "-o", "json")
        until_figure(daemon, 2, "acknowledged_total")
        until_figure(daemon, 0, "paused", reason="operator")
        expect(consumers(daemon)["orders"]["state"], "running")
        consume(cli, daemon, "pause", "nobody", code=69).says("no consumer of that name")
        consume(cli, daemon, "pause", "", code=64).says("NAME of the consumer is empty")
        consume(cli, daemon, "pause", "n" * 5000, code=64).says("NAME of the consumer is too long")
        # Without a token that may write, nothing changes.
        refused = request(daemon.admin, "POST", "/api/v1/consumers/orders/pause", {}, b"")
        expect(refused.status, 401)
    expect(service.effects, {("/shop", f"A-{n}"): 1 for n in (1, 2, 3)})


def listed(cli, daemon, *arguments):
    """The dead letters of orders."""
    return consume(cli, daemon, "dead-letters", "orders", "-o", "json", *arguments).json["letters"]


def letters_are_listed_and_sent_again(cli, url, fill):
    """D4, D9: what failed is listed with payload and reason, stays where it is, and is sent again, one or all."""
    works, done = cli.folder / "works", cli.folder / "done"
    script = f"test -e {works} || {{ echo broken >&2; exit 1; }}; cat >>{done}; echo >>{done}"
    text = config(row(**{"from": url}, exec=script, attempts=1, parallel=1), more=with_token())
    with serve(cli, None, "--gateway", "off", config=text) as daemon:
        fill(1, 2, 3)
        until_figure(daemon, 3, "dead_letters_total")
        found = listed(cli, daemon)
        expect(sorted((letter["reason"], letter["key"]) for letter in found), [("attempts", f"/shop:A-{n}") for n in (1, 2, 3)])
        expect(sorted(json.loads(letter["data"])["n"] for letter in found), [1, 2, 3])
        expect({"transient" in letter["error"] for letter in found}, {True})
        # They are still there.
        expect([letter["id"] for letter in listed(cli, daemon)], [letter["id"] for letter in found])
        expect(len(listed(cli, daemon, "--match", "A-2")), 1)
        expect(listed(cli, daemon, "--match", "nothing has this"), [])
        consume(cli, daemon, "retry", "orders", "--match", "nothing has this", code=1)
        consume(cli, daemon, "retry", "orders", code=64)
        consume(cli, daemon, "retry", "orders", "--all", "--match", "A-2", code=64).says("exactly one of")
        consume(cli, daemon, "retry", "orders", found[0]["id"], "--match", "A-2", code=64).says("exactly one of")
        # A handler that still fails makes them letters again: each is sent once.
        expect(consume(cli, daemon, "retry", "orders", "--all", "-o", "json").json["retried"], 3)
        until_figure(daemon, 6, "dead_letters_total")
        found = listed(cli, daemon)
        expect(len(found), 3)

        works.touch()
        expect(consume(cli, daemon, "retry", "orders", found[0]["id"]).out, "1 dead letter sent again\n")
        until_figure(daemon, 1, "runs_total", outcome="ok")
        expect(len(listed(cli, daemon)), 2)
        expect(consume(cli, daemon, "retry", "orders", "--all", "-o", "json").json["retried"], 2)
        until_figure(daemon, 3, "runs_total", outcome="ok")
        expect(listed(cli, daemon), [])
        entry = get(daemon.admin, "/api/v1/audit", **BEARER).json["entries"][0]
        expect((entry["action"], entry["who"], entry["detail"]["retried"]), ("consumer.retry", "alice", 2))
    expect(done.read_text().count("}"), 3)


def originals(daemon, count):
    """Of duplicates in the log: id of the event, and id, type and source of the original's."""

    def lines():
        return [line for line in said(daemon, "duplicate job blocked") if line["decision"] == "replay"]

    until(lambda: len(lines()) == count, "each duplicate is told")
    names = ("job_id", "original_job_id", "original_type", "original_source")
    return [tuple(line.get(name) for name in names) for line in lines()]


def starts_over(cli, url, service, fill):
    """D5: a projection is built again: its keys are forgotten, its offsets go back, each message runs again, once."""

    def text(is_on):
        return config(row(**{"from": url}, to=service.url, enabled=is_on, tenant="acme", group="orders"), more=with_token())

    once = {("/shop", f"A-{n}"): 1 for n in (1, 2)}
    store = f"sqlite:{cli.folder}/rebuild.db"
    with serve(cli, None, "--gateway", "off", config=text(True), store=store) as daemon:
        fill(1, 2)
        until_figure(daemon, 2, "acknowledged_total")
        consume(cli, daemon, "rebuild", "orders", "--yes", code=69).says("is enabled")
        reload(daemon, text(False))
        until_figure(daemon, 0, "up")
        # It asks, and nothing happens without the scope.
        expect_in("'acme/orders'", consume(cli, daemon, "rebuild", "orders", input=b"orders\n", code=1).err)

        def rebuilt():
            """A member that has just left may count for a while."""
            done = consume(cli, daemon, "rebuild", "orders", input=b"acme/orders\n", code=None)
            return done if done.code == 0 else None

        until(lambda: rebuilt() or time.sleep(0.5), "it starts over")
        service.effects.clear()
        reload(daemon, text(True))
        until(lambda: service.effects == once, "each runs again")
        reload(daemon, text(False))
        until_figure(daemon, 0, "up")
    # The same without a daemon.
    service.effects.clear()

    def by_url():
        there = ("--from", url, "--scope", "acme/orders", "--store", store, "--yes", "-o", "json")
        done = cli.run("consume", "rebuild", *there, code=None)
        return done.json["forgotten"] == 2 if done.code == 0 else time.sleep(0.5)

    until(by_url, "it starts over")
    with serve(cli, None, "--gateway", "off", config=text(True), store=store) as daemon:
        until(lambda: service.effects == once, "each runs again")


def keeps_the_keys_of_others(cli, url, fill):
    """D5: a scope that others can use is refused by name, and is forgotten only on demand."""
    store = f"sqlite:{cli.folder}/shared.db"
    fill(1)
    cli.run("consume", "--from", url, "--exec", "true", "--idle-exit", "1s", "--store", store)
    cli.run("check", "other", "--store", store)

    def text(*others, more="", **scope):
        return config(row(**{"from": url}, exec="true", enabled=False, **scope), *others, more=with_token() + more)

    def other(**settings):
        return json.dumps({"name": "b", "from": url, "exec": "true", "enabled": False, **settings})

    acme = {"tenant": "acme", "group": "orders"}
    route = "{name: hooks, upstream: 'http://127.0.0.1:1', group: orders, tenant_from: header.X-Tenant}"
    proxied = "{name: p, upstream: 'http://127.0.0.1:1', tenant: acme, group: orders}"
    cases = [
        (text(), "every client that names no scope"),
        (text(other()), "consumer 'b'"),
        (text(other(**acme), **acme), "consumer 'b'"),
        (text(more=f"gateway: {{routes: [{route}]}}\n", **acme), "gateway route 'hooks'"),
        (text(more=f"proxy: {{routes: [{proxied}]}}\n", **acme), "proxy route 'p'"),
    ]
    with serve(cli, None, "--gateway", "off", config=cases[0][0], store=store) as daemon:
        for settings, sharer in cases:
            reload(daemon, settings)
            consume(cli, daemon, "rebuild", "orders", "--yes", code=69).says(sharer)
        body = json.dumps({"confirm": "orders", "shared": True}).encode()
        headers = {"Content-Type": "application/json", **BEARER}
        expect(request(daemon.admin, "POST", "/api/v1/consumers/orders/rebuild", headers, body).status, 400)
        cli.run("consume", "rebuild", "--from", url, "--scope", "default/default", "--yes", "--store", store, code=64)
        cli.run("check", "other", "--store", store, code=1)
        reload(daemon, cases[1][0])
        done = consume(cli, daemon, "rebuild", "orders", "--shared-scope", "-o", "json", input=b"default/default\n")
        expect(done.json["forgotten"], 2)
