"""The daemon as a service: what its manager is told and hands over, the unit, TERM under load."""

import contextlib
import http.client
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import socket
import subprocess
import threading

from activation import Activated, listening
from daemon import (
    EVENT,
    PROGRAM,
    Reply,
    address,
    demo,
    expect_marked,
    log_line,
    metrics,
    post,
    post_batch,
    raw,
    request,
    serve,
    structured,
    upstream,
)
from harness import ROOT, TIMEOUT_SECONDS, Skip, expect, expect_in, until

UNIT = pathlib.Path(os.environ.get("HAPAX_SERVICE", ROOT / "build/packaging/hapax.service"))
SOCKET = ROOT / "packaging/systemd/hapax.socket"


class Manager:
    """The socket that $NOTIFY_SOCKET names."""

    def __init__(self, name):
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind("\0" + name[1:] if name.startswith("@") else name)
        self.socket.settimeout(TIMEOUT_SECONDS)

    def next(self):
        """The next message that is not a sign of life."""
        while (text := self.socket.recv(4096).decode()) == "WATCHDOG=1":
            pass
        return text

    def all_until(self, word):
        found = []
        while word not in (text := self.socket.recv(4096).decode()):
            found.append(text)
        return found

    def env(self, cli, **more):
        return cli.env(HAPAX_STORE=None, NOTIFY_SOCKET=self.name, **more)


@contextlib.contextmanager
def manager(name):
    service = Manager(name)
    try:
        yield service
    finally:
        service.socket.close()


def test_what_the_manager_is_told(cli):
    """READY when the doors listen, RELOADING and READY, STOPPING; by a path and by an abstract name."""
    for name in (str(cli.folder / "notify"), f"@hapax-test-{os.getpid()}-{cli.folder.name}"):
        with manager(name) as service, upstream() as behind:
            config = f'upstream: {{url: "{behind.url}"}}\n'
            with serve(cli, None, config=config, env=service.env(cli)) as daemon:
                expect(service.next(), "READY=1\nSTATUS=serving")
                expect(post(daemon.gateway, "1").status, 200)
                daemon.process.send_signal(signal.SIGHUP)
                assert re.fullmatch(r"RELOADING=1\nMONOTONIC_USEC=\d+", service.next())
                expect(service.next(), "READY=1\nSTATUS=serving")
                daemon.config.write_text("upstream: {yurl: x}\n", encoding="utf-8")
                daemon.process.send_signal(signal.SIGHUP)
                expect_in("RELOADING=1", service.next())
                expect_in("rejected", service.next())
                expect(post(daemon.gateway, "2").status, 200, "by the old configuration")
                daemon.end()
                expect(service.next(), "STOPPING=1\nSTATUS=draining")


def test_signs_of_life(cli):
    """At half of the time; those that are for another process are not given."""
    with manager(str(cli.folder / "notify")) as service, demo(cli) as behind:
        with serve(cli, behind.url, env=service.env(cli, WATCHDOG_USEC="20000")) as daemon:
            expect_in("READY=1", service.socket.recv(4096).decode())
            expect([service.socket.recv(4096) for _ in range(3)], [b"WATCHDOG=1"] * 3)
            daemon.end()
            service.all_until("STOPPING=1")
    with manager(str(cli.folder / "other")) as service, demo(cli) as behind:
        env = service.env(cli, WATCHDOG_USEC="2000", WATCHDOG_PID=str(os.getpid()))
        with serve(cli, behind.url, env=env) as daemon:
            expect_in("READY=1", service.socket.recv(4096).decode())
            for number in range(20):
                post(daemon.gateway, str(number))
            daemon.end()
            expect(service.all_until("STOPPING=1"), [])


def test_a_manager_that_is_not_there(cli):
    with demo(cli) as behind, serve(cli, behind.url, env=cli.env(HAPAX_STORE=None, NOTIFY_SOCKET="/nonexistent/x")) as daemon:
        expect(post(daemon.gateway, "1").status, 200)


