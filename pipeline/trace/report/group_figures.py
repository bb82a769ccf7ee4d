"""The figures of groups as SVG, drawn by matplotlib from the results of the report's queries.

Each function returns None if there is nothing to draw.
"""

from __future__ import annotations

from itertools import groupby

from matplotlib.patches import Rectangle

from kafkaproto.pipeline.trace.report.drawing import BAD, SERIES, Drawing, legend, over_time, short_label
from kafkaproto.pipeline.trace.report.figures import Rows

MAX_GROUPS = len(SERIES)


def lag(rows: Rows) -> str | None:
    """Draw the lag over time of the eight groups with the largest lags, or of all groups if there are at most eight.

    rows: the result of the query `over-time` in the section `lag` of the report. Returns the SVG as text, or None if there are no rows.
    """
    groups = [(group, list(group_rows)) for group, group_rows in groupby(rows, key=lambda r: r["group_id"])]
    if not groups:
        return None
    largest = sorted(groups, key=lambda pair: -max(r["lag"] for r in pair[1]))[:MAX_GROUPS]
    series = [(group, [r["at_s"] for r in group_rows], [r["lag"] for r in group_rows]) for group, group_rows in largest]
    return over_time("lag", series, "records behind", "post")


def owners(rows: Rows) -> str | None:
    """Draw a lane for each partition of a group, with a bar for each owner in the owner's colour. Gaps between two owners are red.

    rows: the result of the query `owners` in the section `unread` of the report: a row for each time, `from_s` to `until_s`, in which a member owned
    a partition. The rows of a partition follow each other. In each group, members get colours in the order in which they first owned a partition.
    Colours repeat after the eighth member. Returns the SVG as text, or None if there are no rows.
    """
    if not rows:
        return None
    lanes = [
        (key, list(lane_rows))
        for key, lane_rows in groupby(rows, key=lambda r: (r["group_id"], r["topic"], r["partition"]))
    ]
    numbers: dict[tuple[str, str], int] = {}
    for row in sorted(rows, key=lambda r: r["from_s"]):
        in_group = sum(group == row["group_id"] for group, _ in numbers)
        numbers.setdefault((row["group_id"], row["member_id"]), in_group)
    with Drawing("owners", 0.3 * len(lanes) + 1.3) as (axes, render):
        for at, (_, bars) in enumerate(reversed(lanes)):
            free_s = bars[0]["from_s"]
            for bar in bars:
                if bar["from_s"] > free_s:
                    axes.broken_barh([(free_s, bar["from_s"] - free_s)], (at - 0.15, 0.3), facecolor=BAD)
                colour = SERIES[numbers[bar["group_id"], bar["member_id"]] % len(SERIES)]
                axes.broken_barh([(bar["from_s"], bar["until_s"] - bar["from_s"])], (at - 0.3, 0.6), facecolor=colour)
                free_s = max(free_s, bar["until_s"])
        labels = [short_label(f"{group} · {topic} · {partition}") for (group, topic, partition), _ in reversed(lanes)]
        axes.set_yticks(range(len(lanes)), labels, fontsize=7.5)
        axes.set_xlabel("seconds of the trace")
        axes.grid(axis="y", visible=False)
        owner_numbers = range(min(max(numbers.values()) + 1, len(SERIES)))
        handles = [Rectangle((0, 0), 1, 1, facecolor=SERIES[number]) for number in owner_numbers]
        names = [f"owner {number + 1} of its group" for number in owner_numbers]
        legend(axes, [*handles, Rectangle((0, 0), 1, 1, facecolor=BAD)], [*names, "no owner"])
        return render()
