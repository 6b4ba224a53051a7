"""claim, renew, complete, release, park, resolve: the holder's commands."""

import json
import re

from harness import expect, expect_in, expect_match, until


def claim(cli, key="k", *options):
    """Claim a key; its token."""
    return int(cli.run("claim", key, *options).out)


def state(cli, key="k"):
    return cli.run("lookup", key, "-o", "json", code=None).json["state"]


def test_claim_prints_the_token_alone(cli):
    result = cli.run("claim", "k")
    expect_match(r"\A[1-9][0-9]*\n\Z", result.out)
    expect(result.err, "")
    assert claim(cli, "k2") > int(result.out), "tokens rise"


def test_of_many_one_acquires(cli):
    first = cli.run("claim", "k", "-o", "json").json
    expect((first["outcome"], first["attempt"], first["key"], first["scope"]), ("acquired", 1, "k", "default/default"))
    assert 0 < first["lease_left_ms"] <= 30000
    again = cli.run("claim", "k", "-o", "json", code=75).json
    expect((again["outcome"], "token" in again), ("in_progress", False))
    expect_in(" pid ", again["owner"])
    expect_match(r"^in progress  attempt 1 by .* pid \d+, lease ends in \d+s$", cli.run("claim", "k", code=75).out)


def test_complete_and_replay(cli):
    token = claim(cli)
    answer = cli.run("complete", "k", "--token", str(token), "--result", "-", "-o", "json", input=b"receipt\n").json
    expect((answer["outcome"], answer["state"], answer["token"]), ("applied", "done", token))
    replay = cli.run("claim", "k", "-o", "json", code=1).json
    expect((replay["outcome"], replay["result"]["body"], replay["result"]["class"]), ("replay", "receipt\n", "ok"))
    expect_match(r"^duplicate  first seen ", cli.run("claim", "k", code=1).out)
    # Repeated it changes nothing: the first result stays.
    cli.run("complete", "k", "--token", str(token), "--result", "-", input=b"other")
    expect(cli.run("lookup", "k", "-o", "json").json["result"]["body"], "receipt\n")


def test_a_result_from_a_file(cli):
    path = cli.folder / "receipt"
    path.write_bytes(b"\x00\xff")
    cli.run("complete", "k", "--token", str(claim(cli)), "--result", str(path), "--definitive")
    result = cli.run("lookup", "k", "-o", "json").json["result"]
    expect((result["kind"], result["class"], result["body_base64"]), ("bytes", "definitive", "AP8="))
    token = str(claim(cli, "k2"))
    cli.run("complete", "k2", "--token", token, "--result", str(cli.folder / "missing"), code=66).says("missing")
    expect(state(cli, "k2"), "claimed")


def test_a_result_that_is_too_large_to_keep(cli):
    token = str(claim(cli))
    result = cli.run("complete", "k", "--token", token, "--result", "-", input=b"x" * 300_000)
    expect_in("note: the result is too large to store (300000 bytes)", result.err)
    found = cli.run("lookup", "k", "-o", "json").json
    expect((found["state"], found["result"]["body"], found["result"]["omitted_bytes"]), ("done", "", 300000))


def test_release_lets_the_next_one_run(cli):
    token = claim(cli)
    expect_match(r"^failed  attempt 1, expires ", cli.run("release", "k", "--token", str(token), "--error", "no stock").out)
    found = cli.run("lookup", "k", "-o", "json").json
    expect((found["state"], found["error"]), ("failed", "no stock"))
    again = cli.run("claim", "k", "-o", "json").json
    expect((again["attempt"], again["token"] > token), (2, True))


def test_renew(cli):
    token = str(claim(cli, "k", "--lease", "5s"))
    answer = cli.run("renew", "k", "--token", token, "--lease", "1h", "-o", "json").json
    assert 3500_000 < answer["lease_left_ms"] <= 3600_000, answer
    expect_match(r"^claimed  attempt 1, lease ends in [23]\ds$", cli.run("renew", "k", "--token", token).out)


