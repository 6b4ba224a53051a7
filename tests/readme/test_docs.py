"""The examples of docs/, run, with the answers that they print: those that need nothing but this machine."""

import contextlib
import json
import os
import pathlib
import re
import shlex
import shutil

import transcript
from daemon import DemoUpstream, Process, log_line
from harness import ROOT, Skip, expect

DOCUMENTS = [f"docs/{path.name}" for path in sorted((ROOT / "docs").glob("*.md"))]

# Transcripts by how they begin: those that a test below runs, and those that need a broker or a database, with the
# tests that run them.
RUN = {}
ELSEWHERE = {
    "hapax consume --from 'kafka:": "tests/kafka, tests/rabbitmq and tests/streams",
    "hapax outbox init --db postgres:": "tests/outbox and tests/rabbitmq",
    "hapax store import --from 'postgres:": "tests/cli/test_import.py",
}


def transcripts():
    return [steps for document in DOCUMENTS for steps in transcript.read(document)]


def plays(begin):
    """The test runs the one transcript that begins so."""

    def decorate(function):
        def test(cli):
            steps = next((steps for steps in transcripts() if steps[0].command.startswith(begin)), None)
            expect(steps is not None, True, f"a transcript that begins with '$ {begin}'")
            with Scene(cli) as scene:
                function(scene)
                transcript.play(steps, scene.shell(), scene.places, scene.serve)

        RUN[begin] = function.__name__
        test.__doc__ = function.__doc__
        return test

    return decorate


class Scene:
    """A folder, a shell in it, and the daemons that it starts, on ports of their own."""

    def __init__(self, cli):
        self.cli = cli
        self.folder = cli.folder / "here"
        self.folder.mkdir()
        self.places = {}
        self.env = cli.env(HAPAX_STORE=None, FAKETTY="1")
        self.ends = contextlib.ExitStack()
        # On a terminal curl shows no progress; redis-cli takes the word of FAKETTY for one.
        (cli.home / ".curlrc").write_text("silent\nshow-error\n", encoding="ascii")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.ends.close()

    def shell(self):
        shell = transcript.Shell(self.folder, self.env)
        self.ends.callback(shell.close)
        return shell

    def program(self, name, body):
        """A script of the user's own."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{body}\n", encoding="ascii")
        path.chmod(0o755)

    def daemon(self, *arguments):
        """hapax serve with these arguments, on free ports instead of those that they name."""
        given = [re.sub(r"^127\.0\.0\.1:\d+$", "127.0.0.1:0", word) for word in arguments]
        # Without an upstream the daemon has no gateway, unless an option asks for one.
        for door in ("--gateway", "--admin") if "--upstream" in given else ("--admin",):
            given += [] if door in given else [door, "127.0.0.1:0"]
        daemon = Process(["serve", *given], self.env, lambda line: log_line(line) if log_line(line).get("msg") == "ready" else None)
        self.ends.callback(daemon.kill)
        self.places.update({"127.0.0.1:8080": daemon.ready["gateway"], "127.0.0.1:8081": daemon.ready["proxy"]})
        self.places.update({"localhost:8099": daemon.ready["admin"]})
        self.places.update({"-p 6380": "-p " + daemon.ready["resp"].rpartition(":")[2]})

    def serve(self, command):
        """`hapax serve ... &`: the service that it names is there, too."""
        words = shlex.split(command)
        if words[:2] != ["hapax", "serve"]:
            return False
        expect(words[-1], "&", "the end of a command that goes on")
        if "--upstream" in words:
            service = DemoUpstream(self.cli)
            self.ends.callback(service.kill)
            words[words.index("--upstream") + 1] = service.url
        self.daemon(*words[2:-1])
        return True


def need(*programs):
    for program in programs:
        if shutil.which(program) is None:
            raise Skip(f"{program} is not installed")


def test_every_transcript_is_run_or_named(_):
    """Every example of a document is run by a test."""
    begins = [*RUN, *ELSEWHERE]
    for steps in transcripts():
        found = [begin for begin in begins if steps[0].command.startswith(begin)]
        expect(len(found), 1, f"tests for the transcript that begins with '$ {steps[0]}'")
        begins.remove(found[0])
    expect(begins, [], "transcripts that are not there any more")


@plays("hapax serve --upstream http://127.0.0.1:9000 &")
def test_gateway(_):
    need("curl")


@plays("hapax serve --upstream http://127.0.0.1:9000 --proxy")
def test_proxy(_):
    need("curl")


@plays("api() {")
def test_api(scene):
    need("curl")
    made = scene.cli.run("config", "token", "--role", "write", "-o", "json").json
    config = scene.folder / "hapax.yaml"
    config.write_text(f"auth: {{tokens: [{json.dumps(made['row'])}]}}\n", encoding="utf-8")
    scene.daemon("--config", str(config), "--gateway", "off")
    scene.env["T"] = f"Authorization: Bearer {made['token']}"


@plays("hapax run --key report-")
def test_run(scene):
    scene.program("report", 'echo "report of $1: 42 orders"\necho "$1" >>sent')


@plays("hapax run --key charge-17")
def test_run_parked(scene):
    """The command exceeds its timeout: its outcome is unknown."""
    scene.program("charge", "sleep 600")


@plays("hapax serve --resp")
def test_redis_door(_):
    need("redis-cli")


@plays("redis-cli -p 6380 hapax.claim")
def test_redis_claim(scene):
    need("redis-cli")
    scene.daemon("--gateway", "off", "--resp", "127.0.0.1:0")


@plays("token=$(hapax claim")
def test_claim_and_check(scene):
    scene.program("ship", ":")
    scene.env["PATH"] += f":{scene.folder}"
    for name, total in (("invoice", 42), ("other", 99)):
        (scene.folder / f"{name}.json").write_text(json.dumps({"total": total}), encoding="ascii")


def example(scene, name):
    """An example, as it was built, where the README has it."""
    built = os.environ.get("HAPAX_EXAMPLES")
    if not built or not (pathlib.Path(built) / name).exists():
        raise Skip(f"{name} was not built")
    (scene.folder / name).symlink_to(pathlib.Path(built) / name)


@plays("./example_process")
def test_process(scene):
    example(scene, "example_process")


@plays("./example_consume")
def test_consume(scene):
    """Messages as a queue delivers them: a failed one is delivered again."""
    example(scene, "example_consume")
    paid, packed = 'order.paid {"order":17}\n', 'order.packed {"order":17,"parcel":"a"}\n'
    text = paid + packed + paid + packed + 'order.paid {"order":17,"amount":1}\n'
    (scene.folder / "messages").write_text(text, encoding="ascii")


@plays("./example_transaction")
def test_transaction(scene):
    example(scene, "example_transaction")


def test_settings_are_settings(cli):
    """The block of YAML: it can be a configuration."""
    blocks = ["\n".join(lines) for lines in transcript.blocks("docs/consume.md") if lines[0] == "consumers:"]
    expect(len(blocks), 1, "blocks of settings")
    path = cli.folder / "hapax.yaml"
    path.write_text(blocks[0], encoding="utf-8")
    dumped = cli.run("config", "dump", str(path), "-o", "json", env={"HAPAX_STORE": None}).json
    expect([consumer["name"] for consumer in dumped["consumers"]], ["orders", "exports"])
