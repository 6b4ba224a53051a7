"""What the daemon says of itself: figures that are true, judged by Prometheus; probes that tell the truth."""

import ctypes
import hashlib
import http.server
import os
import pathlib
import re
import shutil
import subprocess
import sys
import threading

import api
from daemon import demo, get, log_line, metrics, post, serve, upstream
from harness import ROOT, Skip, expect, expect_in, until
from redis_wire import OFF, Wire, door

sys.path.insert(0, str(ROOT / "tests/integration"))

import test_prometheus as prometheus  # noqa: E402

# Everything that a gateway can be told, in one configuration.
CONFIG = """
store: {cleanup_interval: 100ms}
http: {max_requests_per_tenant: 1000}
defaults: {ttl: 1h}
scopes:
  - {scope: default/off, enabled: false}
  - {scope: default/loose, on_missing: pass}
gateway:
  routes:
    - {name: off, path: /off, group: 'off'}
    - {name: loose, path: /loose, group: loose, key: 'field:data.order'}
    - {name: rest, path: /, outcomes: {definitive: [400]}}
"""


def drive(daemon, service):
    """Something of every kind; returns how often the upstream was asked."""
    expect(post(daemon.gateway, "1").decision, "acquired")
    expect(post(daemon.gateway, "1").decision, "replay")
    post(daemon.gateway, "1", b'{"total":43}').is_problem(422)
    expect(post(daemon.gateway, "2", path="/status/500").status, 500)
    expect(post(daemon.gateway, "3", path="/status/400").status, 400)
    post(daemon.gateway, "4", path="/drop").is_problem(502)
    expect(post(daemon.gateway, "5", path="/off").status, 200)
    expect(post(daemon.gateway, "5", path="/off").status, 200)
    expect(post(daemon.gateway, "6", path="/loose").status, 200)
    post(daemon.gateway, "7", ce_specversion=None).is_problem(400)
    thread = threading.Thread(target=lambda: post(daemon.gateway, "8", path="/hold"))
    for _ in range(len(service.requests)):
        service.arrived.acquire()
    thread.start()
    service.arrived.acquire()
    post(daemon.gateway, "8").is_problem(409)
    service.release.set()
    thread.join()
    expect(len(service.requests), 8)


def decisions(figures):
    """By decision, in the default scope."""
    head = 'hapax_decisions_total{tenant="default",group="default",door="gateway",decision="'
    return {name[len(head) : -2]: value for name, value in figures.items() if name.startswith(head)}


def test_figures_are_those_of_what_happened(cli):
    with upstream() as service, serve(cli, service.url, config=CONFIG) as daemon:
        drive(daemon, service)
        figures = metrics(daemon)
        told = {"acquired": 5, "replay": 1, "in_progress": 1, "mismatch": 1, "parked": 0, "fenced": 0}
        expect(decisions(figures), told)
        # Of all decisions, those of runs included.
        expect(figures['hapax_check_duration_seconds_count{door="gateway"}'], 8)
        expect(figures['idempotency_check_duration_seconds_count{door="gateway"}'], 8)
        assert figures['hapax_check_duration_seconds_sum{door="gateway"}'] > 0, figures
        expect(figures['hapax_unprotected_runs_total{tenant="default",group="off",reason="disabled"}'], 2)
        expect(figures['hapax_unprotected_runs_total{tenant="default",group="loose",reason="no_key"}'], 1)
        # A key was made of every event that could be read.
        expect(figures["hapax_key_derivation_duration_seconds_count"], 11)
        assert figures["hapax_key_derivation_duration_seconds_sum"] > 0, figures
        expect(figures['hapax_key_ttl_seconds_bucket{le="3600.0"}'], 5)
        expect(figures["hapax_key_ttl_seconds_sum"], 5 * 3600)
        runs = 'hapax_runs_total{tenant="default",group="default",outcome="%s"}'
        expect([figures[runs % outcome] for outcome in ("ok", "definitive", "transient", "ambiguous")], [2, 1, 1, 1])
        expect(figures['hapax_store_operations_total{operation="claim",result="ok"}'], 8)
        expect(figures['hapax_store_operations_total{operation="complete",result="ok"}'], 3)
        expect(figures['hapax_store_operations_total{operation="release",result="ok"}'], 2)
        operations = 'idempotency_cache_operations_total{operation="%s"}'
        expect([figures[operations % name] for name in ("check", "mark", "remove")], [8, 3, 2])
        until(lambda: metrics(daemon)[operations % "cleanup"] > 0, "it was cleaned up")
        figures = metrics(daemon)
        assert figures["hapax_cleanups_total"] > 0 and figures["hapax_cleanup_duration_seconds_total"] > 0, figures
        expect(figures["hapax_cleanup_errors_total"], 0)
        expect(figures['hapax_http_requests_in_progress{door="admin"}'], 1)
        assert figures['hapax_connections{door="admin"}'] >= 1, figures
        assert figures['hapax_http_request_duration_seconds_count{door="admin"}'] > 0, figures


