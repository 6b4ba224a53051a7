"""log.decisions (E20): every decision of every door and every end of a run is a line; rotated, hashed, erased."""

import hmac
import json
import os
import signal

import api
from daemon import dead_address, log_line, metrics, post, serve, upstream
from harness import expect, expect_in, until
from redis_wire import Wire, door
from test_api import AUTH, TOKENS, Api

DOORS = ("--proxy", "127.0.0.1:0", "--resp", "127.0.0.1:0")
SECRET = "sixteen bytes or more"


def lines(path, msg="decision"):
    found = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return [line for line in found if line["msg"] == msg]


def brief(path):
    """(door, key, decision) of each, in no order: doors have threads."""
    return sorted((line["door"], line["idempotency_key"], line["decision"]) for line in lines(path))


def config(path, more="", auth=""):
    # Neither level nor rate of the log matter.
    return f"{auth}log: {{level: info, rate: 1, decisions: '{path}'{more}}}\nscopes:\n  - {{scope: default/default, wait: 0s}}\n"


def test_every_decision_of_every_door_is_a_line(cli):
    path = cli.folder / "decisions.log"
    with upstream() as service, serve(cli, service.url, *DOORS, config=config(path, auth=AUTH)) as daemon:
        for _ in range(3):
            post(daemon.gateway, "1")
        post(daemon.gateway, "2", path="/status/500")
        for _ in range(2):
            api.post(daemon.proxy, "/", "p")
        ask = Api(daemon)
        for _ in range(2):
            ask("POST", "/check", {"key": "seen"})
            ask("POST", "/claim", {"key": "held", "tenant": "acme", "group": "mail"})
        with Wire(door(daemon)) as wire:
            wire.pipeline([["SET", "s", "v", "NX", "EX", "60"]] * 2)
        until(lambda: len(lines(path)) == 12, "all are written")
        gateway = [line for line in brief(path) if line[0] == "gateway"]
        expect([decision for _, _, decision in gateway], ["acquired", "replay", "replay", "acquired"])
        expect(
            [line for line in brief(path) if line[0] in ("admin", "resp")],
            [
                ("admin", "held", "acquired"), ("admin", "held", "in_progress"),
                ("admin", "seen", "acquired"), ("admin", "seen", "replay"),
                ("resp", "s", "acquired"), ("resp", "s", "replay"),
            ],
        )
        first = [line for line in lines(path) if line["door"] == "gateway"][0]
        expect((first["job_id"], first["event_type"], first["tenant"], first["group"]), ("1", "order.paid", "default", "default"))
        expect({(line["tenant"], line["group"]) for line in lines(path) if line.get("idempotency_key") == "held"}, {("acme", "mail")})
        ends = {(line["door"], line["outcome"]) for line in lines(path, "run ended")}
        expect(ends, {("gateway", "ok"), ("gateway", "transient"), ("proxy", "ok")})
    expect(path.stat().st_mode & 0o777, 0o600)


def test_keys_as_hmac(cli):
    """A holder of the secret finds a key again, with any tool."""
    path, secret = cli.folder / "decisions.log", cli.folder / "secret"
    secret.write_text(SECRET + "\n")
    with upstream() as service, serve(cli, service.url, config=config(path, f", decisions_secret: '{secret}'", AUTH)) as daemon:
        Api(daemon)("POST", "/check", {"key": "order-17"})
        until(lambda: lines(path), "it is written")
        # The id of an event is a part of its key.
        for _ in range(2):
            post(daemon.gateway, "order-17")
        until(lambda: len(lines(path)) == 3, "they are written")
    digest = hmac.new(SECRET.encode(), b"order-17", "sha256").hexdigest()
    expect(lines(path)[0]["idempotency_key"], f"hmac:{digest[:32]}")
    expect((lines(path)[2]["job_id"], lines(path)[2]["original_job_id"]), (f"hmac:{digest[:32]}",) * 2)
    assert "order-17" not in path.read_text()


def test_lost_decisions_are_told(cli):
    """A full disk takes nothing: the log and a metric say how much is missing, and the listeners go on."""
    with serve(cli, dead_address(), config=config("/dev/full", auth=AUTH)) as daemon:
        expect(Api(daemon)("POST", "/check", {"key": "k"}).json["outcome"], "acquired")
        until(lambda: any(log_line(line).get("msg") == "decisions lost" for line in list(daemon.lines)), "it is told")
        lost = metrics(daemon, Authorization=f"Bearer {TOKENS['read']}")["hapax_log_lost_lines_total"]
        expect(lost, 1)


def test_a_tenant_is_never_cut_off(cli):
    """A sender that fills the line does not keep it from being erased."""
    path = cli.folder / "decisions.log"
    text = "\u0001" * 255
    with serve(cli, dead_address(), config=config(path, auth=AUTH)) as daemon:
        event = {"id": text, "type": text, "source": text}
        Api(daemon)("POST", "/claim", {"key": "k" * 1000, "tenant": "acme", "event": event})
        until(lambda: lines(path), "it is written")
    expect((lines(path)[0]["tenant"], lines(path)[0]["cut"]), ("acme", True))
    expect_in("erased 1 of 1", cli.run("decisions", "erase", "--tenant", "acme", str(path)).out)


