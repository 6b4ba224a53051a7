"""hapax journal: list, reconcile."""

import os
import pty
import sqlite3
import subprocess

from harness import SIGTERM, TIMEOUT_SECONDS, catches, expect, expect_in, finish, until

JOURNAL = 2**52  # tokens above are a journal's


def journal(cli, name, **records):
    """A journal with these keys, each {key: (token, body)}."""
    url = f"sqlite:{cli.folder / name}"
    for key, (token, body) in records.items():
        cli.seed("journal", key, token, body.encode(), store=url)
    return url


def became(answer):
    return {line["key"]: line["became"] for line in answer.lines}


def test_list(cli):
    url = journal(cli, "j.db", one=(JOURNAL + 1, "a"), two=(7, "b"))
    answer = cli.run("journal", "list", url)
    expect_in("KEY", answer.out)
    rows = {line.split()[0]: line.split()[3] for line in answer.out.splitlines()[1:]}
    expect(rows, {"one": "journal", "two": "store"})
    expect_in("2 keys", answer.err)
    lines = cli.run("journal", "list", url, "-o", "json").lines
    expect({line["key"]: line["claim"] for line in lines}, {"one": "journal", "two": "store"})


def test_reconcile(cli):
    """E13: what two nodes let through, and what of it ran twice."""
    cli.run("check", "other")
    cli.seed("http", "done before", 200, b"x")
    first = journal(cli, "a.db", a=(JOURNAL + 1, "paid"), both=(JOURNAL + 2, "paid"))
    second = journal(cli, "b.db", both=(JOURNAL + 1, "paid"), **{"done before": (JOURNAL + 2, "y")})
    answer = cli.run("journal", "reconcile", first, second, "-o", "json")
    lines = [(line["key"], line["became"], line["journal"]) for line in answer.lines]
    expect(sorted(lines), sorted([
        ("a", "kept", first), ("both", "kept", first),
        ("both", "twice", second), ("done before", "twice", second),
    ]))
    expect(cli.run("lookup", "a", "-o", "json").json["state"], "done")
    expect_in("paid", cli.run("lookup", "a", "-o", "json").out)
    expect(cli.run("journal", "list", first, "-o", "json").lines, [])
    expect_in("0 kept, 0 ran twice", cli.run("journal", "reconcile", first, second).err)


def test_reconcile_waits_for_those_who_run(cli):
    cli.seed("claim", "busy", 600000, "worker-1")
    url = journal(cli, "j.db", busy=(JOURNAL + 1, "paid"))
    expect(became(cli.run("journal", "reconcile", url, "-o", "json")), {"busy": "later"})
    expect(cli.run("lookup", "busy", "-o", "json").json["state"], "claimed")
    expect(len(cli.run("journal", "list", url, "-o", "json").lines), 1)


def test_result_of_a_claim_of_the_store(cli):
    token = int(cli.seed("claim", "mine", 600000, "worker-1"))
    url = journal(cli, "j.db", raise_=(JOURNAL + 1, "x"), mine=(token, "paid"))
    expect(became(cli.run("journal", "reconcile", url, "-o", "json"))["mine"], "kept")
    answer = cli.run("lookup", "mine", "-o", "json").json
    expect((answer["state"], answer["token"]), ("done", token))


def test_counts_are_told_after_an_error(cli):
    url = journal(cli, "j.db", a=(JOURNAL + 1, "paid"))
    answer = cli.run("journal", "reconcile", url, f"sqlite:{cli.folder / 'absent.db'}", code=69)
    expect_in("1 kept, 0 ran twice", answer.err)
    expect([line.split()[:3:2] for line in answer.out.splitlines()], [["KEY", "BECAME"], ["a", "kept"]])


def test_reconcile_many(cli):
    """More than a page, and than a batch: each is told once, under one heading."""
    url = journal(cli, "j.db", first=(JOURNAL + 1, "paid"))
    cli.seed("many", "k", 2500, 3600000, store=url)
    answer = cli.run("journal", "reconcile", url)
    rows = [line.split() for line in answer.out.splitlines()]
    expect(rows[0][0], "KEY")
    expect(sorted(row[0] for row in rows[1:]), sorted(["first", *(f"k{number:06}" for number in range(2500))]))
    expect({row[2] for row in rows[1:]}, {"kept"})
    expect_in("2501 kept, 0 ran twice", answer.err)
    expect(cli.run("journal", "list", url, "-o", "json").lines, [])


def test_a_claim_that_lapsed(cli):
    """Of a node that died: it has failed, and does not stay."""
    url = journal(cli, "j.db", first=(JOURNAL + 1, "paid"))
    cli.seed("claim", "dead", 1, "node-1", store=url)
    seen = {}
    until(
        lambda: seen.update(became(cli.run("journal", "reconcile", url, "-o", "json"))) or seen["dead"] == "failed",
        "its lease has lapsed",
    )
    expect(seen, {"first": "kept", "dead": "failed"})
    expect(cli.run("journal", "list", url, "-o", "json").lines, [])


def test_progress_is_shown_on_a_terminal(cli):
    url = journal(cli, "j.db", first=(JOURNAL + 1, "paid"))
    cli.seed("many", "k", 600, 3600000, store=url)
    cli.run("check", "k")
    blocker = sqlite3.connect(cli.path, timeout=TIMEOUT_SECONDS, isolation_level=None)
    blocker.execute("BEGIN IMMEDIATE")
    screen, terminal = pty.openpty()
    process = cli.start("journal", "reconcile", url, stderr=terminal, env={"TERM": "xterm"})
    os.close(terminal)
    # Shown after a second: that long the first batch waits for the store.
    until(lambda: catches(process, SIGTERM), "it has begun")
    try:
        process.wait(timeout=1.3)
    except subprocess.TimeoutExpired:
        pass
    blocker.execute("ROLLBACK")
    blocker.close()
    finish(process, 0)
    shown = b""
    try:
        while chunk := os.read(screen, 4096):
            shown += chunk
    except OSError:
        pass
    os.close(screen)
    expect_in(b" of 601 records", shown)
    expect_in(b"601 kept, 0 ran twice", shown)


def test_bad_input(cli):
    cli.run("journal", code=64)
    cli.run("journal", "lst", code=64).says("did you mean 'hapax journal list'?")
    cli.run("journal", "list", code=64).says("missing argument", "usage: hapax journal list JOURNAL")
    cli.run("journal", "list", f"sqlite:{cli.folder / 'absent.db'}", code=69).says("hint: ")
    cli.run("check", "k")
    cli.run("journal", "reconcile", cli.store, "--store", f"sqlite:{cli.folder / 's.db'}", code=64).says("not a journal")
