#!/usr/bin/env python3
"""test_http_sink HAPAX - hapax outbox relay to a service that speaks HTTP: what arrives, and what answers mean."""

import http.server
import pathlib
import sqlite3
import subprocess
import sys
import tempfile
import threading

PROGRAM = sys.argv[1]
received = []
away = [2]  # so many answers are 503
CRASHES = 40
BUSY = 32  # requests at a time
hurdles = []  # what becomes of requests to /slow, in that order: a status, or None for no answer at all


class Service(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        status = 200
        if self.path.endswith("/bad"):
            status = 422
        elif self.path.endswith("/large"):
            status = 413
        elif self.path.endswith("/fail"):
            status = 500
        elif self.path.endswith("/crash"):  # as a gateway says it of a service that dies of an event
            status = 502
        elif self.path.endswith("/slow"):
            status = hurdles.pop(0) if hurdles else 200
            if status is None:
                self.rfile.read(1)  # until the client gives up
                self.close_connection = True
                return
        elif away[0] > 0:
            away[0] -= 1
            status = 503
        received.append((status, self.path, dict(self.headers), body))
        self.send_response(status)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *arguments):
        pass


def hapax(*arguments, data=b""):
    return subprocess.run(
        [PROGRAM, "outbox", *arguments], input=data, check=True, capture_output=True, timeout=120
    ).stdout.decode()


def relay_parks(*arguments):
    """Until nothing is pending; rows are parked, so the exit status is 1."""
    done = subprocess.run([PROGRAM, "outbox", "relay", "--until-empty", *arguments], capture_output=True, timeout=120, check=False)
    assert done.returncode == 1 and b" parked, " in done.stderr, (done.returncode, done.stderr)


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Service)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "shop.db"
        db = f"--db=sqlite:{file}"
        hapax("init", db)
        for number in range(20):
            hapax("add", db, "-t", "orders", "--id", f"e{number}", "--ordering-key", "k", "--type", "made", data=b'{"n":1}')
        hapax("add", db, "-t", "bad", "--id", "bad", "-H", "trace:t")
        hapax("add", db, "-t", "large", "--id", "large")
        hapax("add", db, "-t", "fail", "--id", "fail")
        hapax("add", db, "-t", "t", "--id", "header", "-H", "a b:c")
        typed = ["--content-type", 'text/plain; charset="utf-8"', "--subject", "a b", "-H", "x-note: one two", "-H", "x-name:ä"]
        hapax("add", db, "-t", "t", "--id", "typed", *typed)
        port = server.server_address[1]
        relay_parks(db, "--attempts=2", "--backoff=1ms", "--to", f"http://127.0.0.1:{port}/in/")
        # Of these more than are sent at a time stand before all others.
        other = f"--db=sqlite:{folder}/other.db"
        hapax("init", other)
        for number in range(CRASHES):
            hapax("add", other, "-t", "crash", "--id", f"crash{number}")
        hapax("add", other, "-t", "t", "--id", "behind")
        relay_parks(other, "--attempts=1", "--to", f"http://127.0.0.1:{port}/in/")
        # A service that is away, so that the next batch does not begin with the first row; then one that takes
        # some events, and stops to answer before all were begun.
        slow = f"--db=sqlite:{folder}/slow.db"
        hapax("init", slow)
        for number in range(80):
            hapax("add", slow, "-t", "slow", "--id", f"slow{number}")
        hurdles.extend([429] * BUSY + [200] * 16 + [None] * BUSY)
        relay_parks(slow, "--attempts=1", "--lease=2s", "--to", f"http://127.0.0.1:{port}/in/")
        rows = {}
        for name in file, f"{folder}/other.db", f"{folder}/slow.db":
            with sqlite3.connect(name) as connection:
                rows |= connection.execute("SELECT id, state || ' ' || coalesce(error, '') FROM hapax_outbox")
    sent = [item for item in received if item[0] == 200 and item[1] == "/in/orders"]
    first = sent[0]
    typed, behind = (item[2] for item in received if item[0] == 200 and item[1] == "/in/t")
    cases = {
        "events of one key arrive once each, in order": [item[2]["ce-id"] for item in sent]
        == [f"e{number}" for number in range(20)],
        "attributes are fields": first[1] == "/in/orders"
        and first[2]["ce-specversion"] == "1.0"
        and first[2]["ce-type"] == "made"
        and first[2]["ce-source"] == "/hapax/outbox"
        and first[2]["ce-partitionkey"] == "k"
        and first[2]["id"] == "e0"
        and first[2]["Content-Type"] == "application/json"
        and first[3] == b'{"n":1}',
        "attributes are encoded, and other fields stand as they are": typed["ce-subject"] == "a%20b"
        and typed["Content-Type"] == 'text/plain; charset="utf-8"'
        and typed["x-note"] == "one two"
        and typed["x-name"] == "%C3%A4",
        "a service that is away costs no attempt": rows["e0"].startswith("1 "),
        "422 parks at once": rows["bad"].startswith("2 ") and "status 422" in rows["bad"],
        "413 parks at once": rows["large"].startswith("2 ") and "status 413" in rows["large"],
        "500 parks after its attempts": rows["fail"].startswith("2 ")
        and sum(item[1].endswith("/fail") for item in received) == 2,
        "502 parks after its attempts, while others go": behind["ce-id"] == "behind" and all(
            rows[f"crash{number}"].startswith("2 ") and "status 502, but accepted other" in rows[f"crash{number}"]
            for number in range(CRASHES)
        ),
        "what was not begun in time is tried again": all(
            rows[f"slow{number}"] == "1 " or "answer was lost" in rows[f"slow{number}"] for number in range(80)
        ),
        "a header that HTTP has not is refused": rows["header"].startswith("2 ") and "'a b'" in rows["header"],
    }
    print(f"1..{len(cases)}")
    for number, (name, good) in enumerate(cases.items(), 1):
        print(f"{'ok' if good else 'not ok'} {number} - {name}")
    if not all(cases.values()):
        print(f"# {rows}\n# {received[:3]}")
        sys.exit(1)


main()
