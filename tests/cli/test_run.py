"""run: any command, once per key."""

import json
import os
import pathlib
import pty
import select
import signal
import subprocess

from harness import PROGRAM, TIMEOUT_SECONDS, expect, expect_in, expect_match, finish, plain_user, public_program, until
from run_hosts import go_round, without_lapse


def lookup(cli, key="k"):
    return cli.run("lookup", key, "-o", "json", code=None).json


def shell(cli, script, *options, key="k", **more):
    """Run a shell script once under a key."""
    return cli.run("run", "--key", key, *options, "--", "sh", "-c", script, **more)


def runs(cli):
    """How often a script that ends with `echo >>runs` ran."""
    path = cli.folder / "runs"
    return len(path.read_text(encoding="ascii").splitlines()) if path.exists() else 0


COUNT = "echo >>\"$TMPDIR/runs\"; "


def test_runs_once_and_replays(cli):
    first = shell(cli, COUNT + "echo out; echo err >&2; sleep 0.05; echo more")
    again = shell(cli, COUNT + "echo out; echo err >&2; sleep 0.05; echo more")
    expect((first.raw_out, first.raw_err), (b"out\nmore\n", b"err\n"))
    expect((again.raw_out, again.raw_err), (first.raw_out, first.raw_err))
    expect(runs(cli), 1)
    found = lookup(cli)
    expect((found["state"], found["result"]["kind"], found["result"]["status"]), ("done", "exec", 0))
    # What a person sees in the record is what both streams said.
    expect(sorted(found["result"]["body"].split()), ["err", "more", "out"])


def test_replay_is_byte_for_byte(cli):
    data = bytes(range(256)) * 300
    path = cli.folder / "data"
    path.write_bytes(data)
    for _ in range(2):
        result = cli.run("run", "--key", "k", "--", "cat", str(path))
        assert result.raw_out == data
        expect(result.raw_err, b"")


def test_replay_keeps_the_order_of_the_streams(cli):
    # With both streams in one pipe the order shows. Each line is let out when the one before has come through:
    # two streams that were written in the same instant have no order.
    script = "for i in 1 2 3; do echo out $i; read go; echo err $i >&2; read go; done"
    lines = [b"%s %d\n" % (name, i) for i in (1, 2, 3) for name in (b"out", b"err")]
    command = ["run", "--key", "k", "--", "sh", "-c", script]
    process = cli.start(*command, stdin=subprocess.PIPE, stderr=subprocess.STDOUT, bufsize=0)
    for line in lines:
        expect(process.stdout.readline(), line)
        process.stdin.write(b"\n")
    finish(process, 0)
    expect(cli.run(*command, stderr=subprocess.STDOUT).raw_out, b"".join(lines))
    expect(lookup(cli)["result"]["body"], b"".join(lines).decode())


def test_output_streams_as_it_comes(cli):
    process = cli.start("run", "--key", "k", "--", "sh", "-c", "echo ready; read line; echo done", stdin=subprocess.PIPE)
    expect(process.stdout.readline(), b"ready\n")
    out, err = process.communicate(b"go\n", timeout=TIMEOUT_SECONDS)
    expect((process.returncode, out, err), (0, b"done\n", b""))


def test_the_command_reads_our_input(cli):
    expect(cli.run("run", "--key", "k", "--", "cat", input=b"hello").raw_out, b"hello")
    expect(cli.run("run", "--key", "k", "--", "cat", input=b"other").raw_out, b"hello")


def test_two_dashes_are_not_needed(cli):
    expect(cli.run("run", "--key", "k", "printf", "%s|", "--key", "x", "-n").out, "--key|x|-n|")


def test_a_failure_is_not_kept(cli):
    for attempt in (1, 2):
        result = shell(cli, "echo out; echo attempt $HAPAX_ATTEMPT >&2; exit 3", code=3)
        expect((result.out, result.err), ("out\n", f"attempt {attempt}\n"))
    found = lookup(cli)
    expect((found["state"], found["attempt"], found["error"]), ("failed", 2, "exit status 3"))


