"""daemon.py - start `hapax serve` and upstreams on free ports, send events, look at what comes back."""

import contextlib
import http.client
import http.server
import json
import os
import queue
import signal
import socket
import subprocess
import threading
import time

from harness import PROGRAM, TIMEOUT_SECONDS, expect

EVENT = {"ce-specversion": "1.0", "ce-type": "order.paid", "ce-source": "/shop", "Content-Type": "application/json"}


class Process:
    """A daemon whose standard error is read line by line."""

    def __init__(self, arguments, env, is_ready, command=(str(PROGRAM),), pass_fds=()):
        self.process = subprocess.Popen(
            [*command, *arguments],
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=pass_fds,
        )
        self.lines = []
        self.queue = queue.Queue()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()
        self.ready = self.wait_for(is_ready)

    def read(self):
        for line in self.process.stderr:
            self.lines.append(line.decode("utf-8", "replace"))
            self.queue.put(self.lines[-1])
        self.queue.put(None)

    def wait_for(self, condition):
        """The first line from now on for which condition gives something."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while True:
            line = self.queue.get(timeout=max(0.1, deadline - time.monotonic()))
            if line is None:
                raise AssertionError(f"it ended with {self.process.wait()}: {''.join(self.lines)}")
            if found := condition(line):
                return found

    def kill(self):
        self.process.kill()
        self.process.wait()

    def end(self, code=0, how=signal.SIGTERM):
        if how is not None and self.process.poll() is None:
            self.process.send_signal(how)
        expect(self.process.wait(timeout=TIMEOUT_SECONDS), code, f"exit status; {''.join(self.lines)}")


def log_line(line):
    return json.loads(line) if line.startswith("{") else {}


class Serve(Process):
    def __init__(self, cli, upstream, *options, store="memory:", config=None, env=None, command=(str(PROGRAM),)):
        arguments = ["serve", "--store", store, "--gateway", "127.0.0.1:0", "--admin", "127.0.0.1:0"]
        arguments += ["--upstream", upstream] if upstream else []
        if config is not None:
            path = cli.folder / f"hapax-{time.monotonic_ns()}.yaml"
            path.write_text(config, encoding="utf-8")
            self.config = path
            arguments += ["--config", str(path)]
        super().__init__(
            [*arguments, *options],
            env or cli.env(HAPAX_STORE=None),
            lambda line: log_line(line) if log_line(line).get("msg") == "ready" else None,
            command,
        )
        self.gateway, self.admin = address(self.ready["gateway"]), address(self.ready["admin"])
        self.proxy = address(self.ready["proxy"])


class DemoUpstream(Process):
    def __init__(self, cli, *options, listen="127.0.0.1:0"):
        super().__init__(
            ["demo-upstream", "--listen", listen, *options],
            cli.env(),
            lambda line: line.rsplit(" ", 1)[1].strip() if ": ready on " in line else None,
        )
        self.address = address(self.ready)
        self.url = f"http://{self.ready}"

    def close(self):
        self.kill()

    def count(self):
        return get(self.address, "/count").json


def address(text):
    """For socket.create_connection(); None: it is off, or a path."""
    host, _, port = text.rpartition(":")
    return (host, int(port)) if port.isdigit() else None


class Reply:
    def __init__(self, response):
        self.status = response.status
        self.headers = {name.lower(): value for name, value in response.getheaders()}
        self.body = response.read()

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def decision(self):
        return self.headers.get("hapax-decision")

    def is_problem(self, status, word=""):
        expect(self.status, status, f"status of {self.body!r}")
        expect(self.headers.get("content-type"), "application/problem+json", f"content type of {self.body!r}")
        expect(self.json["status"], status)
        if word not in self.body.decode():
            raise AssertionError(f"{word!r} is not in {self.body!r}")
        return self


def request(to, method, path, headers=None, body=None, connection=None):
    own = connection or http.client.HTTPConnection(*to, timeout=TIMEOUT_SECONDS)
    try:
        own.request(method, path, body=body, headers=headers or {})
        return Reply(own.getresponse())
    finally:
        if connection is None:
            own.close()


def get(to, path, **headers):
    return request(to, "GET", path, headers)


def metrics(daemon, **headers):
    """Name and labels, as they are written, to value; of /metrics in the plain format."""
    lines = get(daemon.admin, "/metrics", **headers).body.decode().splitlines()
    return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line and not line.startswith("#")}


def expect_marked(daemon, *event_ids):
    """The store has these events, and nothing of any other."""
    keys = get(daemon.admin, "/api/v1/keys?limit=1000").json["keys"]
    expect(sorted(record["key"] for record in keys), sorted(f"/shop:{event_id}" for event_id in event_ids), "keys in the store")


def post(to, event_id, data=b'{"total":42}', path="/", **changes):
    """Binary mode; changes are headers, with _ for -, and None to leave one out."""
    headers = {**EVENT, "ce-id": event_id}
    for name, value in changes.items():
        headers[name.replace("_", "-")] = value
    return request(to, "POST", path, {name: value for name, value in headers.items() if value is not None}, data)


def structured(event_id, data=None, **attributes):
    event = {"specversion": "1.0", "type": "order.paid", "source": "/shop", "id": event_id, "data": {"total": 42}}
    if data is not None:
        event["data"] = data
    return {**event, **attributes}


def post_structured(to, event, **headers):
    headers = {"Content-Type": "application/cloudevents+json", **headers}
    return request(to, "POST", "/", headers, json.dumps(event).encode())


def post_batch(to, events, **headers):
    headers = {"Content-Type": "application/cloudevents-batch+json", **headers}
    return request(to, "POST", "/", headers, json.dumps(events).encode())


def raw(to, data, shut=True):
    """All that comes back for these bytes until the other side closes."""
    with socket.create_connection(to, timeout=TIMEOUT_SECONDS) as connection:
        connection.sendall(data)
        if shut:
            connection.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := connection.recv(65536):
                answer += piece
        return answer


class Upstream:
    """A service in this process: keeps what it is sent, and answers as the path says.

    /status/N answers N; /drop takes the request and closes; /hold and /hold/N answer when release is set; /twice has a
    field twice that should be there once.
    """

    def __init__(self):
        self.requests = []
        self.arrived = threading.Semaphore(0)
        self.release = threading.Event()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.requests.append((self.path, dict(self.headers.items()), body))
                outer.arrived.release()
                parts = self.path.split("?")[0].strip("/").split("/")
                if parts[0] == "drop":
                    self.close_connection = True
                    self.connection.shutdown(socket.SHUT_RDWR)
                    return
                if parts[0] == "hold":
                    outer.release.wait(TIMEOUT_SECONDS)
                status = int(parts[1]) if parts[0] in ("status", "hold") and parts[-1].isdigit() else 200
                size = int(parts[1]) if parts[0] == "size" else None
                answer = b"x" * size if size is not None else b"run %d" % len(outer.requests)
                self.send_response(status)
                if 300 <= status < 400:
                    self.send_header("Location", "http://elsewhere.example/")
                for _ in range(2 if parts[0] == "twice" else 1):
                    self.send_header("Content-Type", "text/plain")
                self.send_header("X-Kept", "yes")
                self.send_header("Set-Cookie", "a=b")
                self.send_header("Hapax-Decision", "forged")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                # A body there would be the beginning of the next answer.
                if status not in (204, 304):
                    self.wfile.write(answer)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


@contextlib.contextmanager
def upstream():
    service = Upstream()
    try:
        yield service
    finally:
        service.close()


@contextlib.contextmanager
def demo(cli, *options):
    service = DemoUpstream(cli, *options)
    try:
        yield service
        service.end()
    finally:
        service.kill()


@contextlib.contextmanager
def serve(cli, url, *options, **more):
    daemon = Serve(cli, url, *options, **more)
    try:
        yield daemon
        daemon.end()
    finally:
        daemon.kill()


def dead_address():
    """A port without a listener."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{probe.getsockname()[1]}"


def processor_count():
    return len(os.sched_getaffinity(0))
