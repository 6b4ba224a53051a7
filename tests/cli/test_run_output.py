"""run and the reader of its output: slow, stopped, gone."""

import contextlib
import fcntl
import os
import pathlib
import pty
import signal
import socket
import struct
import subprocess
import termios

from harness import TIMEOUT_SECONDS, expect, expect_in, finish, until
from run_hosts import go_round, is_alive, preload, without_lapse

PIPE_SIZE = 65536

# More than a pipe holds, less than is taken in of it before the command has ended.
ENDS = 'head -c 100000 /dev/zero; echo >>"$TMPDIR/runs"'

# More than a terminal holds, which makes two bytes of a line end, so that some room is not enough for
# what is written at once; the pipe to us takes all of it, so that the command ends.
UNSEEN = 'yes "" | head -c 60000; echo >>"$TMPDIR/runs"'


def runs(cli):
    path = cli.folder / "runs"
    return len(path.read_text(encoding="ascii").splitlines()) if path.exists() else 0


def state(cli):
    """Of the record; None while there is none, or no store."""
    found = cli.run("lookup", "k", "-o", "json", code=None)
    return found.json["state"] if found.code == 0 else None


def waiting(read):
    """Bytes that lie in a pipe."""
    return struct.unpack("i", fcntl.ioctl(read, termios.FIONREAD, b"\0" * 4))[0]


def start_unread(cli, script, *options, nonblocking=False, stderr=subprocess.PIPE, **more):
    """A run whose output has no reader: the process, and the pipe's end that could read."""
    read, write = os.pipe()
    os.set_blocking(write, not nonblocking)
    command = ["run", "--key", "k", *options, "--", "sh", "-c", script]
    process = cli.start(*command, stdout=write, stderr=write if stderr is None else stderr, **more)
    os.close(write)
    return process, read


def test_the_outcome_does_not_wait_for_a_reader(cli):
    process, read = start_unread(cli, ENDS)
    until(lambda: state(cli) == "done", "the outcome is stored")
    expect(waiting(read), PIPE_SIZE)
    # A run now, or after it was killed, does not start the command again.
    expect(len(cli.run("run", "--key", "k", "--", "sh", "-c", ENDS).raw_out), 100000)
    process.kill()
    process.communicate(timeout=TIMEOUT_SECONDS)
    os.close(read)
    expect(len(cli.run("run", "--key", "k", "--", "sh", "-c", ENDS).raw_out), 100000)
    expect(runs(cli), 1)


def test_the_rest_of_the_output_comes_after(cli):
    """Byte for byte, in its order, though it was stored before it was written."""
    script = "seq 20000; echo end >&2"
    process, read = start_unread(cli, script, "--max-result", "1MiB")
    until(lambda: state(cli) == "done", "the outcome is stored")
    with os.fdopen(read, "rb") as file:
        out = file.read()
    expect(finish(process, 0)[1], b"end\n")
    expect(out.split(), [b"%d" % number for number in range(1, 20001)])
    expect(cli.run("run", "--key", "k", "--", "sh", "-c", script).raw_out, out)


def test_a_signal_ends_who_waits_for_a_reader(cli):
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process, read = start_unread(cli, ENDS)
        until(lambda: state(cli) == "done", "the outcome is stored")
        until(lambda: waiting(read) == PIPE_SIZE, "the pipe is full")
        process.send_signal(number)
        finish(process, 128 + number)
        os.close(read)
        cli.run("forget", "k")


def test_a_signal_ends_a_replay(cli):
    cli.run("run", "--key", "k", "--", "sh", "-c", ENDS)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        process, read = start_unread(cli, ENDS)
        until(lambda: waiting(read) == PIPE_SIZE, "the pipe is full")
        process.send_signal(number)
        finish(process, 128 + number)
        os.close(read)
    expect(runs(cli), 1)


def test_a_signal_to_the_command_and_nobody_reads(cli):
    """TERM goes to the command; once it has ended, hapax does not wait long for the reader."""
    process, read = start_unread(cli, "head -c 300000 /dev/zero")
    until(lambda: waiting(read) == PIPE_SIZE, "the pipe is full")
    process.send_signal(signal.SIGTERM)
    finish(process, 143)
    os.close(read)
    expect(state(cli), "failed")


def samples_asleep(process, count):
    """Is the process found asleep count times in a row?"""
    path = pathlib.Path(f"/proc/{process.pid}/stat")
    return all(path.read_text(encoding="ascii").rpartition(")")[2].split()[0] == "S" for _ in range(count))


def test_nobody_reads_and_a_daemon_holds_the_pipe(cli):
    """The time for late output is over, some is held back: that is waited for, not asked for."""
    script = "sleep 1000 & echo $! >\"$TMPDIR/pid\"; " + ENDS
    process, read = start_unread(cli, script)
    until(lambda: state(cli) == "done", "the outcome is stored")
    until(lambda: samples_asleep(process, 500), "it is asleep")
    os.kill(int((cli.folder / "pid").read_text(encoding="ascii")), signal.SIGKILL)
    with os.fdopen(read, "rb") as file:
        expect(len(file.read()), 100000)
    finish(process, 0)


