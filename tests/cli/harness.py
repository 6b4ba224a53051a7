"""harness.py - run the program hapax and look at what it does.

A test is a function whose name begins with test_ and that takes a Cli: a private folder, a clean
environment and a store. tests/cli/run collects them and prints TAP.

HAPAX_PROGRAM names the program, build/hapax by default. HAPAX_SEED and HAPAX_EXAMPLE_CHECK name
tests/cli/seed.c and examples/check.c as built; without them they are compiled here, against the
library beside the program.
"""

import contextlib
import json
import os
import pathlib
import pty
import pwd
import re
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = pathlib.Path(os.environ.get("HAPAX_PROGRAM", ROOT / "build/hapax")).resolve()

# A test that hangs must end before Meson ends the whole run and hides which one it was.
TIMEOUT_SECONDS = 60

COMMANDS = ["run", "serve", "consume", "claim", "renew", "complete", "release", "park", "resolve", "check", "lookup", "explain"]
COMMANDS += ["forget", "keys", "stats", "key", "backtest", "uuid7", "store", "gc", "fsck", "journal", "decisions", "outbox", "config"]
COMMANDS += ["demo-upstream", "completion", "help", "version"]

# Those that go on until a signal ends them.
DAEMONS = ["serve", "demo-upstream", "consume"]

# Those that use a store and have exit codes of their own; run passes on those of its command.
STORE_COMMANDS = ["check", "lookup", "forget", "keys", "stats", "gc", "claim", "explain", "resolve"]
STORE_COMMANDS += ["renew", "complete", "release", "park"]
MAKERS = ["check", "claim"]

# What each of them needs on its command line.
OPERANDS = {"check": ["k"], "lookup": ["k"], "forget": ["k"], "claim": ["k"], "explain": ["k"]}
OPERANDS["resolve"] = ["k", "--retry"]
OPERANDS.update({command: ["k", "--token", "1"] for command in ("renew", "complete", "release", "park")})


class Skip(Exception):
    """Why a test cannot run here."""


def is_proof():
    """As scale_is_proof() of tests/support/scale.h."""
    return os.environ.get("HAPAX_PROOF", "0") not in ("", "0")


def scaled(proof, usual):
    """As scale_count() of tests/support/scale.h."""
    if is_proof():
        return proof
    return max(1, int(usual * float(os.environ.get("HAPAX_TEST_SCALE") or 1)))


@contextlib.contextmanager
def proof(what, count):
    """As scale_report(): a row of `make proof`, FAILED if what is inside fails."""
    begin, verdict = time.monotonic(), "FAILED"
    try:
        yield
        verdict = "ok"
    finally:
        print(f"# proof: {what} {count} {time.monotonic() - begin:.1f}s {verdict}", flush=True)


def expect(actual, expected, what=""):
    if actual != expected:
        raise AssertionError(f"{what or 'value'}: expected {expected!r}, got {actual!r}")


def expect_in(part, whole, what=""):
    if part not in whole:
        raise AssertionError(f"{what or 'text'}: {part!r} is not in {whole!r}")


def expect_match(pattern, text, what=""):
    if not re.search(pattern, text, re.MULTILINE):
        raise AssertionError(f"{what or 'text'}: /{pattern}/ does not match {text!r}")


