"""api.py - an HTTP API in this process, to stand behind the proxy; and a client of it."""

import contextlib
import http.client
import http.server
import itertools
import socket
import threading

from daemon import Reply, serve
from harness import TIMEOUT_SECONDS, expect


class Request:
    def __init__(self, handler, body):
        self.method, self.path, self.body = handler.command, handler.path, body
        self.headers = {name.lower(): value for name, value in handler.headers.items()}


class Api:
    """Takes every method, keeps what it is sent, and answers as the path says.

    /status/N answers N; /drop takes the request and closes; /hold answers when release is set; /size/N has so many
    bytes; /chunked comes in chunks; /slow/N sends a piece, waits for release, and sends the rest of N pieces, or goes on
    forever with /slow/endless. All else is 200. Fields are sent with every response, text is its body, with the number
    of the request.
    """

    def __init__(self):
        self.requests = []
        self.arrived = threading.Semaphore(0)
        self.release = threading.Event()
        self.fields = [("Content-Type", "text/plain")]
        self.text = b"run %d"
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def __getattr__(self, name):
                if not name.startswith("do_"):
                    raise AttributeError(name)
                return self.take

            def take(self):
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                outer.requests.append(Request(self, body))
                number = len(outer.requests)
                outer.arrived.release()
                outer.answer(self, number, *self.path.split("?")[0].strip("/").split("/"))

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def answer(self, handler, number, kind, *rest):
        if kind == "drop":
            handler.close_connection = True
            handler.connection.shutdown(socket.SHUT_RDWR)
            return
        if kind == "hold":
            self.release.wait(TIMEOUT_SECONDS)
        if kind in ("chunked", "slow"):
            self.answer_in_chunks(handler, kind, rest)
            return
        status = int(rest[0]) if kind == "status" else 200
        body = b"x" * int(rest[0]) if kind == "size" else self.text % number
        handler.send_response(status)
        for name, value in self.fields:
            handler.send_header(name, value)
        if status not in (204, 304):
            handler.send_header("Content-Length", str(len(body)))
        handler.end_headers()
        if handler.command != "HEAD" and status not in (204, 304):
            handler.wfile.write(body)

    def answer_in_chunks(self, handler, kind, rest):
        pieces = [bytes(range(256)), b"\r\n0\r\n\r\n", b"\0" * 1000, b"end"]
        if kind == "slow":
            numbers = itertools.count() if rest[0] == "endless" else range(int(rest[0]))
            pieces = (b"piece %d\n" % index for index in numbers)
        handler.send_response(200)
        for name, value in self.fields:
            handler.send_header(name, value)
        handler.send_header("Transfer-Encoding", "chunked")
        handler.end_headers()
        if handler.command == "HEAD":
            return
        for index, piece in enumerate(pieces):
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            handler.wfile.flush()
            if kind == "slow" and index == 0:
                self.release.wait(TIMEOUT_SECONDS)
        handler.wfile.write(b"0\r\n\r\n")

    @property
    def paths(self):
        return [request.path for request in self.requests]

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


CHUNKED = bytes(range(256)) + b"\r\n0\r\n\r\n" + b"\0" * 1000 + b"end"


@contextlib.contextmanager
def api():
    service = Api()
    try:
        yield service
    finally:
        service.close()


def proxy(cli, url, *options, **more):
    """A daemon with nothing but the proxy and the admin door."""
    return serve(cli, url, "--gateway", "off", "--proxy", "127.0.0.1:0", *options, **more)


def ask(to, method, path, body=None, key=None, fields=(), credential="Bearer client", **headers):
    """A request; key is that of Idempotency-Key, bare; fields are (name, value), more than one of a name too.

    credential is its Authorization, unless there is one in headers or fields; None: it has none.
    """
    if credential is not None and not any(name.lower() == "authorization" for name, _ in [*headers.items(), *fields]):
        headers["Authorization"] = credential
    connection = http.client.HTTPConnection(*to, timeout=TIMEOUT_SECONDS)
    try:
        connection.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
        for name, value in headers.items():
            connection.putheader(name.replace("_", "-"), value)
        for name, value in fields:
            connection.putheader(name, value)
        if key is not None:
            connection.putheader("Idempotency-Key", key)
        if body is not None:
            connection.putheader("Content-Length", str(len(body)))
        connection.endheaders(body)
        return Reply(connection.getresponse())
    finally:
        connection.close()


def post(to, path, key, body=b'{"amount":42}', **headers):
    headers.setdefault("Content_Type", "application/json")
    return ask(to, "POST", path, body, key, **headers)


def expect_ran(reply, body, status=200):
    expect((reply.status, reply.decision, reply.body), (status, "acquired", body))
    assert "idempotent-replayed" not in reply.headers
    return reply


def expect_replayed(reply, body, status=200):
    expect((reply.status, reply.decision, reply.body), (status, "replay", body))
    expect(reply.headers.get("idempotent-replayed"), "true")
    return reply
