"""README.md, typed from its first example to its last in one shell, with the answers that it prints.

The shell has a network of its own, so that every port is the one that the README names, and a Redis and a PostgreSQL
as a reader has them: on localhost:6379, and where psql finds it.
"""

import os
import pathlib
import re
import shutil
import subprocess

import network
import transcript
from harness import PROGRAM, ROOT, Skip, expect, is_sanitized, until

DOCUMENT = "README.md"
LINES_MAX = 180
COLUMNS_MAX = 100


def need(*programs):
    network.need()
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")
    if "HAPAX_TEST_POSTGRES" not in os.environ:
        raise Skip("no PostgreSQL (tests/postgres/with_postgres)")


def repository(cli):
    """A folder that stands for the reader's, with the build under test as its build/."""
    folder = cli.folder / "hapax"
    folder.mkdir()
    (folder / "build").symlink_to(PROGRAM.parent)
    for name in ("include", "examples"):
        (folder / name).symlink_to(ROOT / name)
    return folder


def start_redis(cli):
    folder = cli.folder / "redis"
    folder.mkdir()
    command = ["redis-server", "--port", "6379", "--dir", str(folder), "--save", "", "--appendonly", "yes"]
    server = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    ping = ["redis-cli", "ping"]
    until(lambda: subprocess.run(ping, capture_output=True, check=False).stdout == b"PONG\n", "Redis answers")
    return server


class Reader:
    """Types a command; True: it was typed here, because the document does not say all of it."""

    def __init__(self, shell):
        self.shell = shell

    def __call__(self, command):
        if background := re.search(r" 2>(\S+) &$", command):
            self.shell.type(command)
            # A reader is slower than the start of a daemon; a test is not.
            log = pathlib.Path(self.shell.type("pwd")) / background.group(1)
            until(lambda: log.exists() and "ready" in log.read_text(encoding="utf-8"), f"'{command}' is ready")
            return True
        if command.startswith("cc ") and is_sanitized():
            # A program that cc links does not have the sanitizer of the library; Meson's does.
            built = pathlib.Path(os.environ["HAPAX_EXAMPLES"]) / "example_process"
            self.shell.type(f"ln -s {built} process")
            return True
        return False


def test_every_example_in_order(cli):
    need("cc", "createdb", "curl", "psql", "redis-cli", "redis-server")
    env = cli.env(HAPAX_STORE=None, FAKETTY="1")
    env.update({name: value for name, value in os.environ.items() if name.startswith("PG")})
    redis = start_redis(cli)
    shell = transcript.Shell(repository(cli), env)
    try:
        tokens = {}
        for steps in transcript.read(DOCUMENT):
            transcript.play(steps, shell, special=Reader(shell), tokens=tokens)
    finally:
        shell.close()
        redis.kill()
        redis.wait()


def test_a_wrong_answer_is_noticed(cli):
    """The comparison can fail: an answer that differs, is missing, or is one too many."""
    for shown, is_right in ((["a 1"], True), (["a ..."], True), (["a 2"], False), ([], False), (["a 1", "b"], False)):
        step = transcript.Step("echo a 1")
        step.answer = shown
        shell = transcript.Shell(cli.folder, cli.env())
        try:
            transcript.play([step], shell)
            expect(True, is_right, f"an answer that was accepted: {shown}")
        except AssertionError as difference:
            expect(str(difference).startswith("$ echo a 1"), not is_right, f"an answer that was refused: {difference}")
        finally:
            shell.close()


def test_it_is_short(_):
    """Few lines; and lines of prose, here and in docs/, end at 100 columns."""
    count = len((ROOT / DOCUMENT).read_text(encoding="utf-8").splitlines())
    expect(count <= LINES_MAX, True, f"at most {LINES_MAX} lines, not {count}")
    for path in (ROOT / DOCUMENT, *sorted((ROOT / "docs").glob("*.md"))):
        inside = False
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
            inside ^= line.startswith("```")
            is_free = inside or line.startswith("|")
            expect(is_free or len(line) <= COLUMNS_MAX, True, f"{path.name}:{number} is short enough")


def test_links_lead_somewhere(_):
    """In this document and those of docs/."""
    for path in (ROOT / DOCUMENT, *sorted((ROOT / "docs").glob("*.md"))):
        for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", path.read_text(encoding="utf-8")):
            expect((path.parent / target).exists(), True, f"{path.name} links to {target}")


def test_the_sql_is_that_of_the_example(_):
    """Every block of SQL in the README stands so in examples/consume_postgres.sql."""
    source = (ROOT / "examples/consume_postgres.sql").read_text(encoding="utf-8")
    shown = re.findall(r"^```sql\n(.*?)^```$", (ROOT / DOCUMENT).read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    expect(bool(shown), True, "a block of SQL")
    for block in shown:
        expect(block in source, True, f"in the example: {block}")
