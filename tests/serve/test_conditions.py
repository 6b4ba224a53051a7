"""Conditions (E13, E16): each begins and ends for real, seen in the log, at /healthz and as a metric."""

import contextlib
import json
import signal
import subprocess

from certificates import Authority
from conditions import begins, ends, health
from daemon import DemoUpstream, dead_address, get, post, serve, structured, upstream
from harness import expect, expect_in, until
from run_hosts import preload
from test_outage import redis

NOWHERE = "http://127.0.0.1:9"


def hang_up(daemon, text, msg="configuration reloaded"):
    daemon.config.write_text(text)
    daemon.process.send_signal(signal.SIGHUP)
    daemon.wait_for(lambda line: msg in line)


# A kernel whose clock is synchronized while there is a file (TIME_OK, else TIME_ERROR), and whose boot clock is 1,000 s
# ahead while there is another one.
KERNEL = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>
struct timex;
static int has(const char *name) { return access(getenv(name), F_OK) == 0; }
int adjtimex(struct timex *timex) { (void)timex; return has("HAPAX_TEST_NTP") ? 0 : 5; }
int clock_gettime(clockid_t id, struct timespec *time) {
    int (*real)(clockid_t, struct timespec *) = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(id, time);
    if (id == CLOCK_BOOTTIME && has("HAPAX_TEST_AHEAD")) time->tv_sec += 1000;
    return failed;
}
"""


def test_clocks(cli):
    """E16: not synchronized, which is only told: the store's clock decides; and a store's clock that stands still."""
    ntp, ahead = cli.folder / "ntp", cli.folder / "ahead"
    env = cli.env(HAPAX_STORE=None, HAPAX_TEST_NTP=str(ntp), HAPAX_TEST_AHEAD=str(ahead), **preload(cli, KERNEL))
    store = f"sqlite:{cli.folder}/ledger.db"
    expect(cli.run("store", "info", store, "-o", "json", code=None).code != 0, True)
    cli.run("check", "a", "--store", store, env=env)
    expect(cli.run("store", "info", store, "-o", "json", env=env).json["clock_frozen"], False)
    ahead.touch()
    cli.run("check", "b", "--store", store, env=env)
    ahead.unlink()
    expect(cli.run("store", "info", store, "-o", "json", env=env).json["clock_frozen"], True)
    expect_in("it stands still until then: no key expires", cli.run("store", "info", store, env=env).out)
    with serve(cli, NOWHERE, store=store, env=env) as daemon:
        begins(daemon, "clock_unsynchronized", reason="no time source", severity="info")
        # A probe asks the store more often than the daemon does.
        until(lambda: ("clock_frozen", None) in health(daemon)[1], "it is noticed")
        begins(daemon, "clock_frozen", reason="'hapax store copy'")
        begins(daemon, "clock_skew", reason="store.max_clock_skew")
        expect(get(daemon.admin, "/readyz").status, 200)
        ntp.touch()
        ahead.touch()
        until(lambda: ("clock_frozen", None) not in health(daemon)[1], "it moves")
        ends(daemon, "clock_frozen")
        ends(daemon, "clock_unsynchronized")
    # The documented way back.
    ahead.unlink()
    copy = f"sqlite:{cli.folder}/copy.db"
    cli.run("store", "copy", store, copy, env=env)
    found = cli.run("store", "info", copy, "-o", "json", env=env).json
    expect((found["clock_frozen"], found["keys"], abs(found["skew_ms"]) < 1000), (False, 2, True))


def test_reloads_and_certificates(cli):
    """A file that is refused; a certificate that has expired, one that will soon, and one that is good."""
    authority = Authority(cli.folder)
    expired, soon = authority.expired("expired"), authority.issue("soon")
    good = authority.issue("good", begin="20200101000000Z", end="20991231235959Z")


    def text(certificate, level="info"):
        return f"tls: {{gateway: {{certificate: {certificate.path}, key: {certificate.key}}}}}\nlog: {{level: {level}}}\n"

    with serve(cli, NOWHERE, config=text(expired)) as daemon:
        begins(daemon, "certificate_expired", str(expired.path), "has expired at 2020-01-02", "critical", 503)
        expect(get(daemon.admin, "/readyz").status, 200)
        hang_up(daemon, text(soon, "loud"), "configuration rejected")
        begins(daemon, "reload_refused", reason="loud", status=503)
        hang_up(daemon, text(soon))
        begins(daemon, "certificate_expiring", str(soon.path), "expires in 1 days")
        hang_up(daemon, text(good))
        for name, subject in (("certificate_expired", expired), ("certificate_expiring", soon)):
            ends(daemon, name, str(subject.path))
        ends(daemon, "reload_refused")


def test_upstreams(cli):
    """A port without a listener, then a service there; a service that takes its time."""
    url = dead_address()
    with upstream() as behind:
        text = f"gateway: {{routes: [{{types: [slow], upstream: {behind.url}/hold}}, {{upstream: {url}}}]}}\ndefaults: {{max_run: 300ms, lease: 300ms}}\n"
        with serve(cli, None, config=text) as daemon:
            for number in range(3):
                expect(post(daemon.gateway, f"a{number}").status, 502)
            begins(daemon, "upstream_down", url.removeprefix("http://"))
            expect(get(daemon.admin, "/readyz").status, 200)
            expect(post(daemon.gateway, "s", ce_type="slow").status, 504)
            begins(daemon, "upstream_slow", behind.url.removeprefix("http://"), "in time")
            with contextlib.closing(DemoUpstream(cli, listen=url.removeprefix("http://"))):
                expect(post(daemon.gateway, "b").status, 200)
                behind.release.set()
                expect(post(daemon.gateway, "t", ce_type="slow").status, 200)
                ends(daemon, "upstream_down", url.removeprefix("http://"))
                ends(daemon, "upstream_slow", behind.url.removeprefix("http://"))


def test_a_broker_that_is_away(cli):
    """Of a consumer; other work goes on."""
    with redis(cli) as server, upstream() as behind:
        text = f"consumers: [{{name: orders, from: '{server.url}?stream=orders&group=g', to: {behind.url}}}]\n"
        with serve(cli, behind.url, config=text) as daemon:
            until(lambda: "[+]consumers ok" in get(daemon.admin, "/healthz?verbose").body.decode(), "it runs")
            server.stop()
            begins(daemon, "broker_away", "orders")
            expect((post(daemon.gateway, "x").status, get(daemon.admin, "/readyz").status), (200, 200))
            server.start()
            event = ["content-type", "application/cloudevents+json", "data", json.dumps(structured("1"))]
            subprocess.run(["redis-cli", "-s", str(server.socket), "xadd", "orders", "*", *event], check=True, capture_output=True)
            ends(daemon, "broker_away", "orders")
