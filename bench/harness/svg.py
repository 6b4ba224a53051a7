# SPDX-License-Identifier: Apache-2.0
"""A row's figures as horizontal bars: median, range, and the line that the goal draws."""

from xml.sax.saxutils import escape

WIDTH = 860
LABEL_WIDTH = 210
VALUE_WIDTH = 150
BAR = 16
STEP = 26
OURS, PEER, GOAL, INK, FAINT = "#0b6e4f", "#9aa5b1", "#c0392b", "#1f2933", "#616e7c"


def draw(result):
    """The text of an SVG file."""
    figures = [figure for figure in result["figures"] if figure["values"]]
    height = 62 + sum(_panel_height(figure) for figure in figures) + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
        f'height="{height}" font-family="system-ui, sans-serif" font-size="13">',
        f'<rect width="{WIDTH}" height="{height}" fill="#ffffff"/>',
        _text(20, 28, result["title"], size=17, weight="600"),
        _text(20, 48, _machine(result), size=11, fill=FAINT),
    ]
    top = 62
    for figure in figures:
        out += _panel(figure, top)
        top += _panel_height(figure)
    out.append(_text(20, height - 12, f"{result['command']} · bars: median, whiskers: range of the rounds, "
                     "red: what the goal allows", size=11, fill=FAINT))
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _panel_height(figure):
    return 44 + STEP * len(figure["values"])


def _panel(figure, top):
    better = "less is better" if figure["better"] == "lower" else "more is better"
    out = [_text(20, top + 24, f"{figure['name']} ({figure['unit']}; {better})", weight="600")]
    limits = [goal["limit"] for goal in figure["goals"] if goal["limit"] is not None]
    end = max([value["high"] for value in figure["values"].values()] + limits) or 1
    scale = (WIDTH - LABEL_WIDTH - VALUE_WIDTH - 20) / end
    for index, (label, value) in enumerate(figure["values"].items()):
        y = top + 36 + index * STEP
        out += _bar(label, value, y, scale, OURS if label in figure["ours"] else PEER)
        for limit in sorted({g["limit"] for g in figure["goals"] if g["ours_label"] == label and g["limit"]}):
            x = LABEL_WIDTH + limit * scale
            out.append(f'<line x1="{x:.1f}" x2="{x:.1f}" y1="{y - 3}" y2="{y + BAR + 3}" '
                       f'stroke="{GOAL}" stroke-width="2"/>')
    return out


def _bar(label, value, y, scale, fill):
    x = LABEL_WIDTH + value["median"] * scale
    low, high = LABEL_WIDTH + value["low"] * scale, LABEL_WIDTH + value["high"] * scale
    middle = y + BAR / 2
    return [
        _text(LABEL_WIDTH - 8, y + 13, label, anchor="end"),
        f'<rect x="{LABEL_WIDTH}" y="{y}" width="{max(x - LABEL_WIDTH, 1):.1f}" height="{BAR}" fill="{fill}"/>',
        f'<path d="M{low:.1f} {middle}H{high:.1f}M{low:.1f} {middle - 4}v8M{high:.1f} {middle - 4}v8" '
        f'stroke="{INK}" stroke-width="1" fill="none"/>',
        _text(max(x, high) + 8, y + 13, f"{number(value['median'])}"),
    ]


def _machine(result):
    machine = result["machine"]
    return (f"{machine['cpu']}, {machine['cores']} cores, Linux {machine['kernel']}, {machine['date']}, "
            f"{result['rounds']} rounds")


def _text(x, y, text, size=13, fill=INK, weight="400", anchor="start"):
    return (f'<text x="{x:.1f}" y="{y}" font-size="{size}" fill="{fill}" font-weight="{weight}" '
            f'text-anchor="{anchor}">{escape(text)}</text>')


def number(value):
    """Three digits that matter, thousands set apart."""
    if abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"
