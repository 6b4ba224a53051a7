# SPDX-License-Identifier: Apache-2.0
"""From rounds to figures: medians, ranges, ratios, verdicts."""

import statistics


def judge(row, result):
    """Add to a result what its rounds say about each figure and goal of its row."""
    rounds = {entry["label"]: entry["rounds"] for entry in result["entries"]}
    result["figures"] = [_figure(figure, rounds) for figure in row.figures]
    result["costs"] = _costs(result["entries"])


def _figure(figure, rounds):
    labels = figure.show or list(rounds)
    series = {
        label: [_value(measures[figure.measure], figure.of) for measures in rounds[label]]
        for label in labels
        if label in rounds and all(figure.measure in measures for measures in rounds[label])
    }
    return {
        "name": figure.name,
        "measure": figure.measure,
        "of": figure.of,
        "unit": figure.unit,
        "better": figure.better,
        "ours": sorted({label for goal in figure.goals for label in goal.ours}),
        "values": {label: _spread(values) for label, values in series.items()},
        "goals": [_goal(goal, figure.better, series) for goal in figure.goals],
    }


def _goal(goal, better, series):
    ours = _pick(goal.ours, series, worst=True, better=better)
    peer = _pick(goal.peer, series, worst=False, better=better)
    verdict = {
        "ours_label": ours or ", ".join(goal.ours),
        "peer_label": peer or ", ".join(goal.peer),
        "ours": _spread(series[ours]) if ours else None,
        "peer": _spread(series[peer]) if peer else None,
        "ratio": None,
        "goal": _goal_text(goal),
        "limit": None,
        "verdict": "not measured",
    }
    if ours is None or (goal.peer and peer is None):
        return verdict
    # Where the goal is a speed-up, the ratio says how many times better ours is; else ours / peer.
    if peer:
        over, under = series[ours], series[peer]
        if goal.speedup_min is not None and better == "lower":
            over, under = under, over
        pairs = [a / b for a, b in zip(over, under) if b]
        verdict["ratio"] = {
            "median": statistics.median(over) / statistics.median(under),
            "low": min(pairs),
            "high": max(pairs),
        }
    verdict["limit"] = _limit(goal, better, verdict)
    verdict["verdict"] = _word(goal, verdict)
    return verdict


def _limit(goal, better, verdict):
    """What ours must not pass for the goal to be met, in the figure's unit: the line in the plot."""
    if goal.value_max is not None:
        return goal.value_max
    if goal.speedup_min is not None:
        peer = verdict["peer"]["median"]
        return peer / goal.speedup_min if better == "lower" else peer * goal.speedup_min
    if goal.ratio_max is not None:
        return verdict["peer"]["median"] * goal.ratio_max
    return None


def _word(goal, verdict):
    if goal.value_max is not None:
        return "met" if verdict["ours"]["median"] <= goal.value_max else "missed"
    if goal.speedup_min is not None:
        return "met" if verdict["ratio"]["median"] >= goal.speedup_min else "missed"
    if goal.ratio_max is not None:
        return "met" if verdict["ratio"]["median"] <= goal.ratio_max else "missed"
    return "for information"


def _goal_text(goal):
    if goal.value_max is not None:
        return f"≤ {goal.value_max:g}"
    if goal.speedup_min is not None:
        return f"≥ {goal.speedup_min:g}×"
    if goal.ratio_max is not None:
        return f"≤ {goal.ratio_max:g}×"
    return "–"


def _pick(labels, series, worst, better):
    there = [label for label in labels if label in series]
    if not there or (worst and len(there) < len(labels)):
        return None
    high = worst == (better == "lower")
    return (max if high else min)(there, key=lambda label: statistics.median(series[label]))


def _value(measure, of):
    if of == "value":
        return measure
    return measure[of] / measure["ops"]


def _spread(values):
    return {"median": statistics.median(values), "low": min(values), "high": max(values)}


def _costs(entries):
    """CPU and wall time per operation of every timed measure, whatever the figures ask for."""
    costs = []
    for entry in entries:
        for name, first in entry["rounds"][0].items():
            if not isinstance(first, dict):
                continue
            measures = [measures[name] for measures in entry["rounds"]]
            costs.append(
                {
                    "label": entry["label"],
                    "measure": name,
                    "ops": first["ops"],
                    "cpu": _spread([_value(measure, "cpu_ns") for measure in measures]),
                    "wall": _spread([_value(measure, "wall_ns") for measure in measures]),
                }
            )
    return costs
