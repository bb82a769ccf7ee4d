"""The README is true: its examples run, its paths exist, its tables are what programs print."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.server.main import parser
from kafkaproto.pipeline import session
from kafkaproto.pipeline.demo.steps import STEPS
from kafkaproto.pipeline.demo.table import BEGIN, END
from tests import not_done
from tests.support.clients import KAFKA_PYTHON_WARNINGS

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text()
SCREEN_LINES = 50
pytest_plugins = ("pytester",)

SEND_ORDERS = """
from kafka import KafkaProducer

def send_orders(bootstrap, count):
    producer = KafkaProducer(bootstrap_servers=bootstrap.split(","))
    for i in range(count):
        producer.send("orders", value=b"order %d" % i)
    producer.flush()
    producer.close()

"""


def block(containing: str) -> str:
    """The one Python example that has this text."""
    blocks = [b for b in re.findall(r"```python\n(.*?)```", README, re.DOTALL) if containing in b]
    assert len(blocks) == 1, containing
    return blocks[0]


def table_rows(part: str) -> list[list[str]]:
    lines = [line for line in part.splitlines() if line.startswith("|") and not re.fullmatch(r"[|\-: ]+", line)]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_what_it_is_stands_on_two_screens() -> None:
    head = README[: README.index("\n## ")]
    assert len(head.splitlines()) <= 2 * SCREEN_LINES
    for wanted in ("make demo", "make test", "kfake", "librdkafka's mock", "Kafka in a container", "kafka_cluster"):
        assert wanted in head


@pytest.mark.clients
@pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS)
def test_the_example_of_throttles_runs_and_tells_three_of_them(capsys: pytest.CaptureFixture[str]) -> None:
    from kafka import KafkaProducer

    def run_clients(bootstrap: str) -> None:
        producer = KafkaProducer(bootstrap_servers=bootstrap, client_id="X")
        for _ in range(4):
            producer.send("orders", b"v").get(timeout=30)
        producer.close()

    exec(block("force_throttle("), {"run_clients": run_clients})
    first, *told = capsys.readouterr().out.splitlines()
    assert first == "3 forced"
    assert [line.split()[:3] for line in told] == [["X", "Produce", "700"]] * 3


@pytest.mark.clients
@pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS)
def test_the_example_with_the_fixture_runs(pytester: pytest.Pytester) -> None:
    example = block("def test_orders_arrive")
    assert len(example.splitlines()) == 5
    pytester.makepyfile(SEND_ORDERS + example)
    pytester.runpytest_subprocess("-q", "-p", "no:cacheprovider").assert_outcomes(passed=1)


@pytest.mark.parametrize("has", ["c.broker(1).stop()", "from kafkaproto.api import"])
def test_the_example_for_scripts_runs(has: str) -> None:
    text = block(has)
    result = subprocess.run(
        [sys.executable, "-c", text], cwd=ROOT, capture_output=True, text=True, timeout=30, check=False
    )
    assert (result.returncode, result.stderr) == (0, "")


@pytest.mark.clients
@pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS)
@pytest.mark.kafka(brokers=1, topics={"orders": 1})
def test_the_example_for_kafka_python_runs(kafka_cluster) -> None:  # type: ignore[no-untyped-def]
    names: dict[str, object] = {}
    text = block("from kafka import KafkaConsumer")
    assert "localhost:9092" in text
    exec(text.replace("localhost:9092", kafka_cluster.bootstrap), names)
    producer, consumer = names["producer"], names["consumer"]
    try:
        producer.send("orders", value=b"one").get(10)  # type: ignore[attr-defined]
        consumer.poll(0)  # type: ignore[attr-defined]
    finally:
        producer.close()  # type: ignore[attr-defined]
        consumer.close()  # type: ignore[attr-defined]
    assert [record.value for record in kafka_cluster.records("orders")] == [b"one"]


def test_the_connector_is_the_one_that_is_tested() -> None:
    assert re.findall(r"org\.apache\.spark:\S+?:[\d.]+\d", README) == [session.CONNECTOR]


def test_commands_in_the_text_are_commands() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    assert set(re.findall(r"\bmake ([a-z]+)", README)) - {"says"} <= targets
    commands = re.findall(r"^kafkaproto broker (.+)$", README, re.MULTILINE)
    assert commands
    for command in commands:
        options = parser().parse_args(shlex.split(command))
        Cluster(options.brokers, dict(options.settings))


def test_the_map_names_every_folder_and_nothing_else() -> None:
    part = README[README.index("## Where things are") : README.index("## What is not done yet")]
    named = [re.findall(r"`([^`]+)`", row[0])[0] for row in table_rows(part) if "`" in row[0]]
    assert [name for name in named if not (ROOT / name.rstrip("/")).exists()] == []
    ours = {p.name + "/" for p in ROOT.iterdir() if p.is_dir() and not p.name.startswith(".") and any(p.rglob("*.py"))}
    ours -= {name for name in ours if name in ("build/", "dist/")}
    assert ours <= {name for name in named if name.count("/") == 1} | {name.split("/")[0] + "/" for name in named}
    for name in re.findall(r"`((?:broker|tests|kafkaproto|pipeline)/[a-z_/]*)`", README):
        assert (ROOT / name).exists(), name


def test_the_table_of_the_demo_is_what_it_printed() -> None:
    part = README[README.index(BEGIN) : README.index(END)]
    rows = table_rows(part)
    assert rows[0] == ["step", "what", "expected", "seen", "s"]
    steps = [row[0] for row in rows[1:] if row[0]]
    assert steps == [f"{number}. {name}" for number, (_, name) in enumerate(STEPS, 1)]
    assert "DIFFERS" not in part


def test_what_is_not_done_is_what_the_code_says() -> None:
    assert not_done.rewritten(README) == README, "run python -m tests.not_done --write"


def test_the_comparison_does_not_claim_what_is_missing() -> None:
    row = next(row for row in table_rows(README) if row[0].startswith("transactions, SASL"))
    missing = {"EndTxn", "SaslHandshake", "CreateAcls"} & set(not_done.missing_apis())
    assert (row[1] == "not yet") == bool(missing)


@pytest.mark.java
def test_the_list_of_kafkas_apis_is_that_of_its_jar() -> None:
    import json
    import zipfile

    from benchmarks.rivals.jars import clients_jar

    found: dict[str, tuple[int, int, int]] = {}
    with zipfile.ZipFile(clients_jar()) as jar:
        for name in jar.namelist():
            if re.fullmatch(r"common/message/\w+Request\.json", name):
                text = re.sub(r"^\s*//.*$|\s//[^\"\n]*$", "", jar.read(name).decode(), flags=re.MULTILINE)
                api = json.loads(text)
                if "broker" in api.get("listeners", ()) and not api.get("latestVersionUnstable"):
                    low, _, high = api["validVersions"].partition("-")
                    found[api["apiKey"]] = (int(low), int(high or low))
    assert found == {key: (low, high) for key, low, high in not_done.KAFKA_3_9.values()}


def test_windows_is_refused_in_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    from kafkaproto import cli

    monkeypatch.setattr(sys, "platform", "win32")
    assert cli.main() == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
    assert "Linux and macOS" in err