def test_sockets_that_are_handed_over(cli):
    """By name, though the doors are off; who comes between two daemons waits, and is served by the second."""
    path = cli.folder / "admin.sock"
    sockets = [("gateway", listening()), ("admin", listening(socket.AF_UNIX, str(path))), ("resp", listening())]
    to = sockets[0][1].getsockname()
    with demo(cli) as service:
        daemon = Activated(cli, sockets, service.url, "--loops", "2")
        try:
            expect(address(daemon.ready["gateway"]), to)
            expect(daemon.ready["admin"], f"unix:{path}")
            for number in range(20):
                expect(post(to, str(number)).status, 200)
            with socket.socket(socket.AF_UNIX) as connection:
                connection.connect(str(path))
                connection.sendall(b"GET /livez HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
                expect_in(b"HTTP/1.1 200", connection.recv(65536))
            expect(raw(sockets[2][1].getsockname(), b"PING\r\n"), b"+PONG\r\n")
            daemon.end()
            assert path.exists()
            waiting = http.client.HTTPConnection(*to, timeout=TIMEOUT_SECONDS)
            waiting.request("POST", "/", body=b"{}", headers={**EVENT, "ce-id": "between"})
            daemon = Activated(cli, sockets, service.url)
            expect(waiting.getresponse().status, 200)
            daemon.end()
        finally:
            daemon.kill()
            for _, door in sockets:
                door.close()


def test_a_socket_that_no_door_takes(cli):
    for name, words in (("nowhere", "'nowhere' is not a listener"), ("", "LISTEN_FDNAMES")):
        with contextlib.closing(listening()) as door, demo(cli) as service:
            try:
                Activated(cli, [(name, door)], service.url)
                raise AssertionError(f"it started with '{name}'")
            except AssertionError as error:
                expect_in(words, str(error))


def test_the_unit_is_hardened(cli):
    """Exposure at most 1.4, as systemd-analyze counts it; and no line of it is wrong."""
    if shutil.which("systemd-analyze") is None:
        raise Skip("systemd-analyze is not installed")
    if not UNIT.exists():
        raise Skip(f"{UNIT} was not built")
    unit = cli.folder / "hapax.service"
    unit.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={PROGRAM}", UNIT.read_text(encoding="utf-8")), encoding="utf-8")
    shutil.copy(SOCKET, cli.folder / "hapax.socket")
    env = cli.env(SYSTEMD_LOG_LEVEL="warning")
    version = subprocess.run(["systemd-analyze", "--version"], capture_output=True, env=env, check=False)
    if version.returncode != 0:
        raise Skip("systemd-analyze does not run here")
    judged = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=14", "--no-pager", str(unit)],
        capture_output=True, env=env, check=False,
    )
    expect_in(b"Overall exposure level for hapax.service", judged.stdout, f"what it says: {judged.stderr!r}")
    expect(judged.returncode, 0, judged.stdout.decode().splitlines()[-1])
    units = [str(unit), str(cli.folder / "hapax.socket")]
    checked = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", "--generators=no", *units], capture_output=True, env=env, check=False
    )
    wrong = [line for line in checked.stderr.decode().splitlines() if "hapax." in line]
    expect(wrong, [], "what systemd-analyze verify says of our units")


class Keeper:
    """Posts one event after the other on a connection that it keeps, until it is not let in any more.

    An event without an answer is sent again. The answer to that tells whether it had run: then the answer was lost.
    """

    def __init__(self, to, name):
        self.to, self.name = to, name
        self.answered, self.lost, self.broken = 0, 0, []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            connection = http.client.HTTPConnection(*self.to, timeout=TIMEOUT_SECONDS)
            try:
                connection.connect()
            except OSError:
                return
            with contextlib.closing(connection):
                while self.call(connection):
                    pass

    def call(self, connection):
        """False: the connection is over."""
        try:
            reply = request(None, "POST", "/", {**EVENT, "ce-id": f"{self.name}-{self.answered}"}, b"{}", connection)
        except (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError):
            return False
        except (http.client.HTTPException, OSError) as error:
            self.broken.append(repr(error))
            return False
        self.answered += 1
        self.lost += reply.decision == "replay"
        if reply.status != 200:
            self.broken.append((reply.status, reply.body))
        return reply.headers.get("connection") != "close"


