"""The frame that all commands share: help, options, settings, suggestions."""

import os
import re
import shutil
import signal
import subprocess

from harness import COMMANDS, DAEMONS, MAKERS, OPERANDS, PROGRAM, ROOT, STORE_COMMANDS, TIMEOUT_SECONDS, Result, Skip
from harness import blocks, expect, expect_in, expect_match, until


def test_without_a_command_shows_help_as_an_error(cli):
    result = cli.run(code=64)
    expect(result.out, "")
    expect_in("Usage: hapax COMMAND", result.err)


def test_help_goes_to_standard_output(cli):
    texts = [cli.run(*arguments) for arguments in (["help"], ["--help"], ["-h"])]
    for text in texts:
        expect(text.err, "")
        expect(text.out, texts[0].out)


def test_help_lists_what_works_and_nothing_else(cli):
    commands = cli.run("help").out.split("\nOptions for ")[0]
    expect(re.findall(r"^  ([a-z0-9-]+) ", commands, re.MULTILINE), COMMANDS)


def test_help_of_a_command_has_three_ways_in(cli):
    for command in COMMANDS:
        text = cli.run("help", command).out
        expect(cli.run(command, "--help").out, text)
        expect(cli.run(command, "-h", "--nonsense").out, text)
        for part in (f"hapax {command} - ", "Usage: hapax ", "\nOptions:\n", "\nExamples:\n"):
            expect_in(part, text, command)


def test_help_fits_into_90_columns(cli):
    for arguments in [["help"]] + [["help", command] for command in COMMANDS]:
        for line in cli.run(*arguments).out.splitlines():
            if len(line) > 90:
                raise AssertionError(f"{arguments}: {len(line)} columns: {line}")


def examples(cli, command):
    text = cli.run("help", command).out.split("\nExamples:\n")[1]
    return [line[2:] for line in text.splitlines() if not line.startswith("      ")]


def statuses(cli, command):
    """The exit statuses that help names."""
    found = re.search(r"^Exit status:\n((?:  .*\n)+)", cli.run("help", command).out, re.MULTILINE)
    return {int(line.split()[0]) for line in found.group(1).splitlines()} if found else {0}


def run_until_term(cli, line):
    """A daemon, told to end as soon as it listens to that: how long that takes is the machine's business."""
    command = ["sh", "-c", "exec " + line]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    process = subprocess.Popen(command, env=cli.env(), cwd=cli.folder, start_new_session=True, **pipes)
    until(lambda: process.poll() is not None or blocks(process, signal.SIGTERM), f"it listens: {line}")
    process.terminate()
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    return Result([line], process.returncode, out, err)


def test_every_example_runs(cli):
    for name in ("journal", "a", "b"):
        cli.seed("journal", "k", 2**52 + 1, b"", store=f"sqlite:{cli.folder / name}.db")
    (cli.folder / "decisions.log.1").write_text('{"tenant":"acme"}\n')
    # librdkafka's threads are C11's, which TSan does not know: the first that calls back crashes there.
    is_tsan = b"__tsan_init" in PROGRAM.read_bytes()
    for command in COMMANDS:
        lines = examples(cli, command)
        assert lines, command
        for line in lines:
            expect_in(f"hapax {command}", line)
            if command == "consume" and is_tsan:
                continue
            cli.run("check", "order-17", code=None)
            # There is no daemon here.
            is_daemon = command in DAEMONS and "--server" not in line
            result = run_until_term(cli, line) if is_daemon else cli.shell(line)
            refused = {64, 74, 125} if "--server" in line else {64, 69, 74, 125}
            if result.code not in statuses(cli, command) - refused:
                raise AssertionError(f"{line}: exit {result.code}, {result.err}")


def test_check_is_labelled_at_most_once(cli):
    text = cli.run("help", "check").out
    for part in ("at most once", "loses the work", "case $? in"):
        expect_in(part, " ".join(text.split()))


def test_the_script_in_the_help_of_check_works(cli):
    text = cli.run("help", "check").out
    script = re.search(r'^  hapax check "\$id"; case.*?^  esac$', text, re.MULTILINE | re.DOTALL)
    script = "do_the_work() { echo worked; }; id=order-17\n" + script.group(0) + "\nexit 0"
    expect(cli.shell(script).out, "first\nworked\n")
    expect_match(r"\Aduplicate .*\n\Z", cli.shell(script).out)


