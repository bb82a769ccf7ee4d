"""Generated pages are current, and no link of the documentation is broken."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from kafkaproto import testing as exported
from kafkaproto.broker.config.definitions import definitions_of
from kafkaproto.broker.config.effects import OWN
from kafkaproto.broker.observe import journal_topic, recorder
from kafkaproto.cli import COMMANDS_OF_EXTRAS
from kafkaproto.pipeline.demo.steps import STEPS
from kafkaproto.pipeline.demo.table import BEGIN, END
from kafkaproto.pipeline.trace.schema import TABLES
from tests import testing_api
from tests.documentation import events, own_settings, pages, sections, status
from tests.documentation.blocks import ROOT
from tests.support.conformance.kinds import NOT_ON_NEWER_KAFKA
from tests.support.tools.steps import NEWER, OLDER, Scenario, Step

QUOTAS = ("Produce", "Fetch", "Request", "ControllerMutation")


def test_committed_documentation_pages_equal_the_output_of_the_page_generator() -> None:
    assert pages.outdated() == [], "run python -m tests.documentation --write"


@pytest.mark.timeout(300)
def test_edited_and_deleted_generated_documentation_pages_are_listed_as_outdated(tmp_path: Path) -> None:
    pages.write(tmp_path)
    assert pages.outdated(tmp_path) == []
    settings = tmp_path / "reference" / "settings.md"
    settings.write_text(settings.read_text().replace("| acts |", "| none |", 1))
    (tmp_path / "reference" / "tables.md").unlink()
    assert pages.outdated(tmp_path) == ["reference/settings.md", "reference/tables.md"]


def test_reference_pages_list_every_kafka_setting_and_every_trace_table_column() -> None:
    settings, tables = ((ROOT / "docs" / "reference" / name).read_text() for name in ("settings.md", "tables.md"))
    for definitions in (definitions_of("3.9"), definitions_of("4.2")):
        for name in (*definitions.broker, *definitions.topic, *definitions.group):
            assert f"| `{name}` |" in settings
    assert all(f"| `{column.name}` | {column.type} |" in tables for columns in TABLES.values() for column in columns)


def test_settings_page_lists_all_kafkaproto_settings_in_a_separate_section() -> None:
    text = (ROOT / "docs" / "reference" / "settings.md").read_text()
    of_kafka, _, of_this_broker = text.partition("## Settings of this broker\n")
    names = [name for name, *_ in OWN]
    assert re.findall(r"^\| `(kafkaproto\.[\w.]+)`", of_this_broker, re.MULTILINE) == names
    assert "| `kafkaproto." not in of_kafka


def test_settings_page_cannot_be_written_if_a_kafkaproto_setting_has_no_description() -> None:
    effects = dict(list(own_settings.EFFECTS.items())[1:])
    with pytest.raises(ValueError, match=r"own settings without an effect, or the other way round: \{'kafkaproto\."):
        own_settings.rows(definitions_of("4.2"), own_settings.NAMES, effects)


def test_conformance_page_lists_exactly_the_nine_test_modules_not_run_on_kafka_4_2() -> None:
    page = (ROOT / "docs" / "how-to" / "conformance.md").read_text()
    [sentence] = re.findall(r"^The nine modules that .*?:(.*?)\.$", page, re.MULTILINE | re.DOTALL)
    listed = re.findall(r"`(\w+)`", sentence)
    assert sorted(listed) == sorted(NOT_ON_NEWER_KAFKA) and len(listed) == 9
    assert all((ROOT / "kafkaproto" / "conformance" / f"{name}.py").is_file() for name in listed)


def test_documentation_table_merges_kafka_tool_commands_that_have_equal_descriptions() -> None:
    steps = (
        Step("disable", "--feature a", patterns=("controller",)),
        Step("disable", "--feature b", unordered=True, only=(NEWER,)),
        Step("enable", "--feature a", only=(OLDER,), tool="kafka-other"),
    )
    assert pages.tool_rows([Scenario("kafka-features", {}, steps)]) == {
        ("kafka-features", "disable"): ("controller, order", ""),
        ("kafka-other", "enable"): ("", "Kafka 3.9.1"),
    }


def test_architecture_page_has_a_row_for_each_package_of_the_broker() -> None:
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
    _, _, rows = page.partition("| folder of `broker/` |")
    packages = {path.parent.name for path in (ROOT / "broker").glob("*/__init__.py")}
    assert set(re.findall(r"^\| `(\w+)/` \|", rows, re.MULTILINE)) == packages


def test_metrics_page_lists_every_metric_of_a_busy_cluster() -> None:
    rows = (ROOT / "docs" / "reference" / "metrics.md").read_text().splitlines()
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows if row.startswith("| `")]
    documented = {
        (name.strip("`"), group, tags) for name, groups, tags, _ in cells for group in re.findall("`([^`]+)`", groups)
    }
    metrics = sections.metrics()
    assert {("throttle-time", group, "user, client-id") for group in QUOTAS} <= metrics
    listeners = ("connection-accept-rate", "socket-server-metrics")
    assert {(*listeners, tags) for tags in ("listener", "ip")} & metrics <= {(*listeners, "listener")}
    metrics = {
        (*listeners, "listener, or ip") if (name, group) == listeners and tags else (name, group, tags)
        for name, group, tags in metrics
    }
    assert documented == metrics | {(*listeners, "listener, or ip")}


@pytest.mark.parametrize(
    "path", [ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))], ids=lambda path: path.name
)
def test_documentation_links_point_to_existing_files(path: Path) -> None:
    targets = [link for link in pages.links(path.read_text()) if not re.match(r"https?:|#|mailto:", link)]
    assert [link for link in targets if not (path.parent / link.split("#")[0]).exists()] == []


def test_summary_on_the_benchmark_page_quotes_the_codec_speed_ratios_of_the_tables() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text()
    [row] = re.findall(r"^\| Is the codec fast\? .*", page, re.MULTILINE)
    medians = re.findall(r"Against the fastest Python codec of each row: median ([\d.]+)", page)
    assert (
        len(medians) == 3
        and [f"{float(median):.1f}" for median in medians] == re.findall(r"([\d.]+) times,? ", row)[:3]
    )
    decoding = page[page.index("<!-- codec-decode -->") : page.index("<!-- /codec-decode -->")]
    of_kio = [line.split("|")[6].strip() for line in decoding.splitlines() if line.startswith("| ")][2:]
    assert f"up to {1 / min(map(float, of_kio)):.1f} times as fast" in row


def test_start_page_names_every_extra_and_the_commands_that_each_extra_adds() -> None:
    page = (ROOT / "docs" / "index.md").read_text()
    _, _, table = page.partition("| extra | adds |")
    rows = dict(re.findall(r"^\| `pip install '\.\[(\w+)\]'` \| (.*) \|$", table, re.MULTILINE))
    for command, (extra, *_) in COMMANDS_OF_EXTRAS.items():
        assert re.search(rf"`(kafkaproto )?{command}`", rows[extra]), command
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    [others] = re.findall(r"^The extras (.*) are for work on this project", table, re.MULTILINE)
    assert {*rows, *re.findall(r"`(\w+)`", others)} == set(extras)


def test_documentation_search_needs_no_web_server_and_no_external_script() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
    assert {"search", "offline"} <= {plugin for plugin in site["plugins"] if isinstance(plugin, str)}
    [script] = site["extra"]["polyfills"]
    assert "iframe-worker" in script and (ROOT / "docs" / script).is_file()


def test_reference_pages_show_every_class_of_the_test_api() -> None:
    reference = ROOT / "docs" / "reference"
    text = "".join((reference / name).read_text() for name in ("test-api.md", "journal.md", "metrics.md"))
    documented_classes = {path.rpartition(".")[2] for path in re.findall(r"^::: ([\w.]+)", text, re.MULTILINE)}
    exported_classes = {name for name in exported.__all__ if isinstance(getattr(exported, name), type)}
    assert exported_classes | {returned.__name__ for returned in testing_api.RETURNED} <= documented_classes


def test_building_a_documentation_table_fails_if_a_description_is_missing_or_extra() -> None:
    with pytest.raises(ValueError, match=r"kinds without a meaning, or the other way round: \{'b'\}"):
        sections.table_of({"a": ["x"], "b": []}, {"a": "something happened"})
    with pytest.raises(ValueError, match=r"kinds without a meaning, or the other way round: \{'b'\}"):
        sections.table_of({"a": ["x"]}, {"a": "something happened", "b": "something else happened"})


def test_rewriting_a_page_without_its_generated_section_raises_value_error() -> None:
    with pytest.raises(ValueError, match=r"docs/reference/metrics\.md must have these sections once: metrics"):
        sections.rewritten(sections.METRICS, "# Metrics\n")


def test_journal_page_lists_every_event_and_the_fields_of_each_event() -> None:
    page = (ROOT / "docs" / "reference" / "journal.md").read_text()
    assert events.documented(page, "Events") == events.journal_events()


def test_journal_page_lists_the_fields_of_each_event_written_to_the_journal_topic() -> None:
    page = (ROOT / "docs" / "reference" / "journal.md").read_text()
    documented = events.documented(page, "The journal as a topic")
    noted = events.journal_events()
    assert {kind: documented[kind] for kind in journal_topic.PUBLISHED} == {
        kind: noted[kind] for kind in journal_topic.PUBLISHED
    }
    described = dict(re.findall(r"^(throttle|fetched|produced): +([^(\n]*)", str(journal_topic.__doc__), re.MULTILINE))
    names = {kind: set(re.findall(r"\w+", text)) for kind, text in described.items()}
    names["fetched"].add("high_watermark")
    names["produced"].add("end_offset")
    assert {kind: documented[kind] for kind in names} == names
    assert documented["behind"] == documented["fetched"] and documented["dropped"] == {"count"}
    assert documented.keys() == {*journal_topic.PUBLISHED, *names, "behind", "dropped"}


def test_trace_format_page_lists_every_event_and_the_fields_of_each_event() -> None:
    page = (ROOT / "docs" / "reference" / "trace-format.md").read_text()
    recorded = events.recorder_events()
    recorded["throttle"] |= set(recorder._REASON)
    assert events.documented(page, "An event") == recorded


def test_events_table_column_named_kind_has_a_description_that_lists_all_event_kinds() -> None:
    [description] = [column.about for column in TABLES["events"] if column.name == "kind"]
    kinds = {re.sub(r" \(.*?\)", "", kind).strip() for kind in re.split(r",(?![^(]*\))|;|:", description)}
    assert {*events.journal_events(), *events.recorder_events(), "meta", "dropped"} <= kinds


def test_status_page_lists_every_demo_step_and_each_result_equals_the_expected_one() -> None:
    page = (ROOT / "docs" / "status.md").read_text()
    lines = page[page.index(BEGIN) : page.index(END)].splitlines()
    head, _, *rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("|")]
    assert head == ["step", "check", "expected", "actual", "s"]
    assert [row[0] for row in rows if row[0]] == [f"{number}. {name}" for number, (_, name) in enumerate(STEPS, 1)]
    assert not any("DIFFERS" in line for line in lines)


@pytest.mark.java
def test_stored_list_of_kafka_3_9_api_versions_equals_that_of_the_kafka_client_jar() -> None:
    import json
    import zipfile

    from benchmarks.rivals.jars import clients_jar

    apis: dict[int, tuple[int, int]] = {}
    with zipfile.ZipFile(clients_jar()) as jar:
        for name in jar.namelist():
            if re.fullmatch(r"common/message/\w+Request\.json", name):
                text = re.sub(r"^\s*//.*$|\s//[^\"\n]*$", "", jar.read(name).decode(), flags=re.MULTILINE)
                api = json.loads(text)
                if "broker" in api.get("listeners", ()) and not api.get("latestVersionUnstable"):
                    low, _, high = api["validVersions"].partition("-")
                    apis[api["apiKey"]] = (int(low), int(high or low))
    assert apis == {key: (low, high) for key, low, high in status.KAFKA_3_9.values()}
