"""run when things die: never two commands at once on one host, and no work is lost.

A runtime folder of its own stands for another host: lock files are looked for there and nowhere else.
"""

import os
import pathlib
import random
import signal
import sqlite3
import subprocess
import time

from harness import ROOT, TIMEOUT_SECONDS, Skip, expect, expect_in, finish, is_sanitized, scaled, until
from run_hosts import COMMAND, Log, again, has_lapsed, host, is_alive, is_stopped, kill_both, locks, lookup, preload
from run_hosts import start, stop


def test_the_wrapper_is_killed(cli):
    log = Log(cli)
    wrapper = start(cli, "host")
    command = log.wait_for("begin", 1)
    wrapper.kill()
    wrapper.wait(TIMEOUT_SECONDS)
    # The command continues: no other run starts beside it.
    assert is_alive(command)
    again(cli, "host", code=75).says("in progress")
    waiter = start(cli, "host", "--wait")
    expect(log.count("begin"), 1)
    # When it ends, its outcome is unknown: the next run starts at once, not after the lease.
    begin = time.monotonic()
    hold = log.let_go()
    expect(finish(waiter, 0)[0], f"result of {lookup(cli)['token']}\n".encode())
    os.close(hold)
    assert time.monotonic() - begin < 25, "it waited for the lease"
    expect((log.count("begin"), log.count("overlap"), lookup(cli)["attempt"]), (2, 0, 2))
    expect(locks(cli, "host"), [])


def test_the_command_is_killed(cli):
    log = Log(cli)
    wrapper = start(cli, "host")
    os.kill(log.wait_for("begin", 1), signal.SIGKILL)
    finish(wrapper, 137)
    expect(lookup(cli)["state"], "failed")
    hold = log.let_go()
    again(cli, "host")
    os.close(hold)
    expect((log.count("begin"), log.count("overlap"), lookup(cli)["state"]), (2, 0, "done"))


def test_both_are_killed(cli):
    log = Log(cli)
    wrapper = start(cli, "host")
    kill_both(wrapper, log.wait_for("begin", 1))
    expect(len(locks(cli, "host")), 1)
    expect_in("died on this host", cli.run("explain", "k", env=host(cli, "host")).out)
    hold = log.let_go()
    # Not --wait: the claim of the dead run is given back, and its lease is not waited for.
    again(cli, "host")
    os.close(hold)
    expect((log.count("begin"), log.count("overlap"), lookup(cli)["attempt"]), (2, 0, 2))
    expect(locks(cli, "host"), [])


def test_both_are_killed_and_a_person_decides(cli):
    log = Log(cli)
    wrapper = start(cli, "host", "--on-lapse", "park")
    kill_both(wrapper, log.wait_for("begin", 1))
    again(cli, "host", code=75).says("parked: ", "its process died before it could tell how it ended")
    expect((lookup(cli)["state"], log.count("begin")), ("parked", 1))
    cli.run("resolve", "k", "--retry")
    hold = log.let_go()
    again(cli, "host")
    os.close(hold)


def test_a_reboot(cli):
    """Both are gone and the lock file too: only the lease decides."""
    log = Log(cli)
    wrapper = start(cli, "host", "--lease", "1s")
    kill_both(wrapper, log.wait_for("begin", 1))
    for path in locks(cli, "host"):
        path.unlink()
    waiter = start(cli, "host", "--wait")
    hold = log.let_go()
    finish(waiter, 0)
    os.close(hold)
    expect((log.count("begin"), log.count("overlap"), lookup(cli)["attempt"]), (2, 0, 2))


def test_another_host_waits_for_the_lease(cli):
    log = Log(cli)
    wrapper = start(cli, "host")
    kill_both(wrapper, log.wait_for("begin", 1))
    again(cli, "other", code=75).says("in progress", "its lease ends in")
    expect(log.count("begin"), 1)


def test_a_stopped_wrapper_on_one_host(cli):
    """SIGSTOP past the lease: no run on this host takes over, and its complete counts."""
    log = Log(cli)
    wrapper = start(cli, "host", "--lease", "300ms")
    command = log.wait_for("begin", 1)
    stop(cli, wrapper)
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    again(cli, "host", code=75).says("still running on this host, although its lease has lapsed")
    expect_in("is running on this host", cli.run("explain", "k", env=host(cli, "host")).out)
    hold = log.let_go()
    until(lambda: not is_alive(command), "the command has ended")
    os.close(hold)
    again(cli, "host", code=75).says("on this host")
    wrapper.send_signal(signal.SIGCONT)
    out, _ = finish(wrapper, 0)
    found = lookup(cli)
    expect((found["state"], found["attempt"], out), ("done", 1, f"result of {found['token']}\n".encode()))
    expect(again(cli, "host").raw_out, out)
    expect((log.count("begin"), log.count("overlap")), (1, 0))


