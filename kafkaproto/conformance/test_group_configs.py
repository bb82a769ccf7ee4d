"""Tests of the settings of a group (config resource of type 32): the errors and messages of invalid changes."""

from __future__ import annotations

import pytest

from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.alter_configs import AlterableConfig as ReplacedConfig
from kafkaproto.messages.alter_configs import AlterConfigsRequest
from kafkaproto.messages.alter_configs import AlterConfigsResource as ReplacedResource
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

GROUP = 32
SET, DELETE, APPEND, SUBTRACT, UNKNOWN_OPERATION = 0, 1, 2, 3, 9
UNKNOWN, INVALID_CONFIG, INVALID_REQUEST = -1, 40, 42
SESSION, HEARTBEAT, STANDBY = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "streams.num.standby.replicas",
)
RESET, ISOLATION = "share.auto.offset.reset", "share.isolation.level"
OK = 0, None
Change = tuple[str, int, str | None]


def alter(subject: Subject, group_id: str, *changes: Change) -> tuple[int, str | None]:
    """Validate changes of a group's settings with validate_only, so that nothing changes. Returns (error code, error message).

    changes: (setting, operation, value) of each change. The value is None for null. The message is None if there is no error.
    """
    resource = AlterConfigsResource(GROUP, group_id, [AlterableConfig(*change) for change in changes])
    [response] = subject.ask_once(IncrementalAlterConfigsRequest([resource], validate_only=True), 1).responses
    return response.error_code, response.error_message


def invalid(name: str, value: str, reason: str) -> tuple[int, str]:
    return INVALID_CONFIG, f"Invalid value {value} for configuration {name}: {reason}"


def beyond(name: str, words: str, limit: str) -> tuple[int, str]:
    return INVALID_CONFIG, f"{name} must be {words} than or equal to {limit}"


def not_a_list(word: str, name: str) -> tuple[int, str]:
    return INVALID_CONFIG, f"Can't {word} to key {name} because its type is not LIST."


@pytest.mark.releases(first="4.1")
@pytest.mark.rule("GN-69")
def test_invalid_settings_of_a_group_are_rejected_with_kafkas_exact_error_messages(subject: Subject) -> None:
    number, unknown = "Not a number of type INT", "Unknown group config name: {}"
    duration = (
        "Invalid value `bad` for configuration share.auto.offset.reset. The value must be either 'earliest', 'latest' or of the format "
        "'by_duration:<PnDTnHnMn.nS>'."
    )
    group = subject.new_name("g")
    for name, value, expected in (
        (SESSION, " 46000 ", OK),
        (SESSION, "1", beyond(SESSION, "greater", "group.consumer.min.session.timeout.ms")),
        (SESSION, "70000", beyond(SESSION, "less", "group.consumer.max.session.timeout.ms")),
        (HEARTBEAT, "20000", beyond(HEARTBEAT, "less", "group.consumer.max.heartbeat.interval.ms")),
        (STANDBY, "9", beyond(STANDBY, "less", "group.streams.max.standby.replicas")),
        (SESSION, "0", invalid(SESSION, "0", "Value must be at least 1")),
        (STANDBY, " -1", invalid(STANDBY, "-1", "Value must be at least 0")),
        *((SESSION, text, invalid(SESSION, text, number)) for text in ("abc", "", "99999999999")),
        (RESET, "bad", invalid(RESET, "bad", duration)),
        (ISOLATION, "bad", invalid(ISOLATION, "bad", "String must be one of: read_committed, read_uncommitted")),
        *((name, "1", (INVALID_CONFIG, unknown.format(name))) for name in ("nope", "", f"{SESSION} ", "retention.ms")),
        (SESSION, None, (INVALID_REQUEST, f"Null value not supported for : {SESSION}")),
    ):
        assert alter(subject, group, (name, SET, value)) == expected, (name, value)
    for name in (SESSION, "nope"):
        assert alter(subject, group, (name, DELETE, None)) == OK
        assert alter(subject, group, (name, APPEND, "1")) == not_a_list("APPEND", name)
        assert alter(subject, group, (name, SUBTRACT, "1")) == not_a_list("SUBTRACT", name)
        assert alter(subject, group, (name, UNKNOWN_OPERATION, "1")) == (UNKNOWN, None)
    assert alter(subject, group, (SESSION, SET, "46000"), ("nope", SET, "1"), (HEARTBEAT, SET, "x")) == (
        INVALID_CONFIG,
        unknown.format("nope"),
    )


@pytest.mark.rule("GN-69")
def test_group_settings_that_are_repeated_or_null_are_rejected_for_any_group_id(subject: Subject) -> None:
    """A repeated setting and a null value are rejected with equal errors for a valid and for an empty group id.

    The errors also occur in Kafka before 4.0, which has no settings of groups.
    """
    repeated = INVALID_REQUEST, "Error due to duplicate config keys"
    nulls = INVALID_REQUEST, f"Null value not supported for : {SESSION}, nope"
    for group in ("g", ""):
        assert alter(subject, group, (SESSION, SET, "46000"), (SESSION, SET, None)) == repeated
        assert alter(subject, group, (SESSION, SET, None), (HEARTBEAT, SET, "1"), ("nope", APPEND, None)) == nulls


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("GN-69")
def test_settings_of_a_group_with_an_empty_id_are_rejected(subject: Subject) -> None:
    expected = INVALID_REQUEST, "Default group resources are not allowed."
    assert alter(subject, "", (SESSION, SET, "46000")) == expected
    replaced = AlterConfigsRequest([ReplacedResource(GROUP, "", [ReplacedConfig(SESSION, "46000")])], True)
    [response] = subject.ask_once(replaced, 2).responses
    assert (response.error_code, response.error_message) == expected
    [described] = subject.ask_once(DescribeConfigsRequest([DescribeConfigsResource(GROUP, "", None)]), 4).results
    assert (described.error_code, described.error_message) == (INVALID_REQUEST, "Group name must not be empty")
