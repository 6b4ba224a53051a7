"""run and the lock of a key: never two commands at once on one host, whatever the record says.

The record may be swept, forgotten, resolved or expired while a command of it lives; the wrapper may be
killed between any two steps. See src/cli/run/run_lock.h for the rules that are named here by number.
"""

import os
import pathlib
import signal
import subprocess

from harness import PROGRAM, TIMEOUT_SECONDS, expect, expect_in, finish, scaled, until
from run_hosts import COMMAND, Log, again, go_round, has_lapsed, host, is_alive, is_stopped, kill_both, locks, lookup
from run_hosts import preload, start, stop

SHORT = ["--lease", "300ms", "--ttl", "1h"]


def age(cli):
    """Hours pass. Who waited for them, or for less, could not say what is left to do in time."""
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    columns = ("first_seen_ms", "changed_ms", "lease_ends_ms", "due_ms")
    cli.sql("UPDATE hapax_record SET " + ", ".join(f"{name} = {name} - 7200000" for name in columns))


def sweep(cli):
    """A ttl after its lease the sweep gives up the claim."""
    age(cli)
    cli.run("gc")
    expect(lookup(cli)["state"], "failed")


def orphan(cli, log, *options):
    """A command whose wrapper was killed."""
    wrapper = start(cli, "host", *options)
    command = log.wait_for("begin", 1)
    wrapper.kill()
    wrapper.communicate(timeout=TIMEOUT_SECONDS)
    assert is_alive(command)
    return command


def end(log, command):
    hold = log.let_go()
    until(lambda: not is_alive(command), "the command has ended")
    return hold


def test_a_sweep_gives_up_the_claim_of_a_command_that_lives(cli):
    log = Log(cli)
    command = orphan(cli, log, *SHORT)
    sweep(cli)
    again(cli, "host", code=75).says("in progress: a command with this key is running")
    expect_in("is running on this host", cli.run("explain", "k", env=host(cli, "host")).out)
    again(cli, "host", "--wait=50ms", code=75).says("in progress")
    hold = end(log, command)
    again(cli, "host")
    os.close(hold)
    expect((log.count("begin"), log.count("overlap"), lookup(cli)["state"]), (2, 0, "done"))
    expect(locks(cli, "host"), [])


def test_a_script_that_uses_every_small_number(cli):
    """exec 9>file closes what was open there before: the lock has a number that no script uses by name."""
    log = Log(cli)
    # A store without files: all that we open has a small number. It forgets; the lock does not.
    store = ["--store", "memory:"]
    numbers = " ".join(f"{number}>/dev/null" for number in range(3, 10))
    script = f'exec {numbers}; echo begin $$ >>"$TMPDIR/log"; : <"$TMPDIR/fifo"'
    for limit in ("64", "1024", "4096"):
        begun = log.count("begin")
        line = f'ulimit -Sn {limit}; exec "$0" run --key k --store memory: -- sh -c "$1"'
        command = ["sh", "-c", line, str(PROGRAM), script]
        wrapper = subprocess.Popen(
            command, env=cli.env(**host(cli, "host")), stderr=subprocess.DEVNULL, start_new_session=True
        )
        pid = log.wait_for("begin", begun + 1)
        wrapper.kill()
        wrapper.wait(TIMEOUT_SECONDS)
        again(cli, "host", *store, code=75).says("a command with this key is running")
        os.close(end(log, pid))


def test_a_sweep_gives_up_the_claim_of_a_wrapper_that_is_stopped(cli):
    """No run takes over, and when it continues its result counts."""
    log = Log(cli)
    wrapper = start(cli, "host", *SHORT)
    log.wait_for("begin", 1)
    stop(cli, wrapper)
    sweep(cli)
    again(cli, "host", code=75).says("on this host")
    wrapper.send_signal(signal.SIGCONT)
    # Its next renewal is refused, but no other run took over: that is not a reason to stop.
    go_round(wrapper)
    hold = log.let_go()
    out, err = finish(wrapper, 0)
    os.close(hold)
    expect(err.decode().count("fenced"), 0, err.decode())
    found = lookup(cli)
    expect((found["state"], found["attempt"], found["result"]["body"]), ("done", 1, out.decode()))
    expect((log.count("begin"), log.count("overlap")), (1, 0))