def test_a_signal_is_a_failure(cli):
    shell(cli, "kill -KILL $$", code=137)
    expect(lookup(cli)["error"], "it was killed by signal 9")


def test_success_codes(cli):
    for _ in range(2):
        expect(shell(cli, COUNT + "echo x; exit 12", "--success-codes", "3,10-19", code=12).out, "x\n")
    expect(runs(cli), 1)
    expect(lookup(cli)["result"]["class"], "ok")
    shell(cli, "exit 9", "--success-codes", "3,10-19", key="other", code=9)
    expect(lookup(cli, "other")["state"], "failed")
    shell(cli, "exit 0", "--success-codes", "3", key="zero")
    expect(lookup(cli, "zero")["state"], "done")


def test_keep_on_fail(cli):
    for _ in range(2):
        expect(shell(cli, COUNT + "echo bad >&2; exit 3", "--keep-on-fail", code=3).err, "bad\n")
    expect(runs(cli), 1)
    expect(lookup(cli)["result"]["class"], "definitive")
    for _ in range(2):
        shell(cli, COUNT + "kill -SEGV $$", "--keep-on-fail", key="signal", code=139)
    expect(runs(cli), 2)


def test_the_environment_of_the_command(cli):
    script = 'echo "$HAPAX_KEY $HAPAX_TOKEN $HAPAX_ATTEMPT"'
    result = shell(cli, script, "--scope", "acme/billing", key="report ü")
    found = cli.run("lookup", "report ü", "--scope", "acme/billing", "-o", "json").json
    expect(result.out, f"report ü {found['token']} 1\n")


def test_the_command_can_use_its_claim(cli):
    script = 'hapax renew "$HAPAX_KEY" --lease 1h -o json && hapax complete "$HAPAX_KEY" --result - </dev/null >&2'
    expect(json.loads(shell(cli, script).out)["state"], "claimed")
    # It has completed its own key: what run says afterwards changes nothing.
    expect(lookup(cli)["result"]["kind"], "bytes")


def test_a_command_that_completes_its_own_key_goes_on(cli):
    """For several renewals, all of which the store refuses."""
    for status in (0, 3):
        script = f'hapax complete "$HAPAX_KEY" >&2; sleep 1; echo done; exit {status}'
        result = shell(cli, script, "--lease", "300ms", code=status)
        expect((result.out, result.err.count("fenced")), ("done\n", 0), result.err)
        # What it said of itself stays, whatever came after.
        expect((lookup(cli)["state"], lookup(cli)["attempt"]), ("done", 1))
        cli.run("forget", "k")
    expect_in("note: the key was completed while the command ran; exit status 3 is not stored", result.err)


def test_a_command_that_gives_its_claim_back_goes_on(cli):
    """No other run took over when it ends: its result counts."""
    script = 'hapax release "$HAPAX_KEY" >/dev/null; echo ready; read line; echo done'
    process = start_blocked(cli, "--lease", "300ms", script=script)
    go_round(process)
    expect(lookup(cli)["state"], "failed")
    out, err = process.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    expect((process.returncode, out, without_lapse(err)), (0, b"done\n", b""))
    expect((lookup(cli)["state"], lookup(cli)["result"]["body"]), ("done", "ready\ndone\n"))


def test_a_command_that_gave_its_claim_back_is_overtaken(cli):
    """It is watched on: when another host has taken over, it is stopped."""
    script = 'hapax release "$HAPAX_KEY" >/dev/null; echo ready; exec sleep 1000'
    process = start_blocked(cli, "--lease", "300ms", script=script)
    go_round(process)
    other = cli.folder / "other"
    other.mkdir()
    elsewhere = {"XDG_RUNTIME_DIR": str(other), "HOME": str(other)}
    cli.run("run", "--key", "k", "--fingerprint", "none", "--", "true", env=elsewhere)
    _, err = finish(process, 125)
    expect_in("fenced: another run has taken over; the command is stopped", err.decode())


