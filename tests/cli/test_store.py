"""hapax store: info, copy, restored."""

import re

from harness import expect, expect_in, expect_match, on_screen, until
from run_hosts import HASTY_CLOCK, preload

DISTANCE = 2**40


def fill(cli):
    """A record in each state."""
    cli.run("check", "mark", "--ttl", "forever")
    cli.run("check", "scoped", "--scope", "acme/billing")
    cli.seed("claim", "running", 600000, "worker-1")
    cli.seed("release", "failed", "it broke")
    cli.seed("park", "unclear", "no answer")
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
    cli.run("store", "copy", cli.store, target, code=64).says("has 1 keys", "empty store")
    expect(cli.run("store", "info", target, "-o", "json").json["keys"], 1)


def test_a_source_that_is_not_there(cli):
    target = cli.folder / "copy.db"
    cli.run("store", "copy", cli.store, f"sqlite:{target}", code=69)
    assert not target.exists(), "a target was made for nothing"


def test_a_token_is_for_daemons(cli):
    """--auth-file says that it changes nothing where neither store is a daemon."""
    fill(cli)
    note = "note: --auth-file has no effect: the store is not a daemon"
    expect_in(note, cli.run("store", "info", cli.store, "--auth-file", "/nowhere").err)
    expect_in(note, cli.run("store", "copy", cli.store, f"sqlite:{cli.folder / 'copy.db'}", "--auth-file", "/nowhere").err)
    # A key is not a store, though it may look like one.
    expect_in(note, cli.run("check", "http://127.0.0.1:1", "--auth-file", "/nowhere").err)


def test_the_same_store_twice(cli):
    cli.run("check", "k")
    cli.run("store", "copy", cli.store, cli.store, code=64).says("must be different stores")


def test_restored(cli):
    fill(cli)
    last = cli.run("store", "info", "-o", "json").json["token"]
    answer = cli.run("store", "restored", "-o", "json").json
    expect((answer["store"], answer["token"]), (cli.run("store", "info", "-o", "json").json["store"], last + DISTANCE))
    cli.run("check", "later")
    expect(shown(cli, cli.store, "later")["token"], last + DISTANCE + 1)
    expect(cli.run("store", "info", "-o", "json").json["keys"], 7)


def test_wrong_arguments(cli):
    cli.run("store", code=64).says("missing action", "hint: use info, copy, import, migrate or restored")
    cli.run("store", "move", code=64).says("unknown action 'move'", "use info, copy, import, migrate or restored")
    cli.run("store", "copy", cli.store, code=64).says("missing argument", "copy SOURCE TARGET")
    cli.run("store", "info", "a", "b", code=64).says("unexpected argument 'b'", "info [URL]")
    assert not cli.path.exists()


BAR = rb"\r\[#*\.*\] +\d+ %%  \d+ of \d+ %s\x1b\[K"


def expect_bar(shown, unit):
    if not re.search(BAR % unit, shown):
        raise AssertionError(f"no bar of {unit!r} in {shown[-500:]!r}")
    assert shown.endswith(b"\r\x1b[K"), shown[-500:]


def test_progress_of_a_copy_is_shown_on_a_terminal_only(cli):
    cli.seed("many", "key-", 20000, 3600000)
    target = f"sqlite:{cli.folder / 'copy.db'}"
    out, shown = on_screen(cli, "store", "copy", cli.store, target, env=preload(cli, HASTY_CLOCK))
    expect_match(r"records +20000\n", out.decode())
    expect_bar(shown, b"records")
    expect(cli.run("store", "info", target, "-o", "json").json["done"], 20000)
    other = f"sqlite:{cli.folder / 'other.db'}"
    expect(cli.run("store", "copy", cli.store, other, env=preload(cli, HASTY_CLOCK)).err, "")


def test_progress_of_opening_is_shown_on_a_terminal_only(cli):
    """Recovery reads every byte and shows its progress."""
    store = f"file:{cli.folder / 'ledger'}"
    cli.seed("many", "key-", 60000, 3600000, store=store)
    env = preload(cli, HASTY_CLOCK)
    _, shown = on_screen(cli, "lookup", "key-000007", "--store", store, env=env)
    expect_bar(shown, b"bytes read")
    expect(cli.run("lookup", "key-000007", "--store", store, env=env).err, "")
    _, shown = on_screen(cli, "fsck", str(cli.folder / "ledger"), env=env)
    expect_bar(shown, b"bytes")


def test_info_of_segments(cli):
    store = f"file:{cli.folder / 'ledger'}"
    cli.run("check", "one", "--store", store)
    cli.run("check", "two", "--store", store)
    fields = cli.run("store", "info", store).fields()
    expect_match(r"1 of the log, 1\.0 MiB; 0 by expiry", fields["segments"])
    expect_match(r"\d+ B, \d+ % of the files", fields["live"])
    expect_match(r"(\d+), all below \1 synced", fields["next LSN"])
    expect(fields["clock owes"], "0 ms")
    expect(fields["state"], "intact; closed cleanly")
    files = cli.run("store", "info", store, "-o", "json").json["files"]
    expect((files["state"], files["log_segments"], files["log_bytes"]), ("closed", 1, 2**20))
    assert files["live_bytes"] >= 2 * 48, files
    assert files["durable_lsn"] == files["lsn"] > 2, files
    # Other stores have none.
    cli.run("check", "one")
    assert "files" not in cli.run("store", "info", "-o", "json").json


def test_info_after_a_crash(cli):
    folder = cli.folder / "ledger"
    store = f"file:{folder}"
    cli.run("check", "one", "--store", store)
    segment = next(folder.glob("log-*.seg"))
    data = bytearray(segment.read_bytes())
    # Without the frame of the clean close, which is the last one.
    last = max(at for at in range(4096, len(data), 4096) if data[at : at + 4] == b"HXFR")
    data[last : last + 4096] = bytes(4096)
    segment.write_bytes(data)
    expect(cli.run("store", "info", store, "-o", "json").json["files"]["state"], "recovered")
    expect(cli.run("store", "info", store, "-o", "json").json["files"]["state"], "closed")


def test_part_of_a_copy_is_refused(cli):
    cli.seed("many", "key-", 100000, 3600000)
    for target in (f"sqlite:{cli.folder / 'copy.db'}", f"file:{cli.folder / 'copy'}"):
        process = cli.start("store", "copy", cli.store, target)
        path = cli.folder / target.partition(":")[2]
        until(lambda: path.exists(), "the target is there")
        until(lambda: process.poll() is not None or part_is_there(path), "something was copied")
        process.kill()
        process.wait()
        result = cli.run("store", "info", target, code=None)
        # It may have been faster than we.
        if result.code == 0 and result.fields()["keys"].startswith(("100000 ", "0 ")):
            continue
        expect(result.code, 64, result.err)
        result.says("part of an unfinished copy", "delete it")
        cli.run("check", "key-1", "--store", target, code=64).says("part of an unfinished copy")


def part_is_there(path):
    """More than an empty store: a few batches."""
    names = [path, path.with_name(path.name + "-wal")] if path.is_file() else list(path.glob("log-*"))
    return sum(size_of(name) for name in names) > 2 * 2**20


def size_of(path):
    try:
        return path.stat().st_size
    except FileNotFoundError:
        # Not made yet, or renamed since it was seen.
        return 0
