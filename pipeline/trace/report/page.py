"""The page: what the audit and the answers found, put into the template. Plain data in, one self-contained HTML text out.

Must never know Spark, nor where rows come from.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from kafkaproto import releases
from kafkaproto.api import APIS
from kafkaproto.pipeline.trace.answers.answer import Answer, Found
from kafkaproto.pipeline.trace.answers.census import BREAKS, UNKNOWN, WORKS
from kafkaproto.pipeline.trace.audit.rule import BROKEN, ERROR, HOLDS, Outcome
from kafkaproto.pipeline.trace.report import figures

Tables = Mapping[tuple[str, str], Found]
"""(answer, query) to what was found."""
SHOWN_ROWS = 40
OPEN_ROWS = 12
"""Tables up to that long are open when the page is."""

SMALL_PRINT = (
    ("Clock", "Durations are of the monotonic clock of who recorded; moments are seconds since the first request of the trace."),
    ("Bytes", "A request or an answer with its header, without the four bytes of its length. Records as they are stored, compressed ones too."),
    ("Throttle", "What the broker decided; where only the wire was seen, what the answer says."),
    ("Quantiles", "Approximate, within a thousandth of the rank."),
    ("Waiting", "From when its handler began to when its answer was made: work, a long poll, or replicas that had to follow."),
    ("Not seen", "Values and keys of records, what a TLS connection carried, and what the recorder had no room for (told above as dropped)."),
    ("What if", "At another quota each client sends its next request as long after it may as it did. Sizes of answers are left as they were."),
)  # fmt: skip

SHORT = {
    "run": "This run",
    "throttles": "Throttles",
    "what-if": "What if",
    "ledger": "Delivery",
    "repeats": "Repeats",
    "latency": "Latency",
    "fetch-sizes": "Fetch sizes",
    "racks": "Racks",
    "census": "Clients",
    "spark": "Spark",
    "diff": "Difference",
}


class Facts(NamedTuple):
    """title: of the page. told: (name, value, id of its table or ""). trace: as it is written behind `trace cut`."""

    title: str
    told: Sequence[tuple[str, str, str]]
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
    """The HTML. exchanges: number of a broken rule to the decoded frames of its worst row."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    broken = [one for one in outcomes if one.broken]
    mood = "broken" if any(one.rule.severity == ERROR for one in broken) else "warned" if broken else ""
    if not broken and any(one.verdict == HOLDS for one in outcomes):  # of nothing exercised nothing holds
        mood = "holds"
    return environment.get_template("page.html.j2").render(
        title=facts.title,
        verdict=verdict,
        mood=mood,
        facts=facts.told,
        remarks=facts.remarks,
        rules=[_rule(one, facts.trace, exchanges.get(one.rule.number, ())) for one in outcomes],
        sections=[_section(answer, tables, facts.release) for answer in answers],
        small_print=SMALL_PRINT,
    )


def _rule(one: Outcome, trace: str, exchanges: Sequence[str]) -> dict[str, Any]:
    number = one.rule.number
    told = [{k: v for k, v in row.items() if k != "excess"} for row in one.sample]
    return {
        "id": number.replace(" ", "-"),
        "number": number,
        "verdict": one.verdict,
        "mood": {HOLDS: "holds", BROKEN: "broken"}.get(one.verdict, ""),
        "checked": f"{one.checked:,}" if one.checked else "",
        "broken": f"{one.broken:,}" if one.checked else "",
        "worst": "" if one.worst is None else f"{one.worst:,.6g}",
        "statement": one.rule.statement,
        "severity": one.rule.severity,
        "table": table_html(list(told[0]), told) if told else "",
        "exchanges": exchanges,
        "command": one.how_to_see(trace) if one.sample else "",
        "query": f"# {one.query['name']}\n{one.query['source']}",
    }


def _section(answer: Answer, tables: Tables, release: str) -> dict[str, Any]:
    mine = [tables[answer.name, query.name] for query in answer.queries if (answer.name, query.name) in tables]
    pictures = [
        {"id": f"p-{answer.name}-{query}", "svg": Markup(svg), "caption": caption, "table": f"t-{answer.name}-{query}"}
        for query, caption, svg in _pictures(answer.name, tables, release)
        if svg is not None
    ]
    return {
        "id": f"a-{answer.name}",
        "short": SHORT[answer.name],
        "title": answer.question,
        "empty": "" if any(one.rows for one in mine) else "Nothing in this trace tells.",
        "pictures": pictures,
        "tables": [_table(answer.name, one) for one in mine if one.rows],
    }