def test_a_daemon_that_goes_on_writing(cli):
    """hapax does not wait for the end of endless output, with or without a reader."""
    script = "yes >&1 & echo $! >\"$TMPDIR/pid\"; echo begun"
    process, read = start_unread(cli, script)
    try:
        until(lambda: state(cli) == "done", "the outcome is stored")
        process.send_signal(signal.SIGTERM)
        finish(process, 143)
    finally:
        # Without hapax its pipe is closed, so SIGPIPE may have ended the daemon already.
        with contextlib.suppress(ProcessLookupError):
            os.kill(int((cli.folder / "pid").read_text(encoding="ascii")), signal.SIGKILL)
        os.close(read)


def test_output_that_never_waits(cli):
    """Another user of the pipe has made it O_NONBLOCK: not all fits at once, and all of it comes."""
    script = "head -c 140000 /dev/zero"
    for _ in range(2):
        process, read = start_unread(cli, script, nonblocking=True)
        until(lambda: waiting(read) == PIPE_SIZE, "the pipe is full")
        with os.fdopen(read, "rb") as file:
            expect(len(file.read()), 140000)
        expect(finish(process, 0)[1], b"")


def test_the_store_is_free_while_nobody_reads(cli):
    """file: has one owner; a run that waits for a reader has closed it."""
    store = ["--store", f"file:{cli.folder}/log"]
    process, read = start_unread(cli, ENDS, *store)
    until(lambda: cli.run("lookup", "k", *store, code=None).code == 0, "the store can be opened")
    process.send_signal(signal.SIGTERM)
    finish(process, 143)
    os.close(read)
    # A replay holds it no longer either.
    process, read = start_unread(cli, ENDS, *store)
    until(lambda: waiting(read) == PIPE_SIZE, "the pipe is full")
    until(lambda: cli.run("lookup", "k", *store, code=None).code == 0, "the store can be opened")
    process.send_signal(signal.SIGTERM)
    finish(process, 143)
    os.close(read)
    expect(runs(cli), 1)


def opened(process):
    """What a process has open."""
    for path in pathlib.Path(f"/proc/{process.pid}/fd").iterdir():
        try:
            yield os.readlink(path)
        except FileNotFoundError:
            pass


def test_a_message_does_not_wait_for_a_reader(cli):
    """Both outputs are one pipe without a reader: a run that lost its key stops the command all the same."""
    script = 'echo $$ >"$TMPDIR/pid"; head -c 300000 /dev/zero; sleep 1000'
    process, read = start_unread(cli, script, "--lease", "300ms", stderr=None)
    until(lambda: waiting(read) == PIPE_SIZE, "the pipe is full")
    other = cli.folder / "other"
    other.mkdir()
    cli.run("forget", "k", "--force")
    elsewhere = {"XDG_RUNTIME_DIR": str(other), "HOME": str(other)}
    cli.run("run", "--key", "k", "--fingerprint", "none", "--", "true", env=elsewhere)
    pid = int((cli.folder / "pid").read_text(encoding="ascii"))
    until(lambda: not is_alive(pid), "the command was stopped")
    # And the store is free meanwhile.
    until(lambda: not any("/test.db" in name for name in opened(process)), "the store is closed")
    expect(process.poll(), None, "it still waits for its reader")
    with os.fdopen(read, "rb") as file:
        expect_in(b"fenced: another run has taken over", file.read())
    expect(process.wait(TIMEOUT_SECONDS), 125)


def test_a_slow_reader_of_a_long_run(cli):
    """While it runs, it waits for its reader, and is renewed."""
    process, read = start_unread(cli, "seq 100000", "--lease", "300ms")
    until(lambda: waiting(read) == PIPE_SIZE, "the pipe is full")
    go_round(process)
    expect(state(cli), "claimed")
    with os.fdopen(read, "rb") as file:
        expect(len(file.read()), 588895)
    expect(without_lapse(finish(process, 0)[1]), b"")


def start_unseen(cli, script, *options, **more):
    """A run on a terminal without a reader: the process, and the side that could read."""
    screen, terminal = pty.openpty()
    command = ["run", "--key", "k", *options, "--", "sh", "-c", script]
    process = cli.start(*command, stdin=subprocess.DEVNULL, stdout=terminal, stderr=terminal, **more)
    os.close(terminal)
    return process, screen


def ends_unseen(cli, **more):
    """The command has ended; a terminal with some room has not enough for all that is held."""
    process, screen = start_unseen(cli, UNSEEN, **more)
    until(lambda: state(cli) == "done", "the outcome is stored")
    process.kill()
    process.wait(TIMEOUT_SECONDS)
    os.close(screen)
    expect(len(cli.run("run", "--key", "k", "--", "sh", "-c", UNSEEN).raw_out), 60000)
    expect(runs(cli), 1)
    # A replay waits for its reader so that a signal ends it.
    process, screen = start_unseen(cli, UNSEEN, **more)
    until(lambda: waiting(screen) > 0 and samples_asleep(process, 500), "the terminal is full")
    process.send_signal(signal.SIGTERM)
    expect(process.wait(TIMEOUT_SECONDS), 143)
    os.close(screen)
    expect(runs(cli), 1)


