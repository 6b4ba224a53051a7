#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""test_prometheus.py SAMPLE - a real Prometheus reads our metrics, in both formats.

SAMPLE (metrics_sample.c) prints metrics in which every family has something. Prints TAP:

  1, 2  Prometheus scrapes the format without an error, and has every sample of it;
  3     promtool has nothing to say about the plain one.

promtool knows the plain format only: of OpenMetrics the scrape is the judge, which takes nothing that
its standard forbids. Prometheus runs from a private folder on a private port; without it the test is
skipped.
"""

import http.server
import json
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

TIMEOUT_SECONDS = 60
TYPES = {
    "plain": "text/plain; version=0.0.4; charset=utf-8",
    "openmetrics": "application/openmetrics-text; version=1.0.0; charset=utf-8",
}

CONFIGURATION = """
global: {{scrape_interval: 200ms, scrape_timeout: 200ms}}
scrape_configs:
  - job_name: plain
    metrics_path: /plain
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
  - job_name: openmetrics
    metrics_path: /openmetrics
    static_configs: [{{targets: ["127.0.0.1:{port}"]}}]
"""


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def serve(bodies):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            form = self.path.strip("/")
            self.send_response(200)
            self.send_header("Content-Type", TYPES[form])
            self.send_header("Content-Length", str(len(bodies[form])))
            self.end_headers()
            self.wfile.write(bodies[form])

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def ask(port, path):
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=5) as reply:
            return json.load(reply)["data"]
    except (urllib.error.URLError, ConnectionError, json.JSONDecodeError, KeyError):
        return None


def until(condition):
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.05)
    return None


def scraped(port):
    """The targets, when all of them were scraped."""
    targets = (ask(port, "/api/v1/targets") or {}).get("activeTargets", [])
    done = len(targets) == len(TYPES) and all(target["health"] != "unknown" for target in targets)
    return targets if done else None


def samples(body):
    return sum(1 for line in body.decode().splitlines() if line and not line.startswith("#"))


def query(port, expression):
    data = ask(port, "/api/v1/query?" + urllib.parse.urlencode({"query": expression}))
    return float(data["result"][0]["value"][1]) if data and data["result"] else None


def judge(port, form, body, targets):
    """What is wrong with the scrape of one format; empty: nothing."""
    target = next(target for target in targets if target["labels"]["job"] == form)
    if target["health"] != "up" or target["lastError"]:
        return f"{target['health']}: {target['lastError']}"
    kept = until(lambda: query(port, f'scrape_samples_scraped{{job="{form}"}}'))
    if kept != samples(body):
        return f"{kept} samples of {samples(body)}"
    value = until(lambda: query(port, f'hapax_keys{{job="{form}",state="done"}}'))
    return "" if value == 40 else f"hapax_keys is {value}"


def result(number, title, fault):
    if fault:
        print(f"# {fault}")
    print(f"{'not ok' if fault else 'ok'} {number} - {title}", flush=True)
    return not fault


def run(sample, folder):
    bodies = {form: subprocess.run([sample, form], capture_output=True, check=True).stdout for form in TYPES}
    server, port = serve(bodies), free_port()
    configuration = pathlib.Path(folder, "prometheus.yml")
    configuration.write_text(CONFIGURATION.format(port=server.server_port), encoding="utf-8")
    command = ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={folder}/data"]
    command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
    with open(pathlib.Path(folder, "log"), "wb") as log:
        process = subprocess.Popen(command, cwd=folder, stdout=log, stderr=log)
    try:
        targets = until(lambda: scraped(port) if process.poll() is None else None)
        if targets is None:
            print(f"Bail out! Prometheus did not scrape: {pathlib.Path(folder, 'log').read_text(errors='replace')}")
            return False
        print(f"1..{len(TYPES) + 1}")
        fine = [
            result(number, f"Prometheus scrapes {form}", judge(port, form, bodies[form], targets))
            for number, form in enumerate(TYPES, 1)
        ]
    finally:
        process.terminate()
        process.wait(timeout=TIMEOUT_SECONDS)
        server.shutdown()
    tool = subprocess.run(["promtool", "check", "metrics"], input=bodies["plain"], capture_output=True, check=False)
    said = tool.stderr.decode() if tool.returncode or tool.stderr else ""
    fine.append(result(len(TYPES) + 1, "promtool has nothing to say", said))
    return all(fine)


def main():
    if shutil.which("prometheus") is None or shutil.which("promtool") is None:
        print("1..0 # SKIP Prometheus is not installed (Debian: prometheus)")
        return 0
    with tempfile.TemporaryDirectory(prefix="hapax-prometheus-") as folder:
        return 0 if run(sys.argv[1], folder) else 1


if __name__ == "__main__":
    sys.exit(main())
