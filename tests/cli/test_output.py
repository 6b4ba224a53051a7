"""Standard output and error as a terminal, a full disk, a closed descriptor, a broken pipe."""

import os
import pty
import re
import subprocess

from harness import PROGRAM, TIMEOUT_SECONDS, expect, expect_in

ARGUMENTS = {
    "check": ["new"], "lookup": ["order-17"], "forget": ["order-17"], "keys": [], "stats": [], "gc": [],
    "claim": ["order-17"], "explain": ["order-17"],
}
STORE_COMMANDS = list(ARGUMENTS)


def on_a_terminal(cli, *arguments, **env):
    """Standard output of the program, when that is a terminal."""
    screen, terminal = pty.openpty()
    process = subprocess.Popen(
        [str(PROGRAM), *arguments], env=cli.env(**{"TERM": "xterm", **env}), stdout=terminal, stderr=subprocess.PIPE
    )
    os.close(terminal)
    shown = b""
    try:
        while chunk := os.read(screen, 4096):
            shown += chunk
    except OSError:
        pass
    os.close(screen)
    process.communicate(timeout=TIMEOUT_SECONDS)
    return shown.replace(b"\r\n", b"\n").decode()


def test_colours_on_a_terminal_only(cli):
    expect(on_a_terminal(cli, "check", "order-17"), "\x1b[32mfirst\x1b[0m\n")
    for arguments in (["check", "order-17"], ["lookup", "order-17"], ["keys"]):
        expect_in("\x1b[3", on_a_terminal(cli, *arguments))
        assert "\x1b" not in on_a_terminal(cli, *arguments, NO_COLOR="1")
        assert "\x1b" not in on_a_terminal(cli, *arguments, TERM="dumb")
        assert "\x1b" not in cli.run(*arguments, code=None, env={"TERM": "xterm"}).out
        assert "\x1b" not in on_a_terminal(cli, *arguments, "-o", "json")
    expect_in("\x1b[3", on_a_terminal(cli, "keys", NO_COLOR=""))


def test_colours_do_not_move_columns(cli):
    cli.run("check", "order-17")
    plain = re.sub(r"\x1b\[\d+m", "", on_a_terminal(cli, "keys"))
    expect(plain, cli.run("keys").out)


def test_a_full_disk(cli):
    for command in STORE_COMMANDS:
        cli.run("check", "order-17", code=None)
        for form in ("text", "json"):
            with open("/dev/full", "wb") as full:
                arguments = [command, *ARGUMENTS[command], "-o", form]
                result = cli.run(*arguments, stdout=full, code=None)
            if command == "forget" and form == "json":
                continue
            expect(result.code, 74, command)
            expect_in("could not write standard output: No space left", result.err)
            expect(result.err.count("could not"), 1)
        cli.run("forget", "new", code=None)
    with open("/dev/full", "wb") as full:
        cli.run("help", stdout=full, code=74)


def test_closed_output_stops_before_anything_is_done(cli):
    result = cli.shell("hapax check order-17 >&-")
    expect(result.code, 74)
    result.says("standard output is closed; nothing changed")
    assert not cli.path.exists()
    cli.run("check", "order-17")
    before = cli.sql("SELECT * FROM hapax_record")
    for command in STORE_COMMANDS:
        arguments = " ".join([command, *ARGUMENTS[command]])
        expect(cli.shell(f"hapax {arguments} >&-").code, 74)
        expect(cli.shell(f"hapax {arguments} >&- 2>&-").code, 74)
        expect(cli.shell(f"hapax {arguments} <&- >&- 2>&-").code, 74)
    expect(cli.sql("SELECT * FROM hapax_record"), before)


def test_closed_input_and_messages_do_not_touch_the_store(cli):
    expect(cli.shell("hapax check a <&-").out, "first\n")
    expect(cli.shell("hapax check a 2>&-").code, 1)
    expect(cli.shell("hapax check b <&- 2>&-").out, "first\n")
    expect(cli.shell("hapax keys <&- 2>&-").code, 0)
    expect(cli.shell("hapax chek <&- 2>&-").code, 64)
    expect(cli.shell("hapax lookup absent <&- 2>&-").code, 1)
    cli.is_intact()


def test_a_broken_pipe_is_quiet(cli):
    cli.run("check", "order-17")
    for command in STORE_COMMANDS:
        read, write = os.pipe()
        os.close(read)
        result = cli.run(command, *ARGUMENTS[command], stdout=write, code=141)
        os.close(write)
        assert "written" not in result.err, result.err
    expect(cli.run("lookup", "new", "-o", "json").json["state"], "done")


def test_messages_cannot_act_on_the_terminal(cli):
    result = cli.run("check", "k", "--store", "sqlite:/\x1b[31m/no\x07pe", code=69)
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", result.raw_err), result.raw_err
    expect_in("[31m", result.err)
    result = cli.run(b"\x1b[31mred\xff", code=64).says(r"unknown command '\x1b[31mred\xff'")
    assert not re.search(rb"[\x00-\x09\x0b-\x1f\x7f]", result.raw_err), result.raw_err


def test_data_and_messages_are_apart(cli):
    cli.run("check", "order-17")
    for command in STORE_COMMANDS:
        for form in ("text", "json"):
            result = cli.run(command, *ARGUMENTS[command], "-o", form, code=None)
            assert "hapax:" not in result.out
            if form == "json":
                expect(result.err, "", command)
