"""The figures of the report as SVG, drawn by matplotlib from the results of the report's queries.

Each function returns None if there is nothing to draw. This module does not depend on Spark, traces or the HTML of the report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby
from math import log10
from typing import Any

from matplotlib.patches import Rectangle
from matplotlib.ticker import FuncFormatter, MaxNLocator

from kafkaproto.pipeline.trace.report.drawing import BAD, INK, SERIES, WARN, Drawing, legend, short_label, short_number

Row = dict[str, Any]
Rows = Sequence[Row]

MIN_RATE = 1000
"""In the chart that `rates` draws, the axis of bytes per second is linear and without labels up to this rate, and logarithmic above it."""


def swim_lanes(rows: Rows) -> str | None:
    """Draw a lane per connection, with the time of each request in parts: in the queue, in the handler (both filled) and waiting (hatched).

    If the wait of a request was not recorded, the whole time from the start of its handler to its response is hatched. Mute intervals are red: in
    them, the broker reads no requests from the connection, because it throttles the client. rows: the result of the query `lanes` in the section
    `latency` of the report. Returns the SVG as text, or None if there are no rows.
    """
    if not rows:
        return None
    lanes = [(key, list(group)) for key, group in groupby(rows, key=lambda r: (r["conn"], r["client_id"]))]
    with Drawing("lanes", 0.34 * len(lanes) + 1.3) as (axes, render):
        for at, (_, group) in enumerate(reversed(lanes)):
            waits = [_waiting(r) for r in group]
            axes.broken_barh(waits, (at - 0.3, 0.6), facecolor="none", edgecolor=INK, hatch="//////", linewidth=0.3)
            work = [(r["received_ms"], max(r["handled_ms"] - r["received_ms"], 0.5)) for r in group]
            axes.broken_barh(work, (at - 0.3, 0.6), facecolor=SERIES[0])
            handled = [
                (r["handled_ms"], wait_start_ms - r["handled_ms"])
                for r, (wait_start_ms, _) in zip(group, waits, strict=True)
            ]
            axes.broken_barh(handled, (at - 0.3, 0.6), facecolor=SERIES[1])
            mutes = [(r["ready_ms"], r["muted_ms"]) for r in group if r["muted_ms"]]
            axes.broken_barh(mutes, (at - 0.15, 0.3), facecolor=BAD)
        axes.set_yticks(range(len(lanes)), [f"{short_label(c)} · {conn}" for (conn, c), _ in reversed(lanes)])
        axes.set_xlabel(f"ms since second {rows[0]['window_begins_s']:g} of the trace")
        axes.set_xlim(0, 5000)
        axes.grid(axis="y", visible=False)
        handles = [
            Rectangle((0, 0), 1, 1, facecolor=SERIES[0]),
            Rectangle((0, 0), 1, 1, facecolor=SERIES[1]),
            Rectangle((0, 0), 1, 1, facecolor="none", edgecolor=INK, hatch="//////"),
            Rectangle((0, 0), 1, 1, facecolor=BAD),
        ]
        legend(axes, handles, ["queued", "handled", "waiting", "muted"])
        return render()


def _waiting(row: Row) -> tuple[float, float]:
    """Return (start, duration) of a request's wait in ms: the recorded wait or, without one, the time from the handler's start to the response.

    row: a row of the result of the query `lanes` in the section `latency` of the report.
    """
    waited_ms = row["ready_ms"] - row["handled_ms"] if row["wait_ms"] is None else row["wait_ms"]
    return row["ready_ms"] - waited_ms, waited_ms


def rates(rows: Rows) -> str | None:
    """Draw bytes per second of the first eight clients against their quotas, and below that their longest throttle times in each interval.

    rows: the result of the query `rates` in the section `throttles` of the report. Returns the SVG as text, or None if there are no rows.
    """
    if not rows:
        return None
    clients = list(dict.fromkeys(r["client_id"] for r in rows))[: len(SERIES)]
    with Drawing("rates", 4.6, below=0.35) as (axes, render):
        upper, lower = axes.figure.axes
        for colour, client in zip(SERIES, clients, strict=False):
            client_rows = [r for r in rows if r["client_id"] == client]
            at, each = _filled(client_rows)
            upper.step(
                at,
                [e["bytes_a_second"] for e in each],
                where="post",
                color=colour,
                label=short_label(client),
                linewidth=1.4,
            )
            bound = next((r["bound"] for r in client_rows if r["bound"]), None)
            if bound:
                upper.axhline(bound, color=colour, linestyle="--", linewidth=1)
            lower.step(at, [e["throttle_ms"] for e in each], where="post", color=colour, linewidth=1.2)
        upper.set_yscale("symlog", linthresh=MIN_RATE)
        upper.set_ylim(bottom=0)
        upper.set_ylabel("bytes per second")
        upper.yaxis.set_major_formatter(FuncFormatter(lambda v, _: short_number(v) if v == 0 or v >= MIN_RATE else ""))
        upper.tick_params(labelbottom=False)
        lower.set_ylabel("throttle, ms")
        lower.set_ylim(bottom=0)
        lower.set_xlabel("seconds of the trace; dashed lines are quotas")
        legend(upper, *upper.get_legend_handles_labels())
        return render()


def fetch_sizes(rows: Rows) -> str | None:
    """Draw the sizes of fetch responses against max_bytes, both logarithmic, with a line where they are equal.

    rows: the result of the query `sizes` in the section `fetch-sizes` of the report. Only responses whose first batch exceeds max_bytes lie above the
    line. Returns the SVG as text, or None if there are no rows.
    """
    if not rows:
        return None
    with Drawing("sizes", 4.2) as (axes, render):
        for beyond, colour, label in ((False, SERIES[0], "within max_bytes"), (True, WARN, "first batch exceeds it")):
            client_rows = [r for r in rows if bool(r["beyond"]) == beyond]
            if client_rows:
                axes.scatter(
                    [10 ** (r["limit_eighths"] / 8) for r in client_rows],
                    [10 ** (r["size_eighths"] / 8) for r in client_rows],
                    s=[12 + 30 * log10(r["fetches"]) for r in client_rows],
                    color=colour,
                    alpha=0.75,
                    linewidths=0,
                    label=label,
                )
        ends = [10 ** (r[k] / 8) for r in rows for k in ("limit_eighths", "size_eighths")]
        low, high = min(ends) / 2, max(ends) * 2
        axes.plot([low, high], [low, high], color=INK, linestyle="--", linewidth=1, label="size = max_bytes")
        axes.set(xscale="log", yscale="log", xlabel="max_bytes of the fetch", ylabel="bytes of records in the response")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_formatter(FuncFormatter(lambda v, _: short_number(v)))
        legend(axes, *axes.get_legend_handles_labels())
        return render()


def offsets(rows: Rows) -> str | None:
    """Draw the end of the produced records, the high watermark, the last stable offset and the consumers' positions of partitions over time.

    The distance between the end of the produced records and a consumer's position is the lag.

    rows: the result of the query `offsets` in the section `ledger` of the report. Returns the SVG as text, or None if there are no rows.
    """
    if not rows:
        return None
    places = [(key, list(group)) for key, group in groupby(rows, key=lambda r: (r["topic"], r["partition"]))]
    with Drawing("offsets", 2.3 * len(places) + 0.4, panels=len(places)) as (first, render):
        for axes, ((topic, partition), group) in zip(first.figure.axes, places, strict=True):
            readers = iter(SERIES[1:])
            lines = [(line, list(line_rows)) for line, line_rows in groupby(group, key=lambda r: r["line"])]
            for line, points in sorted(lines, key=lambda pair: pair[0].startswith("read by"))[: len(SERIES)]:
                styles = {"produced": (SERIES[0], "-"), "high watermark": (INK, ":"), "last stable offset": (INK, "--")}
                colour, dashes = styles.get(line) or (next(readers), "-")
                axes.step([p["at_s"] for p in points], [p["offset"] for p in points], where="post", color=colour,
                          linestyle=dashes, linewidth=1.3, marker="." if len(points) < 60 else None, markersize=4,
                          label=short_label(line, 34))  # fmt: skip
            axes.set_title(f"{topic} · {partition}", loc="left", fontsize=9)
            axes.yaxis.set_major_locator(MaxNLocator(integer=True, nbins=5))
            axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0))
        axes.set_xlabel("seconds since the first request for the partition")
        return render()


def versions(rows: Rows, is_rejected: Callable[[str, int], bool], release: str) -> str | None:
    """Draw the number of requests by client, API and version, and outline the versions that brokers of the Kafka release `release` reject.

    rows: the result of the query `versions` in the section `census` of the report. is_rejected: takes an API name and a version, and returns whether
    brokers of this release reject the version. Returns the SVG as text, or None if there are no rows.
    """
    if not rows:
        return None
    clients = list(dict.fromkeys(r["client"] for r in rows))
    columns = sorted({(r["api"], r["api_version"]) for r in rows})
    with Drawing("versions", 0.3 * len(columns) + 1.9) as (axes, render):
        largest = max(log10(r["requests"]) + 1 for r in rows)
        for r in rows:
            x, y = clients.index(r["client"]), columns.index((r["api"], r["api_version"]))
            axes.add_patch(Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=SERIES[0], linewidth=0,
                                     alpha=0.12 + 0.78 * (log10(r["requests"]) + 1) / largest))  # fmt: skip
            if is_rejected(r["api"], r["api_version"]):
                axes.add_patch(
                    Rectangle((x - 0.46, y - 0.42), 0.92, 0.84, facecolor="none", edgecolor=BAD, linewidth=1.6)
                )
            axes.text(x, y, short_number(r["requests"]), ha="center", va="center", fontsize=7, color=INK)
        axes.set_xlim(-0.5, len(clients) - 0.5)
        axes.set_ylim(len(columns) - 0.5, -0.5)
        axes.set_xticks(range(len(clients)), [short_label(c, 26) for c in clients], rotation=35, ha="right")
        axes.set_yticks(range(len(columns)), [f"{api} {version}" for api, version in columns])
        axes.grid(visible=False)
        axes.set_title(f"requests; outlined: rejected by a broker of release {release}", loc="left", fontsize=9)
        return render()


def latency(rows: Rows) -> str | None:
    """Draw a bar for p50, p95 and p99 of each API, divided into the parts of a request's time; the total in ms is printed as text.

    rows: the result of the query `parts` in the section `latency` of the report. Returns the SVG as text, or None if there are no rows.
    """
    colours = {
        "queued": SERIES[0],
        "handled": SERIES[1],
        "waited": SERIES[3],
        "handled or waiting": SERIES[4],
        "sent": SERIES[2],
        "throttled": BAD,
    }
    parts = [part for part in colours if any(r["part"] == part for r in rows)]
    apis = [api for api, _ in groupby(sorted({r["api"] for r in rows}))]
    if not apis:
        return None
    by_part = {(r["api"], r["part"]): r for r in rows}
    quantiles = ("p50_ms", "p95_ms", "p99_ms")
    labels = [f"{api}  {q[:3]}" for api in apis for q in quantiles]
    spans = [
        [max((by_part.get((api, part)) or {}).get(q) or 0.0, 0.0) for part in parts] for api in apis for q in quantiles
    ]
    with Drawing("latency", 0.2 * len(labels) + 1.3) as (axes, render):
        left = [0.0] * len(labels)
        for i, part in enumerate(parts):
            shares = [100 * span[i] / sum(span) if sum(span) else 0.0 for span in spans]
            axes.barh(range(len(labels)), shares, left=left, color=colours[part], label=part, height=0.75)
            left = [a + b for a, b in zip(left, shares, strict=True)]
        for at, span in enumerate(spans):
            axes.text(
                101,
                at,
                f"{sum(span):,.0f} ms" if sum(span) >= 100 else f"{sum(span):.3g} ms",
                va="center",
                fontsize=7.5,
            )
        axes.set_yticks(range(len(labels)), labels, fontsize=7.5)
        axes.set(xlim=(0, 113), ylim=(len(labels) - 0.5, -0.5), xticks=range(0, 101, 20))
        axes.set_xlabel(
            "% of the time on the right, which is the sum of the parts' quantiles, not a quantile of the total time"
        )
        axes.grid(axis="y", visible=False)
        legend(axes, *axes.get_legend_handles_labels())
        return render()


def racks(rows: Rows) -> str | None:
    """Draw the bytes sent from each rack of brokers to each rack of clients.

    rows: the result of the query `bytes` in the section `racks` of the report. Returns the SVG as text, or None if there are no rows.
    """
    if not rows:
        return None
    clients = sorted({r["client_rack"] or "(none)" for r in rows})
    brokers = sorted({r["broker_rack"] or "(none)" for r in rows})
    total: dict[tuple[str, str], int] = {}
    for r in rows:
        key = r["client_rack"] or "(none)", r["broker_rack"] or "(none)"
        total[key] = total.get(key, 0) + r["bytes"]
    with Drawing("racks", 0.5 * len(clients) + 1.4) as (axes, render):
        largest = max(total.values()) or 1
        for (client, broker), count in total.items():
            x, y = brokers.index(broker), clients.index(client)
            colour = SERIES[2] if client == broker else WARN
            axes.add_patch(
                Rectangle((x - 0.5, y - 0.5), 1, 1, facecolor=colour, alpha=0.15 + 0.75 * count / largest, linewidth=0)
            )
            axes.text(x, y, short_number(count), ha="center", va="center", color=INK)
        axes.set_xlim(-0.5, len(brokers) - 0.5)
        axes.set_ylim(len(clients) - 0.5, -0.5)
        axes.set_xticks(range(len(brokers)), [short_label(rack, 26) for rack in brokers])
        axes.set_yticks(range(len(clients)), [short_label(rack) for rack in clients])
        axes.set(xlabel="rack of the broker", ylabel="rack of the client")
        axes.grid(visible=False)
        return render()


def records(sizes: Rows, costs: Rows) -> str | None:
    """Draw two charts: the number of fetches by the number of records that they returned, and each client's requests per thousand records.

    The second chart has the clients in the first ten rows of `costs`.

    sizes, costs: the results of the queries `records` and `costs` in the section `fetch-sizes` of the report. Returns the SVG as text, or None if
    `sizes` is empty.
    """
    if not sizes:
        return None
    cheapest = costs[:10]
    with Drawing(
        "records", 2.4 + 0.28 * max(len(cheapest), 1), panels=2, heights=(2, max(len(cheapest), 1) * 0.28)
    ) as (
        axes,
        render,
    ):
        upper, lower = axes.figure.axes
        labels = ["none" if r["power_of_two"] < 0 else short_number(2 ** r["power_of_two"]) for r in sizes]
        upper.bar(range(len(sizes)), [r["fetches"] for r in sizes], color=SERIES[0])
        upper.set_xticks(range(len(sizes)), labels)
        upper.set(xlabel="records per fetch response (lower bound)", ylabel="fetches")
        upper.grid(axis="x", visible=False)
        for at, r in enumerate(cheapest):  # points instead of bars: a logarithmic scale has no zero
            cost = r["requests_per_1000_records"]
            lower.plot(cost, at, "o", color=SERIES[1])
            lower.annotate(short_number(cost), (cost, at), (6, 0), textcoords="offset points", va="center", fontsize=8)
        lower.set_yticks(range(len(cheapest)), [short_label(r["client"]) for r in cheapest])
        lower.set_xscale("log")
        lower.set_ylim(max(len(cheapest), 1) - 0.5, -0.5)
        lower.margins(x=0.15)
        lower.xaxis.set_major_formatter(FuncFormatter(lambda v, _: short_number(v)))
        lower.xaxis.set_minor_formatter("")
        lower.set_xlabel("requests of any kind per 1000 records")
        lower.grid(axis="y", visible=False)
        return render()


def planned(rows: Rows) -> str | None:
    """Draw the share of time for which clients would be throttled under other quotas; a ring marks the recorded quota.

    rows: the result of the query `planned` in the section `what-if` of the report: a row for each client, API, broker and quota, with the share of
    time in `percent_of_time`. The first eight clients that would be throttled get a line each. Returns the SVG as text, or None if there are none.
    """
    clients = [key for key, _ in groupby(rows, key=lambda r: (r["client_id"], r["api"], r["broker"]))]
    throttled_clients = [
        c for c in clients if any(r["percent_of_time"] for r in rows if (r["client_id"], r["api"], r["broker"]) == c)
    ]
    if not throttled_clients:
        return None
    with Drawing("planned", 3.6) as (axes, render):
        for colour, key in zip(SERIES, throttled_clients, strict=False):
            client_rows = [r for r in rows if (r["client_id"], r["api"], r["broker"]) == key]
            axes.plot([r["quota"] for r in client_rows], [r["percent_of_time"] for r in client_rows], color=colour, marker=".",
                      label=short_label(f"{key[0]}, {key[1]}, broker {key[2]}"))  # fmt: skip
            for r in client_rows:
                if r["in_force"]:
                    axes.plot(
                        r["quota"],
                        r["percent_of_time"],
                        "o",
                        markersize=10,
                        markerfacecolor="none",
                        markeredgecolor=colour,
                    )
        axes.set(
            xscale="log",
            xlabel="quota in bytes per second; ring: in force",
            ylabel="% of the time throttled",
            ylim=(-3, 103),
        )
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: short_number(v)))
        legend(axes, *axes.get_legend_handles_labels())
        return render()


def delivered(rows: Rows) -> str | None:
    """Draw how many acknowledged records of each partition were read, not read, or lost, for the first 20 partitions.

    rows: the result of the query `partitions` in the section `ledger` of the report. Returns the SVG as text, or None if no partition has
    acknowledged records.
    """
    partitions = [r for r in rows if r["acknowledged"] and r["partition"] is not None][:20]
    if not partitions:
        return None
    with Drawing("delivered", 0.26 * len(partitions) + 1.3) as (axes, render):
        left = [0] * len(partitions)
        for part, colour in (("read", SERIES[2]), ("unread", SERIES[3]), ("lost", BAD)):
            widths = [r[part] for r in partitions]
            axes.barh(range(len(partitions)), widths, left=left, color=colour, label=part, height=0.75)
            left = [a + b for a, b in zip(left, widths, strict=True)]
        axes.set_yticks(range(len(partitions)), [short_label(f"{r['topic']} · {r['partition']}") for r in partitions])
        axes.set_ylim(len(partitions) - 0.5, -0.5)
        axes.set_xlabel("acknowledged records")
        axes.grid(axis="y", visible=False)
        legend(axes, *axes.get_legend_handles_labels())
        return render()


def _filled(rows: Rows) -> tuple[list[float], list[Row]]:
    """Return (start times in seconds, rows) of all intervals from the first to the last in `rows`, and of one interval after the last.

    rows: the rows of one client in the result of the query `rates`, one for each interval with traffic. An interval without traffic gets a row of
    zeros; otherwise the figure would draw a line from one interval with traffic to the next.
    """
    width = rows[0]["width_s"]
    by_time = {r["at_s"]: r for r in rows}
    first, last = min(by_time), max(by_time)
    at = [first + i * width for i in range((last - first) // width + 2)]
    return at, [by_time.get(t) or {"bytes_a_second": 0, "throttle_ms": 0} for t in at]