def test_figures_of_the_redis_door(cli):
    """Answers to SET NX and to claims, in the scope of the client; and what could not be answered."""
    hashed = hashlib.sha256(b"s").hexdigest()
    config = "resp:\n  users:\n" + "".join(f"    - {{name: {name}, password_sha256: {hashed}, tenant: {name}}}\n" for name in "ab")
    with serve(cli, None, *OFF, config=config) as daemon:
        for tenant in "ab":
            with Wire(door(daemon)) as wire:
                wire.pipeline([["AUTH", tenant, "s"], *[["SET", "k", "v", "NX"]] * 3, ["SET", "k", "w"], ["GET", "k"]])
                wire.pipeline([["HAPAX.CLAIM", "c"]] * 2 + [["HAPAX.COMPLETE", "c", 1]])
        head = 'hapax_decisions_total{tenant="%s",group="default",door="resp",decision="%s"}'
        figures = metrics(daemon)
        for tenant in "ab":
            told = {name: figures[head % (tenant, name)] for name in ("acquired", "replay", "in_progress", "fenced", "parked")}
            expect(told, {"acquired": 2, "replay": 2, "in_progress": 1, "fenced": 1, "parked": 0})
    with serve(cli, None, *OFF, config="store: {max_keys: 1}\n") as daemon, Wire(door(daemon)) as wire:
        expect([reply[:4] for reply in wire.pipeline([["SET", key, "v", "NX"] for key in "ab"])], [b"+OK\r", b"-OOM"])
        expect(metrics(daemon)['hapax_check_errors_total{door="resp",reason="limit"}'], 1)


def test_what_was_wrong_is_counted(cli):
    """A10: what is refused before its claim, by what was wrong with it."""
    routes = "gateway:\n  routes:\n    - {name: orders, path: /orders, key: 'field:data.order'}\n"
    with upstream() as service, api.proxy(cli, service.url, "--gateway", "127.0.0.1:0", config=routes) as daemon:
        post(daemon.gateway, "1", path="/orders", ce_specversion=None).is_problem(400)
        post(daemon.gateway, "2", b"{", path="/orders", Content_Type="application/cloudevents+json").is_problem(400)
        post(daemon.gateway, "3", path="/orders", Content_Type="application/cloudevents+xml").is_problem(415)
        post(daemon.gateway, "4", path="/orders").is_problem(400, "no-key")
        post(daemon.gateway, "5", path="/elsewhere").is_problem(404)
        post(daemon.gateway, "6", path="/orders/%2e%2e/x").is_problem(400)
        api.post(daemon.proxy, "/", "").is_problem(400, "key-invalid")
        api.post(daemon.proxy, "/", "k", credential=None).is_problem(400, "credential-missing")
        api.ask(daemon.proxy, "post", "/", b"", "k").is_problem(400)
        head = "hapax_invalid_events_total"
        wrong = {name[len(head) :]: value for name, value in metrics(daemon).items() if name.startswith(head) and value > 0}
        told = {"malformed": 2, "media_type": 1, "no_key": 1, "no_route": 1, "path": 1}
        expected = {f'{{door="gateway",reason="{reason}"}}': count for reason, count in told.items()}
        expected |= {f'{{door="proxy",reason="{reason}"}}': 1 for reason in ("key", "credential", "method")}
        expect(wrong, expected)
        expect(service.requests, [])


