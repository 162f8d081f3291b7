"""Charts as inline SVG for the report: no script, no font, no file from elsewhere. Colours come from the page's CSS.

By hand because a chart must follow the reader's light or dark theme and shrink to a phone, and weigh little.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from markupsafe import Markup

LARGEST = 1e300  # values beyond are drawn there: differences of larger ones are not finite
WIDTH, HEIGHT = 420, 236
LEFT, RIGHT, TOP, BOTTOM = 54, 12, 10, 34
MOST_POINTS = 300  # of a line; more are averaged
DOTS_UP_TO = 40
LEAST_SPAN = 0.1  # of an axis in per cent
FEW = 10  # completions of a length; their share of right ones says little

Point = tuple[float, float]


@dataclass
class Series:
    """A line. `style` is a class of the page's CSS (`before`, `after`, `third`, `fourth`); `band` is low and high."""

    name: str
    style: str
    points: Sequence[Point]
    band: Sequence[tuple[float, float, float]] = ()  # (x, low, high)
    smooth: bool = False  # draw the line faintly, and its moving average over it
    dots: bool = False
    stairs: bool = False  # a value holds until the next one; drawn exactly


@dataclass
class Axis:
    """Range and ticks of one direction."""

    low: float
    high: float
    ticks: list[float] = field(default_factory=list)

    @classmethod
    def over(cls, values: Sequence[float], count: int = 5, floor: float | None = None, whole: bool = False) -> Axis:
        """An axis with round ticks that holds all values; `floor` is included if given, `whole`: ticks are integers."""
        known = [min(max(v, -LARGEST), LARGEST) for v in values if math.isfinite(v)] or [0.0, 1.0]
        low, high = min(known), max(known)
        low = low if floor is None else min(low, floor)
        if high - low <= 1e-12 * max(1.0, abs(low), abs(high)):
            margin = 0.5 * max(1.0, 1e-6 * abs(low))  # a half is nothing beside 1e17
            low, high = (low - margin, high + margin) if floor is None else (low, low + 2 * margin)
        step = nice((high - low) / count)
        if whole:
            step = float(max(1, math.ceil(step)))
        first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
        return cls(first * step, last * step, [i * step for i in range(first, last + 1)])

    def place(self, value: float, start: float, stop: float) -> float:
        """The coordinate of a value, between those of the ends."""
        return start + (value - self.low) / (self.high - self.low) * (stop - start)


def nice(step: float) -> float:
    """The next of 1, 2, 2.5 and 5 times a power of ten."""
    power = 10.0 ** math.floor(math.log10(step))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= step * (1 - 1e-9))


def number(value: float) -> str:
    """For ticks and tips: `0.25`, `1,200`, `3e-05`."""
    if value == 0:
        return "0"
    if abs(value) >= 1e12:
        return f"{value:.3g}"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    if abs(value) < 0.001:
        return f"{value:.0e}"
    return f"{value:.3g}"


def percent(value: float) -> str:
    """`25 %`."""
    return f"{100 * value:.3g} %"


def average(points: Sequence[Point], window: int) -> list[Point]:
    """Centred moving average over `window` points, narrower at the ends."""
    half = window // 2
    found = []
    for i, (x, _) in enumerate(points):
        near = points[max(0, i - half) : i + half + 1]
        found.append((x, sum(y for _, y in near) / len(near)))
    return found


def between(points: Sequence[Point], cuts: Sequence[float]) -> list[list[Point]]:
    """The points before, between and after some x; parts without points are left out."""
    ends = [-math.inf, *sorted(cuts), math.inf]
    parts = [[p for p in points if a < p[0] <= b] for a, b in itertools.pairwise(ends)]
    return [p for p in parts if p]