def _table(answer: str, one: Found) -> dict[str, Any]:
    count = f"{len(one.rows):,}{' and more' if one.more else ''} rows"
    return {
        "id": f"t-{answer}-{one.query.name}",
        "about": one.query.about[0].upper() + one.query.about[1:],
        "count": count,
        "open": len(one.rows) <= OPEN_ROWS,
        "html": table_html(one.columns, one.rows),
        "path": parquet_name(answer, one.query.name),
        "query": one.query.source,
    }


def parquet_name(answer: str, query: str) -> str:
    """Where a table of an answer lies, from the page."""
    return f"answers/{answer}-{query}.parquet"


def _pictures(answer: str, tables: Tables, release: str) -> list[tuple[str, str, str | None]]:
    """(query, caption, picture or None) of an answer."""

    def rows(query: str) -> Sequence[dict[str, Any]]:
        found = tables.get((answer, query))
        return found.rows if found is not None else ()

    match answer:
        case "throttles":
            return [
                (
                    "rates",
                    "Bytes a second of each client against its quota, and the longest throttle of each moment.",
                    figures.rates(rows("rates")),
                )
            ]
        case "what-if":
            return [
                (
                    "planned",
                    "Share of its time that each client would wait at other quotas.",
                    figures.planned(rows("planned")),
                )
            ]
        case "ledger":
            return [
                (
                    "partitions",
                    "What became of acknowledged records: the partitions with the most lost, doubled or acknowledged ones, at most 20.",
                    figures.delivered(rows("partitions")),
                ),
                (
                    "offsets",
                    "Offsets over time: lag is the distance from what was produced to where a reader is.",
                    figures.offsets(rows("offsets")),
                ),
            ]
        case "latency":
            return [
                ("parts", "Where time went, by API.", figures.latency(rows("parts"))),
                (
                    "lanes",
                    "Connections side by side: requests, waiting, mute intervals.",
                    figures.swim_lanes(rows("lanes")),
                ),
            ]
        case "fetch-sizes":
            return [
                (
                    "sizes",
                    "Answers against their limit; larger dots: more fetches.",
                    figures.fetch_sizes(rows("sizes")),
                ),
                (
                    "records",
                    "Records of a fetch, and what a thousand records cost in requests.",
                    figures.records(rows("records"), rows("costs")),
                ),
            ]
        case "racks":
            return [
                (
                    "bytes",
                    "Bytes read, from the rack of the broker to the rack of the client.",
                    figures.racks(rows("bytes")),
                )
            ]
        case "census":
            return [
                (
                    "versions",
                    "Requests by client, API and version.",
                    figures.versions(rows("versions"), outside(release), release),
                )
            ]
    return []  # fmt: skip


def outside(release: str) -> Any:
    """(API, version) → whether a broker of `release` does not take it. Raises ValueError for a release that is not known."""
    ranges = releases.accepted(release)
    keys = {info.name: key for key, info in APIS.items()}

    def is_outside(api: str, version: int) -> bool:
        low, high = ranges.get(keys[api], (0, -1))
        return not low <= version <= high

    return is_outside


def table_html(columns: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> Markup:
    """A table whose wide ones scroll by themselves. Only the first rows, and a line that says so."""
    head = Markup("").join(Markup("<th>{}</th>").format(name.replace("_", " ")) for name in columns)
    body = Markup("").join(
        Markup("<tr>{}</tr>").format(Markup("").join(_cell(row.get(name)) for name in columns))
        for row in rows[:SHOWN_ROWS]
    )
    more = (
        Markup('<p class="soft">The first {} of {:,} rows.</p>').format(SHOWN_ROWS, len(rows))
        if len(rows) > SHOWN_ROWS
        else ""
    )
    return Markup('<div class="wide"><table><thead><tr>{}</tr></thead><tbody>{}</tbody></table></div>{}').format(
        head, body, more
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
