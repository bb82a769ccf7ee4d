"""The page: its verdict first, every number with its table and query, whole without a network, in a real browser at any width."""

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
from kafkaproto.pipeline.trace.answers.answer import Found, Query
from kafkaproto.pipeline.trace.audit.__main__ import main as audited
from kafkaproto.pipeline.trace.audit.command import UNFINISHED, UNREADABLE
from kafkaproto.pipeline.trace.audit.rule import Tables, outcome
from kafkaproto.pipeline.trace.progress import Progress
from kafkaproto.pipeline.trace.report import figures
from kafkaproto.pipeline.trace.report.__main__ import main
from kafkaproto.pipeline.trace.report.frames import exchanges
from kafkaproto.pipeline.trace.report.making import ANSWERS, RULES, Made, Wanted, make
from kafkaproto.pipeline.trace.report.page import Facts, page, table_html
from kafkaproto.pipeline.trace.tables import build, without_spark
from kafkaproto.trace.format import Exchange
from kafkaproto.trace.pcap import End, Talk, file_header
from tests.support.browser import browser
from tests.support.pipeline.exchanges import named, talk, versions
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
    """The page of a run in which one throttle is a millisecond too long, compared with one that is as it should be."""
    folder = tmp_path_factory.mktemp("report")
    write(folder / "trace", play("before"), "before", **META)
    entries = play("after")
    nth = next(i for i, one in enumerate(entries) if isinstance(one, Exchange) and one.throttle_ms > 0)
    one = entries[nth]
    assert isinstance(one, Exchange)
    entries[nth] = one._replace(throttle_ms=one.throttle_ms + 1)
    later = {"wall_ms": 1_700_000_100_000}
    write(folder / "trace", entries, "after", **(META | later))
    made = make(spark, Wanted(folder / "out", folder / "trace", "after", "before"), Progress(quiet=True))
    assert [o.rule.number for o in made.outcomes if o.broken] == ["4"] and made.run == "after"
    [note] = made.notes
    assert "of run after alone" in note and "which --run shows: before; no rule" in note
    return made.path


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


def test_the_verdict_comes_first_and_the_broken_rule_shows_its_frames_and_how_to_cut_them(report: Path) -> None:
    text = report.read_text()
    assert text.index("1 of ") < text.index("Recorded by") < text.index("Which rules of Kafka held?")
    assert re.search(r"<h1>1 of \d+ rules broken", text) and "run after" in text
    part = text[text.index('id="rule-4"') :]
    part = part[: part.index("</details></details>")]
    assert "request: Produce v9" in part and "response: Produce v9" in part and "throttleTimeMs" in part
    assert re.search(r"kafkaproto trace cut \S+ --seq \d+ --out rule-4.pcap", part)
    assert "quota_bound" in part  # the query