def test_a_command_outlives_what_it_completed(cli):
    """Its record has expired before hapax reads it for the first time; no other run took over."""
    script = 'hapax complete "$HAPAX_KEY" >/dev/null; echo ready; read line; echo done; exit 3'
    process = start_blocked(cli, "--lease", "300ms", "--ttl", "1ms", script=script)
    until(lambda: cli.run("lookup", "k", code=None).code == 1, "it has expired")
    go_round(process)
    out, err = process.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    expect((process.returncode, out), (3, b"done\n"), err)
    expect_in("the record expired or was deleted while the command ran; exit status 3 is not stored", err.decode())


def test_another_command_is_a_mismatch(cli):
    cli.run("run", "--key", "k", "--", "echo", "a", "b")
    result = cli.run("run", "--key", "k", "--", "echo", "a b", code=65).says("mismatch: the key was first used at")
    expect(result.out, "")
    cli.run("run", "--key", "k", "--fingerprint", "none", "--", "echo", "a b")


def test_the_fingerprint_of_the_input(cli):
    command = ["run", "--key", "k", "--fingerprint", "stdin", "--", "cat"]
    large = os.urandom(300_000).hex().encode()
    for _ in range(2):
        assert cli.run(*command, "-", input=large, code=0).raw_out in (large, b"")
    cli.run(*command, "-", input=b"other", code=65).says("mismatch")
    # Other arguments do not matter then. A file is read from where it stands.
    path = cli.folder / "input"
    path.write_bytes(b"first line\nrest\n")
    line = "read line; hapax run --key f --fingerprint stdin -- cat; cat"
    expect(cli.shell(f"({line}) <{path}").out, "rest\n")
    expect(cli.run("run", "--key", "f", "--fingerprint", "stdin", "--", "tac", input=b"rest\n").out, "rest\n")


def test_keys_that_are_made(cli):
    def key_of(*arguments, input=b""):
        result = cli.run("run", *arguments, "--", "sh", "-c", 'cat >/dev/null; echo "$HAPAX_KEY"', input=input)
        return result.out.rstrip("\n")

    path = cli.folder / "file"
    path.write_bytes(b"hello")
    digest = "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824"
    expect(key_of("--strategy", "stdin", input=b"hello"), f"stdin:{digest}")
    expect(key_of("--strategy", f"file:{path}"), f"file:{digest}")
    expect(key_of("--strategy", "field:order.id", input=b'{"order":{"id":17}}'), "17")
    expect_match(r"^args:[0-9a-f]{64}$", key_of("--strategy", "args"))
    expect_match(r"^backup-\d{4}-\d\d-\d\d$", key_of("--strategy", "template:backup-{date:%Y-%m-%d}"))


def test_the_input_arrives_even_if_the_key_was_in_it(cli):
    document = b'{"order":{"id":17}}'
    for _ in range(2):
        expect(cli.run("run", "--strategy", "field:order.id", "--", "cat", input=document).raw_out, document)


def status_of(cli, *arguments, code=0, **options):
    """What --status-fd says."""
    read, write = os.pipe()
    cli.run("run", "--status-fd", str(write), *arguments, code=code, pass_fds=[write], **options)
    os.close(write)
    with os.fdopen(read, "rb") as file:
        text = file.read()
    expect(text.count(b"\n"), 1, f"lines of {text!r}")
    return json.loads(text)