def test_park_and_resolve(cli):
    for decision, expected in (("--done", "done"), ("--retry", "failed")):
        key = f"k{decision}"
        token = str(claim(cli, key))
        cli.run("park", key, "--token", token, "--error", "no answer")
        expect_match(r"^parked  .*: no answer$", cli.run("claim", key, code=75).out)
        expect([line["key"] for line in cli.run("keys", "--state", "parked", "-o", "json").lines], [key])
        cli.run("resolve", key, decision)
        expect(state(cli, key), expected)
    expect(cli.run("claim", "k--retry", "-o", "json").json["attempt"], 2)
    cli.run("claim", "k--done", code=1)


def test_resolve_with_a_result(cli):
    cli.run("park", "k", "--token", str(claim(cli)))
    cli.run("resolve", "k", "--done", "--result", "-", input=b"found it")
    expect(cli.run("claim", "k", "-o", "json", code=1).json["result"]["body"], "found it")


def test_resolve_leaves_a_live_claim_alone(cli):
    token = str(claim(cli))
    cli.run("resolve", "k", "--retry", code=75).says("it is claimed, and its lease ends in", "--force")
    expect(state(cli), "claimed")
    cli.run("resolve", "k", "--retry", "--force")
    expect(state(cli), "failed")
    # The holder can still complete: no other run started since.
    cli.run("complete", "k", "--token", token)
    cli.run("resolve", "k", "--retry", code=77).says("fenced")
    cli.run("resolve", "k", "--done")


def test_resolve_needs_a_decision(cli):
    cli.run("check", "k")
    for arguments in ([], ["--done", "--retry"]):
        cli.run("resolve", "k", *arguments, code=64).says("--done")
    cli.run("resolve", "k", "--retry", "--result", "-", code=64).says("--result requires --done")
    cli.run("resolve", "absent", "--done", code=1).says("'absent' has no record")


def test_a_late_holder_is_fenced(cli):
    late = claim(cli, "k", "--lease", "1ms")
    until(lambda: cli.run("explain", "k", "-o", "json").json["next_claim"] == "acquired", "the lease has lapsed")
    token = claim(cli)
    for command in ("renew", "complete", "release", "park"):
        result = cli.run(command, "k", "--token", str(late), code=77)
        result.says(f"fenced: token {late} no longer holds 'k'", "shows the holder")
        answer = cli.run(command, "k", "--token", str(late), "-o", "json", code=77)
        expect((answer.json["outcome"], answer.json["token"]), ("fenced", late))
    found = cli.run("lookup", "k", "-o", "json").json
    expect((found["state"], found["token"], found["attempt"]), ("claimed", token, 2))


def test_fenced_says_why(cli):
    """A newer token is mentioned only if there is one, and its value is never shown."""
    token = claim(cli)

    def fenced(command, key, number, word):
        result = cli.run(command, key, "--token", str(number), code=77)
        result.says("fenced: ", word)
        assert "no longer holds" not in result.err, result.err

    fenced("complete", "absent", token, "'absent' has no record")
    fenced("complete", "k", token + 1, f"token {token + 1} was not issued for 'k'")
    cli.run("release", "k", "--token", str(token))
    fenced("renew", "k", token, "was released")
    fenced("park", "k", token, "was released")
    token = claim(cli)
    cli.run("complete", "k", "--token", str(token))
    for command in ("renew", "release", "park"):
        fenced(command, "k", token, "'k' is done")
    cli.run("resolve", "k", "--retry", code=77).says("'k' is done")
    cli.run("forget", "k")
    fenced("renew", "k", token, "'k' has no record")


def test_a_lapsed_holder_can_complete_while_nobody_took_over(cli):
    late = str(claim(cli, "k", "--lease", "1ms"))
    until(lambda: cli.run("explain", "k", "-o", "json").json["next_claim"] == "acquired", "the lease has lapsed")
    cli.run("complete", "k", "--token", late)
    expect(state(cli), "done")