def end_under_load(cli, config):
    with demo(cli) as service, serve(cli, service.url, config=config) as daemon:
        keepers = [Keeper(daemon.gateway, f"k{number}") for number in range(8)]
        until(lambda: all(keeper.answered > 2 for keeper in keepers), "all of them are at it")
        daemon.end()
        for keeper in keepers:
            keeper.thread.join()
        expect([(keeper.broken, keeper.lost) for keeper in keepers], [([], 0)] * len(keepers))
        expect(service.count(), {name: sum(keeper.answered for keeper in keepers) for name in ("received", "executed", "keys")})


def test_the_end_under_load(cli):
    """TERM while clients with kept connections are busy: whatever ran was answered."""
    end_under_load(cli, "drain:\n  delay: 0s\n")


def test_signals_that_end_nothing(cli):
    """USR1 is sent to reopen logs, USR2 logs the state: under load no client notices either."""
    with demo(cli) as service, serve(cli, service.url, config="drain:\n  delay: 0s\n") as daemon:
        keepers = [Keeper(daemon.gateway, f"k{number}") for number in range(8)]
        until(lambda: all(keeper.answered > 2 for keeper in keepers), "all of them are at it")
        for _ in range(10):
            daemon.process.send_signal(signal.SIGUSR1)
            daemon.wait_for(lambda line: "nothing to reopen" in line)
            daemon.process.send_signal(signal.SIGUSR2)
            state = daemon.wait_for(lambda line: log_line(line).get("msg") == "state" and log_line(line))
            expect(state["ready"], True)
            assert state["connections"] >= len(keepers), state
            answered = [keeper.answered for keeper in keepers]
            until(lambda: all(keeper.answered > before for keeper, before in zip(keepers, answered)), "they go on")
        expect(request(daemon.admin, "GET", "/readyz").status, 200)
        daemon.end()
        for keeper in keepers:
            keeper.thread.join()
        expect([(keeper.broken, keeper.lost) for keeper in keepers], [([], 0)] * len(keepers))


def test_the_state_names_what_is_not_well(cli):
    with demo(cli) as service, serve(cli, service.url, config="drain:\n  delay: 1h\n") as daemon:
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for(lambda line: log_line(line).get("msg") == "draining")
        daemon.process.send_signal(signal.SIGUSR2)
        expect(daemon.wait_for(lambda line: log_line(line).get("msg") == "state" and log_line(line))["ready"], False)
        expect(daemon.wait_for(lambda line: log_line(line).get("msg") == "component degraded" and log_line(line))["part"], "drain")


def says_close(to, number):
    connection = http.client.HTTPConnection(*to, timeout=TIMEOUT_SECONDS)
    with contextlib.closing(connection):
        reply = request(None, "POST", "/", {**EVENT, "ce-id": f"close-{number}"}, b"{}", connection)
        expect(reply.status, 200)
        return reply.headers.get("connection") == "close"


def test_kept_connections_are_told_to_leave(cli):
    """During drain.delay everybody is let in and served, and each reply is the last of its connection."""
    end_under_load(cli, "drain:\n  delay: 200ms\n")
    with demo(cli) as service, serve(cli, service.url, "--proxy", "127.0.0.1:0", config="drain:\n  delay: 1h\n") as daemon:
        assert not says_close(daemon.gateway, 0) and not says_close(daemon.proxy, 0)
        daemon.process.send_signal(signal.SIGTERM)
        numbers = itertools.count(1)
        # Each loop hears of it by itself.
        for to in (daemon.gateway, daemon.proxy):
            until(lambda to=to: all(says_close(to, next(numbers)) for _ in range(8)), "replies say so")
        expect(request(daemon.admin, "GET", "/readyz").status, 503)
        daemon.end()


