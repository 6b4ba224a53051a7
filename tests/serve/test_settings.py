"""PATCH /config: what is answered is in force, now and after a restart; what is not changes nothing."""

import hashlib
import json
import pathlib
import threading

from certificates import Authority
from daemon import log_line
from harness import expect, until
from redis_wire import Wire, door
from test_api import TOKENS, api, digest


def runtime_of(daemon):
    return daemon.config.parent / "conf.d" / "99-runtime.yaml"


def test_what_is_decided_elsewhere_is_refused(cli):
    """A variable, an option, or a file that is read later: a change here would be kept, and change nothing."""
    later = cli.folder / "conf.d" / "99-site.yaml"
    later.parent.mkdir()
    later.write_text("defaults: {lease: 40s}\n")
    env = cli.env(HAPAX_STORE=None, HAPAX_LOG_RATE="7", HAPAX_UPSTREAM_MAX_IDLE="9", IDEMPOTENCY_TTL="5h")
    with api(cli, "log: {rate: 5}\n", env=env) as (daemon, call):
        before = call("GET", "/config").json
        expect((before["log"]["rate"], before["defaults"]["ttl"], before["defaults"]["lease"]), (7, "5h", "40s"))
        for patch, words in (
            ({"log": {"rate": 9}}, ("log.rate", "HAPAX_LOG_RATE")),
            ({"defaults": {"ttl": "2h"}}, ("defaults.ttl", "IDEMPOTENCY_TTL")),
            ({"defaults": {"lease": "20s"}}, ("defaults.lease", "99-site.yaml")),
            ({"upstream": {"max_idle": 7}}, ("upstream.max_idle", "HAPAX_UPSTREAM_MAX_IDLE")),
            ({"log": {"level": "debug", "rate": 9}}, ("log.rate",)),
        ):
            for word in words:
                call("PATCH", "/config", patch).is_problem(409, word)
        assert not runtime_of(daemon).exists()
        expect(call("GET", "/config").json, before)
        # What is not, is changed; and taking back a setting that was never made is not an error.
        expect(call("PATCH", "/config", {"log": {"level": "debug", "rate": None}}).json["log"]["level"], "debug")
    # A setting that was changed here, and is decided elsewhere since then, does not stand in the way of others.
    with api(cli, env=cli.env(HAPAX_STORE=None, HAPAX_LOG_LEVEL="info")) as (daemon, call):
        expect(call("GET", "/config").json["log"]["level"], "info")
        expect(call("PATCH", "/config", {"defaults": {"ttl": "2h"}}).json["defaults"]["ttl"], "2h")
        expect(json.loads(runtime_of(daemon).read_text()), {"log": {"level": "debug"}, "defaults": {"ttl": "2h"}})


def test_what_cannot_be_put_in_force_is_not_kept(cli):
    """Good as a configuration, and nothing that the daemon can go by, since the certificate is gone."""
    server = Authority(cli.folder).issue("server")
    tls = f"tls: {{certificate: {server.path}, key: {server.key}, admin: {{enabled: false}}}}\n"
    certificate, aside = pathlib.Path(server.path), cli.folder / "aside.pem"
    with api(cli, tls) as (daemon, call):
        change = {"defaults": {"ttl": "2h"}}
        certificate.rename(aside)
        for _ in range(2):
            call("PATCH", "/config", change).is_problem(422, certificate.name)
            assert not runtime_of(daemon).exists()
        aside.rename(certificate)
        call("PATCH", "/config", change)
        text = runtime_of(daemon).read_text()
        certificate.rename(aside)
        call("PATCH", "/config", {"defaults": {"ttl": "3h"}}).is_problem(422, certificate.name)
        aside.rename(certificate)
        expect(runtime_of(daemon).read_text(), text)
        expect(call("GET", "/config").json["defaults"]["ttl"], "2h")
        expect([entry["outcome"] for entry in call("GET", "/audit").json["entries"]], ["invalid", "applied", "invalid", "invalid"])
        # Nor what would be in force after a restart only.
        call("PATCH", "/config", {"loops": 7}).is_problem(409, "cannot change 'loops' while the daemon runs")
        expect(runtime_of(daemon).read_text(), text)
    with api(cli, tls) as (_, call):
        expect(call("GET", "/config").json["defaults"]["ttl"], "2h")


def test_a_list_is_the_whole_list(cli):
    """RFC 7396: a scope that is left out is gone, now and after a restart; null brings the file's own back."""
    site = "scopes:\n  - {scope: a/a, ttl: 1h}\n"
    with api(cli, site) as (daemon, call):
        changed = call("PATCH", "/config", {"scopes": [{"scope": "b/b", "ttl": "2h"}]}).json
        expect([(scope["scope"], scope["ttl"]) for scope in changed["scopes"]], [("b/b", "2h")])
    with api(cli, site) as (daemon, call):
        expect([scope["scope"] for scope in call("GET", "/config").json["scopes"]], ["b/b"])
        expect([scope["scope"] for scope in call("PATCH", "/config", {"scopes": None}).json["scopes"]], ["a/a"])
        # A token that is taken out of the file must be gone: none is kept elsewhere.
        kept = [{"name": "ops", "hash": digest(TOKENS["admin"]), "role": "admin"}]
        call("PATCH", "/config", {"auth": {"tokens": kept}}).is_problem(409, "auth.tokens")
    # A file that is read later would add to it.
    (cli.folder / "conf.d" / "99-site.yaml").write_text("scopes:\n  - {scope: c/c}\n")
    with api(cli) as (_, call):
        call("PATCH", "/config", {"scopes": []}).is_problem(409, "99-site.yaml")


