"""Conditions (E13, E16): each begins and ends for real, seen in the log, at /healthz and as a metric."""

import signal

from daemon import get, log_line, serve
from harness import expect, until

NOWHERE = "http://127.0.0.1:9"


def said(daemon, msg, name, subject=None):
    """The lines of a condition."""
    lines = [log_line(line) for line in daemon.lines]
    return [line for line in lines if (line.get("msg"), line.get("condition"), line.get("subject")) == (msg, name, subject)]


def health(daemon):
    """The status of /healthz, and its conditions by name and subject."""
    reply = get(daemon.admin, "/healthz", Accept="application/json")
    return reply.status, {(row["name"], row.get("subject")): row for row in reply.json["conditions"]}


def metric(daemon, name):
    lines = get(daemon.admin, "/metrics").body.decode().splitlines()
    (value,) = [line.rsplit(" ", 1)[1] for line in lines if line.startswith(f'hapax_conditions{{name="{name}",')]
    since = [line for line in lines if line.startswith(f'hapax_condition_since_timestamp_seconds{{name="{name}"}}')]
    expect(len(since), min(1, int(value)))
    return int(value)


def begins(daemon, name, subject=None, reason="", severity="warning", status=200):
    """It has begun: everything says so, once."""
    until(lambda: said(daemon, "condition began", name, subject), f"{name} has begun")
    (line,) = said(daemon, "condition began", name, subject)
    until(lambda: health(daemon)[0] == status, f"/healthz answers {status}")
    row = health(daemon)[1][name, subject]
    for found in (line, row):
        expect(found["severity"], severity)
        assert reason in found["reason"], found
    expect(metric(daemon, name), 1)
    verbose = get(daemon.admin, "/healthz?verbose").body.decode()
    assert f"[!]{name}{' ' + subject if subject else ''} ({severity}, since {row['since']}): " in verbose, verbose


def ends(daemon, name, subject=None):
    """It has ended: nothing says it any more, and one line how long it was."""
    until(lambda: said(daemon, "condition ended", name, subject), f"{name} has ended")
    (line,) = said(daemon, "condition ended", name, subject)
    assert line["lasted"], line
    assert (name, subject) not in health(daemon)[1]
    expect(metric(daemon, name), 0)
    expect(len(said(daemon, "condition began", name, subject)), 1)


def test_a_reload_that_is_refused(cli):
    with serve(cli, NOWHERE, config="log: {level: info}\n") as daemon:
        expect(health(daemon)[1].keys() - {("clock_unsynchronized", None)}, set())
        good = daemon.config.read_text()
        daemon.config.write_text("log: {level: loud}\n")
        daemon.process.send_signal(signal.SIGHUP)
        begins(daemon, "reload_refused", reason="loud")
        expect(get(daemon.admin, "/readyz").status, 200)
        daemon.config.write_text(good)
        daemon.process.send_signal(signal.SIGHUP)
        ends(daemon, "reload_refused")
