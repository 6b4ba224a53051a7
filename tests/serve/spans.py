"""spans.py - a trace collector for tests: it keeps the spans that the daemon exports."""

import contextlib
import http.server
import json
import threading

from harness import TIMEOUT_SECONDS, expect, until

TRACE = "0af7651916cd43dd8448eb211c80319c"
SPAN = "b7ad6b7169203331"
SERVER, CLIENT, INTERNAL, CONSUMER = 2, 3, 1, 5


class Collector:
    """Keeps spans. answers: the statuses of the first requests, with 200 for the rest; held: none is answered."""

    def __init__(self, answers=(), held=False):
        self.requests = []
        self.answers = list(answers)
        self.release = threading.Event()
        if not held:
            self.release.set()
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"
            disable_nagle_algorithm = True

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                outer.release.wait(TIMEOUT_SECONDS)
                status = outer.answers.pop(0) if outer.answers else 200
                outer.requests.append((self.path, dict(self.headers.items()), json.loads(body), status))
                self.send_response(status)
                if status == 503:
                    self.send_header("Retry-After", "1")
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.server.handle_error = lambda *_: None
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def config(self, more=""):
        return f'traces:\n  endpoint: "{self.url}"\n{more}'

    def spans(self, status=200):
        documents = [document for _, _, document, answered in list(self.requests) if answered == status]
        groups = [group for document in documents for item in document["resourceSpans"] for group in item["scopeSpans"]]
        return [Span(span) for group in groups for span in group["spans"]]

    def events(self, count):
        """The spans of so many events, by the event's id and the span's name."""
        until(lambda: len([span for span in self.spans() if span.name == "process_cloud_event"]) >= count, "spans have come")
        spans = self.spans()
        ids = {span.id: span.attributes["cloudevents.event_id"] for span in spans if span.name == "process_cloud_event"}
        found = {}
        for span in spans:
            event = ids[span.id if span.id in ids else span.parent]
            found.setdefault(event, []).append(span)
        return found

    def close(self):
        self.release.set()
        self.server.shutdown()
        self.server.server_close()


class Span:
    def __init__(self, document):
        self.document = document
        self.name, self.kind = document["name"], document["kind"]
        self.trace, self.id, self.parent = document["traceId"], document["spanId"], document.get("parentSpanId")
        self.begin, self.end = int(document["startTimeUnixNano"]), int(document["endTimeUnixNano"])
        self.attributes = {item["key"]: next(iter(item["value"].values())) for item in document["attributes"]}
        self.links = [(link["traceId"], link["spanId"]) for link in document.get("links", [])]
        self.failed = document.get("status", {}).get("code") == 2


@contextlib.contextmanager
def collector(**options):
    service = Collector(**options)
    try:
        yield service
    finally:
        service.close()


def named(spans, name):
    found = [span for span in spans if span.name == name]
    expect(len(found), 1, f"spans {name} in {[span.name for span in spans]}")
    return found[0]
