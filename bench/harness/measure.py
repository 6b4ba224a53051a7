# SPDX-License-Identifier: Apache-2.0
"""Run a row: every entry in turn, round after round, so that what the machine does hits all alike."""

import shlex
import statistics
import sys

from harness import machine, plan
from harness.session import Session


def run_row(row, workshop, rounds, quick):
    """The rounds of every entry that can take part, as plain data."""
    values = {**row.values, **(row.quick if quick else {})}
    entries, left_out = _prepare(row, workshop, values, quick)
    busy = []
    sessions = {}
    try:
        for number in range(row.warmup + rounds):
            for entry in entries:
                session = sessions.get(entry["label"]) or _start(entry, row)
                sessions[entry["label"]] = session
                entry["version"] = session.hello.get("version", "")
                machine.warm_memory(row.warm_mib)
                watch = machine.Bystanders()
                measures, own_cpu_s = session.round()
                if number >= row.warmup:
                    entry["rounds"].append(measures)
                    busy.append(watch.share(own_cpu_s))
                _say(row, number + 1, row.warmup + rounds, number < row.warmup, entry, measures)
                if row.fresh:
                    sessions.pop(entry["label"]).close()
        for session in sessions.values():
            session.close()
    except BaseException:
        # Failed or interrupted: a round that is under way is not waited for.
        for session in sessions.values():
            session.kill()
        raise
    for entry in entries:
        del entry["env"]
    return {
        "row": row.name,
        "title": row.title,
        "about": row.about.strip(),
        "rounds": rounds,
        "warmup": row.warmup,
        "fresh": row.fresh,
        "quick": quick,
        "entries": entries,
        "left_out": left_out,
        "bystanders": {"median": statistics.median(busy), "max": max(busy)} if busy else {},
    }


def _prepare(row, workshop, values, quick):
    entries, left_out = [], {}
    for entry in row.entries:
        contestant = workshop.contestants.get(entry.contestant)
        if contestant is None:
            raise plan.PlanError(f"row '{row.name}': no contestant '{entry.contestant}'")
        reason = workshop.reason_to_leave_out(contestant)
        if quick and not entry.quick:
            reason = "not in --quick"
        if reason:
            left_out[entry.label] = reason
            print(f"{row.name}: '{entry.label}' is left out: {reason}", file=sys.stderr)
            continue
        workshop.build(contestant)
        command = workshop.command(contestant, entry.args, values)
        entries.append(
            {
                "label": entry.label,
                "contestant": contestant.name,
                "version": "",
                "command": command,
                "env": workshop.environment(contestant),
                "rounds": [],
            }
        )
    return entries, left_out


def _start(entry, row):
    return Session(entry["label"], entry["command"], entry["env"], row.timeout_s)


def _say(row, number, total, warmup, entry, measures):
    parts = []
    for name, measure in measures.items():
        if isinstance(measure, dict):
            parts.append(f"{name} {measure['cpu_ns'] / measure['ops']:.1f} ns")
        else:
            parts.append(f"{name} {measure:g}")
    note = " (warm-up)" if warmup else ""
    print(f"{row.name} {number}/{total}{note} {entry['label']}: {', '.join(parts)}", file=sys.stderr)


def shown_command(command, root):
    """A command line as a person would type it at the root of the project."""
    words = []
    for word in command:
        word = "python3" if word == sys.executable else word
        words.append(word.replace(f"{root}/", ""))
    return shlex.join(words)
