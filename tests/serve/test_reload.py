"""A reload says what it read and changed; `config check` finds what `serve` refuses, by the same words. A4, D7, E13."""

import json
import signal

from certificates import Authority
from daemon import Process, dead_address, get, log_line, serve
from harness import expect, expect_in, expect_match, until

UPSTREAM = "upstream: {url: 'http://127.0.0.1:9'}\n"
DIGEST = "3d0941964aa3ebdcb00ccef58b1bb399f9f898465e9886d5aec7f31090a0fb30"


def reloaded(daemon, text=None, msg="configuration reloaded"):
    """The lines of a reload, by msg."""
    if text is not None:
        daemon.config.write_text(text, encoding="utf-8")
    begin = len(daemon.lines)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for(lambda line: log_line(line).get("msg") == msg)
    return [log_line(line) for line in daemon.lines[begin:]]


def of(lines, msg):
    return [line for line in lines if line["msg"] == msg]


def test_a_reload_names_the_file_and_each_change(cli):
    before = f"""
log: {{level: info}}
store: {{timeout: 5s}}
resp: {{users: [{{name: app, password_sha256: {DIGEST}}}]}}
consumers: [{{name: c, enabled: false, from: 'redis://app:first@127.0.0.1:1/s?group=g', to: 'http://127.0.0.1:9'}}]
"""
    after = f"""
log: {{level: debug}}
store: {{timeout: 6s}}
resp: {{users: [{{name: app, password_sha256: {DIGEST.replace("3", "4")}}}]}}
consumers: [{{name: c, enabled: false, from: 'redis://app:second@127.0.0.1:1/s?group=g', to: 'http://127.0.0.1:9'}}]
scopes: [{{scope: acme/billing, ttl: 1h}}]
"""
    with serve(cli, dead_address(), config=before) as daemon:
        (done,) = of(reloaded(daemon), "configuration reloaded")
        expect((done["file"], done["changes"]), (str(daemon.config), 0))
        lines = reloaded(daemon, after)
        changes = {line["setting"]: (line.get("old"), line.get("new")) for line in of(lines, "setting changed")}
        expect(changes["log.level"], ("info", "debug"))
        expect(changes["scopes"], ("0 items", "1 item"))
        # Passwords and their hashes are not shown: only that they changed.
        expect(changes["consumers[0].from"], (None, None))
        assert "second" not in "".join(daemon.lines) and DIGEST not in "".join(daemon.lines)
        restart = {line["setting"]: (line.get("old"), line.get("new")) for line in of(lines, "setting takes effect after a restart")}
        expect(restart, {"store.timeout": ("5s", "6s"), "resp.users[0].password_sha256": (None, None)})
        (done,) = of(lines, "configuration reloaded")
        expect(done["changes"], 5)


def test_a_rejected_reload_names_the_file(cli):
    with serve(cli, dead_address(), config="log: {level: info}\n") as daemon:
        lines = reloaded(daemon, "log: {level: loud}\n", "configuration rejected, previous one stays active")
        (refused,) = of(lines, "configuration rejected, previous one stays active")
        expect(refused["file"], str(daemon.config))
        expect_in(f"{daemon.config}:1:14:", refused["error"])


def test_a_reload_that_leaves_nowhere_to_send_is_rejected(cli):
    """As at the start: the gateway is open."""
    options = ["--store", "memory:", "--gateway", "127.0.0.1:0", "--admin", "off"]
    path = cli.folder / "hapax.yaml"
    path.write_text(UPSTREAM, encoding="utf-8")
    daemon = Process(["serve", *options, "--config", str(path)], cli.env(HAPAX_STORE=None), lambda line: log_line(line).get("msg") == "ready")
    try:
        path.write_text("log: {level: info}\n", encoding="utf-8")
        (refused,) = of(reloaded(daemon, msg="configuration rejected, previous one stays active"), "configuration rejected, previous one stays active")
        expect_in("no upstream for the gateway", refused["error"])
    finally:
        daemon.end()


def test_a_file_that_was_not_there_at_the_start_is_read(cli):
    path = cli.folder / "home" / ".config" / "hapax" / "hapax.yaml"
    with serve(cli, dead_address()) as daemon:
        (done,) = of(reloaded(daemon), "configuration reloaded")
        expect(done["file"], "none")
        path.parent.mkdir(parents=True)
        path.write_text("log: {level: loud}\n", encoding="utf-8")
        (refused,) = of(reloaded(daemon, msg="configuration rejected, previous one stays active"), "configuration rejected, previous one stays active")
        expect(refused["file"], str(path))
        path.write_text("log: {level: debug}\n", encoding="utf-8")
        lines = reloaded(daemon)
        (change,) = of(lines, "setting changed")
        expect((change["setting"], change["old"], change["new"]), ("log.level", "info", "debug"))
        expect(of(lines, "configuration reloaded")[0]["file"], str(path))
        expect(json.loads(get(daemon.admin, "/api/v1/config").body)["log"]["level"], "debug")