def test_of_a_capture_the_frames_are_shown_and_where_they_are_in_it(
    spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The broker offers Metadata up to version 9, and is asked in 12."""
    wire = Wire(largest=40)
    asked, answer = named(2)
    talk(wire.connect(), versions(1, (18, 0, 4), (3, 0, 9)), (asked, answer))
    capture = wire.write(tmp_path / "some.pcap")
    build(capture, tmp_path / "out", without_spark)

    def made(spark: Any, wanted: Wanted, progress: Progress) -> Made:
        assert wanted.trace == capture
        [rule] = [rule for rule in RULES if rule.number == "7"]
        return Made(tmp_path, capture.name, [outcome(rule, Tables.of(spark, tmp_path / "out"))], [], {})

    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.make", made)
    assert main([str(capture), "--out", str(tmp_path / "out")]) == 2
    found = re.search(r"its frames: Wireshark, some.pcap, frame.number == (\d+)", capsys.readouterr().out)
    assert found is not None
    [packet] = [one for one in Capture(capture).packets() if one.number == int(found[1])]
    assert packet.data.endswith(asked[-4:])

    outcomes = made(spark, Wanted(tmp_path / "out", capture), Progress(quiet=True)).outcomes
    [request, response] = exchanges(capture, outcomes)["7"]
    assert "request: Metadata v12, correlation id 2" in request and "response: Metadata v12" in response


def test_every_link_leads_somewhere_and_nothing_comes_from_a_network(report: Path) -> None:
    links = Links()
    links.feed(report.read_text())
    assert len(links.ids) == len(set(links.ids))
    for target in links.targets:
        if target.startswith("#"):
            assert target[1:] in links.ids, target
        elif target != "data:,":
            assert (report.parent / target).is_file(), target
    tables = [target for target in links.targets if target.endswith(".parquet")]
    assert len(tables) >= 15 and all(pq.read_table(report.parent / one).num_rows for one in tables)


def test_every_number_of_the_head_is_in_the_table_that_it_links_to(report: Path) -> None:
    text = report.read_text()
    head = text[text.index("<dl>") : text.index("</dl>")]
    lines = re.findall(r"<dt>([^<]*)</dt><dd>(.*?)</dd>", head)
    assert {name for name, _ in lines} >= {"Lasted", "Requests", "Bytes", "Without an answer", "Not whole", "Clients"}
    for name, value in lines:
        found = re.fullmatch(r'<a href="#(t-[a-z-]+)">([^<]*)</a>', value)
        assert found is not None, (name, value)
        table = text[text.index(f'id="{found[1]}"') :]
        cells = re.findall(r"<td[^>]*>([^<]*)</td>", table[: table.index("</table>")])
        told = (
            re.findall(r"[^ ,()]+(?: 2\.5)?", found[2])
            if name == "Clients"
            else re.findall(r"\d[\d,.]*\d|\d", found[2])
        )
        assert (told or name == "Recorded by") and set(told) <= set(cells), (name, told, cells)
    assert "p (librdkafka 2.5)" in dict(lines)["Clients"]


def test_it_has_a_picture_for_each_question(report: Path) -> None:
    links = Links()
    links.feed(report.read_text())
    pictures = {one for one in links.ids if re.fullmatch(r"p-[a-z-]+", one)}
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
    assert "#0102" not in report.read_text()  # a colour that is none


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    with browser() as made:
        yield made


@pytest.mark.browser
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_in_a_browser_it_has_no_error_no_overflow_and_fetches_nothing(
    report: Path, chromium: Any, width: int, scheme: str
) -> None:
    seen = chromium.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    said: list[str] = []
    seen.on("console", lambda message: said.append(message.text))
    seen.on("pageerror", lambda error: said.append(str(error)))
    seen.on("request", lambda request: None if request.url.startswith(("file:", "data:")) else said.append(request.url))
    seen.goto(report.as_uri())
    for details in seen.query_selector_all("details"):
        details.evaluate("one => one.open = true")
    assert said == []
    assert seen.evaluate("document.documentElement.scrollWidth") <= width
    ink, paper = seen.evaluate(
        "[getComputedStyle(document.body).color, getComputedStyle(document.body).backgroundColor]"
    )
    bright = sum(map(int, re.findall(r"\d+", ink)[:3])), sum(map(int, re.findall(r"\d+", paper)[:3]))
    assert (bright[0] < bright[1]) == (scheme == "light")
    letters = seen.evaluate("getComputedStyle(document.querySelector('figure svg text')).fill")
    assert letters == ink
    seen.close()


@pytest.mark.browser
def test_it_can_be_read_without_scripts(report: Path, chromium: Any) -> None:
    context = chromium.new_context(java_script_enabled=False, viewport={"width": 400, "height": 900})
    seen = context.new_page()
    seen.goto(report.as_uri())
    assert "rules broken" in seen.text_content("h1") and seen.is_visible("figure svg")
    context.close()


def test_what_clients_call_themselves_cannot_leave_its_cell() -> None:
    evil = "<script>alert(1)</script>$x_{1}$"
    rows = [{"client": evil, "requests_per_1000_records": 3.0}]
    assert "<script>" not in table_html(["client", "requests_per_1000_records"], rows)
    drawn = figures.records([{"power_of_two": 0, "fetches": 1}], rows)
    assert drawn is not None and "<script>" not in drawn and "$x_{1}$" in drawn


def test_where_nothing_is_known_nothing_is_drawn_and_the_page_says_so() -> None:
    nothing = {(a.name, q.name): Found(q, ["a"], [], False) for a in ANSWERS for q in a.queries}
    text = page(
        Facts("empty", [("Requests", "0", "")], ["a remark"], "TRACE", "4.0"),
        "0 of 0 rules broken",
        [],
        ANSWERS,
        nothing,
        {},
    )
    assert "<figure" not in text and text.count("Nothing in this trace tells.") == len(ANSWERS) and "a remark" in text
    assert '<div class="verdict ">' in text  # not in the colour of what holds


def test_labels_of_pictures_are_what_clients_and_racks_are_called() -> None:
    named = [{"client_rack": "${env:A}-${env:B}", "broker_rack": "a", "topic": "t", "bytes": 5}]
    assert "${env:A}-${env:B}" in str(figures.racks(named))
    moment = {"at_s": 0, "width_s": 1, "bytes_a_second": 9.0, "bound": None, "throttle_ms": 0}
    drawn = str(figures.rates([{"client_id": name, **moment} for name in (None, "", "_x", "a\nb", "\x01\u65e5")]))
    assert all(label in drawn for label in ("(none)", "(empty)", "_x", "a·b", "·\u65e5"))


def test_a_table_that_is_long_says_how_long() -> None:
    query = Query("q", "about", "SELECT 1")
    assert query.source == "SELECT 1"
    assert "The first 40 of 1,000 rows." in table_html(["a"], [{"a": i} for i in range(1000)])


def test_the_command_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["nowhere"]) == UNREADABLE
    said = capsys.readouterr()
    assert said.out == "" and "nowhere holds no trace" in said.err


@pytest.mark.parametrize(
    ("arguments", "complaint"), [([".", "--release", "7.7"], "release '7.7' is not known"), ([], "trace")]
)
def test_wrong_arguments_are_no_finding(
    arguments: list[str], complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """argparse's own status for them is that of a broken rule."""
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == UNREADABLE and complaint in capsys.readouterr().err


def test_what_nobody_expects_is_no_finding(
    spark: Any, report: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Spark's own failure and an error of this program have a status of their own, which no verdict has, and a clear last line."""

    def of_spark(spark: Any, *_: object) -> None:
        spark.sql("SELECT 1 / 0").collect()

    def of_ours(*_: object) -> None:
        raise KeyError("a column")

    def of_the_machine(*_: object) -> None:
        raise JvmGone(137, ["no memory"])

    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr("kafkaproto.pipeline.trace.audit.job.local_session", lambda name: nullcontext(spark))
    told = {
        of_spark: "ArithmeticException: [DIVIDE_BY_ZERO]",
        of_ours: "KeyError: 'a column'",
        of_the_machine: "ended with status 137",
    }
    for failure, why in told.items():
        monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.make", failure)
        monkeypatch.setattr("kafkaproto.pipeline.trace.audit.job.audit_folder", failure)
        for command in (main, audited):
            assert command([str(report.parent)]) == UNFINISHED not in range(4)
            said = capsys.readouterr()
            assert said.out == "" and "it failed, which says nothing of the traffic (exit status 4)" in said.err
            assert why in said.err.splitlines()[-1], said.err


def test_the_command_makes_the_page_of_tables_and_tells_machines(
    report: Path, tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the session that is there: what a session costs is told elsewhere."""
    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.local_session", lambda name: nullcontext(spark))
    told = tmp_path / "told.json"
    assert main([str(report.parent), "--run", "before", "--json", str(told)]) == 0
    said = capsys.readouterr()
    assert said.out.startswith("0 of ") and f"The page: {report}" in said.out and "rule 4 (" in said.err
    assert json.loads(told.read_text())["status"] == 0
    assert "run before" in report.read_text()
    assert main([str(report.parent), "--run", "never"]) == 3
    assert "has no run 'never'; it has after, before" in capsys.readouterr().err


def test_of_several_recordings_the_page_names_the_others_and_the_status_is_of_all(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As of a broker that was started again with the same folder for its traces. The earlier run has a throttle that is too long."""
    module = "kafkaproto.pipeline.trace.report.making"
    monkeypatch.setattr(f"{module}.local_session", lambda name: nullcontext(spark))
    monkeypatch.setattr(f"{module}.RULES", tuple(rule for rule in RULES if rule.number in ("4", "7")))
    monkeypatch.setattr(f"{module}.ANSWERS", (recording.ANSWER, census.ANSWER))
    entries = play("before")
    longer = [
        one._replace(throttle_ms=one.throttle_ms + 1) if isinstance(one, Exchange) and one.throttle_ms else one
        for one in entries
    ]
    trace, told = tmp_path / "trace", tmp_path / "told.json"
    write(trace, longer, "early", **META)
    write(trace, entries, "late", **(META | {"wall_ms": 1_700_000_100_000}))
    assert main([str(trace), "--json", str(told)]) == 2
    said = capsys.readouterr().out
    assert said.startswith("0 of 2 rules broken, 2 hold")
    note = "this page is of run late alone; there are others, which --run shows: early (rule 4 broken)"
    page = (tmp_path / "trace.tables" / "report.html").read_text()
    assert note in said and note in page and "run late" in page
    found = json.loads(told.read_text())
    assert (found["run"], found["status"], found["other_runs"]) == (
        "late",
        2,
        {"early": {"status": 2, "broken": ["4"]}},
    )
    assert main([str(trace), "--run", "late"]) == 0
    assert "which --run shows: early; no rule was held against them" in capsys.readouterr().out


def test_a_file_that_is_nothing_and_a_capture_of_something_else_are_told_and_a_folder_of_captures_is_read(
    tmp_path: Path, spark: Any, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from contextlib import nullcontext

    monkeypatch.setattr("kafkaproto.pipeline.trace.report.making.local_session", lambda name: nullcontext(spark))
    (tmp_path / "foreign.kptrace").write_bytes(b"a,b")
    assert main([str(tmp_path / "foreign.kptrace")]) == 3
    assert "foreign.kptrace is no trace" in capsys.readouterr().err
    captures = tmp_path / "captures"
    captures.mkdir()
    with (captures / "web.pcap").open("wb") as file:
        file.write(file_header())
        talk = Talk(file, End(ip_address("127.0.0.1"), 40_000), End(ip_address("127.0.0.1"), 80))
        talk.open(1)
        talk.client_sends(2, b"GET / HTTP/1.1\r\n\r\n")
    assert main([str(captures)]) == 3
    said = capsys.readouterr()
    assert f"note: {captures / 'web.pcap'}: no request of Kafka is in this capture" in said.out
    assert "note: run web.pcap: packets of the capture that are in no table: " in said.out
    assert (tmp_path / "captures.tables" / "report.html").exists()


def test_a_trace_that_is_the_current_folder_has_its_tables_beside_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["."]) == 3
    assert "holds no trace" in capsys.readouterr().err