def until(condition, what):
    """Wait for something that another process does. It fails after a while, never too early."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"timed out waiting until {what}")
        time.sleep(0.002)


class Result:
    def __init__(self, arguments, code, out, err):
        self.arguments, self.code, self.raw_out, self.raw_err = arguments, code, out, err

    @property
    def out(self):
        return self.raw_out.decode("utf-8")

    @property
    def err(self):
        return self.raw_err.decode("utf-8")

    @property
    def json(self):
        """Exactly one document, on one line."""
        expect(self.out.count("\n"), 1, "lines of JSON")
        return json.loads(self.out)

    @property
    def lines(self):
        """One document per line."""
        return [json.loads(line) for line in self.out.splitlines()]

    def fields(self):
        """Text output of the form "name  value"; names may hold one blank."""
        pairs = {}
        for line in self.out.splitlines():
            if len(line) > 13 and line[12] == " ":
                pairs[line[:13].strip()] = line[13:]
        return pairs

    def says(self, *parts):
        """One message on standard error, in our form, that holds all parts."""
        lines = self.err.splitlines()
        if not lines or not lines[0].startswith("hapax: "):
            raise AssertionError(f"no message: {self.err!r}")
        messages = [line for line in lines if not line.startswith("hint: ") and ": note: " not in line]
        expect(len(messages), 1, f"messages in {self.err!r}")
        for part in parts:
            expect_in(part, self.err, "standard error")
        return self


class Cli:
    def __init__(self, folder):
        self.folder = pathlib.Path(folder)
        self.home = self.folder / "home"
        self.home.mkdir()
        self.path = self.folder / "test.db"
        self.store = f"sqlite:{self.path}"
        self.environment = {
            "HOME": str(self.home),
            "HAPAX_STORE": self.store,
            "LC_ALL": "C.UTF-8",
            "PATH": f"{PROGRAM.parent}:{os.environ.get('PATH', '/usr/bin:/bin')}",
            "TMPDIR": str(self.folder),
        }
        for name, value in os.environ.items():
            if name.endswith("SAN_OPTIONS") or name == "LD_LIBRARY_PATH":
                self.environment[name] = value

    def env(self, **changes):
        """The environment with changes; None removes a variable."""
        merged = {**self.environment, **changes}
        return {name: value for name, value in merged.items() if value is not None}

    def run(self, *arguments, code=0, input=b"", env=None, program=None, **options):
        """Run hapax and expect an exit code; code=None takes any."""
        command = [str(program or PROGRAM), *arguments]
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        # Without the terminal that the tests were started from.
        options.setdefault("start_new_session", True)
        if "stdin" not in options:
            options["input"] = input
        done = subprocess.run(
            command, env=self.env(**(env or {})), timeout=TIMEOUT_SECONDS, check=False, **options
        )
        result = Result(arguments, done.returncode, done.stdout or b"", done.stderr or b"")
        if b"Sanitizer" in result.raw_err or b"runtime error" in result.raw_err:
            raise AssertionError(f"{arguments}: {result.err}")
        if code is not None and result.code != code:
            raise AssertionError(
                f"hapax {arguments!r}: expected exit {code}, got {result.code};"
                f" out {result.raw_out!r}, err {result.raw_err!r}"
            )
        return result

    def start(self, *arguments, env=None, **options):
        options.setdefault("stdout", subprocess.PIPE)
        options.setdefault("stderr", subprocess.PIPE)
        options.setdefault("start_new_session", True)
        return subprocess.Popen([str(PROGRAM), *arguments], env=self.env(**(env or {})), **options)

    def shell(self, line, **options):
        """A line as a user types it."""
        done = subprocess.run(
            ["sh", "-c", line],
            env=self.env(),
            cwd=self.folder,
            timeout=TIMEOUT_SECONDS,
            capture_output=True,
            start_new_session=True,
            check=False,
            **options,
        )
        return Result([line], done.returncode, done.stdout, done.stderr)

    def seed(self, command, key, *arguments, store=None):
        """tests/cli/seed.c; key and a body are bytes or text."""
        hexed = [a.hex() if isinstance(a, bytes) else str(a) for a in arguments]
        key = key if isinstance(key, bytes) else key.encode()
        done = subprocess.run(
            [seed_program(), store or self.store, command, key.hex(), *hexed],
            env=self.env(),
            timeout=TIMEOUT_SECONDS,
            capture_output=True,
            check=False,
        )
        if done.returncode != 0:
            raise AssertionError(f"seed {command}: {done.stderr!r}")
        return int(done.stdout or 0)

    def sql(self, statement, *values):
        """Look into the database, or change it, behind the program's back."""
        connection = sqlite3.connect(self.path, timeout=TIMEOUT_SECONDS, isolation_level=None)
        try:
            return connection.execute(statement, values).fetchall()
        finally:
            connection.close()

    def is_intact(self):
        expect(self.sql("PRAGMA integrity_check"), [("ok",)], "integrity_check")


