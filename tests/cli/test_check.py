"""hapax check."""

import hashlib
import os
import re
import threading

from harness import expect, expect_in, expect_match, until

TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
JSON_TIME = r"\A\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\Z"
MEMBERS = ["outcome", "key", "scope", "attempt", "first_seen", "expires_at"]
FIRST_MEMBERS = MEMBERS[:3] + ["token"] + MEMBERS[3:]


def test_first_then_duplicate(cli):
    first = cli.run("check", "order-17")
    expect((first.out, first.err), ("first\n", ""))
    again = cli.run("check", "order-17", code=1)
    expect_match(
        rf"\Aduplicate  first seen {TIME} \(\S+ ago\), expires {TIME} \(in 23h5\dm\)\n\Z", again.out
    )
    expect(again.err, "")
    expect(cli.run("check", "order-18").out, "first\n")


def test_json_has_exactly_these_members(cli):
    first = cli.run("check", "order-17", "-o", "json").json
    again = cli.run("check", "order-17", "-o", "json", code=1).json
    expect((list(first), list(again)), (FIRST_MEMBERS, MEMBERS))
    assert isinstance(first["token"], int) and first["token"] >= 1
    for answer, outcome in ((first, "acquired"), (again, "replay")):
        expect(answer["outcome"], outcome)
        expect((answer["key"], answer["scope"], answer["attempt"]), ("order-17", "default/default", 1))
        for name in ("first_seen", "expires_at"):
            expect_match(JSON_TIME, answer[name])
    for name in ("first_seen", "expires_at"):
        expect(again[name], first[name], name)


def test_expired_records_go_as_new_ones_come(cli):
    """Without gc: a job that checks for years must not fill the disk."""
    cli.seed("many", "old-", 40, 1)
    for i in range(5):
        expect(cli.run("check", f"new-{i}").out, "first\n")
    expect(cli.sql("SELECT count(*) FROM hapax_record"), [(5,)])
    cli.is_intact()


def test_tokens_rise(cli):
    tokens = [cli.run("check", f"k{n}", "-o", "json").json["token"] for n in range(5)]
    expect(tokens, sorted(set(tokens)))


def test_in_progress(cli):
    token = cli.seed("claim", "k", 600000, "host-3:run[42]")
    result = cli.run("check", "k", code=75)
    expect_match(r"\Ain progress  attempt 1 by host-3:run\[42\], lease ends in 9m\d\ds\n\Z", result.out)
    answer = cli.run("check", "k", "-o", "json", code=75).json
    # JSON tells no less than the text.
    expect(list(answer), MEMBERS + ["lease_left_ms", "owner"])
    expect((answer["outcome"], "token" in answer, answer["expires_at"]), ("in_progress", False, None))
    expect(cli.run("lookup", "k", "-o", "json").json["token"], token)
    expect(answer["owner"], "host-3:run[42]")
    assert 0 < answer["lease_left_ms"] <= 600000


def test_parked(cli):
    cli.seed("park", "k", "the reply was lost")
    result = cli.run("check", "k", code=75)
    expect_match(rf"\Aparked  first seen {TIME} \(\S+ ago\): the reply was lost\n\Z", result.out)
    answer = cli.run("check", "k", "-o", "json", code=75).json
    expect([name for name in answer if name != "owner"], MEMBERS + ["error"])
    expect((answer["outcome"], answer["expires_at"], answer["error"]), ("parked", None, "the reply was lost"))


def test_a_failed_key_is_first_again(cli):
    token = cli.seed("release", "k", "exit status 3")
    answer = cli.run("check", "k", "-o", "json").json
    expect((answer["outcome"], answer["attempt"]), ("acquired", 2))
    assert answer["token"] > token


def test_a_lapsed_claim_is_taken_over(cli):
    cli.seed("claim", "k", 1, "gone")
    until(lambda: cli.run("check", "k", code=None).code == 0, "the lease has lapsed")
    cli.run("check", "k", code=1)


def test_mismatch(cli):
    cli.run("check", "k", "--payload", "-", input=b'{"total":42}')
    cli.run("check", "k", "--payload", "-", input=b'{"total":42}', code=1)
    result = cli.run("check", "k", "--payload", "-", input=b'{"total":99}', code=65)
    expect_match(rf"\Amismatch  first seen {TIME} \(\S+ ago\) with a different payload\n\Z", result.out)
    answer = cli.run("check", "k", "--payload", "-", "-o", "json", input=b"", code=65).json
    expect(list(answer), MEMBERS)
    expect(answer["outcome"], "mismatch")
    # Without a fingerprint on either side there is nothing to compare.
    cli.run("check", "k", code=1)
    cli.run("check", "bare")
    cli.run("check", "bare", "--payload", "-", input=b"anything", code=1)


