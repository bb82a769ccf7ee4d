"""The HTML page of the report: fills a template with the results of the rules and of the queries about the traffic.

The module takes plain data and returns one self-contained HTML text. It does not depend on Spark or where rows come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from kafkaproto import releases
from kafkaproto.api import APIS
from kafkaproto.pipeline.trace.answers.answer import Answer, Result
from kafkaproto.pipeline.trace.answers.census import BREAKS, UNKNOWN, WORKS
from kafkaproto.pipeline.trace.audit.rule import BROKEN, ERROR, HOLDS, Outcome
from kafkaproto.pipeline.trace.report import figures, group_figures, transaction_figures

Tables = Mapping[tuple[str, str], Result]
"""The tables to show: maps (name of a section of the report, name of a query in it) to the result of the query."""
SHOWN_ROWS = 40
OPEN_ROWS = 12
"""On the report page, tables of at most this many rows are expanded at first; larger tables are collapsed."""

SMALL_PRINT = (
    ("Clock", "Durations use the recorder's monotonic clock; times are seconds since the first request of the trace."),
    ("Bytes", "The size of a request or response includes its header, not the four bytes of its length. The size of records is "
        "their size as stored: after compression, if they are compressed."),
    ("Throttle", "The throttle time that the broker applied to a request; in the trace of a proxy or a capture, the throttle time in the response."),
    ("Quantiles", "p50 is the median. Quantiles are approximate: their rank may be wrong by a thousandth of the number of values."),
    ("Waiting", "Time that the request was parked in purgatory. If this was not recorded, the whole time from the start of the handler (if "
        "that was not recorded either, from the arrival of the request) until the response was ready."),
    ("Not recorded", "Keys and values of records, traffic of TLS connections in a capture, and entries that the recorder dropped (listed above)."),
    ("Other quotas", "The throttle times under other quotas are computed with two assumptions. First, when its throttle time is over, a client waits "
        "as long before its next request as in the recording. Second, the responses have the same sizes as in the recording."),
)  # fmt: skip

SHORT = {
    "run": "Recording",
    "throttles": "Throttles",
    "what-if": "What if",
    "ledger": "Delivery",
    "groups": "Groups",
    "lag": "Lag",
    "rebalances": "Rebalances",
    "unread": "No consumer",
    "transactions": "Transactions",
    "repeats": "Repeats",
    "latency": "Latency",
    "fetch-sizes": "Fetch sizes",
    "racks": "Racks",
    "census": "Clients",
    "spark": "Spark",
    "diff": "Difference",
}


class Facts(NamedTuple):
    """The facts at the top of the page.

    title: title of the page. lines: (name, value, id of the table on the page that has the value, or ""). remarks: notes below the lines. trace: path
    of the trace, for the command `kafkaproto trace cut` that the page shows for a broken rule. release: a Kafka release; one figure outlines the API
    versions that brokers of this release reject.
    """

    title: str
    lines: Sequence[tuple[str, str, str]]
    remarks: Sequence[str]
    trace: str
    release: str


def page(
    facts: Facts,
    verdict: str,
    outcomes: Sequence[Outcome],
    answers: Sequence[Answer],
    tables: Tables,
    exchanges: Mapping[str, Sequence[str]],
) -> str:
    """Return the HTML of the report.

    facts: the facts about the recording at the top of the page. verdict: the summary line at the top. outcomes: the results of the rules. answers:
    the sections to show, each with a question and queries. tables: the results of these queries. exchanges: maps the number of each broken rule to
    texts of the decoded request and response that break the rule most.
    """
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    broken = [outcome for outcome in outcomes if outcome.broken]
    mood = "broken" if any(outcome.rule.severity == ERROR for outcome in broken) else "warned" if broken else ""
    if not broken and any(outcome.verdict == HOLDS for outcome in outcomes):  # if nothing was exercised, nothing holds
        mood = "holds"
    return environment.get_template("page.html.j2").render(
        title=facts.title,
        verdict=verdict,
        mood=mood,
        facts=facts.lines,
        remarks=facts.remarks,
        rules=[_rule(outcome, facts.trace, exchanges.get(outcome.rule.number, ())) for outcome in outcomes],
        sections=[_section(answer, tables, facts.release) for answer in answers],
        small_print=SMALL_PRINT,
    )


def _rule(outcome: Outcome, trace: str, exchanges: Sequence[str]) -> dict[str, Any]:
    number = outcome.rule.number
    rows = [{k: v for k, v in row.items() if k != "excess"} for row in outcome.sample]
    return {
        "id": number.replace(" ", "-"),
        "number": number,
        "verdict": outcome.verdict,
        "mood": {HOLDS: "holds", BROKEN: "broken"}.get(outcome.verdict, ""),
        "checked": f"{outcome.checked:,}" if outcome.checked else "",
        "broken": f"{outcome.broken:,}" if outcome.checked else "",
        "worst": "" if outcome.worst is None else f"{outcome.worst:,.6g}",
        "statement": outcome.rule.statement,
        "severity": outcome.rule.severity,
        "table": table_html(list(rows[0]), rows) if rows else "",
        "exchanges": exchanges,
        "command": outcome.frames_command(trace) if outcome.sample else "",
        "query": f"# {outcome.query['name']}\n{outcome.query['source']}",
    }


def _section(answer: Answer, tables: Tables, release: str) -> dict[str, Any]:
    results = [tables[answer.name, query.name] for query in answer.queries if (answer.name, query.name) in tables]
    pictures = [
        {"id": f"p-{answer.name}-{query}", "svg": Markup(svg), "caption": caption, "table": f"t-{answer.name}-{query}"}
        for query, caption, svg in _pictures(answer.name, tables, release)
        if svg is not None
    ]
    return {
        "id": f"a-{answer.name}",
        "short": SHORT[answer.name],
        "title": answer.question,
        "empty": "" if any(result.rows for result in results) else "This trace contains no data for this question.",
        "pictures": pictures,
        "tables": [_table(answer.name, result) for result in results if result.rows],
    }


def _table(answer: str, result: Result) -> dict[str, Any]:
    noun = "row" if len(result.rows) == 1 and not result.more else "rows"
    count = f"{'more than ' if result.more else ''}{len(result.rows):,} {noun}"
    return {
        "id": f"t-{answer}-{result.query.name}",
        "about": result.query.about[0].upper() + result.query.about[1:],
        "count": count,
        "open": len(result.rows) <= OPEN_ROWS,
        "html": table_html(result.columns, result.rows, result.more),
        "path": parquet_name(answer, result.query.name),
        "query": result.query.source,
    }


def parquet_name(answer: str, query: str) -> str:
    """Return the path of the Parquet file with the result of a query, relative to the page.

    answer: the name of the section of the report with the query. query: the name of the query.
    """
    return f"answers/{answer}-{query}.parquet"


def _pictures(answer: str, tables: Tables, release: str) -> list[tuple[str, str, str | None]]:
    """Return (query name, caption, SVG or None) for each figure in a section of the report.

    answer: name of the section. tables: the results of the queries. release: Kafka release; the figure of API versions outlines the versions
    that this release rejects.
    """

    def rows(query: str) -> Sequence[dict[str, Any]]:
        result = tables.get((answer, query))
        return result.rows if result is not None else ()

    match answer:
        case "throttles":
            return [
                (
                    "rates",
                    "Bytes per second of each client against its quota, and the longest throttle time in each interval.",
                    figures.rates(rows("rates")),
                )
            ]
        case "what-if":
            return [
                (
                    "planned",
                    "Percentage of the time for which each client would be throttled under other quotas. Ring: the quota of the broker.",
                    figures.planned(rows("planned")),
                )
            ]
        case "ledger":
            return [
                (
                    "partitions",
                    "Acknowledged records that consumers read, did not read (unread) or skipped (lost), in 20 partitions: first those with the most "
                    "lost records, then those with the most records stored twice, then those with the most acknowledged records.",
                    figures.delivered(rows("partitions")),
                ),
                (
                    "offsets",
                    "Offsets over time in the four busiest partitions. The lag of a consumer is the distance from its line to the line of the "
                    "produced records.",
                    figures.offsets(rows("offsets")),
                ),
            ]
        case "lag":
            return [
                (
                    "over-time",
                    "Records between the committed offsets of each group and the ends of its partitions, over time.",
                    group_figures.lag(rows("over-time")),
                )
            ]
        case "unread":
            return [
                (
                    "owners",
                    "Owners of each partition in its group over time. Red: the partition had no owner.",
                    group_figures.owners(rows("owners")),
                )
            ]
        case "transactions":
            return [
                (
                    "lanes",
                    "Transactions of each transactional id over time. Red: aborted without a request of the producer.",
                    transaction_figures.lanes(rows("lanes")),
                ),
                (
                    "invisible",
                    "Records that read_committed consumers could not see yet, by topic, over time.",
                    transaction_figures.invisible(rows("invisible")),
                ),
            ]
        case "latency":
            return [
                (
                    "parts",
                    "Median, 95th and 99th percentile of the time of requests, divided into its parts, by API.",
                    figures.latency(rows("parts")),
                ),
                (
                    "lanes",
                    "Requests of twelve connections in five seconds: queued, handled and waiting. Red: the broker muted the connection.",
                    figures.swim_lanes(rows("lanes")),
                ),
            ]
        case "fetch-sizes":
            return [
                (
                    "sizes",
                    "Bytes of records in fetch responses, compared with max_bytes; a larger dot stands for more fetches.",
                    figures.fetch_sizes(rows("sizes")),
                ),
                (
                    "records",
                    "Number of fetches by records per fetch, and requests per thousand fetched records of each client.",
                    figures.records(rows("records"), rows("costs")),
                ),
            ]
        case "racks":
            return [
                (
                    "bytes",
                    "Bytes fetched, by rack of the broker and rack of the client.",
                    figures.racks(rows("bytes")),
                )
            ]
        case "census":
            return [
                (
                    "versions",
                    "Requests by client, API and version.",
                    figures.versions(rows("versions"), rejected_by(release), release),
                )
            ]
    return []  # fmt: skip


def rejected_by(release: str) -> Any:
    """Return a function that takes an API name and a version and returns True if a broker of `release` rejects them.

    Raises ValueError for an unknown release.
    """
    ranges = releases.accepted(release)
    keys = {info.name: key for key, info in APIS.items()}

    def is_rejected(api: str, version: int) -> bool:
        low, high = ranges.get(keys[api], (0, -1))
        return not low <= version <= high

    return is_rejected


def table_html(columns: Sequence[str], rows: Sequence[Mapping[str, Any]], more: bool = False) -> Markup:
    """Return an HTML table of the first 40 rows (`SHOWN_ROWS`), with a note if there are more. A wide table has its own scroll bar.

    columns: the names of the columns to show, in order. rows: each row maps column names to values. more: whether there are rows besides `rows`.
    """
    head = Markup("").join(Markup("<th>{}</th>").format(name.replace("_", " ")) for name in columns)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(_cell(row.get(name)) for name in columns))
        for row in rows[:SHOWN_ROWS]
    )
    note = (
        Markup('<p class="soft">The first {} of {}{:,} rows are shown.</p>').format(
            SHOWN_ROWS, "more than " if more else "", len(rows)
        )
        if len(rows) > SHOWN_ROWS
        else ""
    )
    return Markup('<div class="wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>{}').format(
        head, body, note
    )


_MOODS = {WORKS: "works", BREAKS: "breaks", UNKNOWN: "unsure"}


def number(value: float) -> str:
    return f"{value:,}" if isinstance(value, int) else f"{value:,.6g}"


def _cell(value: Any) -> Markup:
    if value is None:
        return Markup("<td></td>")
    if isinstance(value, bool):
        return Markup("<td>{}</td>").format("yes" if value else "no")
    if isinstance(value, int | float):
        return Markup('<td class="number">{}</td>').format(number(value))
    return Markup('<td class="text {}">{}</td>').format(_MOODS.get(str(value), ""), escape(str(value)))
