"""One memory budget for all listeners: a daemon in 128 MiB outlives clients that make it hold as much as they can."""

import contextlib
import json
import os
import pathlib
import socket
import threading

from daemon import EVENT, get, metrics, post, post_batch, request, serve, structured, upstream
from harness import PROGRAM, TIMEOUT_SECONDS, expect, is_proof, is_sanitized, until
from redis_wire import OFF, Wire, door, pack

MIB = 1024 * 1024
LIMIT = 128 * MIB
VALUE = 256 * 1024 - 100


def enough(full, usual):
    """So many clients fill the budget, which does not shrink with the scale of a test."""
    return full if is_proof() else usual


def make_group():
    """A cgroup within ours, v1 or v2, that has the limit; None where none can be made."""
    for line in pathlib.Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines():
        _, controllers, own = line.split(":", 2)
        if controllers and "memory" not in controllers.split(","):
            continue
        folder, limit = ("/sys/fs/cgroup/memory", "memory.limit_in_bytes") if controllers else ("/sys/fs/cgroup", "memory.max")
        path = pathlib.Path(folder + own) / f"hapax-test-{os.getpid()}"
        with contextlib.suppress(OSError):
            path.mkdir()
            try:
                (path / limit).write_text(str(LIMIT), encoding="ascii")
                return path
            except OSError:
                path.rmdir()
    return None


@contextlib.contextmanager
def group():
    """The command that runs a program in such a group, or None. A sanitizer keeps freed memory, so that it needs more."""
    path = None if is_sanitized() else make_group()
    try:
        yield path and ("/bin/sh", "-c", f'echo $$ >{path}/cgroup.procs && exec "$@"', "sh", str(PROGRAM))
    finally:
        if path is not None:
            path.rmdir()


@contextlib.contextmanager
def confined(cli, *options, to=None, config=""):
    """A daemon in 128 MiB, which it knows from its cgroup, or else is told."""
    with group() as command:
        config = "loops: 2\n" + ("" if command else "memory:\n  limit: 128MiB\n") + config
        with serve(cli, to, *options, config=config, **({"command": command} if command else {})) as daemon:
            line = daemon.wait_for(lambda line: line if "memory limits" in line else None)
            for part in (f'"limit":{LIMIT}', f'"listeners":{LIMIT // 8}', f'"store":{LIMIT // 2}'):
                assert part in line, f"{part} is not in {line}"
            yield daemon
            expect(daemon.process.poll(), None, "the daemon lives")


def peak(daemon):
    """The most memory that it has had resident, in bytes."""
    for line in pathlib.Path(f"/proc/{daemon.process.pid}/status").read_text(encoding="ascii").splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("the kernel does not tell")


def held(daemon):
    return metrics(daemon)["hapax_listener_memory_bytes"]


def refused(daemon, reason="memory"):
    return metrics(daemon)[f'hapax_refused_total{{reason="{reason}"}}']