def test_on_lapse_park(cli):
    claim(cli, "k", "--lease", "1ms", "--on-lapse", "park")
    until(lambda: cli.run("claim", "k", "-o", "json", code=75).json["outcome"] == "parked", "it is parked")
    expect(state(cli), "parked")


def test_the_payload_is_compared(cli):
    cli.run("claim", "k", "--owner", "me", "--payload", "-", input=b"one")
    expect("owner" in cli.run("claim", "k", "--payload", "-", "-o", "json", input=b"two", code=65).json, False)
    expect_match("^mismatch  ", cli.run("claim", "k", "--payload", "-", input=b"two", code=65).out)
    cli.run("claim", "k", "--payload", "-", input=b"one", code=75)


def test_the_event_is_kept(cli):
    """A10: as the events of a listener are."""
    event = {"id": "evt_1", "type": "order.paid", "source": "/shop", "time": "2026-11-18T05:00:00.000Z"}
    claim(cli, "k", "--event", json.dumps(event))
    expect(cli.run("lookup", "k", "-o", "json").json["event"], event)
    for wrong in ("[]", "{", '{"id": 1}', '{"name": "x"}'):
        cli.run("claim", "other", "--event", wrong, code=64).says("--event: ")
    cli.run("lookup", "other", code=1)


def test_the_token_comes_from_the_environment_too(cli):
    token = str(claim(cli))
    cli.run("renew", "k", env={"HAPAX_TOKEN": token})
    cli.run("renew", "k", env={"HAPAX_TOKEN": "x"}, code=64).says("HAPAX_TOKEN: 'x' is not a whole number")
    cli.run("renew", "k", code=64).says("missing option --token")


def test_wrong_tokens_and_leases(cli):
    claim(cli)
    for token in ("0", "-1", "x", "1x", "", "9" * 30, str(2**53)):
        cli.run("complete", "k", f"--token={token}", code=64).says("--token")
    for lease, message in [("0s", "must be greater than 0"), ("8d", "the limit is 1w"), ("soon", "expected"), ("5", "expected")]:
        cli.run("claim", "k2", f"--lease={lease}", code=64).says("--lease", message)
    # Options before files: a payload from standard input is not waited for in vain.
    cli.run("claim", "k2", "--lease=soon", "--payload=missing", code=64).says("--lease")
    expect(state(cli), "claimed")
    expect(cli.run("lookup", "k2", code=1).out, "")


def test_the_script_in_the_help_of_claim_works(cli):
    text = cli.run("help", "claim").out
    script = text[text.index('  token=$(hapax claim "$id"') : text.index("  esac\n") + 7]
    work = "do_the_work() { echo worked; }; id=order-17\n" + script + "\nexit 0"
    expect_in("worked\n", cli.shell(work).out)
    assert "worked" not in cli.shell(work).out
    fails = "do_the_work() { return 1; }; id=order-18\n" + script + "\nexit 0"
    cli.shell(fails)
    expect(state(cli, "order-18"), "failed")


def timeless(text):
    """Without spans: a second may pass between two looks."""
    return re.sub(r"<?\b(\d+[dhms])+\b", "SPAN", text)


