"""Tests of the settings of a group (config resource of type 32): their values and defaults, and the errors and messages of invalid changes."""

from __future__ import annotations

import re

import pytest

from kafkaproto.conformance.scene import wait_until
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

BROKER, GROUP = 4, 32
OF_GROUP, DEFAULT = 8, 5
SET, DELETE, APPEND, SUBTRACT, UNKNOWN_OPERATION = 0, 1, 2, 3, 9
UNKNOWN, INVALID_CONFIG, INVALID_REQUEST = -1, 40, 42
SESSION, HEARTBEAT, STANDBY = (
    "consumer.session.timeout.ms",
    "consumer.heartbeat.interval.ms",
    "streams.num.standby.replicas",
)
RESET, ISOLATION = "share.auto.offset.reset", "share.isolation.level"
OK = 0, None
DEFAULTS = {
    SESSION: "45000",
    HEARTBEAT: "5000",
    "share.session.timeout.ms": "45000",
    "share.heartbeat.interval.ms": "5000",
    "share.record.lock.duration.ms": "30000",
    RESET: "latest",
    ISOLATION: "read_uncommitted",
    "streams.session.timeout.ms": "45000",
    "streams.heartbeat.interval.ms": "5000",
    "streams.initial.rebalance.delay.ms": "3000",
    STANDBY: "0",
}
"""The default values of the settings of a group in Kafka 4.2."""
_UNKNOWN = ["nope", "a", "b"]
_CONSUMER_AND_SHARE = [name for name in DEFAULTS if not name.startswith("streams")]
_STREAMS = [
    "streams.session.timeout.ms",
    "streams.heartbeat.interval.ms",
    STANDBY,
    "streams.initial.rebalance.delay.ms",
]
UNPARSABLE = [(name, "x") for name in (*_UNKNOWN, *_CONSUMER_AND_SHARE, *_STREAMS)]
"""Pairs (setting, value): unknown settings of a group, and known settings with invalid values, in the order in which Kafka 4.2 checks them."""
BEYOND_LIMITS = [
    *((name, "1") for name in (HEARTBEAT, SESSION, "share.heartbeat.interval.ms", "share.session.timeout.ms")),
    ("share.record.lock.duration.ms", "1000"),
    *((name, "1") for name in ("streams.heartbeat.interval.ms", "streams.session.timeout.ms")),
    (STANDBY, "100"),
]
"""Settings of a group in the order in which Kafka 4.2 compares them with the broker's limits, each with a value beyond them."""
Change = tuple[str, int, str | None]


def alter(subject: Subject, group_id: str, *changes: Change, validate_only: bool = True) -> tuple[int, str | None]:
    """Validate or make changes of a group's settings, and return (error code, error message).

    changes: (setting, operation, value) of each change. The value is None for null. The message is None if there is no error. validate_only: whether
    the broker only checks the changes, so that nothing changes.
    """
    resource = AlterConfigsResource(GROUP, group_id, [AlterableConfig(*change) for change in changes])
    [response] = subject.ask_once(IncrementalAlterConfigsRequest([resource], validate_only), 1).responses
    return response.error_code, response.error_message


def described(subject: Subject, group_id: str, *keys: str) -> dict[str, tuple[str | None, int]]:
    """Return {setting: (value, source)} of a group, as DescribeConfigs returns them. keys: the settings to return; all if no key is given.

    Checks that the only synonym of each setting is the setting itself, with the same value and source.
    """
    request = DescribeConfigsRequest([DescribeConfigsResource(GROUP, group_id, list(keys) or None)], True)
    [result] = subject.ask_once(request, 4).results
    assert (result.error_code, result.error_message) == (0, "")
    for config in result.configs:
        synonyms = [(s.name, s.value, s.source) for s in config.synonyms]
        assert synonyms == [(config.name, config.value, config.config_source)]
        assert not config.read_only and not config.is_sensitive
    return {config.name: (config.value, config.config_source) for config in result.configs}


def invalid(name: str, value: str, reason: str) -> tuple[int, str]:
    return INVALID_CONFIG, f"Invalid value {value} for configuration {name}: {reason}"


def beyond(name: str, words: str, limit: str) -> tuple[int, str]:
    return INVALID_CONFIG, f"{name} must be {words} than or equal to {limit}"


def not_a_list(word: str, name: str) -> tuple[int, str]:
    return INVALID_CONFIG, f"Can't {word} to key {name} because its type is not LIST."