def test_commands_are_suggested(cli):
    for word, meant in [
        ("chek", "check"),
        ("lokup", "lookup"),
        ("forgte", "forget"),
        ("stat", "stats"),
        ("rnu", "run"),
        ("cliam", "claim"),
        ("compelte", "complete"),
        ("resolv", "resolve"),
    ]:
        cli.run(word, code=64).says(f"unknown command '{word}'", f"did you mean 'hapax {meant}'?")
        cli.run("help", word, code=64).says(f"did you mean 'hapax {meant}'?")
    for word in ("ticket", "x", "", "zzzzzzzzzz", "c" * 200):
        result = cli.run(word, code=64).says("unknown command", "'hapax help' lists the commands")
        assert "did you mean" not in result.err


def test_urls_that_are_refused(cli):
    """The URL of a store in the wrong place, and passwords that should be percent-encoded: no part of them is shown."""
    url = "redis://app:s3cret@127.0.0.1/0"
    results = [
        cli.run("keys", "--server", url, code=64).says("--server is not the URL of a daemon"),
        cli.run("keys", env={"HAPAX_STORE": "", "HAPAX_SERVER": url}, code=64).says("HAPAX_SERVER is not the URL of a daemon"),
        cli.run("keys", "--store", "memory://app:s3cret@h", code=64).says("nothing may follow 'memory:'"),
        cli.run("keys", "--store", "postgres://app:a@s3cret@127.0.0.1:1", code=None),
        cli.run("consume", "--from", "kafka://app:12/s3cret@h/t?group=g", "--exec", "true", "--store", "memory:", code=64),
        cli.run("consume", "--from", "kafka://app:s3cret/a@h/t?group=g", "--exec", "true", "--store", "memory:", code=64),
        cli.run("outbox", "status", "--db", "postgres://app:s3cret/a@127.0.0.1:1/db", code=None),
    ]
    for password in ("s3cret/a", "12/s3cret"):
        for scheme in ("postgres", "redis", "http"):
            results.append(cli.run("store", "info", f"{scheme}://app:{password}@127.0.0.1:1/db", code=None))
        results.append(cli.run("consume", "--from", f"amqp://app:{password}@127.0.0.1:1/q", "--exec", "true", "--store", "memory:",
                               "--idle-exit", "1s", code=None))
    cli.run("outbox", "init", "--db", f"sqlite:{cli.folder}/outbox.db")
    for sink in ("kafka://app:a?s3cret=1@h", "kafka://app:a?s3cret.b=1@h"):
        results.append(cli.run("outbox", "relay", "--db", f"sqlite:{cli.folder}/outbox.db", "--to", sink, code=None))
    for result in results:
        assert result.code not in (0, 1), result
        assert "s3cret" not in result.err, result.err


def test_options_are_suggested(cli):
    cli.run("check", "k", "--tll", "1h", code=64).says("'--tll'", "did you mean '--ttl'?")
    cli.run("keys", "--lmit=3", code=64).says("unknown option '--lmit'", "did you mean '--limit'?")
    cli.run("keys", "--hlep", code=64).says("did you mean '--help'?")
    cli.run("run", "--kye", "k", "true", code=125).says("'--kye'", "did you mean '--key'?")
    cli.run("run", "--success-code=3", "true", code=125).says("did you mean '--success-codes'?")
    cli.run("resolve", "k", "--dnoe", code=64).says("did you mean '--done'?")
    cli.run("keys", "--zzzzz", code=64).says("'hapax keys --help' lists the options")
    cli.run("keys", "--" + "z" * 300, code=64).says("unknown option")
    cli.run("keys", "-z", code=64).says("unknown option '-z'")
    cli.run("keys", "--sevrer", "x", code=64).says("unknown option '--sevrer'", "did you mean '--server'?")


def test_values_are_suggested(cli):
    cli.run("keys", "--state", "doen", code=64).says("claimed|done|failed|parked", "mean 'done'?")
    cli.run("keys", "-o", "jsno", code=64).says("text|json", "did you mean 'json'?")
    cli.run("claim", "k", "--on-lapse", "prak", code=64).says("retry|park", "did you mean 'park'?")
    cli.run("keys", "-o", "yaml", code=64).says("'yaml' is not one of text|json")


def test_options_in_every_form(cli):
    cli.run("check", "k")
    for form in (["-o", "json"], ["-ojson"], ["--output", "json"], ["--output=json"]):
        expect(cli.run("lookup", *form, "k").json["key"], "k")
        expect(cli.run("lookup", "k", *form).json["key"], "k")
    expect(cli.run("lookup", "k", "-o", "text", "-o", "json").json["key"], "k")


def test_two_dashes_end_the_options(cli):
    cli.run("check", "-k", code=64).says("unknown option '-k'", "'--' ends them")
    expect(cli.run("check", "-o", "json", "--", "-k").json["key"], "-k")
    expect(cli.run("check", "-o", "json", "--", "--").json["key"], "--")
    expect(cli.run("check", "-o", "json", "-").json["key"], "-")


