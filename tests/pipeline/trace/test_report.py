"""The report page: verdict first, each number with its table and query, no network access, readable at any width."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import nullcontext
from html.parser import HTMLParser
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from kafkaproto.pipeline.capture.files import Capture
from kafkaproto.pipeline.session import JvmGone
from kafkaproto.pipeline.trace.answers import census, recording
from kafkaproto.pipeline.trace.answers.answer import Query, Result
from kafkaproto.pipeline.trace.audit.__main__ import main as audited
from kafkaproto.pipeline.trace.audit.command import UNFINISHED, UNREADABLE
from kafkaproto.pipeline.trace.audit.rule import Tables, outcome
from kafkaproto.pipeline.trace.progress import Progress
from kafkaproto.pipeline.trace.report import figures
from kafkaproto.pipeline.trace.report.__main__ import main
from kafkaproto.pipeline.trace.report.frames import exchanges
from kafkaproto.pipeline.trace.report.making import ANSWERS, RULES, Report, ReportOptions, make
from kafkaproto.pipeline.trace.report.page import Facts, page, table_html
from kafkaproto.pipeline.trace.tables import build, without_spark
from kafkaproto.trace.format import Exchange
from kafkaproto.trace.pcap import End, Talk, file_header
from tests.support.browser import browser
from tests.support.pipeline.exchanges import add_exchanges, named, versions
from tests.support.pipeline.played import RACKS, play, windows
from tests.support.pipeline.recorded import write
from tests.support.pipeline.wire import Wire

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(240),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

WIDTHS = (400, 1400)
META = {
    "advertised": {"0": [0, 11], "1": [0, 17], "2": [0, 9], "3": [0, 12], "18": [0, 4]},
    "brokers": [{"id": i, "rack": rack, "settings": windows(i)} for i, rack in enumerate(RACKS)],
    "release": "3.9",
}


@pytest.fixture(scope="module")
def report(spark: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the page of a run with one throttle that is a millisecond too long, compared with a correct run."""
    folder = tmp_path_factory.mktemp("report")
    write(folder / "trace", play("before"), "before", **META)
    entries = play("after")
    nth = next(i for i, entry in enumerate(entries) if isinstance(entry, Exchange) and entry.throttle_ms > 0)
    entry = entries[nth]
    assert isinstance(entry, Exchange)
    entries[nth] = entry._replace(throttle_ms=entry.throttle_ms + 1)
    later = {"wall_ms": 1_700_000_100_000}
    write(folder / "trace", entries, "after", **(META | later))
    built_report = make(spark, ReportOptions(folder / "out", folder / "trace", "after", "before"), Progress(quiet=True))
    assert [o.rule.number for o in built_report.outcomes if o.broken] == ["4"] and built_report.run == "after"
    [note] = built_report.notes
    assert "shows only run after" in note and "--run shows another one: before; no rules" in note
    return built_report.path