def test_a_forgotten_key_whose_command_lives(cli):
    log = Log(cli)
    command = orphan(cli, log, *SHORT)
    sweep(cli)
    cli.run("forget", "k")
    again(cli, "host", code=75).says("in progress: a command with this key is running")
    expect_in("is running on this host", cli.run("explain", "k", env=host(cli, "host"), code=1).out)
    os.close(end(log, command))
    expect(log.count("begin"), 1)


def test_forget_by_force_while_it_runs(cli):
    """No other run took over: it continues, no run on this host starts beside it, and its result is not stored."""
    log = Log(cli)
    wrapper = start(cli, "host", "--lease", "300ms")
    command = log.wait_for("begin", 1)
    cli.run("forget", "k", "--force")
    again(cli, "host", code=75).says("on this host")
    go_round(wrapper)
    assert is_alive(command)
    waiter = start(cli, "host", "--wait")
    hold = log.let_go()
    _, err = finish(wrapper, 0)
    expect_in("the record expired or was deleted while the command ran", err.decode())
    finish(waiter, 0)
    os.close(hold)
    expect((log.count("begin"), log.count("overlap"), log.count("end")), (2, 0, 2))


def test_forget_by_force_and_another_host(cli):
    """Another run took over: now it is stopped."""
    log = Log(cli)
    wrapper = start(cli, "host", "--lease", "300ms")
    command = log.wait_for("begin", 1)
    cli.run("forget", "k", "--force")
    cli.run("run", "--key", "k", "--fingerprint", "none", "--", "true", env=host(cli, "other"))
    _, err = finish(wrapper, 125)
    expect_in("fenced: another run has taken over; the command is stopped", err.decode())
    assert not is_alive(command)
    expect((lookup(cli)["state"], log.count("end")), ("done", 0))


def test_a_result_expires_while_its_command_lives(cli):
    """It has completed its own key, for a second, and goes on for longer."""
    log = Log(cli)
    script = 'hapax complete "$HAPAX_KEY" >&2; echo begin $$ >>"$TMPDIR/log"; : <"$TMPDIR/fifo"'
    command = ["run", "--key", "k", "--ttl", "300ms", "--", "sh", "-c", script]
    wrapper = cli.start(*command, env=host(cli, "host"))
    log.wait_for("begin", 1)
    until(lambda: cli.run("lookup", "k", code=None).code == 1, "it has expired")
    cli.run(*command, env=host(cli, "host"), code=75).says("on this host")
    os.close(log.let_go())
    wrapper.kill()
    wrapper.communicate(timeout=TIMEOUT_SECONDS)
    expect(log.count("begin"), 1)


def test_an_old_note_says_nothing_about_another_host(cli):
    """A run died here, another host has taken over: its claim is not ours to give back."""
    log = Log(cli)
    wrapper = start(cli, "host", "--lease", "300ms")
    kill_both(wrapper, log.wait_for("begin", 1))
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    other = start(cli, "other")
    log.wait_for("begin", 2)
    again(cli, "host", code=75).says("in progress", "its lease ends in")
    expect((lookup(cli)["state"], lookup(cli)["attempt"], log.count("overlap")), ("claimed", 2, 0))
    # And the note has gone: it had nothing more to tell.
    expect(locks(cli, "host"), [])
    hold = log.let_go()
    finish(other, 0)
    os.close(hold)
    expect(log.count("begin"), 2)