def runs_unseen(cli, **more):
    """The command runs on: its claim is renewed, and TERM ends it."""
    process, screen = start_unseen(cli, "yes '' | head -c 300000", "--lease", "300ms", **more)
    until(lambda: waiting(screen) > 0 and samples_asleep(process, 500), "the terminal is full")
    ends = set()

    def is_renewed():
        found = cli.run("lookup", "k", "-o", "json").json
        expect(found["state"], "claimed")
        ends.add(found["lease_ends_at"])
        return len(ends) > 5

    until(is_renewed, "the lease was renewed past its first end")
    process.send_signal(signal.SIGTERM)
    expect(process.wait(TIMEOUT_SECONDS), 143)
    os.close(screen)
    expect(state(cli), "failed")


def both_unread(cli, **more):
    """Both outputs are one pipe with room for one of the two pieces that wait for it."""
    fifos = [cli.folder / "first", cli.folder / "second"]
    for fifo in fifos:
        os.mkfifo(fifo)
    script = 'echo begun; : <"$TMPDIR/first"; head -c 60000 /dev/zero; head -c 60000 /dev/zero >&2'
    script += '; echo >>"$TMPDIR/runs"; : <"$TMPDIR/second"'
    process, read = start_unread(cli, script, stderr=None, **more)
    until(lambda: waiting(read) == 6, "one page of 16 is taken")
    process.send_signal(signal.SIGSTOP)
    os.close(os.open(fifos[0], os.O_WRONLY))
    until(lambda: runs(cli) == 1, "both are there when it looks")
    process.send_signal(signal.SIGCONT)
    until(lambda: waiting(read) == 6 + 15 * 4096, "the pipe is full")
    os.close(os.open(fifos[1], os.O_WRONLY))
    until(lambda: state(cli) == "done", "the outcome is stored")
    with os.fdopen(read, "rb") as file:
        expect(len(file.read()), 120006)
    expect(process.wait(TIMEOUT_SECONDS), 0)


def no_second_open(cli):
    """An output that may not be reopened, such as another user's terminal."""
    return preload(
        cli,
        """
        #define _GNU_SOURCE
        #include <dlfcn.h>
        #include <errno.h>
        #include <stdarg.h>
        #include <string.h>
        static int open_other(const char *name, const char *path, int flags, int mode)
        {
            int (*other)(const char *, int, ...) = (int (*)(const char *, int, ...))dlsym(RTLD_NEXT, name);
            if (strncmp(path, "/proc/self/fd/", 14) == 0) {
                errno = EACCES;
                return -1;
            }
            return other(path, flags, mode);
        }
        #define STAND_IN(name) \\
            int name(const char *path, int flags, ...) \\
            { \\
                va_list list; \\
                va_start(list, flags); \\
                int mode = va_arg(list, int); \\
                va_end(list); \\
                return open_other(#name, path, flags, mode); \\
            }
        STAND_IN(open)
        STAND_IN(open64)
        """,
    )


def test_a_terminal_that_nobody_reads(cli):
    ends_unseen(cli)


def test_a_terminal_that_nobody_reads_while_it_runs(cli):
    runs_unseen(cli)


def test_one_pipe_for_both_outputs(cli):
    both_unread(cli)


def test_a_terminal_of_somebody_else(cli):
    ends_unseen(cli, env=no_second_open(cli))


def test_a_terminal_of_somebody_else_while_it_runs(cli):
    runs_unseen(cli, env=no_second_open(cli))


def test_one_pipe_of_somebody_else_for_both_outputs(cli):
    both_unread(cli, env=no_second_open(cli))


def test_all_of_it_comes_on_a_terminal(cli):
    """Byte for byte, but for what the terminal makes of a line end; and its flags stay as they are."""
    script = "seq 20000; echo end >&2"
    for environment in ({}, no_second_open(cli)):
        screen, terminal = pty.openpty()
        flags = fcntl.fcntl(terminal, fcntl.F_GETFL)
        command = ["run", "--key", "k", "--max-result", "1MiB", "--", "sh", "-c", script]
        process = cli.start(*command, stdin=subprocess.DEVNULL, stdout=terminal, env=environment)
        seen = b""
        while not seen.endswith(b"20000\r\n"):
            seen += os.read(screen, 65536)
        expect(finish(process, 0)[1], b"end\n")
        expect(seen.split(), [b"%d" % number for number in range(1, 20001)])
        expect(fcntl.fcntl(terminal, fcntl.F_GETFL), flags)
        os.close(terminal)
        os.close(screen)


def test_a_socket(cli):
    ours, theirs = socket.socketpair()
    command = ["run", "--key", "k", "--max-result", "1MiB", "--", "sh", "-c", "seq 20000"]
    process = cli.start(*command, stdout=theirs)
    theirs.close()
    with ours, ours.makefile("rb") as file:
        expect(file.read().split(), [b"%d" % number for number in range(1, 20001)])
    expect(finish(process, 0)[1], b"")