def thin(points: Sequence[Point], most: int = MOST_POINTS) -> list[Point]:
    """At most so many points: means of neighbours."""
    size = -(-len(points) // most)
    if size <= 1:
        return list(points)
    parts = [points[i : i + size] for i in range(0, len(points), size)]
    return [(sum(x for x, _ in p) / len(p), sum(y for _, y in p) / len(p)) for p in parts]


def staircase(points: Sequence[Point]) -> list[Point]:
    """The corners of a line that stays where it is until the next value."""
    found = list(points[:1])
    for x, y in points[1:]:
        if y != found[-1][1]:
            found += [(x, found[-1][1]), (x, y)]
    return [*found, (points[-1][0], found[-1][1])] if found and points[-1][0] > found[-1][0] else found


def line_chart(
    series: Sequence[Series],
    x_label: str,
    label: str,
    share: bool = False,
    floor: float | None = None,
    marks: Sequence[tuple[float, str]] = (),
    x_floor: float | None = None,
    x_whole: bool = True,
) -> Markup:
    """Lines over a common x. `share`: y in per cent. `marks` are dashed vertical lines with a word each. `x_whole`: x
    is a count."""
    series = [s for s in series if s.points]
    if not series:
        return Markup("")
    ys = [y for s in series for _, y in s.points] + [v for s in series for _, low, high in s.band for v in (low, high)]
    xs = [x for s in series for x, _ in s.points]
    x_axis = Axis.over(xs, 6, x_floor, whole=x_whole)
    x_axis.low = min(xs) if x_floor is None else x_floor
    most = max([*xs, *(m for m, _ in marks)])
    x_axis.high = most if most > x_axis.low and not x_whole else max(most, x_axis.low + 1)
    if share and max(ys) - min(ys) < LEAST_SPAN:  # a change of less is not made to look large
        ys += [max(0.0, max(ys) - LEAST_SPAN), min(1.0, min(ys) + LEAST_SPAN)]
    y_axis = Axis.over(ys, 4, floor)
    show = percent if share else number

    def at(x: float, y: float) -> str:
        return f"{x_axis.place(x, LEFT, WIDTH - RIGHT):.1f},{y_axis.place(y, HEIGHT - BOTTOM, TOP):.1f}"

    out = [frame(label), *y_grid(y_axis, show)]
    for tick in x_axis.ticks:
        if x_axis.low - 1e-9 <= tick <= x_axis.high + 1e-9:
            x = x_axis.place(tick, LEFT, WIDTH - RIGHT)
            out.append(
                f'<text class="tick" x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{number(tick)}</text>'
            )
    out.append(axis_name(x_label))
    for x, word in marks:
        place = x_axis.place(x, LEFT, WIDTH - RIGHT)
        out.append(f'<line class="mark" x1="{place:.1f}" x2="{place:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>')
        late = place > (LEFT + WIDTH) / 2
        left, anchor = (place - 4, "end") if late else (place + 4, "start")
        out.append(f'<text class="tick" x="{left:.1f}" y="{TOP + 9}" text-anchor="{anchor}">{escape(word)}</text>')
    for s in series:
        points = [p for p in s.points if math.isfinite(p[1])]
        if s.band:
            upper = " ".join(at(x, high) for x, _, high in s.band)
            lower = " ".join(at(x, low) for x, low, _ in reversed(s.band))
            out.append(f'<polygon class="band {s.style}" points="{upper} {lower}"/>')
        smooth = s.smooth and len(points) >= 20
        drawn = " ".join(at(*p) for p in (staircase(points) if s.stairs else thin(points)))
        out.append(f'<polyline class="{"raw" if smooth else "line"} {s.style}" points="{drawn}"/>')
        if smooth:
            window = max(3, len(points) // 12)
            for part in between(points, [x for x, _ in marks]):
                means = thin(average(part, window))
                out.append(f'<polyline class="line {s.style}" points="{" ".join(at(*p) for p in means)}"/>')
        for x, y in points if len(points) <= DOTS_UP_TO else ():
            cx, cy = at(x, y).split(",")
            kind = "dot" if s.dots or len(points) == 1 else "tip"
            out.append(
                f'<circle class="{kind} {s.style}" cx="{cx}" cy="{cy}" r="{3 if kind == "dot" else 6}">'
                f"<title>{escape(s.name)}: {show(y)} at {escape(x_label)} {number(x)}</title></circle>"
            )
    out.append("</svg>")
    return Markup("".join(out))


def frame(label: str, height: float = HEIGHT) -> str:
    """The opening of a chart; `label` says in words what it shows."""
    return f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(label)}">'


def y_grid(axis: Axis, show: object) -> list[str]:
    """Horizontal lines with their values."""
    out = []
    for tick in axis.ticks:
        y = axis.place(tick, HEIGHT - BOTTOM, TOP)
        text = show(tick) if callable(show) else ""
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text class="tick" x="{LEFT - 6}" y="{y + 3.5:.1f}" text-anchor="end">{text}</text>')
    return out


def axis_name(text: str, height: float = HEIGHT) -> str:
    """The name of the x axis."""
    x = (LEFT + WIDTH - RIGHT) / 2
    return f'<text class="axis" x="{x}" y="{height - 3:g}" text-anchor="middle">{escape(text)}</text>'


@dataclass
class Row:
    """A row of an interval chart: a name, and (style, mean, low, high) marks."""

    name: str
    marks: list[tuple[str, float, float, float]]


def interval_chart(rows: Sequence[Row], label: str) -> Markup:
    """Shares with their intervals, one row each, as dots and whiskers; labels stand above their row."""
    values = [v for r in rows for _, _, low, high in r.marks for v in (low, high) if math.isfinite(v)]
    axis = Axis.over([*values, 0.0], 5, 0.0)
    axis.high = min(axis.high, 1.0) if max(values, default=0) <= 1 else axis.high
    spacing, top = 44, 6
    height = top + spacing * len(rows) + 34
    left, right = 10, WIDTH - 14
    out = [frame(label, height)]
    for tick in axis.ticks:
        x = axis.place(tick, left, right)
        if tick <= axis.high + 1e-9:
            out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{top}" y2="{height - 32}"/>')
            anchor = "start" if tick == axis.ticks[0] else "middle"
            out.append(
                f'<text class="tick" x="{x:.1f}" y="{height - 18}" text-anchor="{anchor}">{percent(tick)}</text>'
            )
    for place, row in enumerate(rows):
        y = top + spacing * place
        out.append(f'<text class="rowname" x="{left}" y="{y + 14}">{escape(row.name)}</text>')
        for line, (style, mean, low, high) in enumerate(row.marks):
            at = y + 23 + 10 * line
            x1, x2, x = (axis.place(max(axis.low, min(axis.high, v)), left, right) for v in (low, high, mean))
            out.append(f'<line class="whisker {style}" x1="{x1:.1f}" x2="{x2:.1f}" y1="{at}" y2="{at}"/>')
            shape = (
                f'<circle class="dot {style}" cx="{x:.1f}" cy="{at}" r="4.5">'
                if style != "before"
                else f'<rect class="dot {style}" x="{x - 4:.1f}" y="{at - 4}" width="8" height="8">'
            )
            tip = f"<title>{escape(row.name)}: {percent(mean)} [{percent(low)}, {percent(high)}]</title>"
            out.append(shape + tip + ("</circle>" if style != "before" else "</rect>"))
    out.append(axis_name("accuracy on the test split, with 97.5 % intervals", height))
    out.append("</svg>")
    return Markup("".join(out))


@dataclass
class Bin:
    """Trajectories of a range of lengths: share of all, and their mean outcome (nan where there are none)."""

    low: int
    high: int
    share: float
    outcome: float
    count: int = FEW

    @property
    def name(self) -> str:
        """`4` or `4-7`."""
        return str(self.low) if self.low == self.high else f"{self.low}-{self.high}"


def length_chart(before: Sequence[Bin], after: Sequence[Bin], label: str) -> Markup:
    """Bars: how often completions have a length. Marks: how often those of that length are right."""
    groups = [g for g in (before, after) if g]
    if not groups:
        return Markup("")
    count = len(groups[0])
    axis = Axis.over([b.share for g in groups for b in g] + [b.outcome for g in groups for b in g], 4, 0.0)
    width = (WIDTH - LEFT - RIGHT) / count
    out = [frame(label), *y_grid(axis, percent)]
    styles = ("before", "after")[-len(groups) :]
    lines: dict[str, list[str]] = {s: [] for s in styles}
    for place in range(count):
        x = LEFT + width * place
        for line, (style, group) in enumerate(zip(styles, groups, strict=True)):
            b = group[place]
            bar = width * 0.8 / len(groups)
            left = x + width * 0.1 + bar * line
            y = axis.place(b.share, HEIGHT - BOTTOM, TOP)
            tip = f"{style}: {percent(b.share)} have {b.name} tokens; {percent(b.outcome)} of them are right"
            out.append(
                f'<rect class="bar {style}" x="{left:.1f}" y="{y:.1f}" width="{max(bar - 1, 1):.1f}" '
                f'height="{HEIGHT - BOTTOM - y:.1f}"><title>{tip}</title></rect>'
            )
            if b.count >= FEW and math.isfinite(b.outcome):
                lines[style].append(f"{x + width / 2:.1f},{axis.place(b.outcome, HEIGHT - BOTTOM, TOP):.1f}")
        every = -(-count // 10)
        if place % every == 0:
            at = f'x="{x + width / 2:.1f}" y="{HEIGHT - BOTTOM + 16}"'
            out.append(f'<text class="tick" {at} text-anchor="middle">{groups[0][place].name}</text>')
    for style, points in lines.items():
        out.append(f'<polyline class="line {style}" points="{" ".join(points)}"/>')
        for point in points:
            cx, cy = point.split(",")
            out.append(f'<circle class="dot {style}" cx="{cx}" cy="{cy}" r="3"/>')
    out.append(axis_name("tokens written by the policy"))
    out.append("</svg>")
    return Markup("".join(out))


def share_bar(parts: Sequence[tuple[str, float]], label: str) -> Markup:
    """One horizontal bar in parts, largest first."""
    total = sum(x for _, x in parts) or 1.0
    out, x = [f'<svg viewBox="0 0 {WIDTH} 22" role="img" aria-label="{escape(label)}">'], 0.0
    for place, (name, amount) in enumerate(sorted(parts, key=lambda p: -p[1])):
        width = WIDTH * amount / total
        out.append(
            f'<rect class="part p{min(place, 5)}" x="{x:.1f}" y="2" width="{max(width - 1, 0.5):.1f}" height="18">'
            f"<title>{escape(name)}: {percent(amount / total)}</title></rect>"
        )
        x += width
    out.append("</svg>")
    return Markup("".join(out))