def test_resolve_refuses_while_the_command_lives(cli):
    log = Log(cli)
    command = orphan(cli, log, "--lease", "300ms")
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    for decision in ("--retry", "--done"):
        result = cli.run("resolve", "k", decision, env=host(cli, "host"), code=75)
        result.says("is running on this host", "hint: --force")
    expect(lookup(cli)["state"], "claimed")
    # With --force the next run starts beside it.
    cli.run("resolve", "k", "--retry", "--force", env=host(cli, "host"))
    second = start(cli, "host")
    log.wait_for("begin", 2)
    expect(log.count("overlap"), 1)
    # The end of the first does not take the lock of the second away.
    os.kill(command, signal.SIGKILL)
    until(lambda: not is_alive(command), "the first has ended")
    again(cli, "host", code=75).says("in progress")
    hold = log.let_go()
    finish(second, 0)
    os.close(hold)
    expect((log.count("begin"), lookup(cli)["attempt"]), (2, 2))


def test_a_run_that_lost_its_lock_leaves_the_next_ones(cli):
    """As above, but the first has a wrapper, which gives up its lock in order when it ends."""
    log = Log(cli)
    first = start(cli, "host", "--lease", "300ms")
    command = log.wait_for("begin", 1)
    stop(cli, first)
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    cli.run("resolve", "k", "--retry", "--force", env=host(cli, "host"))
    second = start(cli, "host")
    log.wait_for("begin", 2)
    first.send_signal(signal.SIGCONT)
    _, err = finish(first, 125)
    expect_in("fenced: another run has taken over", err.decode())
    assert not is_alive(command)
    expect(len(locks(cli, "host")), 1)
    again(cli, "host", code=75).says("in progress")
    hold = log.let_go()
    finish(second, 0)
    os.close(hold)
    expect((log.count("begin"), lookup(cli)["state"]), (2, "done"))


def test_a_store_has_many_paths(cli):
    log = Log(cli)
    link = cli.folder / "link.db"
    cli.run("check", "other")
    link.symlink_to(cli.path)
    command = orphan(cli, log, "--lease", "300ms")
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    for url in (f"sqlite:{link}", "sqlite:test.db", "sqlite:./home/../test.db"):
        again(cli, "host", "--store", url, cwd=cli.folder, code=75).says("on this host")
    os.close(end(log, command))
    expect(log.count("begin"), 1)


def cron(cli):
    """Cron knows no runtime folder; a shell, host(), looks into cron's."""
    return {"XDG_RUNTIME_DIR": None, "XDG_STATE_HOME": str(cli.home / ".local/state")}


def test_a_shell_sees_a_job_of_cron(cli):
    """Rule 5: each makes its lock where it can, and looks everywhere."""
    log = Log(cli)
    command = ["run", "--key", "k", "--lease", "300ms", "--", "sh", "-c", COMMAND, "command", "shared"]
    job = cli.start(*command, env=cron(cli))
    pid = log.wait_for("begin", 1)
    expect(len(list((cli.home / ".local/state/hapax/run").iterdir())), 1)
    job.kill()
    job.communicate(timeout=TIMEOUT_SECONDS)
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    again(cli, "host", code=75).says("on this host")
    hold = end(log, pid)
    # And that it is dead is seen there, too: its claim is given back, its file goes.
    again(cli, "host")
    os.close(hold)
    expect((log.count("begin"), log.count("overlap")), (2, 0))
    expect((list((cli.home / ".local/state/hapax/run").iterdir()), locks(cli, "host")), ([], []))


# The home of a user is where HAPAX_TEST_HOME says.
A_HOME = r"""
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>

int getpwuid_r(uid_t uid, struct passwd *user, char *text, size_t size, struct passwd **found)
{
	(void)uid, (void)text, (void)size;
	user->pw_dir = getenv("HAPAX_TEST_HOME");
	*found = user;
	return 0;
}
"""