def test_wrong_use_of_options(cli):
    cli.run("check", "k", "--ttl", code=64).says("--ttl needs a value: D")
    cli.run("keys", "-n", code=64).says("--limit needs a value")
    cli.run("forget", "k", "--force=yes", code=64).says("--force takes no value")
    cli.run("check", code=64).says("missing argument", "usage: hapax check KEY")
    cli.run("lookup", "a", "b", code=64).says("unexpected argument 'b'")
    cli.run("keys", "a", code=64).says("unexpected argument 'a'")
    cli.run("version", "--store", "x", code=64).says("unknown option '--store'")
    cli.run("--store", "x", "check", "k", code=64).says("before the command")
    for count in ("0", "-1", "x", "1x", "", " 1", "+1", "9" * 30):
        cli.run("keys", "--limit", count, code=64).says("--limit")
    cli.run("check", "k", *["--ttl=1h"] * 257, code=64).says("the limit is 256")
    assert not cli.path.exists(), "a wrong command line made a store"


def test_version(cli):
    header = (ROOT / "include/hapax/hapax.h").read_text(encoding="utf-8")
    parts = [re.search(rf"HAPAX_VERSION_{n} (\d+)", header).group(1) for n in ("MAJOR", "MINOR", "PATCH")]
    for way in ("version", "--version", "-V"):
        expect(cli.run(way).out, f"hapax {'.'.join(parts)}\n")


def ttl_of(cli, key):
    return cli.run("lookup", key, "-o", "json").json["ttl_ms"]


def test_the_ttl_comes_from_option_then_variables_then_default(cli):
    both = {"HAPAX_TTL": "2h", "IDEMPOTENCY_TTL": "3h"}
    cli.run("check", "option", "--ttl", "1h", env=both)
    cli.run("check", "ours", env=both)
    cli.run("check", "theirs", env={"HAPAX_TTL": "", "IDEMPOTENCY_TTL": "3h"})
    cli.run("check", "default", env={"HAPAX_TTL": "", "IDEMPOTENCY_TTL": ""})
    cli.run("check", "forever", env={"IDEMPOTENCY_TTL": "forever"})
    hour = 3600 * 1000
    found = [ttl_of(cli, key) for key in ("option", "ours", "theirs", "default", "forever")]
    expect(found, [hour, 2 * hour, 3 * hour, 24 * hour, None])


def test_a_wrong_variable_is_named(cli):
    for name in ("HAPAX_TTL", "IDEMPOTENCY_TTL"):
        cli.run("check", "k", env={name: "soon"}, code=64).says(f"{name}: ")
    # It does not concern commands that make no record, or one whose option comes first.
    cli.run("check", "k", "--ttl", "1h", env={"HAPAX_TTL": "soon"})
    cli.run("lookup", "k", env={"HAPAX_TTL": "soon"})


def test_the_store_comes_from_option_then_variable_then_default(cli):
    other = f"sqlite:{cli.folder}/other.db"
    expect(cli.run("check", "k").out, "first\n")
    expect(cli.run("check", "k", "--store", other).out, "first\n")
    expect(cli.run("check", "k", env={"HAPAX_STORE": None}).out, "first\n")
    default = cli.home / ".local/state/hapax/hapax.db"
    assert default.exists()
    expect(cli.run("stats", "-o", "json", "--store", other).json["store"], other)
    expect(cli.run("stats", "-o", "json", env={"HAPAX_STORE": ""}).json["store"], f"sqlite:{default}")


def test_the_default_store_follows_the_state_directory(cli):
    state = cli.folder / "state"
    # By the specification a relative XDG_STATE_HOME is ignored.
    for value, path in [(str(state), state), ("relative", cli.home / ".local/state"), ("", cli.home / ".local/state")]:
        environment = {"HAPAX_STORE": None, "XDG_STATE_HOME": value}
        cli.run("check", value or "empty", env=environment)
        assert (path / "hapax/hapax.db").exists()
        expect(os.stat(path / "hapax").st_mode & 0o777, 0o700, "mode of the folder")


def test_without_home_there_is_no_default_store(cli):
    environment = {"HAPAX_STORE": None, "HOME": None}
    cli.run("check", "k", env=environment, code=64).says("HOME", "--store or HAPAX_STORE")


def test_only_what_makes_records_makes_a_store(cli):
    for command in [name for name in STORE_COMMANDS if name not in MAKERS]:
        result = cli.run(command, *OPERANDS.get(command, []), code=69)
        result.says(str(cli.path), "hint: the first 'hapax check KEY' creates a store")
        expect(result.out, "")
        assert not cli.path.exists(), command
    environment = {"HAPAX_STORE": None}
    cli.run("keys", env=environment, code=69).says("hapax.db")
    assert not (cli.home / ".local").exists(), "a reading command made a folder"


