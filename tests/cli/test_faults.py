"""Faults as JSON, -q, several keys, version -o json: what scripts read. A4, E13."""

import json

from harness import expect, expect_in, expect_match


def documents(text):
    return [json.loads(line) for line in text.splitlines()]


def test_faults_are_json_with_output_json(cli):
    """One document with message, hint and exit code; also for options that are wrong."""
    cases = [
        (["check", ""], 64, "the key is empty"),
        (["check", "k", "--bogus"], 64, "unknown option '--bogus'"),
        (["check"], 64, "missing argument"),
        (["lookup", "k", "--store", "nope:x"], 69, "unknown store scheme 'nope'"),
        (["store", "nothing"], 64, "unknown action 'nothing'"),
    ]
    for arguments, code, word in cases:
        for form in (["-o", "json"], ["-ojson"], ["--output=json"], ["--output", "json"]):
            result = cli.run(*arguments, *form, code=code)
            (fault,) = documents(result.err)
            expect((fault["command"], fault["exit"]), (arguments[0], code))
            expect_in(word, fault["error"])
            assert "hint: " not in result.err
    (fault,) = documents(cli.run("check", "", "-o", "json", code=64).err)
    expect(list(fault), ["command", "error", "hint", "exit"])


def test_notes_are_json_too(cli):
    cli.run("check", "k")
    (note,) = documents(cli.run("forget", "k", "--ttl", "5m", "-o", "json").err)
    expect(note, {"command": "forget", "note": "--ttl has no effect: this command creates no record"})


def test_a_fault_cannot_act_on_the_terminal(cli):
    """Escaped, as in the text form."""
    result = cli.run("forget", "k", "--store", "sqlite:/\x1b[2J\u202e/x", "-o", "json", code=None)
    assert "\x1b" not in result.err and "\u202e" not in result.err
    (fault,) = documents(result.err)
    expect_in("[2J\u202e", fault["error"])


def test_the_form_belongs_to_the_command(cli):
    """What stands after -- is not an option; run passes it on."""
    cli.run("check", "--", "-o", "json")
    expect(cli.run("run", "--key", "k", "--", "echo", "-o", "json").out, "-o json\n")
    expect_match("^hapax: run: ", cli.run("run", "--bogus", "--", "echo", "-o", "json", code=125).err)


def test_quiet(cli):
    """No notes, hints and data that the exit status has; faults and other data stay."""
    result = cli.run("check", "k", "-q")
    expect((result.out, result.err), ("", ""))
    result = cli.run("check", "k", "--quiet", code=1)
    expect((result.out, result.err), ("", ""))
    expect(cli.run("lookup", "k", "-q").out, cli.run("lookup", "k").out)
    result = cli.run("forget", "k", "--ttl", "5m", "-q")
    expect((result.out, result.err), ("", ""))
    result = cli.run("check", "", "-q", code=64)
    expect(result.err, "hapax: check: the key is empty\n")
    (fault,) = documents(cli.run("check", "", "-q", "-o", "json", code=64).err)
    expect(list(fault), ["command", "error", "exit"])
    cli.run("claim", "c", "-q").out.strip().isdigit() or expect(True, False, "claim prints its token")


def test_several_keys(cli):
    """Each has its line; the exit status is the highest. All are checked before one is marked."""
    expect(cli.run("check", "a", "b").out, "a  first\nb  first\n")
    result = cli.run("check", "c", "a", code=1)
    expect_match(r"\Ac  first\na  duplicate  first seen [^\n]*\n\Z", result.out)
    answers = documents(cli.run("check", "d", "a", "-o", "json", code=1).out)
    expect([(answer["key"], answer["outcome"]) for answer in answers], [("d", "acquired"), ("a", "replay")])
    cli.run("check", "e", "", code=64)
    expect(cli.run("check", "e").out, "first\n")
    cli.run("check", "f", "g", "--payload", "-", code=64).says("--payload requires a single key")
    result = cli.run("forget", "a", "none", "b", code=1)
    expect(result.out, "a  forgotten  was done\nnone  absent\nb  forgotten  was done\n")
    cli.seed("claim", "held", 600000, "x")
    result = cli.run("forget", "held", "c", code=75)
    expect(result.out, "held  busy  is claimed\nc  forgotten  was done\n")
    result.says("cannot forget 'held': it is claimed")


def test_the_version_names_what_is_built_in(cli):
    answer = cli.run("version", "-o", "json").json
    expect(list(answer), ["version", "revision", "features"])
    expect(cli.run("version").out, f"hapax {answer['version']}\n")
    expect(sorted(answer["features"]), answer["features"])
    assert answer["revision"] and "sqlite" in answer["features"]
