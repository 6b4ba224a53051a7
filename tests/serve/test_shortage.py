"""Conditions (E13) of a store that is full, and of limits: each begins and ends for real."""

import contextlib
import itertools
import socket
import subprocess

from conditions import begins, ends, health
from daemon import get, post, serve, upstream
from harness import PROGRAM, Skip, expect, expect_in, until

NOWHERE = "http://127.0.0.1:9"


@contextlib.contextmanager
def small_disk(cli, size="24m"):
    """A file system that fills up; nothing else is on it."""
    folder = cli.folder / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "hapax-test", folder], capture_output=True, check=False)
    if made.returncode != 0:
        raise Skip(f"this user may not mount: {made.stderr.decode().strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", folder], check=False)


def fill(folder):
    """A file that leaves no room."""
    filler = folder / "filler"
    with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
        while file.write(bytes(4096)):
            pass
    return filler


def is_refused(daemon, data=bytes(60000), tries=2000):
    """Whether an event is refused at last."""
    return any(post(daemon.gateway, f"event {number} of {len(daemon.lines)}", data).status != 200 for number in range(tries))


def test_a_full_disk(cli):
    """It gave 503 with an empty log and green probes; the probe of readiness stays green: see observe/README.md."""
    with small_disk(cli) as folder, upstream() as behind:
        text = "store: {segment_bytes: 1MiB}\n"
        with serve(cli, behind.url, store=f"file:{folder}/ledger", config=text) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            filler = fill(folder)
            assert is_refused(daemon)
            # Also while senders go on.
            until(lambda: post(daemon.gateway, "new").status == 503 and health(daemon)[0] == 503, "it is told")
            begins(daemon, "disk_full", reason="no room", severity="critical", status=503)
            expect(get(daemon.admin, "/readyz").status, 200)
            expect(post(daemon.gateway, "before").decision, "replay")
            filler.unlink()
            until(lambda: post(daemon.gateway, "after").status == 200, "there is room again")
            ends(daemon, "disk_full")


def test_limits(cli):
    """Of the store, and of connections; the command line shows them. Another daemon has too few descriptors."""
    limited = ("sh", "-c", 'ulimit -n 160; exec "$0" "$@"', str(PROGRAM))
    with upstream() as behind, serve(cli, NOWHERE, config="loops: 1\n", command=limited) as small:
        with contextlib.ExitStack() as stack:
            for number in range(80):
                stack.enter_context(socket.create_connection(small.gateway))
            begins(small, "descriptors_short", "gateway", "raise LimitNOFILE")
        text = "store: {max_keys: 3, cleanup_interval: 100ms}\nhttp: {max_connections: 20}\ndefaults: {ttl: 3s}\nloops: 1\n"
        with serve(cli, behind.url, "--proxy", "127.0.0.1:0", config=text) as daemon:
            with contextlib.ExitStack() as stack:
                for number in range(20):
                    stack.enter_context(socket.create_connection(daemon.gateway))
                begins(daemon, "limit_reached", "http.max_connections", "20 of at most 20")
                # The other door of the same setting, which is not full, does not end it.
                assert "[-]limits failed" in get(daemon.admin, "/healthz?verbose").body.decode()
                there = ("--server", "http://{}:{}".format(*daemon.admin))
                expect(cli.run("stats", "-o", "json", *there).json["conditions"], list(health(daemon)[1].values()))
                expect_in("limit_reached http.max_connections warning", " ".join(cli.run("stats", *there).out.split()))
            numbers = itertools.count()
            until(lambda: post(daemon.gateway, str(next(numbers))).status != 200, "it is full")
            begins(daemon, "limit_reached", "store.max_keys", "new keys are refused")
            ends(daemon, "limit_reached", "http.max_connections")
            until(lambda: post(daemon.gateway, "later").status == 200, "keys have expired")
            ends(daemon, "limit_reached", "store.max_keys")
            ends(small, "descriptors_short", "gateway")
