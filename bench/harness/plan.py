# SPDX-License-Identifier: Apache-2.0
"""Rows and contestants: what is measured, against whom, with which goal. Read from TOML, checked here."""

import dataclasses
import pathlib
import tomllib

BENCH = pathlib.Path(__file__).resolve().parent.parent
ROUNDS_MIN = 7


class PlanError(Exception):
    """A row or contestant file is wrong; the message names it."""


@dataclasses.dataclass
class Contestant:
    """A program that plays by the protocol; the fields are those of contestants.toml."""

    name: str
    command: list
    target: str = ""
    build: list = dataclasses.field(default_factory=list)
    folder: str = "."
    needs: list = dataclasses.field(default_factory=list)
    get: list = dataclasses.field(default_factory=list)
    unlike: list = dataclasses.field(default_factory=list)
    env: dict = dataclasses.field(default_factory=dict)


@dataclasses.dataclass
class Entry:
    """A contestant in a row, with the row's arguments. `label` is what tables and plots call it."""

    label: str
    contestant: str
    args: list = dataclasses.field(default_factory=list)
    quick: bool = True  # takes part in --quick


@dataclasses.dataclass
class Goal:
    """ours against peer; a list means the worst of ours, the best of the peers.

    speedup_min  ours is at least so many times better than the peer
    ratio_max    ours / peer is at most this
    value_max    ours is at most this, whatever the peer has
    None of them: for information.
    """

    ours: list
    peer: list
    speedup_min: float | None = None
    ratio_max: float | None = None
    value_max: float | None = None


@dataclasses.dataclass
class Figure:
    """One panel of the plot: a measure of the entries, and the goals that it is held to."""

    name: str
    measure: str
    unit: str
    of: str = "cpu_ns"  # cpu_ns and wall_ns are per operation; value: as printed
    better: str = "lower"
    show: list = dataclasses.field(default_factory=list)  # entries in the panel; empty: all
    goals: list = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Row:
    """One file of rows/."""

    name: str
    title: str
    about: str
    entries: list
    figures: list
    order: int = 100
    rounds: int = ROUNDS_MIN
    warmup: int = 1
    fresh: bool = False  # a new process for every round
    warm_mib: int = 0  # free memory that is made sure to be backed before each turn: see machine.py
    timeout_s: int = 900  # for one round of one entry
    values: dict = dataclasses.field(default_factory=dict)
    quick: dict = dataclasses.field(default_factory=dict)


def load_contestants():
    """Every contestant by name."""
    path = BENCH / "contestants.toml"
    with path.open("rb") as file:
        return {name: _make(Contestant, {"name": name, **table}, path) for name, table in tomllib.load(file).items()}


def load_rows():
    """Every row, in the order in which they run."""
    rows = [_load_row(path) for path in sorted((BENCH / "rows").glob("*.toml"))]
    return sorted(rows, key=lambda row: (row.order, row.name))


def _load_row(path):
    with path.open("rb") as file:
        table = tomllib.load(file)
    table["name"] = path.stem
    table["entries"] = [_make(Entry, entry, path) for entry in table.pop("entry", [])]
    table["figures"] = [_load_figure(figure, path) for figure in table.pop("figure", [])]
    row = _make(Row, table, path)
    labels = {entry.label for entry in row.entries}
    if len(labels) < len(row.entries):
        raise PlanError(f"{path}: two entries have one label")
    for figure in row.figures:
        named = figure.show + [label for goal in figure.goals for label in goal.ours + goal.peer]
        for label in named:
            if label not in labels:
                raise PlanError(f"{path}: figure '{figure.name}' names no entry '{label}'")
    return row


def _load_figure(table, path):
    goals = [
        _make(Goal, {**goal, "ours": _listed(goal["ours"]), "peer": _listed(goal.get("peer", []))}, path)
        for goal in table.pop("goals", [])
    ]
    figure = _make(Figure, {**table, "goals": goals}, path)
    if figure.of not in ("cpu_ns", "wall_ns", "value") or figure.better not in ("lower", "higher"):
        raise PlanError(f"{path}: figure '{figure.name}': 'of' or 'better' has an unknown value")
    return figure


def _listed(value):
    return value if isinstance(value, list) else [value]


def _make(kind, table, path):
    known = {field.name for field in dataclasses.fields(kind)}
    unknown = sorted(set(table) - known)
    if unknown:
        raise PlanError(f"{path}: unknown key '{unknown[0]}' ({kind.__name__.lower()})")
    try:
        return kind(**table)
    except TypeError as error:
        raise PlanError(f"{path}: {error}") from error