def test_explain(cli):
    def told(key, code=0):
        text = cli.run("explain", key, code=code).out
        answer = cli.run("explain", key, "-o", "json", code=code).json
        expect_in(f"A claim with the same payload would now return: {answer['next_claim']}.", text)
        for sentence in answer["explanation"]:
            expect_in(timeless(sentence), timeless(text))
        return answer["state"], answer["next_claim"], text

    cli.run("check", "marked")
    expect(told("marked")[:2], ("done", "replay"))
    expect_in("it is a mark, as 'hapax check'", told("marked")[2])
    expect(told("absent", code=1)[:2], ("absent", "acquired"))
    token = str(claim(cli, "k"))
    expect(told("k")[:2], ("claimed", "in_progress"))
    expect_in("for another ", told("k")[2])
    cli.run("release", "k", "--token", token, "--error", "no stock")
    expect(told("k")[:2], ("failed", "acquired"))
    expect_in("The last run failed: no stock.", told("k")[2])
    cli.run("park", "k", "--token", str(claim(cli, "k")), "--error", "no answer")
    expect(told("k")[:2], ("parked", "parked"))
    for part in ("no answer", "  hapax resolve k --done\n", "  hapax resolve k --retry\n", "2 runs were started"):
        expect_in(part, told("k")[2])
    # A command of another store would not find the key. What has a password is not repeated.
    store = ("--store", f"sqlite:{cli.path}")
    expect_in(f"  hapax resolve k --done {' '.join(store)}\n", cli.run("explain", "k", *store).out)
    store = ("--scope", "default/default", "--store", f"sqlite:{cli.path}?a@b=")
    told_there = cli.run("explain", "k", *store, code=None)
    assert "a@b" not in told_there.out, told_there
    cli.run("resolve", "k", "--done", "--result", "-", input=b"hello")
    expect(told("k")[:2], ("done", "replay"))
    expect_in("(bytes, ok, status 0, 5 bytes)", told("k")[2])
    claim(cli, "lapsed", "--lease", "1ms")
    until(lambda: told("lapsed")[1] == "acquired", "the lease has lapsed")
    expect_in("the next claim takes over", told("lapsed")[2])


def test_what_explain_suggests_can_be_typed(cli):
    for key, scope, shown in [("a b", [], "KEY"), ("-k", [], "KEY"), ("a:b/c", ["--scope", "acme/x"], "a:b/c")]:
        token = cli.run("claim", *scope, "--", key).out.strip()
        cli.run("park", *scope, "--token", token, "--", key)
        text = cli.run("explain", *scope, "--", key).out
        expect_in(f"  hapax resolve {shown} --done{' ' if scope else ''}{' '.join(scope)}\n", text)


def test_explain_cannot_act_on_the_terminal(cli):
    cli.run("release", "k", "--token", str(claim(cli)), "--error", "\x1b[31mred\x07")
    text = cli.run("explain", "k").raw_out
    assert b"\x1b" not in text and b"\x07" not in text, text


# Bidi, invisible, soft hyphen, separators of lines and paragraphs, tags; what is between them stays.
HIDDEN = [0xAD, 0x61C, *range(0x200B, 0x2010), *range(0x2028, 0x202F), *range(0x2060, 0x2070), 0xFEFF, 0xE0001, 0xE0065]


def test_hidden_characters_are_shown(cli):
    """A key that is drawn as another one is not taken for it, wherever it is named."""
    hidden = "".join(map(chr, HIDDEN))
    key, scope, owner = f"pay-{hidden}ü漢", f"t{hidden}/g{hidden}", f"o{hidden}"
    there = ("--scope", scope)
    token = cli.run("claim", *there, "--owner", owner, key).out.strip()
    results = [
        cli.run("claim", *there, key, code=75),
        cli.run("check", *there, key, code=75),
        cli.run("lookup", *there, key),
        cli.run("explain", *there, key),
        cli.run("keys"),
        cli.run("stats"),
        cli.run("renew", *there, key, "--token", str(int(token) + 1), code=77),
        cli.run("forget", *there, key, code=75),
        cli.run("run", *there, "--key", key, "--", "true", code=75),
        cli.run("park", *there, key, "--token", token, "--error", f"e{hidden}"),
        cli.run("explain", *there, key),
        cli.run("run", *there, "--key", key, "--", "true", code=75),
        cli.run("resolve", "--done", f"absent{hidden}", code=1),
        cli.run("check", "--scope", f"{scope}/x", key, code=64),
        cli.run("lookup", *there, key, "-o", "json"),
    ]
    for result in results:
        for stream in (result.raw_out.decode(), result.err):
            expect([hex(ord(letter)) for letter in stream if ord(letter) in HIDDEN], [], f"in {stream!r}")
    expect_in(r"pay-\xc2\xad", results[2].out)
    expect_in(r"\xf3\xa0\x81\xa5ü漢", results[2].out)
    # JSON means the same as before.
    expect((results[-1].json["key"], results[-1].json["scope"], results[-1].json["error"]), (key, scope, f"e{hidden}"))