def test_common_options_that_change_nothing_are_named(cli):
    cli.run("check", "k")
    result = cli.run("lookup", "k", "--ttl", "1h")
    expect(result.err, "hapax: lookup: note: --ttl has no effect: this command creates no record\n")
    result = cli.run("gc", "--scope", "a/b")
    expect(result.err, "hapax: gc: note: --scope has no effect: this command uses all scopes\n")
    for command in STORE_COMMANDS:
        cli.run(command, *OPERANDS.get(command, []), "--ttl", "0s", code=64).says("--ttl")


def test_a_store_in_memory_is_noted(cli):
    result = cli.run("check", "k", "--store", "memory:")
    expect(result.out, "first\n")
    expect_in("note: a memory: store ends with this command", result.err)


def man_page():
    return (ROOT / "man/hapax.1").read_text(encoding="utf-8").replace("\\-", "-")


def test_the_manual_knows_every_command_option_and_status(cli):
    page = man_page()
    for command in COMMANDS:
        expect_in(f".SS hapax {command}", page)
        options = re.findall(r"--([a-z][a-z-]*[a-z])", cli.run("help", command).out.split("\nOptions:\n")[1].split("\n\n")[0])
        for option in options:
            expect_in(f"--{option}", page, command)
        for status in statuses(cli, command) - {128}:
            expect_match(rf"^{status}@T", page, command)


def options_of(cli):
    """Each option, its letter and the form of its value, as help of each command shows them."""
    for command in COMMANDS:
        listed = cli.run("help", command).out.split("\nOptions:\n")[1].split("\n\n")[0]
        for letter, name, value in re.findall(r"^  (?:-(\w), |    )--([a-z-]+)[ [=]?(\S*)", listed, re.MULTILINE):
            yield command, name, letter, value


def test_an_option_is_the_same_in_every_command(cli):
    """A letter has one name, and a name has one letter and takes a value everywhere or nowhere."""
    names, forms = {}, {}
    for command, name, letter, value in options_of(cli):
        if value == ",":  # --store, --server, ...: see 'hapax --help'
            continue
        is_flag = value == ""
        expect(forms.setdefault(name, (letter, is_flag, command))[:2], (letter, is_flag), f"{command} --{name}")
        if letter and letter != "n":  # a number: --count, --limit
            expect(names.setdefault(letter, name), name, f"{command} -{letter}")


def test_help_of_an_action(cli):
    """It shows that action only, in three ways; an unknown action is named."""
    for command, action, other in [("store", "copy", "migrate"), ("journal", "list", "reconcile"), ("config", "token", "dump")]:
        text = cli.run(command, action, "--help").out
        expect(cli.run("help", command, action).out, text)
        expect(cli.run(command, action, "-h", "--nonsense").out, text)
        for part in (f"hapax {command} {action} - ", f"Usage: hapax {command} {action} ", f"  hapax {command} {action}"):
            expect_in(part, text, command)
        assert other not in text.split("\nOptions:\n")[1], text
        expect_in(f"  {action} ", cli.run("help", command).out)
    assert "--set" not in cli.run("config", "token", "--help").out
    cli.run("help", "store", "move", code=64).says("'store' has no action 'move'")
    cli.run("help", "check", "move", code=64).says("'check' has no action 'move'")
    cli.run("config", "schema", "--role", "read", code=64).says("'schema' has no option '--role'")


def test_the_manual_has_every_property_of_kafka(cli):
    """The table in the code is what a URL may set; the manual lists it, group by group in its order."""
    code = (ROOT / "src/broker/kafka_property.c").read_text(encoding="utf-8")
    table = code.split("static const struct row table[] = {\n")[1].split("\n};\n")[0]
    allowed = re.findall(r'\{\.name = "([^"]+)"', table)
    assert len(allowed) > 50, allowed
    section = man_page().split("\n.SH KAFKA PROPERTIES\n")[1].split("\n.SH ")[0]
    groups = re.findall(r"^\.TP\n\.I .+\n((?:[^.\n].*\n?)+)", section, re.MULTILINE)
    expect([name.strip().removesuffix(".") for group in groups for name in group.replace("\n", " ").split(",")], allowed)


def test_the_manual_is_well_formed(cli):
    if shutil.which("groff") is None:
        raise Skip("groff is not installed")
    done = subprocess.run(
        # As man shows it, in one piece: on paper a table may happen to meet the end of a page.
        ["groff", "-man", "-t", "-ww", "-z", "-Tutf8", "-rcR=1", str(ROOT / "man/hapax.1")],
        capture_output=True,
        check=True,
        env=cli.env(),
    )
    expect(done.stderr, b"")
