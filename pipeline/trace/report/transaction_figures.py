"""The figures of transactions as SVG, drawn by matplotlib from the results of the report's queries.

Each function returns None if there is nothing to draw.
"""

from __future__ import annotations

from itertools import groupby

from matplotlib.patches import Rectangle

from kafkaproto.pipeline.trace.answers.transactions import OPEN
from kafkaproto.pipeline.trace.report.drawing import BAD, SERIES, WARN, Drawing, legend, over_time, short_label
from kafkaproto.pipeline.trace.report.figures import Rows

COLOURS = {"committed": SERIES[2], "aborted": WARN, "aborted, not requested": BAD, OPEN: SERIES[0]}
"""The colour for each outcome of a transaction. "aborted, not requested" is an abort that the producer did not request."""


def _kind(outcome: str) -> str:
    return "aborted, not requested" if outcome.startswith("aborted:") else outcome


def lanes(rows: Rows) -> str | None:
    """Draw a lane for each transactional id, with a bar for each transaction, coloured by its outcome.

    rows: the result of the query `lanes` in the section `transactions` of the report. Returns the SVG as text, or None if there are no rows.
    """
    if not rows:
        return None
    of_ids = [(name, list(bars)) for name, bars in groupby(rows, key=lambda r: r["transactional_id"])]
    with Drawing("transactions", 0.3 * len(of_ids) + 1.3) as (axes, render):
        for at, (_, bars) in enumerate(reversed(of_ids)):
            for bar in bars:
                colour = COLOURS[_kind(bar["outcome"])]
                axes.broken_barh([(bar["from_s"], bar["until_s"] - bar["from_s"])], (at - 0.3, 0.6), facecolor=colour)
        axes.set_yticks(range(len(of_ids)), [short_label(name) for name, _ in reversed(of_ids)], fontsize=7.5)
        axes.set_xlabel("seconds of the trace")
        axes.grid(axis="y", visible=False)
        kinds = [kind for kind in COLOURS if any(_kind(row["outcome"]) == kind for row in rows)]
        legend(axes, [Rectangle((0, 0), 1, 1, facecolor=COLOURS[kind]) for kind in kinds], kinds)
        return render()


def invisible(rows: Rows) -> str | None:
    """Draw the number of records of each topic that read_committed consumers could not see, over time.

    rows: the result of the query `invisible` in the section `transactions` of the report. Returns the SVG as text, or None if there are no rows.
    """
    topics = [(topic, list(topic_rows)) for topic, topic_rows in groupby(rows, key=lambda r: r["topic"])]
    series = [
        (topic, [r["at_s"] for r in topic_rows], [r["invisible"] for r in topic_rows]) for topic, topic_rows in topics
    ]
    return over_time("invisible", series, "records not yet visible", "pre") if series else None
