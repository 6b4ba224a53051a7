"""Conditions (E13) of a store that is away or full, and of limits: each begins and ends for real."""

import contextlib
import itertools
import socket
import subprocess

from conditions import begins, ends, health
from daemon import get, post, serve, upstream
from harness import PROGRAM, Skip, expect, until
from test_outage import redis

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
            begins(daemon, "disk_full", reason="no room", severity="critical", status=503)
            expect(get(daemon.admin, "/readyz").status, 200)
            expect(post(daemon.gateway, "before").decision, "replay")
            filler.unlink()
            until(lambda: post(daemon.gateway, "after").status == 200, "there is room again")
            ends(daemon, "disk_full")


def test_limits(cli):
    """Of the store, of connections; and too few descriptors for them."""
    with upstream() as behind:
        text = "store: {max_keys: 3, cleanup_interval: 100ms}\nhttp: {max_connections: 20}\ndefaults: {ttl: 3s}\nloops: 1\n"
        with serve(cli, behind.url, config=text) as daemon, contextlib.ExitStack() as stack:
            for number in range(20):
                stack.enter_context(socket.create_connection(daemon.gateway))
            begins(daemon, "limit_reached", "http.max_connections", "20 of at most 20")
            # The other door of the same setting, which is not full, does not end it.
            assert "[-]limits failed" in get(daemon.admin, "/healthz?verbose").body.decode()
            stack.close()
            numbers = itertools.count()
            until(lambda: post(daemon.gateway, str(next(numbers))).status != 200, "it is full")
            begins(daemon, "limit_reached", "store.max_keys", "new keys are refused")
            ends(daemon, "limit_reached", "http.max_connections")
            until(lambda: post(daemon.gateway, "later").status == 200, "keys have expired")
            ends(daemon, "limit_reached", "store.max_keys")


def test_too_few_descriptors(cli):
    limited = ("sh", "-c", 'ulimit -n 160; exec "$0" "$@"', str(PROGRAM))
    with serve(cli, NOWHERE, config="loops: 1\n", command=limited) as daemon, contextlib.ExitStack() as stack:
        for number in range(80):
            stack.enter_context(socket.create_connection(daemon.gateway))
        begins(daemon, "descriptors_short", "gateway", "raise LimitNOFILE")
        stack.close()
        ends(daemon, "descriptors_short", "gateway")


def test_a_store_that_is_away(cli):
    """First slow, then away; with a journal, work goes on."""
    with redis(cli) as server, upstream() as behind:
        text = f"store: {{timeout: 1s, journal: 'sqlite:{cli.folder}/journal.db'}}\ndefaults: {{on_store_failure: continue}}\n"
        with serve(cli, behind.url, store=server.url, config=text) as daemon:
            expect(post(daemon.gateway, "before").status, 200)
            server.freeze()
            begins(daemon, "store_slow", reason="half of store.timeout", status=503)
            begins(daemon, "store_down", severity="critical", status=503)
            begins(daemon, "journal_in_use", status=503)
            expect(get(daemon.admin, "/readyz").status, 200)
            server.thaw()
            for name in ("store_down", "store_slow", "journal_in_use"):
                ends(daemon, name)
            expect(health(daemon)[0], 200)