def test_the_status_as_json(cli):
    command = ["--key", "k", "--", "sh", "-c", "echo out; exit $((HAPAX_ATTEMPT - 2 ? 3 : 0))"]
    failed = status_of(cli, *command, code=3)
    expect((failed["outcome"], failed["verdict"], failed["exit_code"]), ("acquired", "transient", 3))
    done = status_of(cli, *command)
    expect((done["outcome"], done["verdict"], done["stored"], done["attempt"]), ("acquired", "ok", True, 2))
    expect((done["key"], done["scope"], done["output_bytes"], done["exit_code"]), ("k", "default/default", 4, 0))
    replay = status_of(cli, *command)
    expect((replay["outcome"], "token" in replay, replay["exit_code"]), ("replay", False, 0))
    assert done["token"] > 0, done
    expect((replay["first_seen"], replay["expires_at"]), (done["first_seen"], done["expires_at"]))
    assert "expires_at" not in failed
    expect(status_of(cli, "--key", "k", "--", "true", code=65)["outcome"], "mismatch")
    killed = status_of(cli, "--key", "s", "--", "sh", "-c", "kill -KILL $$", code=137)
    expect((killed["verdict"], killed["signal"], killed["exit_code"]), ("transient", 9, 137))
    missing = status_of(cli, "--key", "m", "--", "/no/such/program", code=127)
    expect((missing["outcome"], missing["exit_code"]), ("acquired", 127))
    expect_in("/no/such/program", missing["error"])
    broken = status_of(cli, "--key", "k", "--store", "sqlite:/no/such/folder/x.db", "--", "true", code=125)
    expect((broken["outcome"], broken["exit_code"]), ("error", 125))


def test_the_command_does_not_get_the_status_descriptor(cli):
    read, write = os.pipe()
    script = f"echo hello 2>/dev/null >&{write} && echo inherited"
    result = shell(cli, script, "--status-fd", str(write), code=None, pass_fds=[write])
    os.close(write)
    os.close(read)
    assert "inherited" not in result.out, result.out


def test_commands_that_do_not_start(cli):
    cli.run("run", "--key", "k", "--", "/no/such/program", code=127).says("/no/such/program", "No such file")
    cli.run("run", "--key", "k", "--", "hapax-no-such-program", code=127).says("hapax-no-such-program")
    cli.run("run", "--key", "k", "--", "/etc/passwd", code=126).says("Permission denied")
    script = cli.folder / "script"
    script.write_text("echo hi\n", encoding="ascii")
    os.chmod(script, 0o755)
    cli.run("run", "--key", "k", "--", str(script), code=126).says("hint: start the script with a line")
    expect((lookup(cli)["state"], lookup(cli)["attempt"]), ("failed", 4))


def test_wrong_use(cli):
    wrong = [
        ([], "missing argument"),
        (["true"], "missing option: --key or --strategy"),
        (["--key", "", "true"], "--key is empty"),
        (["--key", "a\x07", "true"], "control character"),
        (["--key", "x" * 1025, "true"], "1025 bytes, limit 1024"),
        (["--key", "k", "--strategy", "args", "true"], "cannot use --key together with --strategy"),
        (["--strategy", "nonsense:x", "true"], "--strategy: "),
        (["--strategy", "uuid7", "true"], "--strategy: "),
        (["--strategy", "file:/no/such/file", "true"], "/no/such/file"),
        (["--strategy", "file:-", "true"], "use stdin"),
        (["--key", "k", "--wait=soon", "true"], "--wait: "),
        (["--key", "k", "--timeout", "0s", "true"], "--timeout must be greater than 0"),
        (["--key", "k", "--lease", "8d", "true"], "--lease: "),
        (["--key", "k", "--ttl", "0", "true"], "--ttl"),
        (["--key", "k", "--on-lapse", "x", "true"], "retry|park"),
        (["--key", "k", "--fingerprint", "x", "true"], "args|stdin|none"),
        (["--key", "k", "--success-codes", "256", "true"], "--success-codes: '256'"),
        (["--key", "k", "--success-codes", "5-3", "true"], "--success-codes: '5-3'"),
        (["--key", "k", "--success-codes", "1,", "true"], "--success-codes: '1,'"),
        (["--key", "k", "--success-codes", "", "true"], "--success-codes: ''"),
        (["--key", "k", "--max-result", "17MiB", "true"], "--max-result: '17MiB'"),
        (["--key", "k", "--max-result", "0", "true"], "--max-result: '0'"),
        (["--key", "k", "--max-result", "lots", "true"], "--max-result: "),
        (["--key", "k", "--status-fd", "x", "true"], "--status-fd: 'x'"),
        (["--key", "k", "--status-fd", "1", "true"], "file descriptor 1 belongs to the command"),
        (["--key", "k", "--status-fd", "99", "true"], "descriptor 99 is not open"),
        (["--key", "k", "--scope", "a/b/c", "true"], "more than one slash"),
        (["--key", "k", "--store", "etcd://x", "true"], "etcd"),
    ]
    for arguments, message in wrong:
        result = cli.run("run", *arguments, code=125).says("hapax: run: ", message)
        expect(result.out, "")
    cli.run("run", "--strategy", "field:id", "true", code=125, input=b"{}").says("--strategy: ", "id")
    cli.run("run", "--strategy", "field:id", "true", code=125, input=b"not json").says("--strategy: ")
    assert not cli.path.exists(), "a wrong command line made a store"


