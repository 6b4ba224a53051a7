# SPDX-License-Identifier: Apache-2.0
"""What people read: the table on the terminal, and the pages under bench/results/."""

import json

from harness import svg
from harness.svg import number

HEAD = ["row", "peer", "ours", "peer", "ratio", "goal", "verdict"]


def table_rows(result):
    """The lines of the table of one row: a list of cells for each goal."""
    lines = []
    for figure in result["figures"]:
        several = len({goal["ours_label"] for goal in figure["goals"]}) > 1
        for goal in figure["goals"]:
            lines.append(
                [
                    f"{result['title']}: {figure['name']}" + (f", {goal['ours_label']}" if several else ""),
                    _peer(result, goal),
                    _measured(goal["ours"], figure["unit"]),
                    _measured(goal["peer"], figure["unit"]),
                    _ratio(goal["ratio"]),
                    goal["goal"] + (f" {figure['unit']}" if goal["goal"][-1].isdigit() else ""),
                    goal["verdict"],
                ]
            )
    return lines


def _peer(result, goal):
    """The peer by its label, and its version unless that is ours."""
    entries = {entry["label"]: entry for entry in result["entries"]}
    ours, peer = entries.get(goal["ours_label"]), entries.get(goal["peer_label"])
    if peer is None or (ours and ours["version"] == peer["version"]):
        return goal["peer_label"] or "–"
    return f"{peer['label']} ({peer['version']})"


def print_table(results):
    """The table on the terminal, in columns."""
    lines = [HEAD] + [line for result in results for line in table_rows(result)]
    widths = [max(len(line[i]) for line in lines) for i in range(len(HEAD))]
    for index, line in enumerate(lines):
        print(" | ".join(cell.ljust(width) for cell, width in zip(line, widths)).rstrip())
        if index == 0:
            print("-|-".join("-" * width for width in widths))


def write(result, folder):
    """<row>.json, <row>.svg and <row>.md, then the index of all rows in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{result['row']}.json").write_text(_json(result), encoding="utf-8")
    (folder / f"{result['row']}.svg").write_text(svg.draw(result), encoding="utf-8")
    (folder / f"{result['row']}.md").write_text(_page(result), encoding="utf-8")


def write_index(folder, row_names):
    """README.md: every row that has a result, in the order of the rows."""
    results = []
    for name in row_names:
        path = folder / f"{name}.json"
        if path.exists():
            results.append(json.loads(path.read_text(encoding="utf-8")))
    lines = [
        "# Results",
        "",
        "Written by `bench/run`; [bench/README.md](../README.md) says how. Each row has a page with its rounds,",
        "commands and machine behind its name.",
        "",
        *_markdown(HEAD + ["measured", "by"], [
            [f"[{line[0]}]({result['row']}.md)", *line[1:], result["machine"]["date"][:10],
             f"`{result['command']}`"]
            for result in results
            for line in table_rows(result)
        ]),
    ]
    (folder / "README.md").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _page(result):
    machine = result["machine"]
    lines = [
        f"# {result['title']}",
        "",
        result["about"],
        "",
        f"![{result['title']}]({result['row']}.svg)",
        "",
        *_markdown(HEAD, table_rows(result)),
        "",
        f"    {result['command']}",
        "",
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB, {machine['system']}, "
        f"Linux {machine['kernel']}, {machine['date']}, hapax {result['commit'] or 'without a commit'}.",
        _conditions(result),
        "",
        *_values(result),
        *_costs(result),
        "## Commands",
        "",
        *_markdown(
            ["contestant", "version", "command"],
            [[entry["label"], entry["version"], f"`{entry['shown']}`"] for entry in result["entries"]],
        ),
    ]
    for label, reason in result["left_out"].items():
        lines += ["", f"Left out: {label} ({reason})."]
    return "\n".join(lines) + "\n"


def _conditions(result):
    text = f"{result['rounds']} rounds in turn"
    text += f" after {result['warmup']} that did not count" if result["warmup"] else ""
    text += ", a new process for each" if result["fresh"] else ""
    busy = result["bystanders"]
    if busy:
        text += (f". Other processes took {busy['median']:.0%} of the machine meanwhile "
                 f"(at most {busy['max']:.0%} in a round)")
    for warning in result["warnings"]:
        text += f". **{warning}**"
    return text + "."


def _values(result):
    """Figures that are not times: what each entry has, median and range."""
    lines = []
    for figure in result["figures"]:
        if figure["of"] == "value":
            lines += [f"## {figure['name']} ({figure['unit']})", "", *_markdown(
                ["contestant", "median", "range"],
                [[label, number(value["median"]), _range(value)] for label, value in figure["values"].items()],
            ), ""]
    return lines


def _costs(result):
    if not result["costs"]:
        return []
    rows = [
        [cost["label"], cost["measure"], f"{cost['ops']:,}", number(cost["cpu"]["median"]), _range(cost["cpu"]),
         number(cost["wall"]["median"]), _range(cost["wall"])]
        for cost in result["costs"]
    ]
    head = ["contestant", "measure", "operations", "CPU ns/op", "range", "wall ns/op", "range"]
    return ["## Time per operation", "", *_markdown(head, rows), ""]


def _markdown(head, rows):
    return ["| " + " | ".join(cells) + " |" for cells in [head, ["---"] * len(head), *rows]]


def _measured(value, unit):
    return f"{number(value['median'])} {unit} ({_range(value)})" if value else "–"


def _ratio(value):
    if value is None:
        return "–"
    return f"{value['median']:.2f}× ({value['low']:.2f}–{value['high']:.2f})"


def _range(value):
    return f"{number(value['low'])}–{number(value['high'])}"


def _json(result):
    return json.dumps(result, indent=1, ensure_ascii=False) + "\n"