def take_over(cli, log, wrapper):
    """The other host runs and completes; what it wrote."""
    if not is_stopped(wrapper):
        stop(cli, wrapper)
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    command = ["run", "--key", "k", "--fingerprint", "none", "--", "sh", "-c", "echo of the other host $HAPAX_TOKEN"]
    out = cli.run(*command, env=host(cli, "other")).raw_out
    expect((lookup(cli)["state"], lookup(cli)["attempt"]), ("done", 2))
    return out


def check_fenced(cli, log, wrapper, out):
    _, err = finish(wrapper, 125)
    expect_in("fenced: another run has taken over", err.decode())
    expect((lookup(cli)["result"]["body"], lookup(cli)["attempt"]), (out.decode(), 2))
    expect(again(cli, "host", "--fingerprint", "none").raw_out, out)
    expect(log.count("begin"), 1)


def test_a_stopped_wrapper_is_fenced_by_another_host(cli):
    log = Log(cli)
    wrapper = start(cli, "host", "--lease", "300ms")
    command = log.wait_for("begin", 1)
    out = take_over(cli, log, wrapper)
    wrapper.send_signal(signal.SIGCONT)
    check_fenced(cli, log, wrapper, out)
    expect((is_alive(command), log.count("end")), (False, 0), "the command")


def test_a_command_that_ignores_term_is_killed(cli):
    log = Log(cli)
    script = "trap '' TERM; echo begin $$ >>\"$TMPDIR/log\"; while :; do sleep 0.01; done"
    command = ["run", "--key", "k", "--lease", "300ms", "--kill-after", "100ms", "--", "sh", "-c", script]
    wrapper = cli.start(*command, env=host(cli, "host"))
    pid = log.wait_for("begin", 1)
    out = take_over(cli, log, wrapper)
    wrapper.send_signal(signal.SIGCONT)
    _, err = finish(wrapper, 125)
    expect_in("fenced: another run has taken over; the command is stopped", err.decode())
    expect((is_alive(pid), lookup(cli)["result"]["body"]), (False, out.decode()))


def test_a_late_result_is_not_kept(cli):
    """The command ends while its wrapper is stopped and another host has taken over."""
    log = Log(cli)
    wrapper = start(cli, "host", "--lease", "300ms")
    command = log.wait_for("begin", 1)
    out = take_over(cli, log, wrapper)
    hold = log.let_go()
    until(lambda: not is_alive(command), "the command has ended")
    os.close(hold)
    wrapper.send_signal(signal.SIGCONT)
    check_fenced(cli, log, wrapper, out)


# Stops the program where it has its claim and has not yet noted it in its lock, and only there.
STOP_BEFORE_THE_NOTE = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int ftruncate64(int fd, off64_t size)
{
	int (*next)(int, off64_t) = (int (*)(int, off64_t))dlsym(RTLD_NEXT, "ftruncate64");
	char name[64], path[4096] = "";

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (readlink(name, path, sizeof(path) - 1) > 0 && strstr(path, "/hapax/run/") != NULL) {
		unsetenv("LD_PRELOAD");
		raise(SIGSTOP);
	}
	return next(fd, size);
}
"""


# And as if the machine had been suspended meanwhile: this clock does not count that time.
SUSPENDED_MEANWHILE = r"""
#include <time.h>

static long long suspended_ns;