def test_a_service_without_a_home_variable(cli):
    """It finds the locks of its user's shells: the system knows where the home is."""
    log = Log(cli)
    command = ["run", "--key", "k", "--lease", "300ms", "--", "sh", "-c", COMMAND, "command", "shared"]
    shell = cli.start(*command, env={"XDG_RUNTIME_DIR": None})
    pid = log.wait_for("begin", 1)
    expect(len(list((cli.home / ".local/state/hapax/run").iterdir())), 1)
    shell.kill()
    shell.communicate(timeout=TIMEOUT_SECONDS)
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    service = {**host(cli, "host"), **preload(cli, A_HOME), "HAPAX_TEST_HOME": str(cli.home), "HOME": None}
    cli.run(*command, env=service, code=75).says("on this host")
    os.close(end(log, pid))
    expect(log.count("begin"), 1)


def test_shells_and_cron_at_once(cli):
    log = Log(cli)
    os.close(log.let_go())
    script = 'exec 3>>"$TMPDIR/busy"; flock -n 3 || echo overlap >>"$TMPDIR/log"; echo begin $$ >>"$TMPDIR/log"'
    for number in range(scaled(proof=50, usual=3)):
        command = ["run", "--key", f"k{number}", "--wait", "--", "sh", "-c", script]
        crowd = [cli.start(*command, env=host(cli, "host") if index % 2 else cron(cli)) for index in range(12)]
        for process in crowd:
            finish(process, 0)
        expect((log.count("begin"), log.count("overlap")), (number + 1, 0))


def test_one_after_the_other(cli):
    """Rule 1: a crowd whose commands fail; each runs, none beside another, through many lock files."""
    log = Log(cli)
    script = 'exec 3>>"$TMPDIR/busy"; flock -n 3 || echo overlap >>"$TMPDIR/log"; echo begin $$ >>"$TMPDIR/log"; exit 3'
    size = scaled(proof=100, usual=30)
    for _ in range(scaled(proof=20, usual=2)):
        log.path.unlink(missing_ok=True)
        command = ["run", "--key", "k", "--wait", "--", "sh", "-c", script]
        crowd = [cli.start(*command, env=host(cli, "host")) for _ in range(size)]
        for process in crowd:
            finish(process, 3)
        expect((log.count("begin"), log.count("overlap")), (size, 0))
    expect(locks(cli, "host"), [])


# Ends the program with KILL at a place that HAPAX_TEST_AT names, or stops it there, once.
KILL_AT = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void reached(const char *place)
{
	const char *at = getenv("HAPAX_TEST_AT");

	if (at != NULL && strcmp(at, place) == 0)
		raise(SIGKILL);
	if (at == NULL || strncmp(at, "stop ", 5) != 0 || strcmp(at + 5, place) != 0)
		return;
	unsetenv("HAPAX_TEST_AT");
	raise(SIGSTOP);
}

int flock(int fd, int kind)
{
	int (*next)(int, int) = (int (*)(int, int))dlsym(RTLD_NEXT, "flock");
	int failed;

	reached("opened");
	failed = next(fd, kind);
	reached("locked");
	return failed;
}

int ftruncate64(int fd, off64_t size)
{
	int (*next)(int, off64_t) = (int (*)(int, off64_t))dlsym(RTLD_NEXT, "ftruncate64");
	char name[64], path[4096] = "";
	int failed;

	snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	if (readlink(name, path, sizeof(path) - 1) <= 0 || strstr(path, "/hapax/run/") == NULL)
		return next(fd, size);
	reached("claimed");
	failed = next(fd, size);
	reached("noting");
	return failed;
}

int posix_spawnp(
	pid_t *pid, const char *file, const posix_spawn_file_actions_t *actions,
	const posix_spawnattr_t *attributes, char *const argv[], char *const env[])
{
	int (*next)(
		pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *,
		char *const[], char *const[]) = dlsym(RTLD_NEXT, "posix_spawnp");
	int failed;

	reached("noted");
	failed = next(pid, file, actions, attributes, argv, env);
	reached("started");
	return failed;
}

