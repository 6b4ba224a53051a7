# SPDX-License-Identifier: Apache-2.0
"""CloudEvents by HTTP through hapax, or through nginx as a plain proxy, to an upstream that does nothing.

wrk keeps --connections busy; the CPU time is that of the proxy alone. --mode new sends every event once,
duplicate one event again and again, which hapax answers and nginx passes on. --mode idle opens connections and
counts what they cost in memory. Every answer is checked by its status.
"""

import argparse
import http.client
import json
import os
import pathlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import uuid

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from harness import contest  # noqa: E402

# What answers: nginx, which is as quick as it gets, one worker, kept connections.
UPSTREAM = """
daemon off; master_process off; worker_processes 1; pid {folder}/upstream.pid; error_log {folder}/upstream.log crit;
events {{ worker_connections 2048; }}
http {{
    access_log off; client_body_temp_path {folder}/u1; proxy_temp_path {folder}/u2; fastcgi_temp_path {folder}/u3;
    uwsgi_temp_path {folder}/u4; scgi_temp_path {folder}/u5; keepalive_requests 100000000;
    server {{ listen 127.0.0.1:{upstream} backlog=1024; location / {{ return 200; }} }}
}}
"""
PROXY = """
daemon off; master_process {master}; worker_processes {loops}; pid {folder}/proxy.pid; error_log {folder}/proxy.log crit;
events {{ worker_connections 12000; }}
http {{
    access_log off; client_body_temp_path {folder}/p1; proxy_temp_path {folder}/p2; fastcgi_temp_path {folder}/p3;
    uwsgi_temp_path {folder}/p4; scgi_temp_path {folder}/p5; keepalive_requests 100000000; keepalive_timeout 600s;
    upstream service {{ server 127.0.0.1:{upstream}; keepalive 256; keepalive_requests 100000000; }}
    server {{
        listen 127.0.0.1:{port} reuseport backlog=1024;
        location / {{ proxy_pass http://service; proxy_http_version 1.1; proxy_set_header Connection ""; }}
    }}
}}
"""
# The load costs as little as it can, for it shares the machine: a request is put together by wrk once, and of a new
# event only the id is put in. Without a function "request" wrk sends the same bytes again and again.
SCRIPT = """
local count, head, tail = 0, "", ""
wrk.method = "POST"
wrk.body = '{body}'
wrk.headers["ce-id"] = "{id}"
wrk.headers["ce-specversion"] = "1.0"
wrk.headers["ce-type"] = "order.paid"
wrk.headers["ce-source"] = "/shop"
wrk.headers["Content-Type"] = "application/json"
if {is_new} then
    init = function()
        local text = wrk.format()
        local from, to = string.find(text, "{id}", 1, true)
        head, tail = string.sub(text, 1, to), string.sub(text, to + 1)
    end
    request = function()
        count = count + 1
        return head .. count .. tail
    end
end
done = function(summary, latency)
    io.write(string.format('{{"requests":%d,"microseconds":%d,"status":%d,"failed":%d,"p99":%d}}\\n', summary.requests,
        summary.duration, summary.errors.status,
        summary.errors.connect + summary.errors.read + summary.errors.write + summary.errors.timeout,
        latency:percentile(99)))
end
"""
BODY = json.dumps({"order": 17, "customer": "c-4711", "total": 42, "note": "x" * 120}, separators=(",", ":"))


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def wait_for(port, process):
    while True:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return
        except OSError:
            if process.poll() is not None:
                contest.fail(f"{process.args[0]} did not start")
            time.sleep(0.01)


def nginx(folder, name, text):
    path = pathlib.Path(folder, f"{name}.conf")
    path.write_text(text, encoding="utf-8")
    program = shutil.which("nginx") or "/usr/sbin/nginx"
    return subprocess.Popen([program, "-p", folder, "-c", str(path), "-e", f"{folder}/{name}.log"])


def hapax(arguments, folder, port, upstream):
    store = "memory:" if arguments.store == "memory" else f"file:{folder}/store"
    config = pathlib.Path(folder, "hapax.yaml")
    config.write_text("log: {level: error}\nhttp: {idle_timeout: 10m}\n", encoding="utf-8")
    return subprocess.Popen(
        [arguments.hapax, "serve", "--config", str(config), "--store", store, "--gateway", f"127.0.0.1:{port}"]
        + ["--admin", "off", "--upstream", f"http://127.0.0.1:{upstream}", "--loops", str(arguments.loops)],
        stderr=subprocess.DEVNULL,
    )


def family(pid):
    """A process and its children: nginx has workers."""
    with open(f"/proc/{pid}/task/{pid}/children", encoding="ascii") as file:
        return [pid, *(int(child) for child in file.read().split())]


