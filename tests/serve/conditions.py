"""conditions.py - what the daemon says of a condition: in the log, at /healthz, in the API and as a metric."""

from daemon import get, log_line
from harness import expect, until


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
    assert metric(daemon, name) >= 1
    listed = get(daemon.admin, "/api/v1/conditions")
    # A daemon with tokens wants one.
    if listed.status != 401:
        shown = [(a["name"], a.get("subject"), a["severity"], a["since"]) for a in listed.json["conditions"]]
        assert (name, subject, severity, row["since"]) in shown, shown
    verbose = get(daemon.admin, "/healthz?verbose").body.decode()
    assert f"[!]{name}{' ' + subject if subject else ''} ({severity}, since {row['since']}): " in verbose, verbose


def ends(daemon, name, subject=None):
    """It has ended: nothing says it any more, and one line how long it was."""
    until(lambda: said(daemon, "condition ended", name, subject), f"{name} has ended")
    (line,) = said(daemon, "condition ended", name, subject)
    assert line["lasted"], line
    left = health(daemon)[1]
    assert (name, subject) not in left, left
    expect(metric(daemon, name), sum(other == name for other, _ in left))
    expect(len(said(daemon, "condition began", name, subject)), 1)
