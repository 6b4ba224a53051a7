"""A disk that another program fills: new keys are refused, live claims end (I12, E18)."""

import contextlib
import json
import subprocess

from daemon import Serve
from harness import Skip, expect, expect_in, until
from test_api import AUTH, NOWHERE
from test_server import auth_file

LIMIT = 69


@contextlib.contextmanager
def small_disk(cli):
    place = cli.folder / "small"
    place.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=8m", "tmpfs", place], capture_output=True, check=False)
    if mounted.returncode != 0:
        raise Skip(f"mounts are refused here: {mounted.stderr.decode().strip()}")
    try:
        yield place
    finally:
        subprocess.run(["umount", place], check=True)


def fill(place):
    with contextlib.suppress(OSError), open(place / "filler", "ab", buffering=0) as file:
        while True:
            file.write(bytes(4096))


class Client:
    """The command line, at a daemon or with a store of its own."""

    def __init__(self, cli, *options):
        self.cli = cli
        self.options = options

    def run(self, *arguments, **how):
        return self.cli.run(*arguments, *self.options, **how)

    def claim(self, key):
        return json.loads(self.run("claim", key, "--lease", "1h", "-o", "json").out)["token"]

    def claim_until_full(self, place):
        for n in range(2000):
            fill(place)
            result = self.run("claim", f"new {n}", code=None)
            if result.code != 0:
                break
        expect(result.code, LIMIT)
        expect_in("disk is full", result.err)
        expect_in("make room on the disk", result.err)

    def end(self, tokens, name):
        """Renewed, then ended in three ways."""
        self.run("renew", f"{name} 0", "--token", str(tokens[f"{name} 0"]))
        self.run("complete", f"{name} 0", "--token", str(tokens[f"{name} 0"]), "--result", "-", input=b"done")
        self.run("release", f"{name} 1", "--token", str(tokens[f"{name} 1"]))
        self.run("park", f"{name} 2", "--token", str(tokens[f"{name} 2"]))

    def must_have_ended(self, name):
        for n, state in enumerate(("done", "failed", "parked")):
            found = json.loads(self.run("lookup", f"{name} {n}", "-o", "json", code=None).out)
            expect(found["state"], state, f"{name} {n}")

    def info(self):
        return json.loads(self.run("stats", "-o", "json").out)


def at(cli, daemon):
    return Client(cli, "--server", f"http://127.0.0.1:{daemon.admin[1]}", "--auth-file", auth_file(cli))


def keys(*names):
    return [f"{name} {n}" for name in names for n in range(3)]


def run_daemon(cli, store):
    with small_disk(cli) as place:
        url = store.format(place)
        daemon = Serve(cli, NOWHERE, store=url, config=AUTH)
        try:
            client = at(cli, daemon)
            tokens = {key: client.claim(key) for key in keys("early", "late")}
            reserve = client.info()["reserve_bytes"]
            client.claim_until_full(place)
            expect(client.info()["disk_full"], True)
            client.end(tokens, "early")
            daemon.kill()
            fill(place)
            daemon = Serve(cli, NOWHERE, store=url, config=AUTH)
            client = at(cli, daemon)
            client.must_have_ended("early")
            client.end(tokens, "late")
            client.run("claim", "refused", code=LIMIT)
            (place / "filler").unlink()
            # It notices by itself, and makes the reserve again.
            until(lambda: not client.info()["disk_full"], "space is seen")
            client.claim("welcome")
            expect(client.info()["reserve_bytes"], reserve)
            client.must_have_ended("late")
        finally:
            daemon.kill()


def test_daemon_with_file(cli):
    run_daemon(cli, "file:{}/store")


def test_daemon_with_sqlite(cli):
    run_daemon(cli, "sqlite:{}/store.db")


def test_many_short_processes(cli):
    """Each command opens and closes the file, and finds the disk full."""
    with small_disk(cli) as place:
        client = Client(cli, "--store", f"sqlite:{place}/store.db")
        tokens = {key: client.claim(key) for key in keys("early")}
        client.claim_until_full(place)
        fill(place)
        expect(client.info()["disk_full"], True)
        client.end(tokens, "early")
        client.must_have_ended("early")
        expect_in("new keys are refused", client.cli.run("store", "info", f"sqlite:{place}/store.db").out)
        (place / "filler").unlink()
        client.claim("welcome")
        expect(client.info()["disk_full"], False)
        expect(client.info()["reserve_bytes"], 1024 * 1024)