def fingerprint(cli, key):
    return cli.run("lookup", key, "-o", "json").json["fingerprint"]


def test_the_payload_is_hashed_with_sha256(cli):
    for size in (0, 1, 16383, 16384, 16385, 3_000_000):
        data = os.urandom(size)
        path = cli.folder / "payload"
        path.write_bytes(data)
        cli.run("check", f"file-{size}", "--payload", str(path))
        cli.run("check", f"pipe-{size}", "--payload=-", input=data)
        for key in (f"file-{size}", f"pipe-{size}"):
            expect(fingerprint(cli, key), hashlib.sha256(data).hexdigest(), key)
    cli.run("check", "none")
    expect(fingerprint(cli, "none"), None)


def test_payload_from_a_slow_pipe(cli):
    read, write = os.pipe()

    def feed():
        for part in (b"one ", b"two ", b"three"):
            os.write(write, part)
        os.close(write)

    thread = threading.Thread(target=feed)
    thread.start()
    cli.run("check", "k", "--payload", "-", stdin=read)
    thread.join()
    os.close(read)
    expect(fingerprint(cli, "k"), hashlib.sha256(b"one two three").hexdigest())


def test_a_payload_that_cannot_be_read(cli):
    for path, why in [("missing", "No such file"), (str(cli.folder), "Is a directory"), ("", "No such file")]:
        result = cli.run("check", "k", "--payload", path, code=66)
        result.says(f"could not read payload '{path}'", why)
        expect(result.out, "")
    cli.shell("hapax check k --payload - <&-").says("could not read payload '-'")
    os.mkfifo(cli.folder / "fifo")
    cli.shell("exec 3<>fifo; hapax check k --payload fifo").says("to read a pipe, use '--payload -'")
    assert not cli.path.exists(), "a payload that was not read made a store"


def test_scopes_are_apart(cli):
    for scope in ("acme/billing", "acme/mail", "other/billing"):
        answer = cli.run("check", "k", "--scope", scope, "-o", "json").json
        expect((answer["outcome"], answer["scope"]), ("acquired", scope))
    cli.run("check", "k", "--scope=acme/mail", code=1)
    # A tenant alone means its group "default", and no scope means default/default.
    expect(cli.run("check", "k", "--scope", "acme", "-o", "json").json["scope"], "acme/default")
    cli.run("check", "k", "--scope", "acme/default", code=1)
    cli.run("check", "k")
    cli.run("check", "k", "--scope", "default", code=1)


def test_an_expired_key_is_first_again(cli):
    cli.run("check", "k", "--ttl", "1ms")
    until(lambda: cli.run("check", "k", "--ttl", "1h", code=None).code == 0, "the key has expired")
    cli.run("check", "k", code=1)


def test_a_key_may_be_kept_for_ever(cli):
    cli.run("check", "k", "--ttl", "forever")
    expect_match(r", never expires\n\Z", cli.run("check", "k", code=1).out)
    expect(cli.run("check", "k", "-o", "json", code=1).json["expires_at"], None)


def test_durations(cli):
    day = 24 * 3600 * 1000
    for text, ms in [("100ms", 100), ("90s", 90000), ("5m", 300000), ("1h30m", 5400000), ("7d", 7 * day)]:
        cli.run("check", text, "--ttl", text)
        record = cli.sql("SELECT ttl_ms FROM hapax_record WHERE key = ?", text.encode())
        expect(record, [(ms,)], text)


def test_keys_of_every_permitted_kind(cli):
    keys = ["a", "x" * 1024, "straße 17", "注文-17", "📦", "a/b c", '"quoted"', "back\\slash", "\u00e9" * 512]
    for key in keys:
        answer = cli.run("check", key, "-o", "json").json
        expect((answer["outcome"], answer["key"]), ("acquired", key))
        cli.run("check", key, code=1)


def test_the_tenant_and_group_may_be_long(cli):
    scope = "t" * 128 + "/" + "g" * 128
    expect(cli.run("check", "k", "--scope", scope, "-o", "json").json["scope"], scope)


def test_owner_and_error_cannot_act_on_the_terminal(cli):
    cli.seed("claim", "k", 600000, "\x1b[31mred\x07")
    result = cli.run("check", "k", code=75)
    expect_in(r"by \x1b[31mred\x07,", result.out)
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", result.raw_out)