def test_a_cleanup_is_told(cli):
    """A10: how many there were, how many went, how many are left."""
    # With a limit the keys of scopes are asked for often.
    config = "store: {cleanup_interval: 100ms, max_keys_per_tenant: 1000}\nscopes:\n  - {scope: default/short, ttl: 1ms}\n"
    config += "gateway:\n  routes:\n    - {name: short, path: /short, group: short}\n    - {name: rest, path: /}\n"
    with upstream() as service, serve(cli, service.url, config=config) as daemon:
        for number in range(3):
            post(daemon.gateway, f"gone {number}", path="/short")
        post(daemon.gateway, "kept")
        # What each scope has, as far as its claims tell.
        keys = 'hapax_scope_keys{tenant="default",group="%s"}'
        until(lambda: metrics(daemon).get(keys % "default") == 1, "keys are counted by scope")
        expect(metrics(daemon)[keys % "short"], 3)
        line = log_line(daemon.wait_for(lambda text: text if "cleanup finished" in text else None))
        expect((line["level"], line["total"], line["deleted"], line["remaining"]), ("info", 4, 3, 1))
        assert "took" in line, line


def test_what_the_store_does_not_take_is_counted(cli):
    with upstream() as service, serve(cli, service.url, config="store: {max_keys: 1}\n") as daemon:
        expect(post(daemon.gateway, "1").status, 200)
        post(daemon.gateway, "2").is_problem(503, "full")
        expect(metrics(daemon)['hapax_check_errors_total{door="gateway",reason="limit"}'], 1)
        expect(metrics(daemon)['hapax_store_operations_total{operation="claim",result="error"}'], 1)


def plain(daemon):
    """A door to its metrics in the plain format: Prometheus by itself asks for the other."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            reply = get(daemon.admin, "/metrics")
            self.send_response(reply.status)
            self.send_header("Content-Type", reply.headers["content-type"])
            self.send_header("Content-Length", str(len(reply.body)))
            self.end_headers()
            self.wfile.write(reply.body)

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


SCRAPES = """
global: {{scrape_interval: 500ms, scrape_timeout: 500ms}}
scrape_configs:
  - job_name: openmetrics
    static_configs: [{{targets: ["{daemon}"]}}]
  - job_name: plain
    static_configs: [{{targets: ["127.0.0.1:{plain}"]}}]
