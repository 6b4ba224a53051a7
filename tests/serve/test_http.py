"""The door itself: connections that are kept, requests sent ahead, slow clients, draining, reloading."""

import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import threading
import time

from daemon import EVENT, Process, Serve, demo, expect_marked, get, log_line, post, post_batch, raw, request, serve, structured, upstream
from harness import PROGRAM, ROOT, TIMEOUT_SECONDS, Skip, expect, expect_in, until


def event(event_id, extra=b"", body=b"x"):
    return (
        b"POST / HTTP/1.1\r\nHost: x\r\nce-specversion: 1.0\r\nce-id: %s\r\nce-source: /shop\r\nce-type: t\r\n"
        b"Content-Type: text/plain\r\n%sContent-Length: %d\r\n\r\n%s" % (event_id, extra, len(body), body)
    )


def test_a_connection_is_kept(cli):
    with demo(cli) as service, serve(cli, service.url) as daemon:
        connection = http.client.HTTPConnection(*daemon.gateway, timeout=TIMEOUT_SECONDS)
        for number in range(10):
            headers = {**EVENT, "ce-id": str(number)}
            expect(request(None, "POST", "/", headers, b"{}", connection).status, 200)
            if number == 0:
                port = connection.sock.getsockname()[1]
            expect(connection.sock.getsockname()[1], port)
        connection.close()


