"""run_hosts.py - hosts on which `hapax run` lives and dies.

A runtime folder of its own stands for a host: lock files are looked for there and nowhere else.
"""

import os
import pathlib
import signal
import sqlite3
import subprocess

from harness import TIMEOUT_SECONDS, Skip, is_sanitized, until

# Long enough not to end within a test that does not want it to.
LEASE = "30s"


def host(cli, name):
    """The environment of a host: where its lock files are."""
    folder = cli.folder / name
    folder.mkdir(exist_ok=True)
    return {"XDG_RUNTIME_DIR": str(folder)}


def locks(cli, name):
    folder = cli.folder / name / "hapax/run"
    return [path for path in folder.iterdir() if not path.name.startswith(".")] if folder.exists() else []


# The command: tells who it is, never runs beside another of its host, waits to be let go.
COMMAND = """
exec 3>>"$TMPDIR/busy.$1"
flock -n 3 || echo overlap >>"$TMPDIR/log"
echo begin $$ $HAPAX_TOKEN >>"$TMPDIR/log"
: <"$TMPDIR/fifo"
echo end $$ $HAPAX_TOKEN >>"$TMPDIR/log"
echo "result of $HAPAX_TOKEN"
"""


class Log:
    """What the commands wrote down."""

    def __init__(self, cli):
        self.path = cli.folder / "log"
        self.fifo = cli.folder / "fifo"
        if not self.fifo.exists():
            os.mkfifo(self.fifo)

    def lines(self):
        return self.path.read_text(encoding="ascii").splitlines() if self.path.exists() else []

    def count(self, word):
        return sum(line.startswith(word) for line in self.lines())

    def wait_for(self, word, number):
        """The pid of the command that said word for the number-th time."""
        until(lambda: self.count(word) >= number, f"{word} was said {number} times")
        return int([line for line in self.lines() if line.startswith(word)][number - 1].split()[1])

    def let_go(self):
        """Every command that waits, and those to come, go on."""
        return os.open(self.fifo, os.O_RDWR)


def start(cli, name, *options, preloaded=None, **more):
    command = ["run", "--key", "k", "--lease", LEASE, *options, "--", "sh", "-c", COMMAND, "command", "shared"]
    return cli.start(*command, env={**host(cli, name), **(preloaded or {})}, **more)


def again(cli, name, *options, **more):
    command = ["run", "--key", "k", "--lease", LEASE, *options, "--", "sh", "-c", COMMAND, "command", "shared"]
    return cli.run(*command, env=host(cli, name), **more)


def lookup(cli):
    return cli.run("lookup", "k", "-o", "json", code=None).json


def is_alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def has_lapsed(cli):
    return cli.run("explain", "k", "-o", "json").json["next_claim"] == "acquired"


def go_round(wrapper):
    """Wait until the wrapper's loop has gone round several times; it does at every third of a lease."""

    def rounds():
        assert is_alive(wrapper.pid), "the wrapper has ended"
        status = pathlib.Path(f"/proc/{wrapper.pid}/status").read_text(encoding="ascii")
        return int(status.split("\nvoluntary_ctxt_switches:")[1].split()[0])

    begin = rounds()
    until(lambda: rounds() >= begin + 8, "the loop has gone round")


def without_lapse(messages):
    """Other messages: a busy machine may miss a lease of 300 ms without a takeover."""
    lapse = b"hapax: run: the lease could not be renewed in time: another host may take over\n"
    return messages.replace(lapse, b"")


def is_stopped(process):
    """All of its threads."""
    paths = pathlib.Path(f"/proc/{process.pid}/task").glob("*/stat")
    return all(path.read_text(encoding="utf-8").rpartition(")")[2].split()[0] == "T" for path in paths)


def stop(cli, process):
    """SIGSTOP, and not in the middle of a commit: no other process could write then."""
    while True:
        process.send_signal(signal.SIGSTOP)
        until(lambda: is_stopped(process), "it is stopped")
        connection = sqlite3.connect(cli.path, timeout=0.1, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute("ROLLBACK")
            return
        except sqlite3.OperationalError:
            process.send_signal(signal.SIGCONT)
        finally:
            connection.close()


def kill_both(wrapper, command):
    wrapper.kill()
    os.kill(command, signal.SIGKILL)
    wrapper.wait(TIMEOUT_SECONDS)
    until(lambda: not is_alive(command), "the command has ended")


# What is shown after a while is shown at once: two seconds pass when the program has asked whether standard error
# is a terminal, and looked at the clock. Not more, since others wait by the clock as it is.
HASTY_CLOCK = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
#include <unistd.h>

/* Of the main thread. */
static int looks = 2;
static long passed_s;

int isatty(int fd)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, "isatty");

	if (fd == STDERR_FILENO && gettid() == getpid())
		looks = 0;
	return next(fd);
}

int clock_gettime(clockid_t id, struct timespec *now)
{
	int (*next)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int failed = next(id, now);

	if (id != CLOCK_MONOTONIC || gettid() != getpid())
		return failed;
	if (looks < 2 && ++looks == 2)
		passed_s += 2;
	now->tv_sec += passed_s;
	return failed;
}
"""


def preload(cli, source):
    """A module that is loaded before the C library and stands in for some of its functions."""
    if is_sanitized():
        raise Skip("a sanitizer does not want to be preloaded over")
    module = cli.folder / "preload.so"
    command = ["cc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(module), "-ldl"]
    subprocess.run(command, input=source.encode(), check=True)
    return {"LD_PRELOAD": str(module)}