def idle(to, count):
    return [socket.create_connection(to, timeout=TIMEOUT_SECONDS) for _ in range(count)]


def open_connections(daemon, door):
    return metrics(daemon)[f'hapax_connections{{door="{door}"}}']


def test_descriptors_are_left_for_what_is_done(cli):
    """Idle clients have the listeners' part of them, and no more; events continue, one of them large."""
    limited = ("sh", "-c", 'ulimit -S -n 100; ulimit -H -n 256; exec "$0" "$@"', str(PROGRAM))
    config = "loops: 1\nhttp:\n  idle_timeout: 1h\n  head_timeout: 1h\n"
    with upstream() as service, serve(cli, service.url, config=config, command=limited, store=f"file:{cli.folder}/store") as daemon:
        expect(resource.prlimit(daemon.process.pid, resource.RLIMIT_NOFILE), (256, 256), "soft and hard limit")
        said = daemon.wait_for(lambda line: "too few file descriptors" in line and log_line(line))
        expect((said["descriptors"], said["gateway_connections"]), (256, 112))
        kept = [http.client.HTTPConnection(*daemon.gateway, timeout=TIMEOUT_SECONDS) for _ in range(8)]
        for number, connection in enumerate(kept):
            expect(request(None, "POST", "/", {**EVENT, "ce-id": f"first-{number}"}, b"{}", connection).status, 200)
        with contextlib.ExitStack() as held:
            for connection in idle(daemon.gateway, 300):
                held.enter_context(connection)
            until(lambda: open_connections(daemon, "gateway") == 112, "the gateway is full")
            expect(request(daemon.admin, "GET", "/readyz").status, 200)
            for connection in idle(daemon.admin, 300):
                held.enter_context(connection)
            # All at a time, each with a connection to the service and a file.
            events = [
                threading.Thread(target=request, args=(None, "POST", "/hold", {**EVENT, "ce-id": f"{number}"}, b"1" * 300000, connection))
                for number, connection in enumerate(kept)
            ]
            for thread in events:
                thread.start()
            for _ in range(2 * len(kept)):
                assert service.arrived.acquire(timeout=TIMEOUT_SECONDS), "an event was not forwarded"
            service.release.set()
            for thread in events:
                thread.join()
        # And there is room again.
        until(lambda: open_connections(daemon, "gateway") == len(kept), "they have gone")
        expect(post(daemon.gateway, "last").status, 200)
        for connection in kept:
            connection.close()


def code_count(daemon, door, code):
    return metrics(daemon).get(f'hapax_http_requests_total{{door="{door}",code="{code}"}}', 0)


def refused(daemon, reason):
    return metrics(daemon)[f'hapax_refused_total{{reason="{reason}"}}']


def test_who_is_refused_at_the_door_is_counted(cli):
    """What never becomes an event: by door and status, and by the limit, if it was one."""
    config = "http:\n  head_timeout: 200ms\n  body_timeout: 200ms\n  max_body: 64KiB\n  max_head: 1KiB\n  max_line: 512\n"
    with demo(cli) as service, serve(cli, service.url, config=config) as daemon:
        head = b"POST / HTTP/1.1\r\nHost: x\r\n"
        cases = [
            (400, None, b"nonsense\r\n\r\n"),
            (413, None, head + b"Content-Length: 70000\r\n\r\n"),
            (414, None, b"POST /" + b"x" * 600 + b" HTTP/1.1\r\n\r\n"),
            (431, None, head + b"X: " + b"x" * 1100 + b"\r\n\r\n"),
            (408, "head_timeout", head),
            (408, "body_timeout", head + b"Content-Length: 5\r\n\r\nhel"),
        ]
        for code, reason, text in cases:
            for door, to in (("gateway", daemon.gateway), ("admin", daemon.admin)):
                if door == "admin" and code != 400:
                    continue
                before = code_count(daemon, door, code), refused(daemon, reason) if reason else 0
                expect_in(b"HTTP/1.1 %d " % code, raw(to, text, shut=False), f"{code} {reason}")
                expect(code_count(daemon, door, code), before[0] + 1, f"{door} {code} {reason}")
                if reason:
                    expect(refused(daemon, reason), before[1] + 1, reason)
        expect(service.count()["received"], 0)


