"""completion: what shells complete, made from the same tables as help and the parser."""

import re
import shutil
import subprocess

from harness import COMMANDS, PROGRAM, Skip, expect, expect_in

SHELLS = ["bash", "zsh", "fish"]


def test_every_shell_knows_every_command_and_option(cli):
    for shell in SHELLS:
        script = cli.run("completion", shell).out
        for command in COMMANDS:
            expect_in(command, script, shell)
            options = cli.run("help", command).out.split("\nOptions:\n")[1].split("\n\n")[0]
            for option in re.findall(r"^  (?:-\w, |    )--([a-z-]+)", options, re.MULTILINE):
                expect_in(f"-l {option}" if shell == "fish" else f"--{option}", script, f"{shell} {command}")


def test_unknown_shells(cli):
    cli.run("completion", "bsh", code=64).says("'bsh' is not one of bash, zsh, fish", "did you mean 'bash'?")
    result = cli.run("completion", "tcsh", code=64).says("'tcsh' is not one of")
    assert "did you mean" not in result.err, result.err
    cli.run("completion", code=64).says("missing argument")


def complete(cli, *words):
    """What bash offers for the last of words."""
    script = (
        f'. <("{PROGRAM}" completion bash); COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _hapax;'
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", script, "bash", *words], env=cli.env(), capture_output=True, timeout=60, check=True
    )
    expect(done.stderr, b"")
    return done.stdout.decode().split()


def test_bash_completes(cli):
    if shutil.which("bash") is None:
        raise Skip("bash is not installed")
    expect(sorted(complete(cli, "hapax", "")), sorted(COMMANDS))
    expect(complete(cli, "hapax", "loo"), ["lookup"])
    expect(complete(cli, "hapax", "run", "--stra"), ["--strategy"])
    expect(complete(cli, "hapax", "run", "--wa"), ["--wait", "--wait="])
    expect(complete(cli, "hapax", "run", "--on-lapse", ""), ["retry", "park"])
    expect(complete(cli, "hapax", "keys", "-o", ""), ["text", "json"])
    expect(complete(cli, "hapax", "keys", "--state", "pa"), ["parked"])
    expect(complete(cli, "hapax", "help", "comple"), ["complete", "completion"])
    expect(complete(cli, "hapax", "completion", ""), ["bash", "zsh", "fish"])
    expect(complete(cli, "hapax", "check", "--ttl", ""), [])
    expect_in("true", complete(cli, "hapax", "run", "--key", "k", "--", "tru"))
    expect(complete(cli, "hapax", "run", "--key", "k", "--", "true", "x"), [])


def test_scripts_are_well_formed(cli):
    for shell in SHELLS:
        if shutil.which(shell) is None:
            continue
        script = cli.run("completion", shell).raw_out
        done = subprocess.run([shell, "-n", "/dev/stdin"], input=script, capture_output=True, timeout=60, check=False)
        expect((done.returncode, done.stderr), (0, b""), shell)