def test_an_empty_item_is_refused(cli):
    """Taken for no item, it would take away the scopes that were there."""
    with api(cli, "scopes:\n  - {scope: a/a, ttl: 1h, types: [{type: t, ttl: 2h}]}\n") as (daemon, call):
        before = call("GET", "/config").json
        for patch, name in (
            ({"scopes": [None]}, "scopes"),
            ({"scopes": [{"scope": "a/a"}, None]}, "scopes"),
            ({"scopes": [{"scope": "a/a", "types": [None]}]}, "types"),
            ({"defaults": {"types": [None]}}, "types"),
            ({"gateway": {"routes": [None]}}, "routes"),
        ):
            call("PATCH", "/config", patch).is_problem(422, f"'{name}' has an empty item")
        expect(call("GET", "/config").json, before)
        assert not runtime_of(daemon).exists()


def test_where_nothing_can_be_kept(cli):
    """As with a unit that protects /etc: the answer says what would help, and not to retry."""
    (cli.folder / "conf.d").write_text("no folder")
    with api(cli) as (_, call):
        refused = call("PATCH", "/config", {"defaults": {"ttl": "2h"}}).is_problem(409, "ReadWritePaths")
        assert "retry-after" not in refused.headers
        expect(call("GET", "/config").json["defaults"]["ttl"], "1d")


def test_changes_that_come_together(cli):
    """Each of them is active and stored, or was told to retry."""
    with api(cli) as (daemon, call):
        replies = []
        threads = [threading.Thread(target=lambda n=n: replies.append((n, change(call, n)))) for n in range(1, 9)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        expect({reply.status for _, reply in replies} - {200, 503}, set())
        kept = {number for number, reply in replies if reply.status == 200}
        assert kept, replies
        rate = json.loads(runtime_of(daemon).read_text())["log"]["rate"]
        expect((rate in kept, call("GET", "/config").json["log"]["rate"]), (True, rate))
        expect(call("GET", "/audit").json["total"], len(kept))


def change(call, number):
    return call("PATCH", "/config", {"log": {"rate": number}})


def test_no_line_of_the_audit_is_left_out(cli):
    """Neither the level of the log nor its rate hides who changed something."""
    with api(cli, "log: {rate: 1}\n") as (daemon, call):
        call("PATCH", "/config", {"log": {"level": "error"}})
        keys = [{"key": f"k{number}"} for number in range(300)]
        call("POST", "/check", keys)
        for key in keys:
            expect(call("DELETE", f"/keys/default/default/{key['key']}").status, 204)
        until(lambda: len(lines_of(daemon, "forget")) == 300, "every change has its line")
        lines = lines_of(daemon, "forget")
        expect({(line["msg"], line["outcome"], line["who"]) for line in lines}, {("audit", "applied", "admin")})
        expect({line["idempotency_key"] for line in lines}, {key["key"] for key in keys})


def test_changes_at_the_redis_door_are_audited(cli):
    """Who forgets by force, decides by hand or flushes is known, whichever way it came; also at the end."""
    path = cli.folder / "audit.log"
    hashed = hashlib.sha256(b"s").hexdigest()
    config = f"listen: {{resp: '127.0.0.1:0'}}\nlog: {{audit: '{path}'}}\n"
    config += f"resp:\n  allow_flush: true\n  users:\n    - {{name: ops, password_sha256: {hashed}, tenant: acme}}\n"
    with api(cli, config) as (daemon, call):
        with Wire(door(daemon)) as wire:
            expect(wire.ask("AUTH", "ops", "s"), b"+OK\r\n")
            for key in ("a", "b"):
                wire.ask("HAPAX.CLAIM", key)
            expect(wire.ask("HAPAX.FORGET", "a")[:1], b"-")
            expect(wire.ask("HAPAX.FORGET", "a", "FORCE"), b":1\r\n")
            expect(wire.ask("HAPAX.RESOLVE", "b", "DONE"), b"+OK\r\n")
            expect(wire.ask("FLUSHALL"), b"+OK\r\n")
            until(lambda: call("GET", "/audit").json["total"] == 3, "all are noted")
            entries = call("GET", "/audit").json["entries"]
            expect([(entry["action"], entry.get("key")) for entry in entries], [("flush", None), ("resolve", "b"), ("forget.force", "a")])
            expect({(entry["who"], entry["tenant"], entry["detail"]["door"]) for entry in entries}, {("ops", "acme", "resp")})
            expect(wire.ask("HAPAX.FORGET", "b"), b":1\r\n")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    expect([line["action"] for line in lines], ["forget.force", "resolve", "flush", "forget"])


def lines_of(daemon, action):
    return [log_line(line) for line in list(daemon.lines) if f'"action":"{action}"' in line]