def is_sanitized():
    """Was the program built with a sanitizer?"""
    data = PROGRAM.read_bytes()
    return b"__asan_init" in data or b"__tsan_init" in data


def skip_librdkafka():
    """ThreadSanitizer cannot follow its C11 threads, and ends the program."""
    if b"__tsan_init" in PROGRAM.read_bytes():
        raise Skip("ThreadSanitizer cannot follow librdkafka")


def plain_user():
    """Options of subprocess that make a child a plain user, also when root runs the tests."""
    if os.geteuid() != 0:
        return {}
    plain = pwd.getpwnam("nobody")
    return {"user": plain.pw_uid, "group": plain.pw_gid, "extra_groups": []}


def public_program(cli):
    """The program where any user may run it: the build folder may be behind a closed door."""
    target = cli.folder / "bin"
    if not target.exists():
        target.mkdir()
        shutil.copy(PROGRAM, target / "hapax")
    os.chmod(cli.folder, 0o755)
    return target / "hapax"


def kill_left(folder):
    """Kill what a test that failed has left: whatever has its folder in its environment."""
    mark = f"TMPDIR={folder}\0".encode()
    for path in pathlib.Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in path.read_bytes():
                os.kill(int(path.parent.name), signal.SIGKILL)
        except OSError:
            pass


def signals(process, kind):
    """Of /proc/PID/status: SigCgt, what it has a handler for, or SigBlk, what it blocks."""
    try:
        status = pathlib.Path(f"/proc/{process.pid}/status").read_text(encoding="ascii")
    except FileNotFoundError:
        return 0
    return int(next(line for line in status.splitlines() if line.startswith(f"{kind}:")).split()[1], 16)


def catches(process, number):
    """Does the process have a handler for this signal?"""
    return bool(signals(process, "SigCgt") >> (number - 1) & 1)


def blocks(process, number):
    """Does it block the signal? A daemon reads it from a descriptor then."""
    return bool(signals(process, "SigBlk") >> (number - 1) & 1)


def on_screen(cli, *arguments, env=None):
    """Run to its end with messages on a terminal: its output, and what the terminal was told."""
    screen, terminal = pty.openpty()
    process = cli.start(*arguments, stderr=terminal, env={"TERM": "xterm", **(env or {})})
    os.close(terminal)
    shown = b""
    try:
        while chunk := os.read(screen, 4096):
            shown += chunk
    except OSError:
        # That is how the end of a terminal reads.
        pass
    os.close(screen)
    out, _ = finish(process, 0)
    return out, shown


def finish(process, code):
    """Wait for a started process; its output and messages."""
    out, err = process.communicate(timeout=TIMEOUT_SECONDS)
    expect(process.returncode, code, f"exit status ({err!r})")
    return out, err


def compiled(name, source):
    """An executable from one of our C files: as Meson built it, else by cc."""
    built = os.environ.get(name)
    if built:
        return built
    target = pathlib.Path(tempfile.gettempdir()) / f"hapax-{os.getpid()}-{source.stem}"
    if not target.exists():
        command = ["cc", "-std=c11", f"-I{ROOT}/include", str(source), "-o", str(target)]
        command += [str(PROGRAM.parent / "libhapax.a"), "-lssl", "-lcrypto", "-lsqlite3", "-lpq", "-lrdkafka", "-lpthread"]
        command += os.environ.get("HAPAX_CFLAGS", "").split()
        subprocess.run(command, check=True)
        _made.append(target)
    return str(target)


_made = []


def clean_up():
    for path in _made:
        path.unlink(missing_ok=True)


def seed_program():
    return compiled("HAPAX_SEED", ROOT / "tests/cli/seed.c")


def example_program():
    return compiled("HAPAX_EXAMPLE_CHECK", ROOT / "examples/check.c")


SIGINT, SIGTERM, SIGPIPE = signal.SIGINT, signal.SIGTERM, signal.SIGPIPE
