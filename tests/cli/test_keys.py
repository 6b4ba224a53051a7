"""hapax keys."""

import os
import subprocess

from harness import SIGINT, SIGPIPE, catches, expect, expect_in, expect_match, finish, until


def fill(cli):
    for key in ("order-1", "order-2", "mail-1"):
        cli.run("check", key)
    cli.run("check", "order-1", "--scope", "acme/billing", "--ttl", "forever")
    cli.seed("claim", "running", 600000, "x")
    cli.seed("release", "broken", "x")
    cli.seed("park", "unclear", "x")


def names(result):
    return sorted((line["scope"], line["key"]) for line in result.lines)


def test_the_table(cli):
    fill(cli)
    result = cli.run("keys")
    lines = result.out.splitlines()
    expect(lines[0].split(), ["KEY", "SCOPE", "STATE", "ATTEMPT", "AGE", "EXPIRES-IN"])
    expect(len(lines), 8)
    expect(len({line.index("default/default") for line in lines[1:] if "default/" in line}), 1, "columns")
    expect(len({len(line) for line in lines}), 1, "width, since the last column stands right")
    rows = {tuple(line.split()[:2]): line.split()[2:] for line in lines[1:]}
    expect_match(r"\A23h5\dm\Z", rows["order-2", "default/default"][3])
    expect(rows["order-1", "acme/billing"][3], "never")
    expect((rows["running", "default/default"][0], rows["running", "default/default"][3]), ("claimed", "-"))
    expect((rows["unclear", "default/default"][0], rows["unclear", "default/default"][3]), ("parked", "-"))
    expect(rows["broken", "default/default"][0], "failed")
    expect(result.err, f"store: {cli.store}\n7 keys\n")


def test_json_is_a_document_per_line(cli):
    fill(cli)
    result = cli.run("keys", "-o", "json")
    expect(result.err, "")
    expect(len(result.lines), 7)
    for line in result.lines:
        assert "result" not in line
        expect(
            list(line)[:10],
            ["key", "scope", "state", "origin", "token", "attempt", "first_seen", "changed_at", "expires_at", "ttl_ms"],
        )


def test_filters(cli):
    fill(cli)
    for state, keys in [("claimed", ["running"]), ("failed", ["broken"]), ("parked", ["unclear"])]:
        expect([line["key"] for line in cli.run("keys", "--state", state, "-o", "json").lines], keys)
    expect(len(cli.run("keys", "--state", "done", "-o", "json").lines), 4)
    expect(
        names(cli.run("keys", "--prefix", "order-", "-o", "json")),
        [("acme/billing", "order-1"), ("default/default", "order-1"), ("default/default", "order-2")],
    )
    expect(names(cli.run("keys", "--scope", "acme/billing", "-o", "json")), [("acme/billing", "order-1")])
    expect(names(cli.run("keys", "--scope", "acme", "-o", "json")), [])
    expect(len(cli.run("keys", "--scope", "default", "-o", "json").lines), 6)
    expect(len(cli.run("keys", "--prefix", "", "-o", "json").lines), 7)
    expect(cli.run("keys", "--prefix", "100%_", "-o", "json").lines, [], "a prefix is not a pattern")


def test_no_keys(cli):
    cli.run("check", "k")
    cli.run("forget", "k")
    result = cli.run("keys")
    expect(result.out.split(), ["KEY", "SCOPE", "STATE", "ATTEMPT", "AGE", "EXPIRES-IN"])
    expect_in("\n0 keys\n", result.err)
    expect(cli.run("keys", "-o", "json").out, "")


def test_a_limit_says_that_there_is_more(cli):
    fill(cli)
    result = cli.run("keys", "--limit", "3")
    expect(len(result.out.splitlines()), 4)
    expect_in("only the first 3 keys are shown\n", result.err)
    result = cli.run("keys", "-n3", "-o", "json")
    expect((len(result.lines), result.err), (3, '{"note":"only the first 3 keys are shown"}\n'))
    result = cli.run("keys", "--limit", "7")
    expect_in("\n7 keys\n", result.err)
    expect(cli.run("keys", "--limit", "1", "--prefix", "mail-", "-o", "json").err, "")