def test_output_that_is_too_large_to_keep(cli):
    script = COUNT + "head -c 300000 /dev/zero; echo end >&2"
    first = shell(cli, script)
    expect((len(first.raw_out), first.err), (300000, "end\n"))
    again = shell(cli, script)
    expect(again.raw_out, b"")
    expect_in("its output (300004 bytes) is not stored", again.err)
    expect(runs(cli), 1)
    expect(lookup(cli)["result"]["omitted_bytes"], 300004)
    kept = cli.run("run", "--key", "m", "--max-result", "1MiB", "--", "head", "-c", "300000", "/dev/zero")
    assert cli.run("run", "--key", "m", "--", "head", "-c", "300000", "/dev/zero").raw_out == kept.raw_out


def test_results_that_no_command_made(cli):
    cli.run("check", "marked")
    result = cli.run("run", "--key", "marked", "--", "true")
    expect(result.out, "")
    expect_in("note: the work was done before, but not by 'hapax run'", result.err)
    for options, code in ((["--definitive"], 1), ([], 0)):
        key = f"bytes{code}"
        token = cli.run("claim", key).out.strip()
        cli.run("complete", key, "--token", token, "--result", "-", *options, input=b"secret")
        result = cli.run("run", "--key", key, "--", "true", code=code)
        expect(result.out, "")
        expect_in("note: the work ", result.err)
    cli.seed("exec", "seeded", 3, b"hello\n")
    expect(cli.run("run", "--key", "seeded", "--", "true", code=3).out, "hello\n")


def start_blocked(cli, *options, key="k", script="echo ready; read line; echo done"):
    """A run whose command waits for a line, and has said so."""
    process = cli.start("run", "--key", key, *options, "--", "sh", "-c", script, stdin=subprocess.PIPE)
    expect(process.stdout.readline(), b"ready\n")
    return process


BLOCKED = ["sh", "-c", "echo ready; read line; echo done"]


def test_in_progress(cli):
    process = start_blocked(cli)
    result = cli.run("run", "--key", "k", "--", *BLOCKED, code=75)
    result.says("in progress: attempt 1 by ", "its lease ends in", "hint: use --wait")
    expect(result.out, "")
    cli.run("run", "--key", "k", "--", "true", code=65).says("mismatch")
    expect(status_of(cli, "--key", "k", "--", *BLOCKED, code=75)["outcome"], "in_progress")
    cli.run("run", "--key", "k", "--wait=50ms", "--", *BLOCKED, code=75).says("in progress")
    process.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    expect(cli.run("run", "--key", "k", "--", *BLOCKED).out, "ready\ndone\n")


def test_waiting_for_the_output(cli):
    process = start_blocked(cli)
    waiting = [cli.start("run", "--key", "k", "--wait", "--", *BLOCKED) for _ in range(3)]
    for waiter in waiting:
        assert waiter.poll() is None
    process.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    for waiter in waiting:
        expect(finish(waiter, 0), (b"ready\ndone\n", b""))