class Links(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.ids: list[str] = []
        self.targets: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.append(str(value))
            elif name in ("href", "src", "xlink:href"):
                self.targets.append(str(value))


def test_trace_report_starts_with_a_count_of_broken_rules_and_shows_faulty_frames(report: Path) -> None:
    text = report.read_text()
    assert text.index("1 of ") < text.index("Recorded by") < text.index("Which rules of Kafka held?")
    assert re.search(r"<h1>1 of \d+ rules broken", text) and "run after" in text
    part = text[text.index('id="rule-4"') :]
    part = part[: part.index("</details></details>")]
    assert "request: Produce v9" in part and "response: Produce v9" in part and "throttleTimeMs" in part
    assert re.search(r"kafkaproto trace cut \S+ --seq \d+ --out rule-4.pcap", part)
    assert "quota_bound" in part  # the query


def test_trace_report_of_a_capture_prints_a_wireshark_filter_for_the_faulty_request(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker offers Metadata up to version 9, and the client requests version 12."""
    wire = Wire(largest=40)
    request_packet, response_packet = named(2)
    add_exchanges(wire.connect(), versions(1, (18, 0, 4), (3, 0, 9)), (request_packet, response_packet))
    capture = wire.write(tmp_path / "some.pcap")
    build(capture, tmp_path / "out", without_spark)

    def make_one_rule(spark: Any, options: ReportOptions, progress: Progress) -> Report:
        assert options.trace == capture
        [rule] = [rule for rule in RULES if rule.number == "7"]
        return Report(tmp_path, capture.name, [outcome(rule, Tables.of(spark, tmp_path / "out"))], [], {})

    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.make", make_one_rule)
    assert main([str(capture), "--out", str(tmp_path / "out")]) == 2
    filter_line = re.search(
        r"worst case in Wireshark: some.pcap, display filter frame.number == (\d+)", capsys.readouterr().out
    )
    assert filter_line is not None
    [packet] = [captured for captured in Capture(capture).packets() if captured.number == int(filter_line[1])]
    assert packet.data.endswith(request_packet[-4:])

    outcomes = make_one_rule(spark, ReportOptions(tmp_path / "out", capture), Progress(quiet=True)).outcomes
    [request, response] = exchanges(capture, outcomes)["7"]
    assert "request: Metadata v12, correlation id 2" in request and "response: Metadata v12" in response


def test_each_link_in_a_trace_report_points_to_an_existing_local_file_or_anchor(report: Path) -> None:
    links = Links()
    links.feed(report.read_text())
    assert len(links.ids) == len(set(links.ids))
    for target in links.targets:
        if target.startswith("#"):
            assert target[1:] in links.ids, target
        elif target != "data:,":
            assert (report.parent / target).is_file(), target
    tables = [target for target in links.targets if target.endswith(".parquet")]
    assert len(tables) >= 15 and all(pq.read_table(report.parent / table).num_rows for table in tables)


def test_every_number_in_the_header_of_a_trace_report_is_also_in_the_linked_table(report: Path) -> None:
    text = report.read_text()
    head = text[text.index("<dl>") : text.index("</dl>")]
    lines = re.findall(r"<dt>([^<]*)</dt><dd>(.*?)</dd>", head)
    assert {name for name, _ in lines} >= {
        "Duration",
        "Requests",
        "Bytes",
        "Requests without a response",
        "Incomplete requests or responses",
        "Clients",
    }
    for name, value in lines:
        link = re.fullmatch(r'<a href="#(t-[a-z-]+)">([^<]*)</a>', value)
        assert link is not None, (name, value)
        table = text[text.index(f'id="{link[1]}"') :]
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", table[: table.index("</table>")])
        shown_figures = (
            re.findall(r"[^ ,()]+(?: 2\.5)?", link[2]) if name == "Clients" else re.findall(r"\d[\d,.]*\d|\d", link[2])
        )
        assert (shown_figures or name == "Recorded by") and set(shown_figures) <= set(cells), (
            name,
            shown_figures,
            cells,
        )
    assert "p (librdkafka 2.5)" in dict(lines)["Clients"]


def test_html_trace_report_contains_10_charts_such_as_throttle_rates_and_fetch_sizes(report: Path) -> None:
    links = Links()
    links.feed(report.read_text())
    pictures = {link_id for link_id in links.ids if re.fullmatch(r"p-[a-z-]+", link_id)}
    assert pictures == {
        "p-throttles-rates",
        "p-what-if-planned",
        "p-ledger-partitions",
        "p-ledger-offsets",
        "p-latency-parts",
        "p-latency-lanes",
        "p-fetch-sizes-sizes",
        "p-fetch-sizes-records",
        "p-racks-bytes",
        "p-census-versions",
    }
    assert "#0102" not in report.read_text()  # an invalid colour


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as running:
        yield running


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_trace_report_opens_in_a_browser_without_errors_overflow_or_network_requests(
    report: Path, chromium: Any, width: int, scheme: str
) -> None:
    tab = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    problems: list[str] = []
    tab.on("console", lambda message: problems.append(message.text))
    tab.on("pageerror", lambda error: problems.append(str(error)))
    tab.on(
        "request", lambda request: None if request.url.startswith(("file:", "data:")) else problems.append(request.url)
    )
    tab.goto(report.as_uri())
    for details in tab.query_selector_all("details"):
        details.evaluate("element => element.open = true")
    assert problems == []
    assert tab.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = tab.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    bright = sum(map(int, re.findall(r"\d+", ink)[:3])), sum(map(int, re.findall(r"\d+", paper)[:3]))
    assert (bright[0] < bright[1]) == (scheme == "light")
    letters = tab.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
    assert letters == ink
    tab.close()


@pytest.mark.browser
def test_html_trace_report_can_be_read_in_a_browser_with_scripts_disabled(report: Path, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 400, "height": 900})
    tab = context.new_page()
    tab.goto(report.as_uri())
    assert "rules broken" in tab.text_content("h1") and tab.is_visible("figure svg")
    context.close()


def test_client_names_are_escaped_in_tables_and_charts_of_a_trace_report() -> None:
    evil = "<script>alert(1)</script>$x_{1}$"
    rows = [{"client": evil, "requests_per_1000_records": 3.0}]
    assert "<script>" not in table_html(["client", "requests_per_1000_records"], rows)
    drawn = figures.records([{"power_of_two": 0, "fetches": 1}], rows)
    assert drawn is not None and "<script>" not in drawn and "$x_{1}$" in drawn


def test_trace_report_of_an_empty_trace_has_no_charts_and_says_that_it_has_no_data() -> None:
    nothing = {(a.name, q.name): Result(q, ["a"], [], False) for a in ANSWERS for q in a.queries}
    text = page(
        Facts("empty", [("Requests", "0", "")], ["a remark"], "TRACE", "4.0"),
        "0 of 0 rules broken",
        [],
        ANSWERS,
        nothing,
        {},
    )
    assert (
        "<figure" not in text
        and text.count("This trace contains no data for this question.") == len(ANSWERS)
        and "a remark" in text
    )
    assert '<div class="verdict ">' in text  # not in the colour of a passed rule


def test_chart_labels_show_client_names_with_control_characters_replaced_by_dots() -> None:
    named = [{"client_rack": "${env:A}-${env:B}", "broker_rack": "a", "topic": "t", "bytes": 5}]
    assert "${env:A}-${env:B}" in str(figures.racks(named))
    moment = {"at_s": 0, "width_s": 1, "bytes_a_second": 9.0, "bound": None, "throttle_ms": 0}
    drawn = str(figures.rates([{"client_id": name, **moment} for name in (None, "", "_x", "a\nb", "\x01\u65e5")]))
    assert all(label in drawn for label in ("(none)", "(empty)", "_x", "a·b", "·\u65e5"))


def test_truncated_table_in_a_trace_report_shows_the_total_number_of_rows() -> None:
    query = Query("q", "about", "SELECT 1")
    assert query.source == "SELECT 1"
    assert "The first 40 of 1,000 rows are shown." in table_html(["a"], [{"a": i} for i in range(1000)])


def test_error_of_the_report_command_for_a_missing_trace_contains_the_given_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["nowhere"]) == UNREADABLE
    printed = capsys.readouterr()
    assert printed.out == "" and "nowhere contains no trace" in printed.err


@pytest.mark.parametrize(
    ("arguments", "complaint"), [([".", "--release", "7.7"], "unknown release '7.7'"), ([], "TRACE")]
)
def test_trace_report_command_exits_with_status_3_on_wrong_arguments(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """argparse would exit with the status of a broken rule."""
    with pytest.raises(SystemExit) as exit_info:
        main(arguments)
    assert exit_info.value.code == UNREADABLE and complaint in capsys.readouterr().err


def test_report_and_audit_commands_exit_with_status_4_on_a_spark_or_internal_error(
    spark: Any, report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Failures of Spark and internal errors have exit statuses that no verdict has, and a clear last line."""

    def of_spark(spark: Any, *_: object) -> None:
        spark.sql("SELECT 1 / 0").collect()

    def of_ours(*_: object) -> None:
        raise KeyError("a column")

    def of_the_machine(*_: object) -> None:
        raise JvmGone(137, ["no memory"])

    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr("kafkaproto.pipeline.trace.audit.job.local_session", lambda name: nullcontext(spark))
    facts = {
        of_spark: "ArithmeticException: [DIVIDE_BY_ZERO]",
        of_ours: "KeyError: 'a column'",
        of_the_machine: "exited with status 137",
    }
    for failure, why in facts.items():
        monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.make", failure)
        monkeypatch.setattr("kafkaproto.pipeline.trace.audit.job.audit_folder", failure)
        for command in (main, audited):
            assert command([str(report.parent)]) == UNFINISHED not in range(4)
            printed = capsys.readouterr()
            assert printed.out == "" and "did not finish, so there is no result (exit status 4)" in printed.err
            assert why in printed.err.splitlines()[-1], printed.err


def test_trace_report_command_writes_an_html_page_and_a_json_file_of_audit_results(
    report: Path, tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command uses the existing session and evaluates two rules; other tests cover the start of Spark and all rules."""
    module = "kafkaproto.pipeline.trace.report.making"
    monkeypatch.setattr(f"{module}.local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr(f"{module}.RULES", tuple(rule for rule in RULES if rule.number in ("4", "7")))
    monkeypatch.setattr(f"{module}.ANSWERS", (recording.ANSWER, census.ANSWER))
    result_path = tmp_path / "result.json"
    assert main([str(report.parent), "--run", "before", "--json", str(result_path)]) == 0
    printed = capsys.readouterr()
    assert (
        printed.out.startswith("0 of 2 rules broken, 2 hold")
        and f"The page: {report}" in printed.out
        and "rule 4 (" in printed.err
    )
    assert json.loads(result_path.read_text())["status"] == 0
    assert "run before" in report.read_text()
    assert main([str(report.parent), "--run", "never"]) == 3
    assert "has no recording (run) 'never'; its recordings are after, before" in capsys.readouterr().err


def test_report_of_a_correct_broker_run_exits_with_2_if_an_earlier_run_broke_a_rule(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that was restarted with the same trace folder makes several runs. The earlier one has a throttle that is too long."""
    module = "kafkaproto.pipeline.trace.report.making"
    monkeypatch.setattr(f"{module}.local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr(f"{module}.RULES", tuple(rule for rule in RULES if rule.number in ("4", "7")))
    monkeypatch.setattr(f"{module}.ANSWERS", (recording.ANSWER, census.ANSWER))
    entries = play("before")
    longer = [
        entry._replace(throttle_ms=entry.throttle_ms + 1)
        if isinstance(entry, Exchange) and entry.throttle_ms
        else entry
        for entry in entries
    ]
    trace, result_path = tmp_path / "trace", tmp_path / "result.json"
    write(trace, longer, "early", **META)
    write(trace, entries, "late", **(META | {"wall_ms": 1_700_000_100_000}))
    assert main([str(trace), "--json", str(result_path)]) == 2
    printed = capsys.readouterr().out
    assert printed.startswith("0 of 2 rules broken, 2 hold")
    note = "this page shows only run late; --run shows another one: early (rule 4 broken)"
    page = (tmp_path / "trace.tables" / "report.html").read_text()
    assert note in printed and note in page and "run late" in page
    result = json.loads(result_path.read_text())
    assert (result["run"], result["status"], result["other_runs"]) == (
        "late",
        2,
        {"early": {"status": 2, "broken": ["4"]}},
    )
    assert main([str(trace), "--run", "late"]) == 0
    assert "--run shows another one: early; no rules were evaluated for them" in capsys.readouterr().out


def test_report_command_rejects_non_trace_files_and_non_kafka_captures_with_status_3(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import nullcontext

    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.local_session", lambda name: nullcontext(spark))
    (tmp_path / "foreign.kptrace").write_bytes(b"a,b")
    assert main([str(tmp_path / "foreign.kptrace")]) == 3
    assert "foreign.kptrace is not a trace" in capsys.readouterr().err
    captures = tmp_path / "captures"
    captures.mkdir()
    with (captures / "web.pcap").open("wb") as file:
        file.write(file_header())
        add_exchanges = Talk(file, End(ip_address("127.0.0.1"), 40_000), End(ip_address("127.0.0.1"), 80))
        add_exchanges.open(1)
        add_exchanges.client_sends(2, b"GET / HTTP/1.1\r\n\r\n")
    assert main([str(captures)]) == 3
    printed = capsys.readouterr()
    assert f"note: {captures / 'web.pcap'}: this capture contains no Kafka request" in printed.out
    assert "note: run web.pcap: packets of the capture that are in no table: " in printed.out
    assert (tmp_path / "captures.tables" / "report.html").exists()


def test_trace_report_command_exits_with_status_3_if_the_folder_has_no_trace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["."]) == 3
    assert "contains no trace" in capsys.readouterr().err