def test_rotation_and_erasure(cli):
    path, old = cli.folder / "decisions.log", cli.folder / "decisions.log.1"
    with serve(cli, dead_address(), config=config(path, auth=AUTH)) as daemon:
        ask = Api(daemon)
        for number in range(20):
            ask("POST", "/check", {"key": f"k{number}", "tenant": "acme" if number % 2 else "other"})
        until(lambda: len(lines(path)) == 20, "all are written")
        refused = cli.run("decisions", "erase", "--tenant", "acme", str(path), code=75)
        expect_in("a daemon is writing", refused.err)
        expect_in("HUP", refused.err)
        path.rename(old)
        ask("POST", "/check", {"key": "between", "tenant": "acme"})
        until(lambda: len(lines(old)) == 21, "the renamed file is still written")
        daemon.process.send_signal(signal.SIGHUP)
        until(path.exists, "there is a new file")
        ask("POST", "/check", {"key": "after", "tenant": "acme"})
        until(lambda: len(lines(path)) == 1, "it is written")
        expect([line["idempotency_key"] for line in lines(path)], ["after"])

        counted = cli.run("decisions", "erase", "--tenant", "acme", str(old), "--dry-run", "-o", "json").json
        expect((counted["lines"], counted["erased"], counted["dry_run"]), (21, 11, True))
        expect(len(lines(old)), 21)
        expect_in("erased 11 of 21 lines", cli.run("decisions", "erase", "--tenant", "acme", str(old)).out)
        expect({line["tenant"] for line in lines(old)}, {"other"})
        expect(len(lines(old)), 10)
        expect(sorted(found.name for found in cli.folder.glob("decisions*")), [path.name, old.name])
        # It is safe to repeat, and a tenant that is part of another's name is another.
        expect_in("erased 0 of 10", cli.run("decisions", "erase", "--tenant", "othe", str(old)).out)


def test_erasure_keeps_what_it_cannot_read(cli):
    """A line that a crash cut may name the tenant: it stays, and the exit status says so."""
    path = cli.folder / "d.log"
    path.write_text('{"tenant":"acme"}\n{"tenant":"a\\u0063me"}\n{"x":{"tenant":"acme"}}\n{"cut":true}\n{"tenant":"ac')
    link = cli.folder / "link"
    link.symlink_to(path)
    # What another user has put in the way of the new file is not written to.
    other, trap = cli.folder / "other", cli.folder / "d.log.erasing"
    other.write_text("mine")
    trap.symlink_to(other)
    result = cli.run("decisions", "erase", "--tenant", "acme", str(link), code=65)
    expect_in("2 lines that could not be read", result.err)
    expect(path.read_text(), '{"x":{"tenant":"acme"}}\n{"cut":true}\n{"tenant":"ac\n')
    assert link.is_symlink() and not trap.is_symlink()
    expect(other.read_text(), "mine")
    expect_in("--tenant is missing", cli.run("decisions", "erase", str(path), code=64).err)
    cli.run("decisions", "erase", "--tenant", "a", str(cli.folder / "absent"), code=66)


def test_erasure_keeps_owner_and_mode(cli):
    """The daemon must be able to write the file again; another user must not be able to read it."""
    path = cli.folder / "d.log"
    path.write_text('{"tenant":"a"}\n{"tenant":"b"}\n{"tenant":"c"}\n')
    path.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(path, 1234, 2345)
    before = path.stat()
    expect_in("erased 2 of 3 lines", cli.run("decisions", "erase", "--tenant", "a", "--tenant", "b", str(path)).out)
    after = path.stat()
    assert before.st_ino != after.st_ino
    expect((after.st_uid, after.st_gid, after.st_mode), (before.st_uid, before.st_gid, before.st_mode))
    expect(path.read_text(), '{"tenant":"c"}\n')
    expect_in("erased 0 of 1 line\n", cli.run("decisions", "erase", "--tenant", "a", str(path)).out)


def test_erasure_refuses_what_it_cannot_replace(cli):
    path, fifo = cli.folder / "d.log", cli.folder / "fifo"
    path.write_text('{"tenant":"a"}\n')
    os.mkfifo(fifo)
    expect_in("--tenant is empty", cli.run("decisions", "erase", "--tenant", "a", "--tenant", "", str(path), code=64).err)
    for other in (fifo, cli.folder, "/dev/null"):
        refused = cli.run("decisions", "erase", "--tenant", "a", str(other), code=66).err
        expect_in("is not a regular file", refused)
        assert "hint" not in refused, refused
    # A name that has no room for a suffix, as root may write to every folder.
    long = cli.folder / ("d" * 250)
    long.write_text('{"tenant":"a"}\n')
    refused = cli.run("decisions", "erase", "--tenant", "a", str(long), code=None)
    expect_in("could not create", refused.err)
    expect(long.read_text(), '{"tenant":"a"}\n')


def test_a_daemon_does_not_start_without_its_file(cli):
    """Decisions that no reader could find later are worse than a daemon that does not start."""
    path, secret = cli.folder / "decisions.log", cli.folder / "secret"
    secret.write_text("short\n")
    for more, at, word in (
        (f", decisions_secret: '{secret}'", path, "use at least 16"),
        (f", decisions_secret: '{cli.folder}/absent'", path, "absent"),
        ("", cli.folder / "absent/d.log", "absent/d.log"),
    ):
        name = cli.folder / "c.yaml"
        name.write_text(config(at, more))
        result = cli.run("serve", "--store", "memory:", "--config", str(name), "--gateway", "off", "--admin", "127.0.0.1:0", code=None)
        assert result.code != 0, result
        expect_in(word, result.err)
    with serve(cli, dead_address(), config=config(path)):
        name.write_text(config(path))
        result = cli.run("serve", "--store", "memory:", "--config", str(name), "--gateway", "off", "--admin", "127.0.0.1:0", code=None)
        expect_in("another process is writing", result.err)