def is_well(daemon):
    """Below the limit, and INFO says so."""
    expect(get(daemon.admin, "/livez").status, 200)
    figures = metrics(daemon)
    expect(figures["hapax_listener_memory_max_bytes"], LIMIT // 8)
    # What was begun may go above: by the replies to it, not by more.
    assert figures["hapax_listener_memory_bytes"] <= LIMIT // 4, figures["hapax_listener_memory_bytes"]
    assert is_sanitized() or peak(daemon) < LIMIT, f"{peak(daemon) // MIB} MiB resident"


def has_recovered(daemon):
    until(lambda: held(daemon) < MIB, "the memory is given back")


def pushed(to, data):
    """A connection on which as much was sent as the daemon takes without being read from."""
    client = socket.create_connection(to, timeout=TIMEOUT_SECONDS)
    client.settimeout(0.1)
    with contextlib.suppress(OSError):
        client.sendall(data)
    return client


def close(clients):
    for client in clients:
        client.close()


def test_transactions_that_are_not_executed(cli):
    """40 connections in MULTI took 649 MB."""
    command = pack("SET", "k", b"x" * 16000)
    with confined(cli, *OFF) as daemon:
        clients = [pushed(door(daemon), pack("MULTI") + command * enough(1000, 300)) for _ in range(40)]
        until(lambda: refused(daemon) > 0, "some are refused")
        is_well(daemon)
        close(clients)
        has_recovered(daemon)
        with Wire(door(daemon)) as wire:
            expect(wire.ask("SET", "after", "1"), b"+OK\r\n")


def test_a_transaction_has_a_share(cli):
    """One client cannot queue what all of them may have; what does not fit aborts the transaction, as in Redis."""
    with confined(cli, *OFF) as daemon, Wire(door(daemon)) as wire, Wire(door(daemon)) as other:
        expect(wire.ask("MULTI"), b"+OK\r\n")
        replies = {wire.ask("SET", "k", b"x" * 100000) for _ in range(30)}
        expect(replies, {b"+QUEUED\r\n", b"-OOM not enough memory for the transaction\r\n"})
        expect(other.ask("SET", "other", "1"), b"+OK\r\n")
        expect(wire.ask("EXEC")[:10], b"-EXECABORT")
        expect(wire.ask("GET", "k"), b"$-1\r\n")
        expect(wire.ask("SET", "k", b"x" * 100000), b"+OK\r\n")


def test_replies_that_nobody_reads(cli):
    """20 unread MGETs took 1.25 GB."""
    with confined(cli, *OFF) as daemon:
        with Wire(door(daemon)) as wire:
            expect(wire.ask("SET", "big", b"x" * VALUE), b"+OK\r\n")
            # More than one client may have is refused before it is built, and the connection goes on.
            expect(wire.ask("MGET", *["big"] * 250)[:5], b"-OOM ")
            expect(len(wire.ask("GET", "big")), VALUE + len(f"${VALUE}\r\n\r\n"))
        clients = [pushed(door(daemon), pack("MGET", *["big"] * 250) * 4) for _ in range(20)]
        clients += [pushed(door(daemon), pack("MGET", *["big"] * 6) * 20) for _ in range(40)]
        clients += [pushed(door(daemon), pack("GET", "big") * 100) for _ in range(40)]
        until(lambda: refused(daemon) > 0, "some are refused")
        is_well(daemon)
        close(clients)
        has_recovered(daemon)
        with Wire(door(daemon)) as wire:
            expect(len(wire.ask("GET", "big")), VALUE + len(f"${VALUE}\r\n\r\n"))


def test_an_mget_of_many_short_values(cli):
    """The bound is of bytes, not of keys."""
    with confined(cli, *OFF) as daemon, Wire(door(daemon)) as wire:
        expect(wire.ask("SET", "k", "v"), b"+OK\r\n")
        reply = wire.ask("MGET", *["k"] * 5000)
        expect(reply, b"*5000\r\n" + b"$1\r\nv\r\n" * 5000)
        is_well(daemon)


def test_commands_that_come_in_part(cli):
    """A part of a large command is memory, too. A refused client learns why: the rest has nowhere to go."""
    part = b"*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$200000\r\n" + b"x" * 150000
    with confined(cli, *OFF) as daemon:
        clients = [pushed(door(daemon), part) for _ in range(enough(400, 150))]
        until(lambda: refused(daemon) > 0, "some are refused")
        is_well(daemon)
        replies = []
        for client in clients:
            with contextlib.suppress(OSError):
                replies.append(client.recv(200))
        assert any(reply.startswith(b"-OOM ") for reply in replies), replies
        close(clients)
        has_recovered(daemon)


def test_when_it_is_full_commands_are_refused_and_probes_are_not(cli):
    """-OOM, 503 and Retry-After; PING and the admin listener answer."""
    config = "memory:\n  listeners: 1MiB\n"
    with upstream() as service, serve(cli, service.url, "--resp", "127.0.0.1:0", config="loops: 1\n" + config) as daemon:
        with Wire(door(daemon)) as hoarder, Wire(door(daemon)) as wire:
            hoarders = [Wire(door(daemon)) for _ in range(8)]
            for hoarder in hoarders:
                expect(hoarder.ask("MULTI"), b"+OK\r\n")
                for _ in range(12):
                    hoarder.ask("SET", "k", b"x" * 10000)
            oom = wire.ask("SET", "k", "v")
            expect(oom[:5], b"-OOM ", f"reply {oom!r}")
            expect(wire.ask("GET", "k")[:5], b"-OOM ")
            expect(wire.ask("PING"), b"+PONG\r\n")
            reply = post(daemon.gateway, "1")
            expect((reply.status, reply.headers["retry-after"]), (503, "1"))
            for path in ("/livez", "/readyz", "/healthz", "/metrics", "/api/v1/stats"):
                expect(get(daemon.admin, path).status, 200, path)
            # Not one of those who hoard runs what it has; that ends it.
            aborted = hoarders[0].ask("EXEC")
            assert aborted.startswith(b"-EXECABORT "), aborted
            for hoarder in hoarders:
                hoarder.__exit__()
            has_recovered(daemon)
            expect(wire.ask("SET", "k", "v"), b"+OK\r\n")
            expect(post(daemon.gateway, "2").status, 200)


def unfinished(to, size, sent):
    head = f"POST / HTTP/1.1\r\nHost: a\r\nContent-Type: text/plain\r\nContent-Length: {size}\r\n"
    head += "ce-specversion: 1.0\r\nce-id: 1\r\nce-type: t\r\nce-source: /s\r\n\r\n"
    return pushed(to, head.encode() + b"x" * sent)


def test_bodies_in_memory(cli):
    """Many that stay below max_body_memory."""
    with upstream() as service, confined(cli, to=service.url) as daemon:
        clients = [unfinished(daemon.gateway, 250000, 240000) for _ in range(enough(1000, 150))]
        until(lambda: refused(daemon) > 0, "some are refused")
        is_well(daemon)
        close(clients)
        has_recovered(daemon)
        expect(post(daemon.gateway, "2").status, 200)


def test_bodies_in_files(cli):
    """http.max_temp_bytes: 128 GiB were possible."""
    config = "http:\n  max_temp_bytes: 4MiB\n"
    with upstream() as service, confined(cli, to=service.url, config=config) as daemon:
        clients = [unfinished(daemon.gateway, 2000000, 1000000) for _ in range(12)]
        until(lambda: refused(daemon, "file") > 0, "some are refused")
        assert metrics(daemon)["hapax_temporary_file_bytes"] <= 4 * MIB
        replies = []
        for client in clients:
            with contextlib.suppress(OSError):
                replies.append(client.recv(2000))
        told = [reply for reply in replies if reply.startswith(b"HTTP/1.1 503 ")]
        assert told and all(b"\r\nRetry-After: 1\r\n" in reply for reply in told), replies
        is_well(daemon)
        close(clients)
        until(lambda: metrics(daemon)["hapax_temporary_file_bytes"] == 0, "the files are gone")
        expect(post(daemon.gateway, "2", b"x" * 2000000, Content_Type="text/plain").status, 200)
        until(lambda: metrics(daemon)["hapax_temporary_file_bytes"] == 0, "and that of a request that was served")


def test_operations_of_the_api(cli):
    """Bodies at the admin listener count as those of all others."""
    with confined(cli, *OFF) as daemon:
        head = b"POST /api/v1/claim HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 250000\r\n\r\n"
        clients = [pushed(daemon.admin, head + b" " * 240000) for _ in range(enough(500, 100))]
        until(lambda: refused(daemon) > 0, "some are refused")
        is_well(daemon)
        close(clients)
        has_recovered(daemon)
        expect(request(daemon.admin, "GET", "/api/v1/stats").status, 200)


def test_replies_of_the_api_that_nobody_reads(cli):
    """40 unread listings took 271 MB, 400 unread keys 166 MB: each held its whole reply beside the budget."""
    listing = b"GET /api/v1/keys?whole=true&limit=1000 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    key = b"GET /api/v1/keys/default/default/big1 HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with confined(cli, *OFF) as daemon:
        with Wire(door(daemon)) as wire:
            for i in range(40):
                expect(wire.ask("SET", f"big{i}", b"x" * VALUE), b"+OK\r\n")
        clients = [pushed(daemon.admin, listing) for _ in range(40)]
        clients += [pushed(daemon.admin, key) for _ in range(enough(400, 100))]
        # They stand in a queue: when a listing is answered, those before it were.
        expect(request(daemon.admin, "GET", "/api/v1/keys?limit=1").status in (200, 503), True)
        is_well(daemon)
        close(clients)
        has_recovered(daemon)
        expect(request(daemon.admin, "GET", "/api/v1/keys/default/default/big1").status, 200)


def dense(size):
    """JSON that takes 26 times its size to be read."""
    return b"[" + b"1," * (size // 2 - 2) + b"1]"


def usual(size):
    """Such as an export has it."""
    row = {"id": 12345678, "name": "Ada Lovelace", "paid": True, "total": 129.95, "items": [1, 2, 3]}
    return json.dumps([row] * (size // len(json.dumps(row)))).encode()


def posted(daemon, bodies):
    """The replies to bodies that are sent at once, each from an address of its own."""
    replies = [None] * len(bodies)

    def post_one(number):
        headers = {**EVENT, "ce-id": f"large-{number}", "X-Forwarded-For": f"203.0.113.{number}"}
        replies[number] = request(daemon.gateway, "POST", "/", headers, bodies[number])

    threads = [threading.Thread(target=post_one, args=(number,)) for number in range(len(bodies))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return replies


def test_large_bodies_at_once(cli):
    """Each reader took as much as all listeners may have, beside what they had. Those that fit alone are read in turn."""
    hostile, fair = dense(620_000), usual(900_000)
    with upstream() as service, confined(cli, "--resp", "127.0.0.1:0", to=service.url) as daemon:
        with Wire(door(daemon)) as wire:
            # Most of what the store may have.
            for number in range(enough(140, 100)):
                expect(wire.ask("SET", f"fill-{number}", b"x" * VALUE), b"+OK\r\n")
        before = peak(daemon)
        replies = posted(daemon, [hostile, fair] * enough(20, 4))
        grown = peak(daemon) - before
        assert is_sanitized() or grown <= LIMIT // 8, f"{grown // MIB} MiB more"
        for reply in replies[::2]:
            reply.is_problem(413, "raise memory.listeners")
        expect([reply.status for reply in replies[1::2]], [200] * enough(20, 4))
        is_well(daemon)
        has_recovered(daemon)


def test_large_bodies_that_need_the_same_memory(cli):
    """Each fits alone, two of them never do: no sender is told to retry, and neither is one with a small body."""
    with upstream() as service, confined(cli, to=service.url) as daemon:
        replies = posted(daemon, [usual(900_000)] * enough(40, 6) + [usual(1000)] * 4)
        expect({reply.status for reply in replies}, {200})
        expect(refused(daemon), 0)
        # Structured, and decoded: the data is a text with escapes.
        event = json.dumps(structured("text", "\n" * 600_000, datacontenttype="text/plain")).encode()
        headers = {"Content-Type": "application/cloudevents+json"}
        expect(request(daemon.gateway, "POST", "/", headers, event).status, 200)
        is_well(daemon)
        has_recovered(daemon)


def test_a_large_body_that_never_fits(cli):
    """413, by what is to be changed; and with that it is taken."""
    body, text = dense(620_000), b"x" * 7_000_000
    with upstream() as service, confined(cli, to=service.url) as daemon:
        post(daemon.gateway, "1", body).is_problem(413, "raise memory.listeners")
        post(daemon.gateway, "2", text, Content_Type="text/plain").is_problem(413, "raise memory.listeners")
        headers = {"Content-Type": "application/cloudevents+json"}
        event = json.dumps(structured("3", "\n" * 2_000_000, datacontenttype="text/plain")).encode()
        request(daemon.gateway, "POST", "/", headers, event).is_problem(413, "raise memory.listeners")
        # One event of a batch: the others are done.
        events = [structured("4"), structured("5", json.loads(dense(620_000))), structured("6")]
        post_batch(daemon.gateway, events).is_problem(422)
        expect(len(service.requests), 2)
        has_recovered(daemon)
    with upstream() as service, serve(cli, service.url, config="memory:\n  listeners: 64MiB\n") as daemon:
        expect(post(daemon.gateway, "1", body).status, 200)
        expect(post(daemon.gateway, "2", text, Content_Type="text/plain").status, 200)


def test_a_large_body_when_others_hold_the_memory(cli):
    """What reads it is part of what all listeners have: 503, until they have given it back."""
    with upstream() as service, confined(cli, to=service.url) as daemon:
        clients = []
        while held(daemon) < 11_600_000:
            clients.append(unfinished(daemon.gateway, 250000, 240000))
        reply = post(daemon.gateway, "1", usual(900_000)).is_problem(503, "is in use")
        expect(reply.headers["retry-after"], "1")
        close(clients)
        has_recovered(daemon)
        expect(post(daemon.gateway, "1", usual(900_000)).status, 200)


def test_batches_that_do_not_fit_together(cli):
    """Three quarters are not in use, and there is no room all the same."""
    with upstream() as service, confined(cli, to=service.url + "/hold") as daemon:
        first, second = ([structured(f"{name}-{number}", "x" * 100_000) for number in range(90)] for name in ("first", "second"))
        replies = []
        thread = threading.Thread(target=lambda: replies.append(post_batch(daemon.gateway, first)))
        thread.start()
        assert service.arrived.acquire(timeout=TIMEOUT_SECONDS), "the first is not taken"
        post_batch(daemon.gateway, second).is_problem(503, "is in use")
        is_well(daemon)
        service.release.set()
        thread.join()
        expect(replies[0].status, 200)
        has_recovered(daemon)
        expect(post_batch(daemon.gateway, second).status, 200)


def test_temporary_files_in_memory(cli):
    """A tmpfs counts for the cgroup, and no limit here knows of it: that is said."""
    shared = "/dev/shm"
    mounts = [line.split() for line in pathlib.Path("/proc/mounts").read_text(encoding="utf-8").splitlines()]
    if not any(mount[1:3] == [shared, "tmpfs"] for mount in mounts):
        return
    with upstream() as service, serve(cli, service.url, env=cli.env(HAPAX_STORE=None, TMPDIR=shared)) as daemon:
        line = daemon.wait_for(lambda line: line if "temporary files are in memory" in line else None)
        for part in (f'"folder":"{shared}"', "TMPDIR", "http.max_temp_bytes", '"level":"warn"'):
            assert part in line, f"{part} is not in {line}"