def resident(pids):
    total = 0
    for pid in pids:
        with open(f"/proc/{pid}/status", encoding="ascii") as file:
            total += int(re.search(r"RssAnon:\s+(\d+) kB", file.read()).group(1)) * 1024
    return total


class Proxy:
    def __init__(self, arguments):
        self.arguments = arguments
        self.folder = tempfile.mkdtemp(prefix="hapax-bench-", dir=arguments.folder)
        self.port, self.upstream_port = free_port(), free_port()
        names = {"folder": self.folder, "port": self.port, "upstream": self.upstream_port, "loops": arguments.loops}
        names["master"] = "on" if arguments.loops > 1 else "off"
        self.upstream_text = UPSTREAM.format(**names)
        self.start_upstream()
        if arguments.server == "nginx":
            self.process = nginx(self.folder, "proxy", PROXY.format(**names))
        else:
            self.process = hapax(arguments, self.folder, self.port, self.upstream_port)
        wait_for(self.port, self.process)
        # Before the first round: what a round has given back may be kept for the next.
        self.resident_at_start = resident(family(self.process.pid))

    def start_upstream(self):
        self.upstream = nginx(self.folder, "upstream", self.upstream_text)
        wait_for(self.upstream_port, self.upstream)

    def stop_upstream(self):
        """So that another process can take its place."""
        self.upstream.terminate()
        self.upstream.wait()

    def cpu_ns(self):
        return sum(contest.cpu_ns(pid) for pid in family(self.process.pid))

    def close(self):
        self.process.terminate()
        self.process.wait()
        self.stop_upstream()
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self):
        script = pathlib.Path(self.folder, "load.lua")
        is_new = self.arguments.mode == "new"
        event_id = f"{uuid.uuid4()}-" if is_new else "fixed"
        text = SCRIPT.format(id=event_id, is_new="true" if is_new else "false", body=BODY)
        script.write_text(text, encoding="utf-8")
        if not is_new:
            self.send_once()
        cpu = self.cpu_ns()
        output = subprocess.run(
            ["wrk", "-t1", f"-c{self.arguments.connections}", f"-d{self.arguments.seconds}s", "-s", str(script)]
            + [f"http://127.0.0.1:{self.port}/"],
            check=True, capture_output=True, text=True,
        ).stdout
        cpu = self.cpu_ns() - cpu
        figures = json.loads(output.splitlines()[-1])
        if figures["status"] or figures["failed"] or not figures["requests"]:
            contest.fail(f"{self.arguments.server}: {figures}")
        wall = figures["microseconds"] * 1000
        measures = {"request": {"ops": figures["requests"], "wall_ns": wall, "cpu_ns": cpu}}
        return {**measures, "rate": figures["requests"] * 1e9 / wall, "p99_us": figures["p99"]}

    def send_once(self):
        """So that all the others are duplicates of what is done."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        headers = {"ce-specversion": "1.0", "ce-type": "order.paid", "ce-source": "/shop", "ce-id": "fixed"}
        connection.request("POST", "/", BODY, {**headers, "Content-Type": "application/json"})
        if connection.getresponse().status != 200:
            contest.fail("the event was not taken")
        connection.close()

    def idle(self):
        connections = []
        for _ in range(self.arguments.connections):
            connections.append(socket.create_connection(("127.0.0.1", self.port)))
        for connection in connections:
            connection.sendall(b"OPTIONS / HTTP/1.1\r\nHost: x\r\n\r\n")
            connection.recv(4096)
        grown = resident(family(self.process.pid)) - self.resident_at_start
        for connection in connections:
            connection.close()
        return {"resident_mb": grown / 1e6}


def version(arguments):
    if arguments.server == "nginx":
        program = shutil.which("nginx") or "/usr/sbin/nginx"
        return subprocess.run([program, "-v"], capture_output=True, text=True, check=True).stderr.strip()
    return subprocess.run([arguments.hapax, "--version"], capture_output=True, text=True, check=True).stdout.strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hapax", required=True)
    parser.add_argument("--server", choices=["hapax", "nginx"], required=True)
    parser.add_argument("--mode", choices=["new", "duplicate", "idle"], default="new")
    parser.add_argument("--store", choices=["memory", "file"], default="memory")
    parser.add_argument("--connections", type=int, default=64)
    parser.add_argument("--loops", type=int, default=1)
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--folder", default=os.environ.get("TMPDIR", "/tmp"))
    arguments = parser.parse_args()
    proxy = Proxy(arguments)
    try:
        contest.run(arguments.server, version(arguments), lambda seed: proxy.idle() if arguments.mode == "idle" else proxy.load())
    finally:
        proxy.close()


if __name__ == "__main__":
    main()
