"""Levels of loggers: this broker responds to requests as a real Kafka does, and its own loggers change."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.raw_client import ask as ask_address
from benchmarks.rivals.real_kafka import KafkaCluster
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.client import key_of
from kafkaproto.conformance.subject import settings_of
from tests.support.logger_requests import DELETE, SET, Ask, alter, conversation, describe
from tests.support.tools.logging_kafka import logging_classes
from tests.support.tools.steps import VERSIONS

LOGGER = "kafkaproto.requests"


@pytest.fixture(autouse=True)
def levels_of_loggers() -> Iterator[None]:
    """Restore the levels of the loggers after the test."""
    loggers = [logging.getLogger(name) for name in ("kafkaproto", LOGGER)]
    before = [logger.level for logger in loggers]
    yield
    for logger, level in zip(loggers, before, strict=True):
        logger.setLevel(level)


def ask_of(release: str) -> Ask:
    """Return a function that asks broker 0 of a cluster in virtual time that emulates a release of Kafka, such as "4.2"."""
    return VirtualCluster(2, release_name=release).connect(0).ask


@pytest.fixture
def ask() -> Ask:
    return ask_of("3.9")


@pytest.mark.clients
@pytest.mark.java
@pytest.mark.kafka
@pytest.mark.timeout(120)
@pytest.mark.rule("AD-42")
@pytest.mark.parametrize("version", VERSIONS)
def test_log_level_requests_get_the_same_results_from_this_broker_and_from_kafka(version: str, tmp_path: Path) -> None:
    kafka = KafkaCluster(settings_of("default"), version, logging_classes(version, tmp_path))
    host, port = kafka.bootstrap[0]

    def ask_kafka(request: Any, api_version: int) -> Any:
        return ask_address(f"{host}:{port}", key_of(request), api_version, request)

    try:
        expected = conversation(ask_kafka, "tests.logger")
    finally:
        kafka.stop()
    assert conversation(ask_of(version.rpartition(".")[0]), LOGGER) == expected


@pytest.mark.rule("AD-42")
@pytest.mark.parametrize(("release", "received"), [("3.9", 0), ("4.0", 7)])
def test_error_for_log_levels_of_wrong_broker_7_says_received_0_in_3_9_and_7_in_4_0(
    release: str, received: int
) -> None:
    message = f"Unexpected node id. Expected 0, but received {received}"
    assert alter(ask_of(release), "7", ("root", SET, "INFO")) == [42, message]


@pytest.mark.rule("AD-42")
def test_log_level_set_by_a_request_changes_the_level_of_the_python_logger(ask: Ask) -> None:
    logger = logging.getLogger(LOGGER)
    assert alter(ask, "0", ("root", SET, "WARN"), (LOGGER, SET, "DEBUG")) == [0, None]
    assert logger.isEnabledFor(logging.DEBUG)
    assert not logging.getLogger("kafkaproto.log").isEnabledFor(logging.INFO)
    assert alter(ask, "0", (LOGGER, DELETE, None)) == [0, None]
    assert not logger.isEnabledFor(logging.INFO) and logger.isEnabledFor(logging.WARNING)


@pytest.mark.rule("AD-42")
def test_describe_configs_lists_the_loggers_below_kafkaproto_with_their_levels(ask: Ask) -> None:
    logging.getLogger("tests.foreign").setLevel(logging.ERROR)
    logging.getLogger("kafkaproto").setLevel(logging.ERROR)
    logging.getLogger(LOGGER).setLevel(1)
    code, _, configs = describe(ask, "0")
    levels = {name: level for name, level, *_ in configs}
    assert code == 0 and levels["root"] == "ERROR" and levels[LOGGER] == "TRACE"
    assert all(name == "root" or name.startswith("kafkaproto.") for name in levels)


@pytest.mark.rule("AD-42")
def test_log_level_request_with_one_invalid_change_changes_no_log_level(ask: Ask) -> None:
    logging.getLogger(LOGGER).setLevel(logging.INFO)
    for name, level in (("no.such.logger", "INFO"), ("root", "LOUD"), ("tests.foreign", "INFO")):
        code, _ = alter(ask, "0", (LOGGER, SET, "ERROR"), (name, SET, level))
        assert code == 40 and logging.getLogger(LOGGER).level == logging.INFO