int unlink(const char *path)
{
	int (*next)(const char *) = (int (*)(const char *))dlsym(RTLD_NEXT, "unlink");
	int failed;

	if (strstr(path, "/hapax/run/") == NULL)
		return next(path);
	reached("stored");
	failed = next(path);
	reached("unlinked");
	return failed;
}
"""


def test_killed_between_any_two_steps(cli):
    """The next run starts at once if the old one is known to be dead, else after the lease; or it replays."""
    module = preload(cli, KILL_AT)
    script = 'exec 3>>"$TMPDIR/busy"; flock 3; echo begin $$ >>"$TMPDIR/log"; echo out'
    #         place       runs when the next one asks, by its lease or at once
    places = {"opened": 0, "locked": 0, "claimed": 0, "noting": 0, "noted": 0, "started": 1, "stored": 1, "unlinked": 1}
    for place, runs in places.items():
        log = Log(cli)
        log.path.unlink(missing_ok=True)
        waits_for_lease = place in ("claimed", "noting")
        lease = "500ms" if waits_for_lease else "1h"
        command = ["run", "--key", place, "--lease", lease, "--wait", "--", "sh", "-c", script]
        killed = cli.start(*command, env={**host(cli, "host"), **module, "HAPAX_TEST_AT": place})
        killed.communicate(timeout=TIMEOUT_SECONDS)
        expect(killed.returncode, -signal.SIGKILL, place)
        if runs:
            log.wait_for("begin", 1)
        if waits_for_lease:
            state = cli.run("explain", place, env=host(cli, "host")).out
            assert "died on this host" not in state and "is running on this host" not in state, state
        expect(cli.run(*command, env=host(cli, "host")).out, "out\n", place)
        expected = {"stored": 1, "unlinked": 1, "started": 2}.get(place, 1)
        expect(log.count("begin"), expected, place)
    expect(locks(cli, "host"), [], "the next ones removed what was left")


def test_gc_removes_what_a_killed_run_left(cli):
    """Killed after its outcome was stored: the note is not needed any more."""
    environment = {**host(cli, "host"), **preload(cli, KILL_AT), "HAPAX_TEST_AT": "stored"}
    killed = cli.start("run", "--key", "k", "--", "true", env=environment)
    killed.communicate(timeout=TIMEOUT_SECONDS)
    expect((killed.returncode, len(locks(cli, "host"))), (-signal.SIGKILL, 1))
    expect(cli.run("gc", env=host(cli, "host"), code=0).fields()["locks"], "1")
    expect(locks(cli, "host"), [])


def start_slow(cli):
    """A run that has opened its lock file, and lost it before it locked it."""
    preloaded = {**preload(cli, KILL_AT), "HAPAX_TEST_AT": "stop opened"}
    slow = start(cli, "host", "--lease", "300ms", preloaded=preloaded)
    until(lambda: is_stopped(slow), "it has opened its file, and not locked it")
    expect(cli.run("gc", env=host(cli, "host")).fields()["locks"], "1")
    expect(locks(cli, "host"), [])
    return slow


def test_a_lock_file_is_removed_between_open_and_lock(cli):
    """Rule 1: who locks a file that has lost its name makes another one, which others see."""
    log = Log(cli)
    slow = start_slow(cli)
    slow.send_signal(signal.SIGCONT)
    command = log.wait_for("begin", 1)
    expect(len(locks(cli, "host")), 1)
    stop(cli, slow)
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    again(cli, "host", code=75).says("on this host")
    slow.send_signal(signal.SIGCONT)
    hold = end(log, command)
    finish(slow, 0)
    os.close(hold)
    expect((log.count("begin"), log.count("overlap")), (1, 0))


def test_another_lock_file_is_made_between_open_and_lock(cli):
    """The same, and another process was faster."""
    log = Log(cli)
    slow = start_slow(cli)
    first = start(cli, "host", "--lease", "300ms")
    command = log.wait_for("begin", 1)
    stop(cli, first)
    until(lambda: has_lapsed(cli), "the lease has lapsed")
    slow.send_signal(signal.SIGCONT)
    _, err = finish(slow, 75)
    expect_in("on this host", err.decode())
    first.send_signal(signal.SIGCONT)
    hold = end(log, command)
    finish(first, 0)
    os.close(hold)
    expect((log.count("begin"), log.count("overlap")), (1, 0))


def test_gc_removes_what_has_nothing_more_to_tell(cli):
    log = Log(cli)
    wrapper = start(cli, "host", *SHORT)
    kill_both(wrapper, log.wait_for("begin", 1))
    here = host(cli, "host")
    # As long as the claim stands, it tells the next one not to wait.
    expect((cli.run("gc", env=here).fields()["locks"], len(locks(cli, "host"))), ("0", 1))
    # Of another store, which knows no such claim, it is none of our business.
    other = f"sqlite:{cli.folder}/other.db"
    cli.run("check", "k", "--store", other)
    expect(cli.run("gc", "--store", other, env=here).fields()["locks"], "0")
    expect(len(locks(cli, "host")), 1)

    # The claim is given up, and then the file goes.
    age(cli)
    expect((cli.run("gc", env=here).fields()["locks"], locks(cli, "host")), ("1", []))


def test_gc_never_removes_what_is_held(cli):
    log = Log(cli)
    command = orphan(cli, log, *SHORT)
    here = host(cli, "host")
    sweep(cli)
    expect((cli.run("gc", env=here).fields()["locks"], len(locks(cli, "host"))), ("0", 1))
    again(cli, "host", code=75).says("on this host")
    os.close(end(log, command))
    expect((cli.run("gc", env=here).fields()["locks"], locks(cli, "host")), ("1", []))


def test_gc_and_other_boots(cli):
    """Rule 4: an earlier boot of this machine is over; another machine may be up."""
    log = Log(cli)
    wrapper = start(cli, "host")
    kill_both(wrapper, log.wait_for("begin", 1))
    here = host(cli, "host")
    (lock,) = locks(cli, "host")
    boot, dash, key = lock.name.partition("-")
    own, content = lock.name, lock.read_bytes()
    expect(content.splitlines()[2:], [b"default", b"default", b"k"])
    earlier, foreign, empty, strange = "1" * 32, "2" * 32, "3" * 32, "x" * 65
    (lock.parent / f"{earlier}-{key}").write_bytes(content)
    (lock.parent / f"{foreign}-{key}").write_bytes(b"elsewhere\n" + content.partition(b"\n")[2])
    (lock.parent / f"{empty}-{key}").touch()
    (lock.parent / strange).write_bytes(content)
    expect(cli.run("gc", env=here).fields()["locks"], "2")
    expect({path.name for path in locks(cli, "host")}, {own, f"{foreign}-{key}", strange})
    expect((len(boot), dash), (32, "-"))


def test_a_free_file_of_nonsense(cli):
    """Whatever is in the file, the lock on it is what counts; it is taken, and goes."""
    log = Log(cli)
    nonsense = [b"", b"\0" * 100, b"x", b"\n" * 9, b"h\n99999999999999999999999 ab\n\n\nk", None, b"x" * 10_000]
    for number, content in enumerate(nonsense):
        wrapper = start(cli, "host", "--lease", "300ms")
        kill_both(wrapper, log.wait_for("begin", 2 * number + 1))
        (lock,) = locks(cli, "host")
        lock.write_bytes(lock.read_bytes()[:-1] if content is None else content)
        cli.run("explain", "k", env=host(cli, "host"))
        hold = log.let_go()
        again(cli, "host", "--wait")
        os.close(hold)
        expect(locks(cli, "host"), [])
        cli.run("forget", "k")
    expect(log.count("overlap"), 0)


def test_one_folder_by_two_names(cli):
    """A second name of the lock that this run holds is not another run."""
    folder = cli.folder / "both"
    folder.mkdir()
    link = cli.folder / "alias"
    link.symlink_to(folder)
    environment = {"XDG_RUNTIME_DIR": str(folder), "XDG_STATE_HOME": str(link)}
    expect(cli.run("run", "--key", "k", "--", "echo", "hi", env=environment).out, "hi\n")
    expect(list(pathlib.Path(folder, "hapax/run").iterdir()), [])