def test_one_of_those_who_wait_runs_after_a_failure(cli):
    script = COUNT + "echo ready; read line; exit $((HAPAX_ATTEMPT - 2 ? 3 : 0))"
    process = start_blocked(cli, script=script)
    command = ["run", "--key", "k", "--wait", "--", "sh", "-c", script]
    waiting = [cli.start(*command, stdin=subprocess.PIPE) for _ in range(3)]
    process.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    expect(process.returncode, 3)
    for waiter in waiting:
        waiter.stdin.close()
    for waiter in waiting:
        expect((waiter.wait(TIMEOUT_SECONDS), waiter.stdout.read()), (0, b"ready\n"))
    expect(runs(cli), 2)


def test_a_signal_ends_the_wait(cli):
    process = start_blocked(cli)
    waiter = cli.start("run", "--key", "k", "--wait", "--", *BLOCKED)
    status = pathlib.Path(f"/proc/{waiter.pid}/status")
    until(lambda: int(status.read_text().split("SigCgt:")[1].split()[0], 16) >> (signal.SIGTERM - 1) & 1, "it waits")
    waiter.send_signal(signal.SIGTERM)
    finish(waiter, 143)
    process.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    expect(process.returncode, 0)


def test_signals_are_passed_on(cli):
    for name in ("HUP", "INT", "QUIT", "TERM", "USR1", "USR2"):
        script = f"trap 'echo got {name}; exit 0' {name}; echo ready; while :; do sleep 0.01; done"
        process = start_blocked(cli, key=name, script=script)
        process.send_signal(getattr(signal, f"SIG{name}"))
        expect(finish(process, 0)[0], f"got {name}\n".encode())
        expect(lookup(cli, name)["state"], "done")


def test_a_signal_that_ends_the_command_is_its_status(cli):
    process = start_blocked(cli, "--keep-on-fail", script="echo ready; exec sleep 100")
    process.send_signal(signal.SIGTERM)
    finish(process, 143)
    # A user stopped it: that is not a failure to store.
    expect(lookup(cli)["state"], "failed")


def test_signals_reach_the_whole_group(cli):
    script = "sleep 100 & echo ready; wait"
    process = start_blocked(cli, script=script)
    process.send_signal(signal.SIGTERM)
    finish(process, 143)


def on_a_terminal(cli, *arguments):
    """A run in the foreground of a terminal of its own: pid and the terminal."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(PROGRAM, [str(PROGRAM), "run", *arguments], cli.env(TERM="dumb"))
    return pid, terminal


def read_until(terminal, text):
    shown = b""
    while text not in shown:
        if not select.select([terminal], [], [], TIMEOUT_SECONDS)[0]:
            raise AssertionError(f"timed out waiting for {text!r}; there is {shown!r}")
        shown += os.read(terminal, 4096)
    return shown


def test_the_command_is_in_the_foreground_of_a_terminal(cli):
    pid, terminal = on_a_terminal(cli, "--key", "k", "--", "sh", "-c", "echo ready; read line; echo got $line")
    read_until(terminal, b"ready")
    os.write(terminal, b"hello\n")
    read_until(terminal, b"got hello")
    expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
    os.close(terminal)


TERMINAL = 'echo ready; read line </dev/tty; echo "got $line"'


def test_the_command_can_read_the_terminal_whatever_its_input(cli):
    """As ssh and sudo do to ask for a password."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.dup2(os.open("/dev/null", os.O_RDONLY), 0)
        os.execve(PROGRAM, [str(PROGRAM), "run", "--key", "k", "--", "sh", "-c", TERMINAL], cli.env(TERM="dumb"))
    read_until(terminal, b"ready")
    os.write(terminal, b"hello\n")
    read_until(terminal, b"got hello")
    expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
    os.close(terminal)


