"""hapax store: info, copy, restored."""

import os
import pty

from harness import expect, expect_in, expect_match, finish, until

DISTANCE = 2**40


def fill(cli):
    """A record in each state."""
    cli.run("check", "mark", "--ttl", "forever")
    cli.run("check", "scoped", "--scope", "acme/billing")
    cli.seed("claim", "running", 600000, "worker-1")
    cli.seed("release", "failed", "it broke")
    cli.seed("park", "unclear", "nobody knows")
    cli.seed("http", "done", 201, "created")


def shown(cli, store, key, *scope):
    """What lookup says of a key, but for what the time changes."""
    answer = cli.run("lookup", key, "--store", store, *scope, "-o", "json").json
    answer.pop("lease_left_ms", None)
    return answer


def test_info(cli):
    fill(cli)
    fields = cli.run("store", "info").fields()
    expect(fields["store"], cli.store)
    expect(fields["kind"], "sqlite")
    expect(fields["keys"], "6 (1 claimed, 3 done, 1 failed, 1 parked)")
    expect(fields["guarantee"], "answers survive a power cut")
    answer = cli.run("store", "info", cli.store, "-o", "json").json
    expect((answer["kind"], answer["keys"], answer["parked"]), ("sqlite", 6, 1))
    expect_in("durable", answer["capabilities"])
    assert answer["token"] >= 6, answer


def test_info_makes_no_store(cli):
    cli.run("store", "info", code=69).says("hint: ")
    assert not cli.path.exists()


def test_a_copy_holds_every_record(cli):
    fill(cli)
    last = cli.run("store", "info", "-o", "json").json["token"]
    target = f"sqlite:{cli.folder / 'copy.db'}"
    answer = cli.run("store", "copy", cli.store, target, "-o", "json").json
    expect((answer["records"], answer["token"]), (6, last + DISTANCE))
    for key in ("mark", "running", "failed", "unclear", "done"):
        before, after = shown(cli, cli.store, key), shown(cli, target, key)
        # Where the second clock is a moment ahead, expiry is that moment later.
        for name in ("expires_at", "lease_ends_at"):
            before.pop(name, None), after.pop(name, None)
        expect(after, before, key)
    expect(shown(cli, target, "scoped", "--scope", "acme/billing")["state"], "done")
    expect_in("duplicate", cli.run("check", "mark", "--store", target, code=1).out)
    cli.run("check", "new one", "--store", target)
    expect(shown(cli, target, "new one")["token"], last + DISTANCE + 1)
    expect(cli.run("store", "info", target, "-o", "json").json["keys"], 7)


def test_many_records(cli):
    cli.seed("many", "key-", 5000, 3600000)
    target = f"sqlite:{cli.folder / 'copy.db'}"
    fields = cli.run("store", "copy", cli.store, target).fields()
    expect(fields["records"], "5000")
    expect(cli.run("store", "info", target, "-o", "json").json["done"], 5000)


def test_a_large_result_is_copied(cli):
    cli.seed("large", "big", 200000)
    target = f"sqlite:{cli.folder / 'copy.db'}"
    cli.run("store", "copy", cli.store, target)
    expect(shown(cli, target, "big"), shown(cli, target, "big") | {"state": "done"})
    expect(cli.run("store", "info", target, "-o", "json").json["done"], 1)


def test_a_target_that_is_not_empty_is_left_alone(cli):
    fill(cli)
    target = f"sqlite:{cli.folder / 'other.db'}"
    cli.run("check", "mine", "--store", target)
    cli.run("store", "copy", cli.store, target, code=64).says("holds 1 keys", "empty store")
    expect(cli.run("store", "info", target, "-o", "json").json["keys"], 1)


def test_a_source_that_is_not_there(cli):
    target = cli.folder / "copy.db"
    cli.run("store", "copy", cli.store, f"sqlite:{target}", code=69)
    assert not target.exists(), "a target was made for nothing"


def test_the_same_store_twice(cli):
    cli.run("check", "k")
    cli.run("store", "copy", cli.store, cli.store, code=64).says("the same store")


def test_restored(cli):
    fill(cli)
    last = cli.run("store", "info", "-o", "json").json["token"]
    expect(cli.run("store", "restored", "-o", "json").json["token"], last + DISTANCE)
    cli.run("check", "later")
    expect(shown(cli, cli.store, "later")["token"], last + DISTANCE + 1)
    expect(cli.run("store", "info", "-o", "json").json["keys"], 7)


def test_wrong_arguments(cli):
    cli.run("store", code=64).says("an argument was missing", "hint: usage: hapax store info")
    cli.run("store", "move", code=64).says("unknown action 'move'", "info, copy, migrate and restored")
    cli.run("store", "copy", cli.store, code=64).says("an argument was missing", "copy SOURCE TARGET")
    cli.run("store", "info", "a", "b", code=64).says("too many", "info [URL]")
    assert not cli.path.exists()


def test_progress_is_shown_on_a_terminal_only(cli):
    cli.seed("many", "key-", 60000, 3600000)
    screen, terminal = pty.openpty()
    target = f"sqlite:{cli.folder / 'copy.db'}"
    process = cli.start("store", "copy", cli.store, target, stderr=terminal, env={"TERM": "xterm"})
    os.close(terminal)
    out, _ = finish(process, 0)
    expect_match(rb"records +60000\n", out)
    seen = b""
    try:
        while chunk := os.read(screen, 4096):
            seen += chunk
    except OSError:
        pass
    os.close(screen)
    # On a fast machine it is over within a second, and then nothing is shown.
    if seen:
        expect_in(b"] ", seen)
        assert seen.endswith(b"\r\x1b[K"), seen
    until(lambda: cli.run("store", "info", target, "-o", "json").json["done"] == 60000, "all are there")
