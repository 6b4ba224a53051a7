"""Who may ask for what at the admin door: tokens, roles, probes that are open, reloads; made by the program itself."""

import hashlib
import json
import signal

from daemon import get, metrics, request, serve
from harness import expect, expect_in, expect_match

PROBES = ("/livez", "/readyz", "/healthz", "/startupz")
PAGES = ("/metrics", "/actuator/deduplication", "/nothing")


def make_token(cli, *options):
    """(the token, its row as YAML in flow style)"""
    made = cli.run("config", "token", "-o", "json", *options).json
    return made["token"], json.dumps(made["row"])


def ask(daemon, path, token=None, method="GET"):
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    return request(daemon.admin, method, path, headers)


def test_a_token_is_made(cli):
    made = cli.run("config", "token", "--name", "billing", "--role", "write", "--tenant", "acme", "-o", "json").json
    expect_match(r"^hapax_[0-9a-f]{64}$", made["token"])
    digest = "sha256:" + hashlib.sha256(made["token"].encode()).hexdigest()
    expect(made["row"], {"name": "billing", "hash": digest, "role": "write", "tenant": "acme"})
    plain = cli.run("config", "token", "--name", 'a "b" \\').out
    token = next(line.split(": ")[1] for line in plain.splitlines() if line.startswith("token: "))
    expect_in(hashlib.sha256(token.encode()).hexdigest(), plain)
    # What it says can stand in a file as it is.
    rest = plain[plain.index("auth:") :]
    path = cli.folder / "token.yaml"
    path.write_text(rest, encoding="utf-8")
    tokens = cli.run("config", "dump", str(path), "-o", "json").json["auth"]["tokens"]
    expect((tokens[0]["name"], tokens[0]["role"]), ('a "b" \\', "read"))
    assert cli.run("config", "token", "-o", "json").json["token"] != made["token"]


def test_what_cannot_be_a_token(cli):
    cli.run("config", "token", "--role", "root", code=64).says("root")
    cli.run("config", "token", "--tenant", "a/b", code=64).says("has a slash")
    cli.run("config", "token", "--tenant", "*", code=64).says("stands for all")
    cli.run("config", "token", "--name", "", code=64).says("must not be empty")
    cli.run("config", "token", "x", code=64).says("unexpected argument 'x'")


def test_nobody_is_named(cli):
    """On this machine everybody may read, whatever they say of themselves."""
    with serve(cli, None, "--gateway", "off") as daemon:
        for path in PROBES + PAGES[:2]:
            expect(get(daemon.admin, path).status, 200, path)
            expect(ask(daemon, path, "whatever").status, 200, path)
        request(daemon.admin, "POST", "/metrics").is_problem(405)


def test_a_page_that_leads_its_own_name_here(cli):
    """A browser on this machine would read for it: so names that are not this machine's may not."""
    with serve(cli, None, "--gateway", "off") as daemon:
        port = daemon.admin[1]
        for host in (f"localhost:{port}", "LocalHost", f"127.0.0.1:{port}", "[::1]", "workstation", "hapax.localhost"):
            for path in ("/actuator/deduplication", "/api/v1/keys"):
                expect(get(daemon.admin, path, Host=host).status, 200, host)
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "localhost.evil.example"):
            for path in ("/metrics", "/actuator/deduplication", "/api/v1/keys", "/api/v1/events", "/api/v1/config"):
                get(daemon.admin, path, Host=host).is_problem(403, "localhost")
            expect(get(daemon.admin, "/livez", Host=host).status, 200, host)


def test_somebody_is_named(cli):
    token, row = make_token(cli, "--name", "prometheus")
    with serve(cli, None, "--gateway", "off", config=f"auth:\n  tokens:\n    - {row}\n") as daemon:
        for path in PROBES:
            expect(get(daemon.admin, path).status, 200, path)
        for path in PAGES:
            refused = get(daemon.admin, path).is_problem(401, "the role 'read'")
            expect(refused.headers["www-authenticate"], 'Bearer realm="hapax"')
            expect(refused.json["type"], "urn:hapax:problem:unauthorized")
            refused = ask(daemon, path, token[:-1]).is_problem(401, "unknown API token")
            expect_in('error="invalid_token"', refused.headers["www-authenticate"])
            assert token[:-1].encode() not in refused.body
            refused = get(daemon.admin, path, Authorization="Basic dTpw").is_problem(401, "Bearer TOKEN")
            expect_in('error="invalid_request"', refused.headers["www-authenticate"])
            expect(ask(daemon, path, token).status, 404 if path == "/nothing" else 200, path)
        # A wrong method tells a stranger nothing of what there is.
        ask(daemon, "/metrics", method="DELETE").is_problem(401)
        text = ask(daemon, "/metrics", token).body.decode()
        expect_match(r'^hapax_http_requests_total\{door="admin",code="401"\} (?!0)', text)
        for line in daemon.lines:
            assert token not in line, line


def test_metrics_may_be_open(cli):
    _, row = make_token(cli)
    config = f"auth:\n  open_metrics: true\n  tokens:\n    - {row}\n"
    with serve(cli, None, "--gateway", "off", config=config) as daemon:
        assert metrics(daemon)
        get(daemon.admin, "/actuator/deduplication").is_problem(401)


def test_a_reload_changes_who_is_named(cli):
    (old, old_row), (new, new_row) = make_token(cli, "--name", "old"), make_token(cli, "--name", "new")
    with serve(cli, None, "--gateway", "off", config=f"auth:\n  tokens:\n    - {old_row}\n") as daemon:
        expect(ask(daemon, "/metrics", old).status, 200)
        daemon.config.write_text(f"auth:\n  tokens:\n    - {new_row}\n", encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(lambda line: "configuration reloaded" in line)
        expect((ask(daemon, "/metrics", old).status, ask(daemon, "/metrics", new).status), (401, 200))
        # The same row twice: nothing changes.
        daemon.config.write_text(f"auth:\n  tokens:\n    - {new_row}\n    - {new_row}\n", encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(lambda line: "configuration rejected" in line)
        expect(ask(daemon, "/metrics", new).status, 200)