@pytest.mark.releases(before="4.0")
@pytest.mark.rule("CF-14")
def test_config_requests_for_a_group_get_error_invalid_request_before_kafka_4_0(subject: Subject) -> None:
    """IncrementalAlterConfigs rejects the resource type of groups. If a DescribeConfigs request names a group and a broker, both get an error."""
    group = subject.new_name("g")
    for name in (SESSION, "nope"):
        assert alter(subject, group, (name, SET, "46000")) == (INVALID_REQUEST, "Unknown resource type 32")
    resources = [DescribeConfigsResource(GROUP, group, None), DescribeConfigsResource(BROKER, "0", None)]
    results = subject.ask_once(DescribeConfigsRequest(resources), 4).results
    assert [(result.error_code, result.configs) for result in results] == [(INVALID_REQUEST, [])] * 2


@pytest.mark.releases(first="4.2")
@pytest.mark.rule("CF-14", "CF-15")
def test_describe_configs_of_a_group_that_does_not_exist_returns_the_defaults(subject: Subject) -> None:
    expected = {name: (value, DEFAULT) for name, value in DEFAULTS.items()}
    assert described(subject, subject.new_name("g")) == expected


@pytest.mark.releases(first="4.2")
@pytest.mark.rule("CF-14")
@pytest.mark.parametrize("is_reversed", [False, True])
def test_error_for_invalid_group_settings_names_the_setting_that_kafka_checks_first(
    subject: Subject, is_reversed: bool
) -> None:
    """The error names the invalid setting that Kafka checks first, whatever the order of the settings in the request.

    The test sends a series of requests for the list `UNPARSABLE`, and another one for `BEYOND_LIMITS`. The first request of a series has all settings
    of the list. Each further request omits the setting that the last error named, until none is left. is_reversed: whether the requests have the
    settings in the reverse order of the list.
    """
    for invalid_settings in (UNPARSABLE, BEYOND_LIMITS):
        changes = [(name, SET, value) for name, value in invalid_settings]
        changes = changes[::-1] if is_reversed else changes
        reported_names = []
        while changes:
            code, message = alter(subject, subject.new_name("g"), *changes)
            [name] = [
                name for name, _, _ in changes if re.search(rf"(^|name: |configuration ){name}\b(?!\.)", message or "")
            ]
            assert code == INVALID_CONFIG
            reported_names.append(name)
            changes = [change for change in changes if change[0] != name]
        assert reported_names == [name for name, _ in invalid_settings]


@pytest.mark.releases(first="4.0")
@pytest.mark.rule("CF-14", "CF-15")
def test_group_setting_can_be_set_and_deleted_for_a_group_that_does_not_exist(subject: Subject) -> None:
    group, other = subject.new_name("g"), subject.new_name("g")
    unset = {SESSION: ("45000", DEFAULT), HEARTBEAT: ("5000", DEFAULT)}
    assert alter(subject, group, (SESSION, SET, " 46000 "), validate_only=False) == OK
    changed = {**unset, SESSION: ("46000", OF_GROUP)}
    wait_until(
        subject,
        lambda: described(subject, group, SESSION, HEARTBEAT, "nope") == changed,
        f"{SESSION} of group {group} has the value set for this group",
    )
    assert described(subject, other, SESSION, HEARTBEAT) == unset
    assert alter(subject, group, (SESSION, DELETE, None), validate_only=False) == OK
    wait_until(
        subject,
        lambda: described(subject, group, SESSION, HEARTBEAT) == unset,
        f"{SESSION} of group {group} has the default value",
    )


@pytest.mark.releases(first="4.1")
@pytest.mark.rule("CF-14", "GN-69")
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
@pytest.mark.rule("CF-14", "GN-69")
def test_settings_of_a_group_with_an_empty_id_are_rejected(subject: Subject) -> None:
    """A change with SET or DELETE gets the error for the empty id. A change with another operation gets the error for its operation instead."""
    expected = INVALID_REQUEST, "Default group resources are not allowed."
    for name, operation, value in ((SESSION, SET, "46000"), ("nope", SET, "x"), (SESSION, DELETE, None)):
        assert alter(subject, "", (name, operation, value)) == expected
    for name in (SESSION, "nope"):
        assert alter(subject, "", (name, APPEND, "1")) == not_a_list("APPEND", name)
        assert alter(subject, "", (name, SUBTRACT, "1")) == not_a_list("SUBTRACT", name)
        assert alter(subject, "", (name, UNKNOWN_OPERATION, "1")) == (UNKNOWN, None)
    replaced = AlterConfigsRequest([ReplacedResource(GROUP, "", [ReplacedConfig(SESSION, "46000")])], True)
    [response] = subject.ask_once(replaced, 2).responses
    assert (response.error_code, response.error_message) == expected
    [described] = subject.ask_once(DescribeConfigsRequest([DescribeConfigsResource(GROUP, "", None)]), 4).results
    assert (described.error_code, described.error_message) == (INVALID_REQUEST, "Group name must not be empty")