"""


def test_the_build_says_what_it_was_made_of(cli):
    with demo(cli) as service, serve(cli, service.url) as daemon:
        (build,) = [name for name in metrics(daemon) if name.startswith("hapax_build_info{")]
        assert re.fullmatch(r'hapax_build_info\{version="[0-9.]+",revision="[^"]+",store="memory"\}', build), build


def test_promtool_has_nothing_to_say(cli):
    if shutil.which("promtool") is None:
        raise Skip("promtool is not installed (Debian: prometheus)")
    with upstream() as service, serve(cli, service.url, config=CONFIG) as daemon:
        drive(daemon, service)
        body = get(daemon.admin, "/metrics").body
        done = subprocess.run(["promtool", "check", "metrics"], input=body, capture_output=True, check=False)
        expect((done.returncode, done.stdout, done.stderr), (0, b"", b""))
        # Of OpenMetrics, which promtool does not read, the families are the same ones.
        other = get(daemon.admin, "/metrics", Accept="application/openmetrics-text; version=1.0.0")
        expect_in("application/openmetrics-text", other.headers["content-type"])
        assert other.body.endswith(b"\n# EOF\n"), other.body[-100:]

        def families(text):
            # Counters and information have their suffix in one of the two only.
            names = (line.split()[2] for line in text.decode().splitlines() if line.startswith("# TYPE "))
            return {name.removesuffix("_total").removesuffix("_info") for name in names}

        expect(families(other.body), families(body))


def test_a_real_prometheus_scrapes_it(cli):
    """Debian's, in both formats: the targets are up, and have what was counted."""
    if shutil.which("prometheus") is None:
        raise Skip("Prometheus is not installed (Debian: prometheus)")
    with upstream() as service, serve(cli, service.url, config=CONFIG) as daemon:
        drive(daemon, service)
        door, port = plain(daemon), prometheus.free_port()
        configuration = cli.folder / "prometheus.yml"
        configuration.write_text(
            SCRAPES.format(daemon=f"127.0.0.1:{daemon.admin[1]}", plain=door.server_port), encoding="utf-8"
        )
        command = ["prometheus", f"--config.file={configuration}", f"--storage.tsdb.path={cli.folder}/data"]
        command += [f"--web.listen-address=127.0.0.1:{port}", "--log.level=warn"]
        with open(cli.folder / "prometheus.log", "wb") as log:
            process = subprocess.Popen(command, cwd=cli.folder, env=cli.env(), stdout=log, stderr=log)
        try:

            def up():
                assert process.poll() is None, (cli.folder / "prometheus.log").read_text(errors="replace")
                targets = prometheus.scraped(port) or []
                # A scrape that came too late on a busy machine is tried again.
                return len(targets) == 2 and all(target["health"] == "up" for target in targets)

            until(up, "both targets are up")
            for job in ("openmetrics", "plain"):
                name = f'hapax_decisions_total{{job="{job}",group="default",decision="acquired"}}'
                until(lambda: prometheus.query(port, name) == 5, f"{name} is 5")
                name = f'hapax_check_duration_seconds_count{{job="{job}",door="gateway"}}'
                until(lambda: prometheus.query(port, name) == 8, f"{name} is 8")
        finally:
            process.kill()
            process.wait()
            door.shutdown()


# ------------------------------------------------------------------ probes

PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WALL = 0x4206, 0x4207, 17, 0x40000000


def threads_of(daemon):
    """Name to number."""
    tasks = pathlib.Path(f"/proc/{daemon.process.pid}/task").iterdir()
    return {(task / "comm").read_text(encoding="ascii").strip(): int(task.name) for task in tasks}


def ptrace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(ctypes.c_long(request), ctypes.c_long(thread), None, None) != 0:
        raise Skip(f"one thread cannot be stopped here: {os.strerror(ctypes.get_errno())}")


def test_a_loop_that_stands_still_is_noticed(cli):
    """/livez is not a process that answers, but loops that turn."""
    with upstream() as service, serve(cli, service.url, "--loops", "2") as daemon:
        reply = get(daemon.admin, "/livez?verbose")
        expect((reply.status, reply.body), (200, b"[+]loops ok: 2 of 2 running\nlivez check passed\n"))
        # A thread names itself, some time after it was started.
        until(lambda: "hapax-loop-1" in threads_of(daemon), "it has its name")
        thread = threads_of(daemon)["hapax-loop-1"]
        ptrace(PTRACE_SEIZE, thread)
        ptrace(PTRACE_INTERRUPT, thread)
        os.waitpid(thread, WALL)
        until(lambda: get(daemon.admin, "/livez").status == 503, "it is noticed")
        expect_in(b"1 of 2 running; loop 1 has been blocked for ", get(daemon.admin, "/livez").body)
        ptrace(PTRACE_DETACH, thread)
        until(lambda: get(daemon.admin, "/livez").status == 200, "it turns again")