def test_requests_sent_ahead_are_answered_in_order(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        count = 30
        answer = raw(daemon.gateway, b"".join(event(b"%d" % (number // 2)) for number in range(count)))
        bodies = [part.split(b"\r\n\r\n", 1)[1] for part in answer.split(b"HTTP/1.1 ")[1:]]
        expect(bodies, [b"run %d" % (number // 2 + 1) for number in range(count)])


def test_bytes_that_come_one_by_one(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        data = event(b"1", body=b"hello") + event(b"1", body=b"hello")
        with socket.create_connection(daemon.gateway, timeout=TIMEOUT_SECONDS) as connection:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for index in range(len(data)):
                connection.sendall(data[index : index + 1])
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while piece := connection.recv(65536):
                answer += piece
        expect(answer.count(b"HTTP/1.1 200 OK"), 2)
        expect(len(service.requests), 1)


def test_http_1_0_and_connection_close(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        answer = raw(daemon.gateway, event(b"1").replace(b"HTTP/1.1", b"HTTP/1.0"), shut=False)
        expect_in(b"HTTP/1.1 200 OK", answer)
        answer = raw(daemon.gateway, event(b"2", b"Connection: close\r\n"), shut=False)
        expect_in(b"Connection: close", answer)
        expect(len(service.requests), 2)


def test_100_continue(cli):
    with upstream() as service, serve(cli, service.url) as daemon:
        head, body = event(b"1", b"Expect: 100-continue\r\n", b"hello").split(b"\r\n\r\n")
        with socket.create_connection(daemon.gateway, timeout=TIMEOUT_SECONDS) as connection:
            connection.sendall(head + b"\r\n\r\n")
            expect_in(b"HTTP/1.1 100 Continue\r\n\r\n", connection.recv(65536))
            expect(service.requests, [])
            connection.sendall(body)
            expect_in(b"HTTP/1.1 200 OK", connection.recv(65536))
        head = head.replace(b"Content-Length: 5", b"Content-Length: 99999999999")
        answer = raw(daemon.gateway, head + b"\r\n\r\n", shut=False)
        assert answer.startswith(b"HTTP/1.1 413 "), answer


def test_clients_that_are_too_slow(cli):
    config = "http:\n  head_timeout: 100ms\n  body_timeout: 100ms\n  idle_timeout: 100ms\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        expect(raw(daemon.gateway, b"", shut=False), b"", "an idle connection")
        answer = raw(daemon.gateway, b"POST / HTTP/1.1\r\nHost:", shut=False)
        expect_in(b"HTTP/1.1 408 Request Timeout", answer)
        answer = raw(daemon.gateway, event(b"1", body=b"hello")[:-1], shut=False)
        expect_in(b"HTTP/1.1 408 Request Timeout", answer)
        expect_in(b"application/problem+json", answer)
        expect(service.requests, [])
        expect_marked(daemon)


def open_connections(daemon):
    text = get(daemon.admin, "/metrics").body.decode()
    return int(re.search(r'^hapax_connections\{door="gateway"\} (\d+)(?:\.0)?$', text, re.MULTILINE).group(1))


def test_a_client_that_does_not_read(cli):
    """It is dropped; its event is done all the same."""
    with upstream() as service, serve(cli, service.url, config="http:\n  send_timeout: 100ms\n") as daemon:
        with socket.socket() as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.connect(daemon.gateway)
            connection.sendall(event(b"1").replace(b"POST / ", b"POST /size/16000000 "))
            service.arrived.acquire()
            until(lambda: post(daemon.gateway, "1", b"x", ce_type="t", Content_Type="text/plain").decision == "replay", "it is done")
            until(lambda: open_connections(daemon) == 0, "it is dropped")
            expect_in(b'hapax_refused_total{reason="send_timeout"} 1\n', get(daemon.admin, "/metrics").body)
        expect(len(service.requests), 1)


def test_limit_of_a_tenant(cli):
    """429, Retry-After; what was there before goes on. Those of an address: tests/security/test_slots.py."""
    config = "http:\n  max_requests_per_tenant: 1\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        replies = []
        thread = threading.Thread(target=lambda: replies.append(post(daemon.gateway, "1", path="/hold")))
        thread.start()
        service.arrived.acquire()
        reply = post(daemon.gateway, "2").is_problem(429, "tenant")
        expect(reply.headers["retry-after"], "1")
        expect_marked(daemon, "1")
        service.release.set()
        thread.join()
        expect(replies[0].status, 200)
        until(lambda: post(daemon.gateway, "2").status == 200, "there is room again")
        expect(len(service.requests), 2)


def test_a_batch_counts_for_whose_event_it_is_at(cli):
    """Not for the tenant of its first event: another one's limit would be none."""
    config = "http:\n  max_requests_per_tenant: 1\ngateway:\n  routes:\n    - {name: all, path: /, tenant_from: attr.subject}\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        thread = threading.Thread(target=lambda: post(daemon.gateway, "held", path="/hold", ce_subject="a"))
        thread.start()
        service.arrived.acquire()
        batch = [structured(f"{number}", subject=tenant) for number, tenant in enumerate("bac")]
        post_batch(daemon.gateway, batch).is_problem(503)
        expect([json.loads(body)["subject"] for _, _, body in service.requests[1:]], ["b", "c"])
        service.release.set()
        thread.join()
        # Nothing is counted any more when all is done.
        until(lambda: post_batch(daemon.gateway, batch).status == 200, "there is room again")
        for tenant in "abc":
            until(lambda: post(daemon.gateway, "new", ce_subject=tenant).status == 200, "there is room for each")
        expect(len(service.requests), 7)


def test_unix_sockets(cli):
    path = cli.folder / "gateway.sock"
    with demo(cli) as service:
        daemon = Serve(cli, service.url, "--gateway", f"unix:{path}", "--admin", "off", store="memory:")
        expect(os.stat(path).st_mode & 0o777, 0o600)
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(str(path))
            connection.sendall(event(b"1"))
            expect_in(b"HTTP/1.1 200 OK", connection.recv(65536))
        daemon.end()
        assert not path.exists()


def test_drain(cli):
    """TERM: not ready, no new connections, what runs ends with Connection: close, exit 0."""
    with upstream() as service:
        daemon = Serve(cli, service.url, config="drain:\n  delay: 0s\n  timeout: 60s\n")
        replies = []
        idle = http.client.HTTPConnection(*daemon.gateway, timeout=TIMEOUT_SECONDS)
        request(None, "POST", "/", {**EVENT, "ce-id": "idle"}, b"{}", idle)
        service.arrived.acquire()
        thread = threading.Thread(target=lambda: replies.append(post(daemon.gateway, "1", path="/hold")))
        thread.start()
        service.arrived.acquire()
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for(lambda line: "draining" in line)
        until(lambda: refuses(daemon.gateway), "connections are refused")
        expect(get(daemon.admin, "/readyz").status, 503)
        expect(get(daemon.admin, "/livez").status, 200)
        expect(daemon.process.poll(), None)
        expect(idle.sock.recv(1), b"", "the idle connection")
        service.release.set()
        thread.join()
        expect((replies[0].status, replies[0].headers["connection"]), (200, "close"))
        daemon.end(how=None)


def refuses(to):
    try:
        with socket.create_connection(to, timeout=1) as connection:
            connection.sendall(b"OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n")
            return connection.recv(1) == b""
    except OSError:
        return True


class Caller:
    """Posts one event after the other, each on a connection of its own, until it is not let in."""

    def __init__(self, to, name):
        self.to, self.name = to, name
        self.answered = 0
        self.broken = []
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while True:
            try:
                connection = socket.create_connection(self.to, timeout=TIMEOUT_SECONDS)
            except OSError:
                return
            with connection:
                self.call(connection)

    def call(self, connection):
        answer = b""
        try:
            connection.sendall(event(b"%s-%d" % (self.name, self.answered), b"Connection: close\r\n"))
            while piece := connection.recv(65536):
                answer += piece
        except OSError as error:
            self.broken.append(repr(error))
        if answer.startswith(b"HTTP/1.1 200 OK\r\n"):
            self.answered += 1
        else:
            self.broken.append(answer)


def test_drain_resets_nobody(cli):
    """Every connection gets an answer, up to the end."""
    with demo(cli) as service, serve(cli, service.url) as daemon:
        callers = [Caller(daemon.gateway, b"%d" % number) for number in range(8)]
        until(lambda: all(caller.answered > 0 for caller in callers), "all of them are at it")
        daemon.process.send_signal(signal.SIGTERM)
        for caller in callers:
            caller.thread.join()
        expect([caller.broken for caller in callers], [[]] * len(callers))
        expect(service.count()["executed"], sum(caller.answered for caller in callers))


def test_a_second_signal_does_not_wait(cli):
    with upstream() as service:
        daemon = Serve(cli, service.url)
        thread = threading.Thread(target=swallow, args=(daemon.gateway,))
        thread.start()
        service.arrived.acquire()
        daemon.process.send_signal(signal.SIGTERM)
        daemon.wait_for(lambda line: "draining" in line)
        daemon.end(how=signal.SIGINT)
        thread.join()


def swallow(to):
    try:
        post(to, "1", path="/hold")
    except (OSError, http.client.HTTPException):
        pass


def test_reload(cli):
    """HUP: a good configuration is taken, a bad one is not, and says so."""
    with upstream() as one, upstream() as two:
        with serve(cli, None, config=f'upstream: {{url: "{one.url}"}}\n') as daemon:
            post(daemon.gateway, "1")
            daemon.config.write_text(f'upstream: {{url: "{two.url}"}}\n', encoding="utf-8")
            daemon.process.send_signal(signal.SIGHUP)
            daemon.wait_for(lambda line: "configuration reloaded" in line)
            post(daemon.gateway, "2")
            expect(post(daemon.gateway, "1").decision, "replay")
            daemon.config.write_text("upstream: {yurl: x}\n", encoding="utf-8")
            daemon.process.send_signal(signal.SIGHUP)
            line = daemon.wait_for(lambda text: log_line(text) if "configuration rejected" in text else None)
            expect_in("did you mean 'url'", line["error"])
            post(daemon.gateway, "3")
            expect((len(one.requests), len(two.requests)), (1, 2))


def in_progress(daemon):
    text = get(daemon.admin, "/metrics").body.decode()
    return int(re.search(r'^hapax_http_requests_in_progress\{door="gateway"\} (\d+)', text, re.MULTILINE).group(1))


def post_many(daemon, names, path):
    """Threads that post, and what they get."""
    replies = []
    threads = [threading.Thread(target=lambda name=name: replies.append(post(daemon.gateway, name, path=path))) for name in names]
    for thread in threads:
        thread.start()
    return threads, replies


def test_connections_to_an_upstream(cli):
    """Fewer than loops are one for each loop; HUP changes them for an upstream that is known."""
    config = "loops: 2\nupstream:\n  max_connections: 1\n  max_idle: {}\n"
    with upstream() as service, serve(cli, service.url, config=config.format(1)) as daemon:
        threads, replies = post_many(daemon, [str(number) for number in range(8)], "/hold")
        until(lambda: in_progress(daemon) == 8, "all of them are there")
        service.arrived.acquire()
        assert len(service.requests) <= 2, len(service.requests)
        daemon.config.write_text(config.format(0).replace("max_connections: 1", "max_connections: none"), encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(lambda line: "configuration reloaded" in line)
        # Each loop goes by it from its next event on.
        for number in range(1000):
            if len(service.requests) - number >= 8:
                break
            post(daemon.gateway, f"other-{number}")
        expect(len([path for path, _, _ in list(service.requests) if path == "/hold"]), 8)
        service.release.set()
        for thread in threads:
            thread.join()
        expect([reply.status for reply in replies], [200] * 8)


def test_limits_change_with_a_reload(cli):
    with demo(cli) as service, serve(cli, service.url, config="http:\n  max_body: 64KiB\n") as daemon:
        post(daemon.gateway, "1", b"x" * 70000, Content_Type="text/plain").is_problem(413)
        daemon.config.write_text("http:\n  max_body: 128KiB\n", encoding="utf-8")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for(lambda line: "configuration reloaded" in line)
        # A loop takes it up with a connection; the connection itself has what was before.
        until(lambda: post(daemon.gateway, "1", b"x" * 70000, Content_Type="text/plain").status == 200, "it fits")


def test_the_largest_heads(cli):
    """A limit that can be set can be used, up to the upstream."""
    with upstream() as service, serve(cli, service.url + "/base", config="http:\n  max_head: 48KiB\n") as daemon:
        path = "/" + "x" * 8170
        expect(post(daemon.gateway, "1", path=path, X_Long="y" * 40000).decision, "acquired")
        expect((service.requests[0][0], service.requests[0][1]["X-Long"]), ("/base" + path, "y" * 40000))
        post(daemon.gateway, "2", X_Long="y" * 49000).is_problem(431)
        expect(len(service.requests), 1)


def test_the_admin_door(cli):
    with demo(cli) as service, serve(cli, service.url) as daemon:
        for path in ("/livez", "/readyz", "/healthz", "/startupz"):
            expect(get(daemon.admin, path).status, 200, path)
            expect(request(daemon.admin, "HEAD", path).body, b"", path)
        expect_in(b"[+]store ok", get(daemon.admin, "/readyz?verbose").body)
        post(daemon.gateway, "1")
        post(daemon.gateway, "1")
        figures = get(daemon.admin, "/actuator/deduplication").json
        expect(figures, {"requestCount": 2, "hitCount": 1, "missCount": 1, "hitRate": 0.5, "evictionCount": 0})
        text = get(daemon.admin, "/metrics").body.decode()
        expect_in('hapax_decisions_total{tenant="default",group="default",door="gateway",decision="replay"} 1\n', text)
        expect_in('duplicate_events_skipped_total{event_type="order.paid"} 1\n', text)
        get(daemon.admin, "/nowhere").is_problem(404, "/metrics")
        request(daemon.admin, "POST", "/metrics").is_problem(405)


def test_the_default_store(cli):
    """file: under the state directory, for its owner alone; a second daemon is refused."""
    with demo(cli) as service:
        arguments = ["--gateway", "127.0.0.1:0", "--admin", "off", "--upstream", service.url]
        env = {"HAPAX_STORE": None, "XDG_STATE_HOME": str(cli.folder / "state")}
        daemon = Process(["serve", *arguments], cli.env(**env), lambda line: log_line(line).get("msg") == "ready")
        folder = cli.folder / "state/hapax/store"
        expect(os.stat(folder).st_mode & 0o777, 0o700)
        cli.run("serve", *arguments, env=env, code=69).says("in use", str(daemon.process.pid))
        daemon.end()


def test_make_run(cli):
    """tools/run without a terminal: the three commands, tried and compared."""
    if shutil.which("curl") is None:
        raise Skip("curl is not installed")
    done = subprocess.run(
        [str(ROOT / "tools/run")], env=cli.env(HAPAX_PROGRAM=str(PROGRAM)), stdin=subprocess.DEVNULL, capture_output=True,
        timeout=TIMEOUT_SECONDS, check=False,
    )
    expect((done.returncode, done.stderr), (0, b""))
    expect(done.stdout.count(b"   curl "), 3, "commands to try")
    expect_in(b"all three were tried", done.stdout)
    expect(sorted(path.name for path in cli.folder.iterdir()), ["home"], "what it left behind")


def test_the_example_of_a_repeated_webhook(cli):
    """E18, scenario 3: examples/repeated_webhook.sh shows it; here is what it must say."""
    if shutil.which("curl") is None:
        raise Skip("curl is not installed")
    done = subprocess.run(
        [str(ROOT / "examples/repeated_webhook.sh")], env=cli.env(HAPAX_STORE=None), capture_output=True,
        timeout=TIMEOUT_SECONDS, check=False,
    )
    expect((done.returncode, done.stderr), (0, b""))
    lines = [line for line in done.stdout.decode().splitlines() if not line.startswith(("==", "answers"))]
    ran = "the service ran it {} time(s)".format
    expect(lines, ["500 acquired", ran(0), "200 acquired", ran(1), "200 replay", "200 replay", ran(1), ran(2)])


def test_the_example_of_a_retry_storm(cli):
    """E18, scenario 2: examples/retry_storm.sh shows it, by the gateway; tests/kafka/test_consumers.py has it by a broker."""
    if shutil.which("curl") is None:
        raise Skip("curl is not installed")
    done = subprocess.run(
        [str(ROOT / "examples/retry_storm.sh")], env=cli.env(HAPAX_STORE=None), capture_output=True,
        timeout=TIMEOUT_SECONDS, check=False,
    )
    expect((done.returncode, done.stderr), (0, b""))
    lines = [line for line in done.stdout.decode().splitlines() if not line.startswith("==")]
    storm, exported = "five retries: 200 200 200 200 200", "exported {} time(s)".format
    expect(lines[:3], ["500", storm, exported(5)], "the damage without")
    expect(lines[3:], ["500", storm, exported(1), "200", exported(1), "200", exported(2)])


def test_an_example_that_finds_no_program_says_so(cli):
    """Rather than waiting forever for a daemon that never was."""
    path = "/usr/bin:/bin"
    if shutil.which("hapax", path=path):
        raise Skip("hapax is installed")
    for name in ("double_payment", "repeated_webhook", "retry_storm"):
        done = subprocess.run(
            [str(ROOT / f"examples/{name}.sh")], env=cli.env(PATH=path), capture_output=True, timeout=TIMEOUT_SECONDS, check=False
        )
        expect(done.returncode != 0, True, name)
        expect_in(b"not found", done.stderr, name)


def test_time_passes_in_the_date(cli):
    with demo(cli) as service, serve(cli, service.url) as daemon:
        date = time.strptime(post(daemon.gateway, "1").headers["date"], "%a, %d %b %Y %H:%M:%S GMT")
        assert abs(time.mktime(date) - time.mktime(time.gmtime())) < 60


def test_a_target_without_a_path(cli):
    """http://host is http://host/, though no slash was sent."""
    with demo(cli) as service, serve(cli, service.url) as daemon:
        for number, target in enumerate((b"http://x", b"http://x/", b"/")):
            answer = raw(daemon.gateway, event(b"%d" % number).replace(b"POST / ", b"POST %s " % target))
            expect(answer[:12], b"HTTP/1.1 200", f"{target} {answer}")
        expect(service.count()["executed"], 3)


def test_two_daemons_do_not_share_a_port(cli):
    """Two ledgers for one stream of events would be none."""
    with demo(cli) as service, serve(cli, service.url) as daemon:
        listen = f"127.0.0.1:{daemon.gateway[1]}"
        result = cli.run("serve", "--store", "memory:", "--gateway", listen, "--admin", "off", "--upstream", service.url, code=None)
        assert result.code not in (0, None), result.code
        expect_in("in use", result.err)