def test_a_command_in_the_background_wants_the_terminal(cli):
    """It is stopped by the terminal. That is said, and it can still be ended."""
    read, write = os.pipe()
    pid, terminal = pty.fork()
    if pid == 0:
        # A shell with job control starts it in the background, and waits.
        line = f'set -m; hapax run --key k -- sh -c "$1" </dev/null 2>&{write} & echo job $!; wait $!; echo status $?'
        os.set_inheritable(write, True)
        os.execve("/bin/sh", ["sh", "-c", line, "sh", TERMINAL], cli.env(TERM="dumb"))
    os.close(write)
    job = int(read_until(terminal, b"\n").split()[1])
    with os.fdopen(read, "rb") as messages:
        expect_in(b"the command is stopped: it wants the terminal", messages.readline())
        os.kill(job, signal.SIGTERM)
        read_until(terminal, b"status 143")
        expect(messages.read(), b"")
    expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 0)
    os.close(terminal)


def test_control_c_reaches_the_command_once(cli):
    # A second INT within the handler would end it with another status.
    script = "trap 'trap \"exit 9\" INT; sleep 0.2; exit 7' INT; echo ready; while :; do sleep 0.01; done"
    pid, terminal = on_a_terminal(cli, "--key", "k", "--", "sh", "-c", script)
    read_until(terminal, b"ready")
    os.write(terminal, b"\x03")
    expect(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), 7)
    os.close(terminal)


def test_ignored_signals_stay_ignored(cli):
    # nohup: HUP is ignored by us and by the command.
    line = "trap '' HUP; hapax run --key k -- sh -c 'kill -HUP $PPID; kill -HUP $$; echo alive'"
    expect(cli.shell(line).out, "alive\n")
    # What we ignore for ourselves the command does not.
    shell(cli, "kill -PIPE $$", key="p", code=141)
    shell(cli, "kill -XFSZ $$", key="x", code=153)


def test_timeout(cli):
    script = "trap 'echo stopped; exit 0' TERM; echo ready; while :; do sleep 0.01; done"
    result = shell(cli, script, "--timeout", "3s", code=125)
    expect_in("timed out: the command was stopped", result.err)
    expect(result.out, "ready\nstopped\n")
    found = lookup(cli)
    expect((found["state"], found["error"]), ("failed", "it exceeded --timeout"))
    shell(cli, "exec sleep 100", "--timeout", "50ms", key="t", code=143)
    shell(cli, "trap '' TERM; while :; do sleep 0.01; done", "--timeout", "3s", "--kill-after", "50ms", key="u", code=137)


def test_timeout_parks(cli):
    command = ["--timeout", "50ms", "--on-lapse", "park"]
    shell(cli, "exec sleep 100", *command, code=143)
    expect(lookup(cli)["state"], "parked")
    result = shell(cli, "exec sleep 100", *command, code=75)
    result.says("parked: ", "it exceeded --timeout", "hapax resolve KEY --done")
    cli.run("resolve", "k", "--done")
    shell(cli, "exec sleep 100", *command)


def test_timeout_ends_descendants(cli):
    script = "sh -c 'trap \"\" TERM; echo $$ >\"$TMPDIR/pid\"; while :; do sleep 0.01; done' & exec sleep 100"
    shell(cli, script, "--timeout", "3s", "--kill-after", "50ms", code=143)
    pid = int((cli.folder / "pid").read_text(encoding="ascii"))
    until(lambda: not is_running(pid), "the descendant has ended")


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").split()[2] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_a_daemon_does_not_hold_it_up(cli):
    script = "sleep 1000 & echo $! >\"$TMPDIR/pid\"; echo started"
    try:
        expect(shell(cli, script).out, "started\n")
    finally:
        os.kill(int((cli.folder / "pid").read_text(encoding="ascii")), signal.SIGKILL)
    expect(lookup(cli)["state"], "done")


def test_a_reader_that_has_gone(cli):
    line = "hapax run --key k -- sh -c 'seq 100000; echo >>\"$TMPDIR/runs\"' | head -n 1"
    expect(cli.shell(line).out, "1\n")
    until(lambda: lookup(cli)["state"] == "done", "the command went on to its end")
    expect(runs(cli), 1)
    expect(lookup(cli)["result"]["omitted_bytes"], 588895)


