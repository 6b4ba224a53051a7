"""hapax forget."""

from harness import expect


def test_a_done_key(cli):
    cli.run("check", "k")
    result = cli.run("forget", "k")
    expect((result.out, result.err), ("forgotten  was done\n", ""))
    cli.run("lookup", "k", code=1)
    expect(cli.run("check", "k").out, "first\n")


def test_absent(cli):
    cli.run("check", "other")
    result = cli.run("forget", "k", code=1)
    expect((result.out, result.err), ("absent\n", ""))
    result = cli.run("forget", "k", "-o", "json", code=1)
    expect(result.json, {"outcome": "absent", "key": "k", "scope": "default/default"})
    cli.run("forget", "k", "--force", code=1)


def test_a_failed_key(cli):
    cli.seed("release", "k", "no")
    answer = cli.run("forget", "k", "-o", "json").json
    expect(answer, {"outcome": "applied", "key": "k", "scope": "default/default", "state": "failed"})


def test_a_busy_key_needs_force(cli):
    for state, seed in [("claimed", ("claim", "c", 600000, "x")), ("parked", ("park", "p", "x"))]:
        key = seed[1]
        cli.seed(*seed)
        result = cli.run("forget", key, code=75)
        expect(result.out, f"busy  is {state}\n")
        result.says(f"cannot forget '{key}': it is {state}", "hint: --force")
        result = cli.run("forget", key, "-o", "json", code=75)
        expect(result.json, {"outcome": "busy", "key": key, "scope": "default/default", "state": state})
        expect(cli.run("lookup", key, "-o", "json").json["state"], state)
        expect(cli.run("forget", key, "--force").out, f"forgotten  was {state}\n")
        cli.run("lookup", key, code=1)


def test_only_in_its_scope(cli):
    cli.run("check", "k", "--scope", "acme/mail")
    cli.run("forget", "k", code=1)
    cli.run("forget", "k", "--scope", "acme/mail")