def test_expired_keys_are_not_listed(cli):
    cli.run("check", "short", "--ttl", "1ms")
    cli.run("check", "long")
    until(lambda: cli.run("lookup", "short", code=None).code == 1, "the key has expired")
    expect([line["key"] for line in cli.run("keys", "-o", "json").lines], ["long"])


def test_many_keys_come_in_pages(cli):
    cli.seed("many", "key-", 2500, 3600000)
    result = cli.run("keys", "-o", "json")
    expect(sorted(line["key"] for line in result.lines), [f"key-{n:06}" for n in range(2500)])
    result = cli.run("keys")
    expect(len(result.out.splitlines()), 2501)
    expect(result.out.count("KEY"), 1)
    expect_in("\n2500 keys\n", result.err)
    for limit in (999, 1000, 1001, 2000, 2499):
        result = cli.run("keys", "-o", "json", "--limit", str(limit))
        expect((len(result.lines), result.err), (limit, f'{{"note":"only the first {limit} keys are shown"}}\n'))
    expect(cli.run("keys", "-o", "json", "--limit", "2500").err, "")


def test_keys_of_any_bytes(cli):
    raw = [b"\x00nul", b"\x1b[31mred", b"\xff\xfe", b"back\\slash", b"line\nbreak", b"\xc2\x9bcsi"]
    for key in raw:
        cli.seed("http", key, 200, b"")
    shown = {line.split()[0] for line in cli.run("keys").out.splitlines()[1:]}
    expect(shown, {r"\x00nul", r"\x1b[31mred", r"\xff\xfe", r"back\\slash", r"line\nbreak", r"\xc2\x9bcsi"})
    result = cli.run("keys", "-o", "json")
    for text in ("\x00nul", "\x1b[31mred", "back\\slash", "line\nbreak", "\x9bcsi"):
        assert any(line.get("key") == text for line in result.lines), text
    expect_in(r'"key":"\u0000nul"', result.out)
    expect([line["key_base64"] for line in result.lines if "key_base64" in line], ["//4="])


def test_columns_hold_keys_of_many_scripts(cli):
    for key in ("straße", "plain", "ключ"):
        cli.run("check", key)
    lines = cli.run("keys").out.splitlines()
    expect(len({line.index("default/default") for line in lines[1:]}), 1, "columns")


def test_a_reader_that_has_gone_ends_it_quietly(cli):
    cli.seed("many", "key-", 3000, 3600000)
    result = cli.shell("hapax keys -o json | head -n 1 >/dev/null")
    expect((result.code, result.err), (0, ""))
    process = cli.start("keys", "-o", "json")
    process.stdout.close()
    process.stdout = None
    expect(finish(process, 128 + SIGPIPE)[1], b"")


def test_a_signal_ends_the_listing(cli):
    cli.seed("many", "key-", 3000, 3600000)
    read, write = os.pipe()
    process = cli.start("keys", "-o", "json", stdout=write)
    os.close(write)
    # Without a reader it fills the pipe and waits there.
    until(lambda: catches(process, SIGINT), "it watches for signals")
    until(lambda: state(process) == "S", "it waits for its reader")
    process.send_signal(SIGINT)
    process.wait(timeout=60)
    os.close(read)
    expect(process.returncode, 130)
    expect(process.stderr.read(), b"")
    process.stderr.close()


def state(process):
    with open(f"/proc/{process.pid}/stat", encoding="ascii") as file:
        return file.read().rpartition(")")[2].split()[0]


def test_a_full_disk_is_reported(cli):
    cli.seed("many", "key-", 3000, 3600000)
    for form in ("text", "json"):
        with open("/dev/full", "wb") as full:
            result = cli.run("keys", "-o", form, stdout=full, code=74)
        expect_in("could not write standard output: No space left on device", result.err)
        expect(result.err.count("could not"), 1)


def test_the_listing_does_not_change_the_store(cli):
    fill(cli)
    before = cli.sql("SELECT * FROM hapax_record")
    cli.run("keys", stdout=subprocess.DEVNULL)
    expect(cli.sql("SELECT * FROM hapax_record"), before)