def test_a_slow_reader_does_not_cost_the_lease(cli):
    cli.run("check", "other")
    read, write = os.pipe()
    process = cli.start("run", "--key", "k", "--lease", "2s", "--", "seq", "100000", stdout=write)
    os.close(write)
    # The pipe is full and has no reader; the lease is renewed all the same.
    until(lambda: lookup(cli)["state"] == "claimed", "it runs")
    begin = lookup(cli)["lease_ends_at"]
    until(lambda: lookup(cli)["lease_ends_at"] > begin, "the lease is renewed")
    expect(lookup(cli)["state"], "claimed")
    with os.fdopen(read, "rb") as file:
        expect(len(file.read()), 588895)
    expect(process.wait(TIMEOUT_SECONDS), 0)
    expect(process.stderr.read(), b"")


def test_output_that_cannot_be_written(cli):
    with open("/dev/full", "wb") as full:
        result = shell(cli, "echo hello", stdout=full, code=125)
        result.says("could not write standard output: No space left")
        expect(lookup(cli)["state"], "done")
        shell(cli, "echo hello", stdout=full, code=125).says("could not write standard output")
        shell(cli, "echo hello; exit 3", key="f", stdout=full, code=3)
    expect(shell(cli, "echo hello").out, "hello\n")


def test_a_store_that_is_not_there(cli):
    result = cli.run("run", "--key", "k", "--store", "sqlite:/no/such/folder/x.db", "--", "echo", "hi", code=125)
    expect(result.out, "")
    result.says("hapax: run: ")


def test_closed_output(cli):
    expect(cli.shell("hapax run --key k -- touch ran >&-").code, 125)
    assert not (cli.folder / "ran").exists()
    expect(cli.shell("hapax run --key k -- cat <&- 2>&-").code, 1)
    cli.is_intact()


def test_without_a_place_for_locks(cli):
    program = public_program(cli)
    os.chmod(cli.folder, 0o777)
    environment = {"HOME": "/proc/nowhere", "XDG_RUNTIME_DIR": "/proc/nowhere"}
    result = cli.run("run", "--key", "k", "--", "echo", "hi", env=environment, program=program, cwd="/", **plain_user())
    expect(result.out, "hi\n")
    expect_in("note: could not create a lock file", result.err)
    expect_in("only the lease protects this run", result.err)


def test_the_lock_file_is_there_while_it_runs(cli):
    runtime = cli.folder / "runtime"
    runtime.mkdir()
    environment = {"XDG_RUNTIME_DIR": str(runtime)}
    cli.environment.update(environment)
    process = start_blocked(cli)
    names = [path.name for path in (runtime / "hapax/run").iterdir()]
    expect(len(names), 1)
    expect_match(r"^[0-9a-f]{32}-[0-9a-f]{32}$", names[0])
    expect(os.stat(runtime / "hapax/run").st_mode & 0o777, 0o700)
    expect_in("is running on this host", cli.run("explain", "k").out)
    process.communicate(b"\n", timeout=TIMEOUT_SECONDS)
    expect(list((runtime / "hapax/run").iterdir()), [])


def test_two_stores_share_a_lock_folder(cli):
    # Their tokens are equal; their locks are not.
    other = f"sqlite:{cli.folder}/other.db"
    process = start_blocked(cli)
    expect(cli.run("run", "--key", "k", "--store", other, "--", "echo", "hi").out, "hi\n")
    cli.run("run", "--key", "k", "--", *BLOCKED, code=75)
    process.communicate(b"\n", timeout=TIMEOUT_SECONDS)


def test_no_file_is_left_open_for_the_command(cli):
    # Standard descriptors and the lock, nothing of the store.
    result = shell(cli, "ls -l /proc/self/fd | sed -n 's/.* -> //p' | grep -v /proc/")
    left = [line for line in result.out.splitlines() if not line.startswith(("pipe:", "/dev/"))]
    assert len(left) == 1 and "/hapax/run/" in left[0], result.out
    expect(subprocess.run([str(PROGRAM), "version"], check=True, capture_output=True).stderr, b"")