int clock_gettime(clockid_t id, struct timespec *now)
{
	int (*next)(clockid_t, struct timespec *) =
		(int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
	int failed = next(id, now);
	long long ns = now->tv_sec * 1000000000LL + now->tv_nsec - suspended_ns;

	if (id == CLOCK_MONOTONIC) {
		now->tv_sec = ns / 1000000000;
		now->tv_nsec = ns % 1000000000;
	}
	return failed;
}

static void stop(void)
{
	struct timespec begin, end;

	clock_gettime(CLOCK_MONOTONIC, &begin);
	raise(SIGSTOP);
	clock_gettime(CLOCK_MONOTONIC, &end);
	suspended_ns = (end.tv_sec - begin.tv_sec) * 1000000000LL + end.tv_nsec - begin.tv_nsec;
}
"""


def start_stopped(cli, is_suspended=False):
    """A run that is stopped between its claim and its command, past its lease."""
    source = STOP_BEFORE_THE_NOTE
    if is_suspended:
        source = source.replace("raise(SIGSTOP)", "stop()").replace("int ftruncate64", SUSPENDED_MEANWHILE + "\nint ftruncate64", 1)
    command = ["run", "--key", "k", "--lease", "300ms", "--", "sh", "-c", COMMAND, "command", "shared"]
    wrapper = cli.start(*command, env={**host(cli, "host"), **preload(cli, source)})
    status = pathlib.Path(f"/proc/{wrapper.pid}/status")
    until(lambda: "T (stopped)" in status.read_text(encoding="utf-8"), "it is stopped")
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    return wrapper


def test_stopped_between_claim_and_command(cli):
    """No run on this host takes over from a run that is about to start; it continues normally."""
    log = Log(cli)
    wrapper = start_stopped(cli)
    again(cli, "host", code=75).says("in progress")
    waiter = start(cli, "host", "--wait")
    hold = log.let_go()
    wrapper.send_signal(signal.SIGCONT)
    out, _ = finish(wrapper, 0)
    expect(finish(waiter, 0)[0], out)
    os.close(hold)
    expect((log.count("begin"), log.count("overlap"), lookup(cli)["attempt"]), (1, 0, 1))


def test_stopped_between_claim_and_command_and_overtaken(cli):
    """Another host took over meanwhile: the command is not started at all."""
    be_overtaken(cli, start_stopped(cli))


def test_suspended_between_claim_and_command_and_overtaken(cli):
    """A lease goes on while the machine sleeps."""
    be_overtaken(cli, start_stopped(cli, is_suspended=True))


def be_overtaken(cli, wrapper):
    log = Log(cli)
    out = take_over(cli, log, wrapper)
    wrapper.send_signal(signal.SIGCONT)
    _, err = finish(wrapper, 125)
    expect_in("another run took over before this run started", err.decode())
    expect((log.count("begin"), lookup(cli)["result"]["body"], locks(cli, "host")), (0, out.decode(), []))


def test_a_long_run_keeps_its_lease(cli):
    log = Log(cli)
    wrapper = start(cli, "host", "--lease", "300ms")
    log.wait_for("begin", 1)
    ends = set()
    until(lambda: ends.add(lookup(cli)["lease_ends_at"]) or len(ends) > 8, "the lease was renewed eight times")
    expect(lookup(cli)["attempt"], 1)
    hold = log.let_go()
    finish(wrapper, 0)
    os.close(hold)


# Only the command itself holds the lock by which overlaps are seen: a descendant that is exiting closes its
# outputs first, and the next command may begin before it has closed the rest.
RANDOM_COMMAND = """
exec 3>>"$TMPDIR/busy"
flock -n 3 || echo overlap >>"$TMPDIR/log"
echo begin $$ >>"$TMPDIR/log"
sleep 0.0$1 3>&-
echo end $$ >>"$TMPDIR/log"
echo done
"""


def kill_at_random(source, wrapper, log, begun):
    """Kill wrapper, command, or both, after a while; nothing may be there any more."""
    time.sleep(source.random() * 0.06)
    commands = [int(line.split()[1]) for line in log.lines() if line.startswith("begin")][begun:]
    victims = source.choice([[wrapper.pid], commands[-1:], [wrapper.pid, *commands[-1:]]])
    for victim in victims:
        try:
            os.kill(victim, signal.SIGKILL)
        except ProcessLookupError:
            pass


def test_random_kills(cli):
    """Any number of deaths: never two at once, and in the end it is done, by one that ran to its end."""
    seed = int(os.environ.get("HAPAX_TEST_SEED") or random.randrange(1 << 30))
    print(f"# seed {seed}", flush=True)
    source = random.Random(seed)
    rounds, kills, begin = scaled(proof=300, usual=6), 0, time.monotonic()
    for number in range(rounds):
        log = Log(cli)
        log.path.unlink(missing_ok=True)
        # Who is killed between its claim and the note of it is waited for.
        command = ["run", "--key", f"k{number}", "--wait", "--lease", "3s", "--"]
        command += ["sh", "-c", RANDOM_COMMAND, "sh", str(source.randrange(5))]
        for _ in range(source.randrange(1, 6)):
            begun = log.count("begin")
            crowd = [cli.start(*command, env=host(cli, "host")) for _ in range(2)]
            kill_at_random(source, crowd[0], log, begun)
            kills += 1
            for process in crowd[:1]:
                process.communicate(timeout=TIMEOUT_SECONDS)
            crowd[1].communicate(timeout=TIMEOUT_SECONDS)
        result = cli.run(*command, env=host(cli, "host"))
        expect(result.out, "done\n", f"seed {seed}, round {number}")
        expect(log.count("overlap"), 0, f"seed {seed}, round {number}: {log.lines()}")
        assert log.count("end") >= 1, log.lines()
        expect(cli.run("lookup", f"k{number}", "-o", "json").json["state"], "done")
    # Who is killed after its result was stored and before its file was removed leaves that to gc.
    cli.run("gc", env=host(cli, "host"), code=0)
    expect(locks(cli, "host"), [])
    print(f"# proof: hapax run, kill -9 at random, kills {kills} {time.monotonic() - begin:.1f}s ok", flush=True)


def kill_sessions(leaders):
    """Kill whatever belongs to these sessions; was there anything?"""
    leaders, found = set(leaders), False
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            state, _, _, session = path.read_text(encoding="utf-8").rpartition(")")[2].split()[:4]
            if int(session) in leaders and state != "Z":
                found = True
                os.kill(int(path.parent.name), signal.SIGKILL)
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def test_random_reboots(cli):
    """Everything on the host dies at some moment, lock files too; what comes after waits for the lease."""
    seed = int(os.environ.get("HAPAX_TEST_SEED") or random.randrange(1 << 30))
    print(f"# seed {seed}", flush=True)
    source = random.Random(seed)
    rounds, begin = scaled(proof=200, usual=4), time.monotonic()
    log = Log(cli)
    for number in range(rounds):
        log.path.unlink(missing_ok=True)
        command = ["run", "--key", f"k{number}", "--lease", "200ms", "--wait", "--"]
        command += ["sh", "-c", RANDOM_COMMAND, "sh", str(source.randrange(5))]
        crowd = [cli.start(*command, env=host(cli, "host"), start_new_session=True) for _ in range(2)]
        time.sleep(source.random() * 0.08)
        for process in crowd:
            process.kill()
        until(lambda: not kill_sessions(process.pid for process in crowd), "everything has died")
        for process in crowd:
            process.communicate(timeout=TIMEOUT_SECONDS)
        for path in locks(cli, "host"):
            path.unlink()
        expect(cli.run(*command, env=host(cli, "host")).out, "done\n", f"seed {seed}, round {number}")
        expect(log.count("overlap"), 0, f"seed {seed}, round {number}: {log.lines()}")
        assert log.count("end") >= 1, log.lines()
    print(f"# proof: hapax run, reboots at random, rounds {rounds} {time.monotonic() - begin:.1f}s ok", flush=True)


def test_a_crowd_of_one_key(cli):
    size, begin = 100, time.monotonic()
    for number in range(scaled(proof=20, usual=1)):
        script = 'echo >>"$TMPDIR/runs"; sleep 0.2; echo out; echo err >&2; exit 7'
        command = ["run", "--key", f"k{number}", "--wait", "--success-codes", "7", "--", "sh", "-c", script]
        crowd = [cli.start(*command, env=host(cli, "host")) for _ in range(size)]
        for process in crowd:
            expect(process.communicate(timeout=120), (b"out\n", b"err\n"))
            expect(process.returncode, 7)
        expect((cli.folder / "runs").read_text(encoding="ascii"), "\n" * (number + 1), "runs")
    stats = cli.run("stats", "-o", "json").json["decisions"]
    expect((stats["acquired"], stats["completed"]), (number + 1, number + 1))
    print(f"# proof: 100 processes of hapax run, rounds {number + 1} {time.monotonic() - begin:.1f}s ok", flush=True)


# Much output, and then how much memory the wrapper had at most. What wait4() tells of a process
# counts the memory of its parent, before exec.
MUCH = r"""head -c "$1" /dev/zero; sed -n 's/^VmHWM:[^0-9]*\([0-9]*\) kB/\1/p' /proc/$PPID/status >&2"""


def start_much(cli, key, size, **options):
    return cli.start("run", "--key", key, "--", "sh", "-c", MUCH, "sh", str(size), **options)


def peak_kib(process):
    """The largest memory of the program, not of its command."""
    _, err = finish(process, 0)
    return int(err)


def expect_flat(cli, process, megabytes):
    """As much memory as with little output."""
    large = peak_kib(process)
    small = peak_kib(start_much(cli, "small", 200_000, stdout=subprocess.DEVNULL))
    assert large < small + 512, f"{small} KiB with little output, {large} KiB with {megabytes} MB"
    found = cli.run("lookup", "large", "-o", "json").json
    expect(found["state"], "done")
    assert 0 <= found["result"]["omitted_bytes"] - megabytes * 1_000_000 < 20, found
    return f"(memory {small} KiB with 200 KB, {large} KiB)"


def test_output_without_end_in_flat_memory(cli):
    if is_sanitized():
        raise Skip("a sanitizer keeps freed memory")
    megabytes, begin = scaled(proof=10_000, usual=200), time.monotonic()
    process = start_much(cli, "large", f"{megabytes}MB", stdout=subprocess.DEVNULL)
    process.wait()
    peaks = expect_flat(cli, process, megabytes)
    print(f"# {peaks}", flush=True)
    print(f"# proof: hapax run, megabytes of output {megabytes} {time.monotonic() - begin:.1f}s ok", flush=True)


def test_a_slow_reader_in_flat_memory(cli):
    """The same into a pipe that is read in small pieces, with pauses in which it is full."""
    if is_sanitized():
        raise Skip("a sanitizer keeps freed memory")
    megabytes, begin = scaled(proof=10_000, usual=50), time.monotonic()
    read, write = os.pipe()
    process = start_much(cli, "large", f"{megabytes}MB", stdout=write)
    os.close(write)
    total, pause_at = 0, 0
    while data := os.read(read, 16384):
        total += len(data)
        if total >= pause_at:
            pause_at = total + megabytes * 1_000_000 // 100
            time.sleep(0.01)
    os.close(read)
    expect(total, megabytes * 1_000_000)
    process.wait()
    peaks = expect_flat(cli, process, megabytes)
    print(f"# {peaks}", flush=True)
    print(f"# proof: hapax run, megabytes to a slow reader {megabytes} {time.monotonic() - begin:.1f}s ok", flush=True)


# The command takes the disk away from its wrapper: no file may grow beyond this.
NO_ROOM = "prlimit --pid $PPID --fsize=4096:unlimited || exit 99; "


def test_no_room_for_the_outcome(cli):
    cli.run("check", "other")
    script = NO_ROOM + "echo out; exit 5"
    command = ["run", "--key", "k", "--lease", "600ms", "--success-codes", "5", "--", "sh", "-c", script]
    result = cli.run(*command, code=None)
    if result.code == 99:
        raise Skip("prlimit is not allowed here")
    expect((result.code, result.out), (5, "out\n"), "the command's own status and output")
    for part in ("the command exited with status 5, but its result ", " stored: ", "the command may run again"):
        expect_in(part, result.err)
    cli.is_intact()
    # What could not be stored is never a release: only the lease's end lets the next one run.
    assert lookup(cli)["state"] in ("claimed", "done"), lookup(cli)
    cli.run("run", "--key", "k", "--wait", "--success-codes", "5", "--fingerprint", "none", "--", "sh", "-c", "exit 5", code=5)


def test_room_comes_back_before_the_lease_ends(cli):
    cli.run("check", "other")
    script = NO_ROOM + "(sleep 0.5; prlimit --pid $1 --fsize=unlimited:unlimited) >/dev/null 2>&1 & echo out"
    command = ["run", "--key", "k", "--lease", "20s", "--", "sh", "-c", 'exec sh -c "$0" sh $PPID', script]
    result = cli.run(*command, code=None)
    if result.code == 99:
        raise Skip("prlimit is not allowed here")
    expect((result.code, result.out, result.err), (0, "out\n", ""))
    expect((lookup(cli)["state"], lookup(cli)["attempt"]), ("done", 1))


def test_a_full_file_system(cli):
    """I12: the outcome fits into the reserve, and the next run replays it."""
    if os.geteuid() != 0:
        raise Skip("only root can mount a small file system")
    disk = cli.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        raise Skip("mounting is not allowed here")
    try:
        url = f"sqlite:{disk}/x.db"
        script = f"cat /dev/zero >{disk}/fill 2>/dev/null; echo out; exit 5"
        command = ["run", "--key", "k", "--store", url, "--lease", "600ms", "--success-codes", "5", "--"]
        result = cli.run(*command, "sh", "-c", script, code=5)
        expect(result.out, "out\n")
        expect(result.err, "")
        (disk / "fill").unlink()
        expect(cli.run(*command, "sh", "-c", script, code=5).out, "out\n")
        expect((disk / "fill").exists(), False, "it ran again")
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


def test_no_room_for_the_output_alone(cli):
    """What fits is kept while the lease lives: that it is done, and not what it wrote."""
    if os.geteuid() != 0:
        raise Skip("only root can mount a small file system")
    disk = cli.folder / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        raise Skip("mounting is not allowed here")
    try:
        store = ["--store", f"sqlite:{disk}/x.db"]
        # Room for a few pages is left, not for 200 KB.
        script = f"cat /dev/zero >{disk}/fill 2>/dev/null; truncate -s -64K {disk}/fill; head -c 200000 /dev/zero"
        command = ["run", "--key", "k", *store, "--lease", "9s", "--", "sh", "-c", script]
        expect(len(cli.run(*command).out), 200000)
        found = cli.run("lookup", "k", *store, "-o", "json").json
        expect((found["state"], found["result"]["omitted_bytes"], found["attempt"]), ("done", 200000, 1))
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=False)


# The answer to a commit is lost, and from then on there is no room for what names the key. Not before
# the command says so.
LOSE_AN_ANSWER = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int is_lost;

static int is_of_the_store(int fd)
{
	char name[64], path[4096] = "";

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return readlink(name, path, sizeof(path) - 1) > 0 && strstr(path, "/test.db") != NULL;
}

static int is_broken(int fd)
{
	return getenv("HAPAX_TEST_BREAK") != NULL && access(getenv("HAPAX_TEST_BREAK"), F_OK) == 0 &&
		is_of_the_store(fd);
}

static int lose(int fd, const char *name)
{
	int (*next)(int) = (int (*)(int))dlsym(RTLD_NEXT, name);

	if (is_lost || !is_broken(fd))
		return next(fd);
	is_lost = 1;
	errno = EIO;
	return -1;
}

int fsync(int fd)
{
	return lose(fd, "fsync");
}

int fdatasync(int fd)
{
	return lose(fd, "fdatasync");
}

ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset)
{
	ssize_t (*next)(int, const void *, size_t, off64_t) = dlsym(RTLD_NEXT, "pwrite64");

	if (is_lost && is_of_the_store(fd) && memmem(data, size, "the-lost-one", 12) != NULL) {
		errno = ENOSPC;
		return -1;
	}
	return next(fd, data, size, offset);
}
"""


def test_what_is_unknown_stays_unknown(cli):
    """The answer is lost, then the store refuses: it may be stored all the same, and that is said."""
    cli.run("check", "other")
    environment = {**preload(cli, LOSE_AN_ANSWER), "HAPAX_TEST_BREAK": str(cli.folder / "break")}
    script = 'unset LD_PRELOAD; : >"$HAPAX_TEST_BREAK"; echo out; exit 5'
    command = ["run", "--key", "the-lost-one", "--lease", "2s", "--success-codes", "5", "--", "sh", "-c", script]
    # A process that has it open keeps the next one from recovering the lost commit.
    witness = sqlite3.connect(cli.path)
    expect(witness.execute("SELECT count(*) FROM hapax_record").fetchall(), [(1,)])
    result = cli.run(*command, env=environment, code=5)
    witness.close()
    expect(result.out, "out\n")
    expect_in("the command exited with status 5, but its result may not be stored: ", result.err)
    cli.is_intact()


def test_the_example_of_an_overlapping_job(cli):
    """E18, scenario 4: examples/overlapping_job.sh shows it; here is what it must say."""
    done = subprocess.run(
        [str(ROOT / "examples/overlapping_job.sh")], env=cli.env(), capture_output=True, timeout=60, check=False
    )
    expect(done.returncode, 0, done.stderr.decode())
    text = done.stdout.decode()
    first, late, next_day, killed = text.split("\n==")[0:4]
    expect(first.count("report of 2026-11-15: mailed"), 3, "each start got the output")
    for part, count in ((first, 1), (late, 1), (next_day, 2), (killed, 3)):
        expect_in(f"mailed {count} time(s)", part)
    expect_in("report of 2026-11-17: mailed", killed)
    expect(killed.count(" done "), 3, "keys that are done")
