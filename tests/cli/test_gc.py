"""hapax gc."""

import json
import os
import pty
import sqlite3

from harness import SIGTERM, PROGRAM, TIMEOUT_SECONDS, catches, expect, expect_in, finish, until


def expire(cli, count):
    """count marks that have expired, and two that have not."""
    # These first: a check takes some of the expired ones with it.
    cli.run("check", "young")
    cli.run("check", "eternal", "--ttl", "forever")
    cli.seed("many", "old-", count, 1)
    until(lambda: cli.run("lookup", f"old-{count - 1:06}", code=None).code == 1, "the last one has expired")


def test_expired_records_go(cli):
    expire(cli, 25)
    result = cli.run("gc")
    expect(result.fields(), {"removed": "25", "lapsed": "0", "remaining": "2", "locks": "0"})
    expect(result.err, "")
    expect(cli.sql("SELECT count(*) FROM hapax_record"), [(2,)])
    expect(cli.run("gc").fields(), {"removed": "0", "lapsed": "0", "remaining": "2", "locks": "0"})


def test_json(cli):
    expire(cli, 3)
    answer = cli.run("gc", "-o", "json").json
    expect(list(answer), ["removed", "lapsed", "remaining", "looked", "locks", "done"])
    expect((answer["removed"], answer["lapsed"], answer["remaining"], answer["done"]), (3, 0, 2, True))


def test_claims_and_parked_keys_stay(cli):
    cli.seed("claim", "running", 600000, "x")
    cli.seed("claim", "lapsed", 1, "x")
    cli.seed("park", "unclear", "x")
    answer = cli.run("gc", "-o", "json").json
    # Lapsed, but its TTL counted from the lapse has not passed: a claim may still take it over.
    expect((answer["removed"], answer["lapsed"], answer["remaining"]), (0, 0, 3))


def test_many_steps(cli):
    expire(cli, 23000)
    answer = cli.run("gc", "-o", "json").json
    expect((answer["removed"], answer["remaining"], answer["done"]), (23000, 2, True))


def test_a_signal_ends_it_between_two_steps(cli):
    expire(cli, 23000)
    blocker = sqlite3.connect(cli.path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    process = cli.start("gc", "-o", "json")
    try:
        until(lambda: catches(process, SIGTERM), "it watches for signals")
        process.send_signal(SIGTERM)
    finally:
        blocker.execute("ROLLBACK")
        blocker.close()
    out, err = finish(process, 143)
    answer = json.loads(out)
    expect((answer["done"], err), (False, b""))
    assert 0 < answer["removed"] < 23000, answer
    expect(cli.sql("SELECT count(*) FROM hapax_record"), [(23002 - answer["removed"],)])
    cli.is_intact()
    expect(cli.run("gc", "-o", "json").json["remaining"], 2)


def test_progress_is_shown_on_a_terminal_only(cli):
    expire(cli, 23000)
    blocker = sqlite3.connect(cli.path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    screen, terminal = pty.openpty()
    process = cli.start("gc", stderr=terminal, env={"TERM": "xterm"})
    os.close(terminal)
    # Shown after a second: that long the first step waits for the lock, and not for five.
    until(lambda: catches(process, SIGTERM), "it has begun")
    try:
        process.wait(timeout=2.5)
    except Exception:
        pass
    blocker.execute("ROLLBACK")
    blocker.close()
    out, _ = finish(process, 0)
    expect_in(b"remaining    2\n", out)
    shown = b""
    try:
        while chunk := os.read(screen, 4096):
            shown += chunk
    except OSError:
        pass
    os.close(screen)
    expect_in(b" deleted", shown)
    assert shown.endswith(b"\r\x1b[K"), shown


def test_the_program_is_the_one_under_test(cli):
    expect_in(str(PROGRAM.parent), cli.shell("command -v hapax").out)