def test_the_limit_of_requests_is_counted(cli):
    with upstream() as service, serve(cli, service.url, config="loops: 1\nhttp:\n  max_requests: 1\n") as daemon:
        thread = threading.Thread(target=lambda: post(daemon.gateway, "1", path="/hold"))
        thread.start()
        assert service.arrived.acquire(timeout=TIMEOUT_SECONDS), "the first is not taken"
        expect(post(daemon.gateway, "2").status, 503)
        expect((refused(daemon, "requests"), refused(daemon, "memory"), code_count(daemon, "gateway", 503)), (1, 0, 1))
        service.release.set()
        thread.join()


def test_the_limit_of_memory_is_counted(cli):
    """memory.listeners: 503, and the reason is there to see."""
    config = "loops: 1\nmemory:\n  listeners: 1MiB\nhttp:\n  max_body_memory: 1MiB\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        thread = threading.Thread(target=lambda: post(daemon.gateway, "1", b"x" * 500000, "/hold", Content_Type="text/plain"))
        thread.start()
        assert service.arrived.acquire(timeout=TIMEOUT_SECONDS), "the first is not taken"
        reply = post(daemon.gateway, "2", b"x" * 500000, Content_Type="text/plain")
        expect((reply.status, reply.headers["retry-after"]), (503, "1"))
        expect((refused(daemon, "memory"), code_count(daemon, "gateway", 503)), (1, 1))
        service.release.set()
        thread.join()


def test_the_limit_of_memory_holds_for_batches(cli):
    """One from a file is read as a whole, and held until its last event is done."""
    config = "loops: 1\nmemory:\n  listeners: 2MiB\nhttp:\n  max_body_memory: 16KiB\n  body_timeout: 1h\n"
    with upstream() as service, serve(cli, service.url + "/hold", config=config) as daemon:
        first, second = ([structured(f"{name}-{number}", "x" * 200000) for number in range(8)] for name in ("first", "second"))
        body = json.dumps(second).encode()
        late = http.client.HTTPConnection(*daemon.gateway, timeout=TIMEOUT_SECONDS)
        late.putrequest("POST", "/")
        late.putheader("Content-Type", "application/cloudevents-batch+json")
        late.putheader("Content-Length", str(len(body)))
        late.endheaders(body[:-1])
        until(lambda: open_connections(daemon, "gateway") == 1, "the second has begun")
        replies = []
        thread = threading.Thread(target=lambda: replies.append(post_batch(daemon.gateway, first)))
        thread.start()
        assert service.arrived.acquire(timeout=TIMEOUT_SECONDS), "the first is not taken"
        # Who was let in before is not read, who comes is not let in.
        late.send(body[-1:])
        reply = Reply(late.getresponse()).is_problem(503, "is in use")
        expect(reply.headers["retry-after"], "1")
        post(daemon.gateway, "3").is_problem(503, "is in use")
        expect((refused(daemon, "memory"), code_count(daemon, "gateway", 503)), (2, 2))
        expect_marked(daemon, "first-0")
        service.release.set()
        thread.join()
        expect(replies[0].status, 200)
        # What was held is given back, again and again.
        for _ in range(3):
            expect(post_batch(daemon.gateway, second).status, 200)
        late.close()