def sentences(text):
    """Without the name of the command, and without hints."""
    lines = [line for line in text.splitlines() if not line.startswith("hint: ")]
    return [line.split(": ", 2)[2] if line.startswith("hapax: ") else line for line in lines]


def test_what_serve_refuses_the_check_refuses(cli):
    """By the same words and with the same status."""
    authority = Authority(cli.folder)
    server, other = authority.issue("server"), authority.issue("other")
    tls = f"tls: {{certificate: {server.path}, key: {other.key}}}\n"
    door = "listen: {gateway: 'off', admin: 'off', %s}\n"
    log, decisions, short = "log: {%s}\n", cli.folder / "decisions.log", cli.folder / "short"
    short.write_text("too short\n", encoding="utf-8")
    cases = [
        ("log: {level: loud}\n", "'loud'"),
        ("store: [1]\n", ""),
        ("", "no upstream for the gateway"),
        ("listen: {gateway: 'off', proxy: '127.0.0.1:0'}\n", "no upstream for the proxy"),
        (door % "resp: '0.0.0.0:0'", "listen.resp: refusing public address 0.0.0.0:0"),
        ("listen: {gateway: 'off', admin: '0.0.0.0:0'}\n", "listen.admin: refusing public address 0.0.0.0:0"),
        (UPSTREAM + tls, "does not belong to the certificate"),
        (UPSTREAM + f"tls: {{certificate: {cli.folder}/none, key: {server.key}}}\n", "No such file"),
        (UPSTREAM + "listen: {gateway: 'no-such-host.invalid:1'}\n", "listen.gateway: invalid address"),
        (UPSTREAM + log % f"decisions: {cli.folder}/none/decisions.log", "log.decisions: could not open"),
        (UPSTREAM + log % f"decisions: {cli.folder}", "log.decisions: could not open"),
        (UPSTREAM + log % f"decisions: {decisions}, decisions_secret: {cli.folder}/none", "log.decisions_secret: could not open"),
        (UPSTREAM + log % f"decisions: {decisions}, decisions_secret: {short}", "the secret in"),
        (UPSTREAM + log % f"decisions: {decisions}, audit: {decisions}", "it is the file of log.audit"),
        (UPSTREAM + log % f"decisions: {short}, decisions_secret: {short}", "it is the file of log.decisions_secret"),
    ]
    path = cli.folder / "hapax.yaml"
    for text, word in cases:
        path.write_text(text, encoding="utf-8")
        check = cli.run("config", "check", str(path), code=78)
        started = cli.run("serve", "--config", str(path), code=78, env={"HAPAX_STORE": "memory:"})
        expect_in(word, started.err)
        refusal = [line for line in sentences(started.err) if not line.startswith("{")]
        expect(refusal, sentences(check.err)[:1], text)
    # Neither has created the file: the one who checks may be another user than the daemon's.
    expect(decisions.exists(), False)
    missing = str(cli.folder / "missing.yaml")
    check = cli.run("config", "check", missing, code=66)
    expect(sentences(cli.run("serve", "--config", missing, code=66).err), sentences(check.err))


def test_what_serve_warns_of_the_check_warns_of(cli):
    """An expired certificate is an error, with which the daemon starts nevertheless; the check fails."""
    authority = Authority(cli.folder)
    good, old = authority.issue("server"), authority.expired("old")
    good.key.chmod(0o644)
    old.key.chmod(0o600)
    tls = "tls: {certificate: %s, key: %s}\n"
    cases = [
        (tls % (good.path, good.key), "private key is readable by other users", "warn", 0),
        ("store: {timeout: 3s}\ndefaults: {lease: 1s}\n", "lease is shorter than store.timeout", "warn", 0),
    ]
    for text, word, level, code in cases:
        with serve(cli, dead_address(), config=text) as daemon:
            (line,) = [log_line(line) for line in daemon.lines if word in line]
            expect(line["level"], level)
            check = cli.run("config", "check", str(daemon.config), "--set", "upstream.url=http://127.0.0.1:9", code=code)
            expect_match(f"{line['msg']} \\(", check.err)
            expect("warning: " in check.err, level == "warn")
            for name in set(line) - {"ts", "level", "msg"}:
                expect_in(f"{name}: {line[name]}", check.err)
    # Of the daemon it is a condition.
    with serve(cli, dead_address(), config=tls % (old.path, old.key)) as daemon:
        until(lambda: any("the certificate has expired" in line for line in daemon.lines), "it is told")
        check = cli.run("config", "check", str(daemon.config), "--set", "upstream.url=http://127.0.0.1:9", code=78)
        expect_match(r"certificate has expired \(", check.err)
