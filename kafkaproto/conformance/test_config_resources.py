"""Tests of ListConfigResources and its older form ListClientMetricsResources."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto.conformance.scene import brokers_known, new_topic, wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.conformance.table_order import is_table_order
from kafkaproto.messages.alter_configs import AlterableConfig as ReplacedConfig
from kafkaproto.messages.alter_configs import AlterConfigsRequest
from kafkaproto.messages.alter_configs import AlterConfigsResource as ReplacedResource
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.list_config_resources import ListConfigResourcesRequest
from kafkaproto.partitioner import java_hash_bits

TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS, GROUP = 2, 4, 8, 16, 32
OF_GROUP = 8
UNKNOWN_TOPIC_OR_PARTITION = 3


def listed(subject: Subject, *types: int, version: int = 1) -> tuple[int, list[tuple[int, str]]]:
    """List the config resources of the given types, for example 16 for client metrics. Returns (error code, [(type, name)]), sorted."""
    response = subject.ask_once(ListConfigResourcesRequest(list(types)), version)
    return response.error_code, sorted((r.resource_type, r.resource_name) for r in response.config_resources)


@pytest.mark.rule("AD-18")
def test_list_config_resources_v0_lists_only_client_metrics_subscriptions(subject: Subject) -> None:
    new_topic(subject)
    assert listed(subject, version=0) == (0, [])


@pytest.mark.releases("4.1")
@pytest.mark.rule("AD-18")
def test_list_config_resources_returns_resources_of_the_requested_types(subject: Subject) -> None:
    topic = new_topic(subject).name
    brokers = [str(i) for i in range(len(subject.bootstrap))]
    assert listed(subject, BROKER) == (0, [(BROKER, name) for name in brokers])
    assert listed(subject, BROKER_LOGGER) == (0, [(BROKER_LOGGER, name) for name in brokers])
    assert listed(subject, CLIENT_METRICS) == (0, [])
    error, topics = listed(subject, TOPIC, TOPIC)
    assert error == 0 and topics.count((TOPIC, topic)) == 1 and {kind for kind, _ in topics} == {TOPIC}
    error, resources = listed(subject)
    assert error == 0 and {kind for kind, _ in resources} >= {TOPIC, BROKER, BROKER_LOGGER}


@pytest.mark.releases("4.1")
@pytest.mark.rule("AD-18")
def test_list_config_resources_always_lists_loggers_before_brokers_and_topics(subject: Subject) -> None:
    new_topic(subject)
    response = subject.ask_once(ListConfigResourcesRequest([TOPIC, BROKER, BROKER_LOGGER]), 1)
    types = list(dict.fromkeys(resource.resource_type for resource in response.config_resources))
    assert types == [BROKER_LOGGER, BROKER, TOPIC]


@pytest.mark.releases("4.1")
@pytest.mark.rule("AD-18")
def test_list_config_resources_lists_stopped_brokers_that_are_registered(subject: Subject) -> None:
    brokers = [str(i) for i in range(len(subject.bootstrap))]
    subject.stop_broker(2)
    try:
        wait_until(subject, lambda: 2 not in brokers_known(subject, 0), "broker 0 knows that broker 2 is down")
        expected = [(kind, name) for kind in (BROKER, BROKER_LOGGER) for name in brokers]
        assert listed(subject, BROKER, BROKER_LOGGER) == (0, expected)
    finally:
        subject.restore()


@pytest.mark.rule("AD-18")
def test_describe_configs_error_for_a_missing_topic_has_an_empty_message(subject: Subject) -> None:
    [result] = subject.ask_once(DescribeConfigsRequest([DescribeConfigsResource(TOPIC, "none", None)]), 4).results
    assert (result.error_code, result.error_message, result.configs) == (UNKNOWN_TOPIC_OR_PARTITION, "", [])


@pytest.mark.releases("4.1")
@pytest.mark.rule("AD-18")
def test_list_config_resources_rejects_unknown_resource_types(subject: Subject) -> None:
    for types in ((0,), (TOPIC, 99), (-1,)):
        assert listed(subject, *types) == (35, [])


@pytest.mark.releases("4.2")
@pytest.mark.rule("AD-18")
def test_list_config_resources_lists_groups_whose_settings_were_all_removed(subject: Subject) -> None:
    """The response lists such a group, because Kafka's `GroupConfigManager` keeps the name of each group whose settings have changed."""
    validated, emptied = subject.new_name("group"), subject.new_name("group")

    def replace(name: str, *settings: ReplacedConfig, validate_only: bool = False) -> None:
        request = AlterConfigsRequest([ReplacedResource(GROUP, name, list(settings))], validate_only)
        assert subject.ask_once(request, 2).responses[0].error_code == 0

    heartbeat = ReplacedConfig("consumer.heartbeat.interval.ms", "5000")
    replace(validated, heartbeat, validate_only=True)
    replace(validated)
    replace(emptied, heartbeat)
    wait_until(subject, lambda: (GROUP, emptied) in listed(subject, GROUP)[1], f"the group {emptied} is listed")
    replace(emptied)
    resource = DescribeConfigsResource(GROUP, emptied, [heartbeat.name])

    def source() -> int:
        [described_group] = subject.ask_once(DescribeConfigsRequest([resource]), 4).results
        return int(described_group.configs[0].config_source)

    wait_until(subject, lambda: source() != OF_GROUP, f"the group {emptied} has no setting of its own")
    groups = listed(subject, GROUP)[1]
    assert (GROUP, emptied) in groups and (GROUP, validated) not in groups


def in_order(subject: Subject, kind: int) -> list[str]:
    """Return the names of all resources of one type, in the order of the response."""
    response = subject.ask_once(ListConfigResourcesRequest([kind]), 1)
    return [resource.resource_name for resource in response.config_resources]


@pytest.mark.releases("4.1")
@pytest.mark.rule("AD-18")
def test_list_config_resources_lists_topics_in_the_order_of_signed_java_hashes(subject: Subject) -> None:
    created = [new_topic(subject).name for _ in range(12)]
    found_topics = [name for name in in_order(subject, TOPIC) if name in created]
    assert found_topics == sorted(created, key=lambda name: java_hash_bits(name) ^ 1 << 31)


@pytest.mark.releases("4.1")
@pytest.mark.rule("AD-18")
@pytest.mark.parametrize(
    ("kind", "setting"), [(CLIENT_METRICS, "interval.ms"), (GROUP, "consumer.heartbeat.interval.ms")]
)
def test_list_config_resources_lists_groups_and_metrics_in_java_concurrent_map_order(
    subject: Subject, kind: int, setting: str
) -> None:
    """The map may contain resources of other tests. The test accepts every order that it can have."""
    created = [subject.new_name("r") for _ in range(9)]

    def change(name: str, operation: int, value: str | None) -> None:
        request = IncrementalAlterConfigsRequest(
            [AlterConfigsResource(kind, name, [AlterableConfig(setting, operation, value)])]
        )
        assert subject.ask_once(request, 1).responses[0].error_code == 0

    for name in created:
        change(name, SET, "5000")
        wait_until(subject, lambda name=name: name in in_order(subject, kind), f"{name} is listed")  # type: ignore[misc]
    listed_names = [name for name in in_order(subject, kind) if name in created]
    for name in created:
        change(name, DELETE, None)
    assert sorted(listed_names) == sorted(created)
    assert is_table_order(listed_names)


# ---- subscriptions to client metrics ---------------------------------------------------------------------------------------------

SET, DELETE, APPEND, SUBTRACT = range(4)
INVALID_CONFIG, INVALID_REQUEST = 40, 42
INTERVAL, MATCH, METRICS = "interval.ms", "match", "metrics"
OF_SUBSCRIPTION, DEFAULT = 7, 5
OK = 0, None
OLDER, NEWER = pytest.mark.releases("3.9", "4.0"), pytest.mark.releases("4.2")


def alter(subject: Subject, name: str, *changes: tuple[str, int, str | None], validate_only: bool = False) -> Any:
    """Change settings of a client metrics subscription with IncrementalAlterConfigs, and return (error code, error message).

    name: the name of the subscription. changes: (setting, operation, value) of each change; the value is None for null. validate_only: whether the
    broker only checks the changes. The message is None if there is no error.
    """
    resource = AlterConfigsResource(CLIENT_METRICS, name, [AlterableConfig(*change) for change in changes])
    [response] = subject.ask_once(IncrementalAlterConfigsRequest([resource], validate_only), 1).responses
    return response.error_code, response.error_message


def described(subject: Subject, name: str, *keys: str) -> list[tuple[str, str | None, int, int, int]]:
    """Return [(setting, value, source, type, number of synonyms)] of a client metrics subscription, sorted.

    name: the name of the subscription. keys: the settings to return; all settings if no key is given.
    """
    resource = DescribeConfigsResource(CLIENT_METRICS, name, list(keys) or None)
    [result] = subject.ask_once(DescribeConfigsRequest([resource], include_synonyms=True), 4).results
    assert (result.error_code, result.error_message) == (0, "")
    return sorted((c.name, c.value, c.config_source, c.config_type, len(c.synonyms)) for c in result.configs)


@pytest.fixture
def subscription(subject: Subject) -> Iterator[str]:
    """Yield the name of a client metrics subscription that a test may create, and delete the subscription afterwards."""
    name = subject.new_name("subscription")
    yield name
    assert alter(subject, name, *((key, DELETE, None) for key in (INTERVAL, MATCH, METRICS))) == OK
    wait_until(
        subject,
        lambda: (CLIENT_METRICS, name) not in listed(subject, version=0)[1],
        f"the client metrics subscription {name} is deleted",
    )


@pytest.mark.rule("AD-17", "AD-18", "SN-67")
def test_client_metrics_subscription_exists_only_while_it_has_settings(subject: Subject, subscription: str) -> None:
    def is_listed() -> bool:
        return (CLIENT_METRICS, subscription) in listed(subject, version=0)[1]

    assert alter(subject, subscription, (INTERVAL, SET, "1000"), validate_only=True) == OK
    assert alter(subject, subscription) == OK
    assert not is_listed()
    assert alter(subject, subscription, (INTERVAL, SET, "1000"), (METRICS, SET, "a.,b.")) == OK
    wait_until(subject, is_listed, f"the client metrics subscription {subscription} is listed")
    replaced = ReplacedResource(CLIENT_METRICS, subscription, [ReplacedConfig(INTERVAL, "2000")])
    assert subject.ask_once(AlterConfigsRequest([replaced]), 2).responses[0].error_code == 0
    values = {(INTERVAL, "2000", OF_SUBSCRIPTION)}
    wait_until(
        subject,
        lambda: {d[:3] for d in described(subject, subscription) if d[2] == OF_SUBSCRIPTION} == values,
        f"{INTERVAL}=2000 is the only setting of the client metrics subscription {subscription}",
    )
    assert alter(subject, subscription, (INTERVAL, DELETE, None)) == OK
    wait_until(subject, lambda: not is_listed(), f"the client metrics subscription {subscription} is deleted")


@pytest.mark.rule("AD-17", "SN-67")
def test_invalid_settings_of_a_client_metrics_subscription_are_rejected(subject: Subject, subscription: str) -> None:
    range_text = "Invalid value {} for interval.ms, interval must be between 100 and 3600000 (1 hour)"
    for name, operation, value, error in (
        (INTERVAL, SET, "99", (INVALID_REQUEST, range_text.format(99))),
        (INTERVAL, SET, "3600001", (INVALID_REQUEST, range_text.format(3600001))),
        (INTERVAL, SET, None, (INVALID_REQUEST, "Null value not supported for : interval.ms")),
        ("foo", SET, "1", (INVALID_REQUEST, "Unknown client metrics configuration: foo")),
        *(
            (MATCH, SET, pattern, (INVALID_CONFIG, f"Illegal client matching pattern: {pattern}"))
            for pattern in ("foo=1", "client_id", "client_id=", "client_id=[", "client_id=a=b", "bogus=[")
        ),
        (METRICS, APPEND, "a", (INVALID_CONFIG, "Can't APPEND to key metrics because its type is not LIST.")),
        (INTERVAL, SUBTRACT, "5", (INVALID_CONFIG, "Can't SUBTRACT to key interval.ms because its type is not LIST.")),
    ):
        assert alter(subject, subscription, (name, operation, value)) == error
    assert alter(subject, "", (INTERVAL, SET, "1000")) == (INVALID_REQUEST, "Subscription name can't be empty")
    [nameless] = subject.ask_once(
        DescribeConfigsRequest([DescribeConfigsResource(CLIENT_METRICS, "", None)]), 4
    ).results
    text = "Client metrics subscription name must not be empty"
    assert (nameless.error_code, nameless.error_message) == (INVALID_REQUEST, text)
    assert alter(subject, subscription, (MATCH, SET, "client_id=a.*,client_source_port=[0-9]+")) == OK


@pytest.mark.rule("AD-17")
@pytest.mark.parametrize("is_present", [False, True], ids=["absent", "present"])
def test_append_and_subtract_are_rejected_for_all_settings_of_client_metrics(
    subject: Subject, subscription: str, is_present: bool
) -> None:
    """APPEND and SUBTRACT are rejected for every setting, also for the lists `metrics` and `match`.

    The error does not depend on whether the subscription exists or its name is empty. Kafka checks the operations before the name, the settings and
    the values, so the error also precedes that of an unknown setting. is_present: whether the subscription exists before the changes.
    """
    values = [(METRICS, "a.,b."), (MATCH, "client_id=a"), (INTERVAL, "1000")]
    if is_present:
        assert alter(subject, subscription, *((key, SET, value) for key, value in values)) == OK
        wait_until(
            subject,
            lambda: (CLIENT_METRICS, subscription) in listed(subject, version=0)[1],
            f"the client metrics subscription {subscription} is listed",
        )
    before = described(subject, subscription)
    for key in (METRICS, MATCH, INTERVAL, "foo", ""):
        for operation, word in ((APPEND, "APPEND"), (SUBTRACT, "SUBTRACT")):
            not_a_list = INVALID_CONFIG, f"Can't {word} to key {key} because its type is not LIST."
            for value in ("b.", ""):
                assert alter(subject, subscription, (key, operation, value)) == not_a_list
                assert alter(subject, subscription, (key, operation, value), validate_only=True) == not_a_list
            assert alter(subject, subscription, ("bar", SET, "1"), (key, operation, "b.")) == not_a_list
            assert alter(subject, "", (key, operation, "b.")) == not_a_list
            null = INVALID_REQUEST, f"Null value not supported for : {key}"
            assert alter(subject, subscription, (key, operation, None)) == null
    assert described(subject, subscription) == before


@pytest.mark.rule("AD-17")
@pytest.mark.parametrize(
    ("error", "padded", "repeated", "no_match"),
    [
        pytest.param((-1, None), (-1, None), OK, INVALID_CONFIG, marks=OLDER, id="3.9"),
        pytest.param(
            (INVALID_CONFIG, "Invalid value abc for configuration interval.ms: Not a number of type INT"),
            OK,
            (INVALID_CONFIG, "Configuration 'metrics' values must not be empty."),
            0,
            marks=NEWER,
            id="4.2",
        ),
    ],
)
def test_client_metrics_interval_that_is_not_an_int_gets_a_type_error_from_4_0_on(
    subject: Subject, subscription: str, error: Any, padded: Any, repeated: Any, no_match: int
) -> None:
    assert alter(subject, subscription, (INTERVAL, SET, "abc")) == error
    assert alter(subject, subscription, (INTERVAL, SET, " 1000 ")) == padded
    assert alter(subject, subscription, (METRICS, SET, "a,,b")) == repeated
    assert alter(subject, subscription, (MATCH, SET, ""))[0] == no_match


@pytest.mark.rule("AD-17")
@OLDER
def test_value_of_the_client_metrics_setting_match_can_end_with_a_comma_before_4_0(
    subject: Subject, subscription: str
) -> None:
    for value in (",", ",,", "client_id=a,"):
        assert alter(subject, subscription, (MATCH, SET, value), validate_only=True) == OK, value
    for value, pattern in ((",client_id=a", ""), ("client_id=a,,client_id=b", ""), (" , ", " ")):
        error = alter(subject, subscription, (MATCH, SET, value), validate_only=True)
        assert error == (INVALID_CONFIG, f"Illegal client matching pattern: {pattern}"), value


@pytest.mark.rule("AD-17")
@pytest.mark.parametrize(
    ("settings", "of_interval", "of_none"),
    [
        pytest.param(
            [(INTERVAL, "1000", OF_SUBSCRIPTION, 0, 0), (METRICS, " a , b ", OF_SUBSCRIPTION, 0, 0)],
            [(INTERVAL, "1000", OF_SUBSCRIPTION, 0, 0), (METRICS, " a , b ", OF_SUBSCRIPTION, 0, 0)],
            [],
            marks=OLDER,
            id="3.9",
        ),
        pytest.param(
            [
                (INTERVAL, "1000", OF_SUBSCRIPTION, 3, 1),
                (MATCH, "", DEFAULT, 7, 0),
                (METRICS, "a,b", OF_SUBSCRIPTION, 7, 1),
            ],
            [(INTERVAL, "1000", OF_SUBSCRIPTION, 3, 1)],
            [(INTERVAL, "300000", DEFAULT, 3, 0), (MATCH, "", DEFAULT, 7, 0), (METRICS, "", DEFAULT, 7, 0)],
            marks=NEWER,
            id="4.2",
        ),
    ],
)
def test_describe_configs_returns_the_settings_of_a_client_metrics_subscription(
    subject: Subject, subscription: str, settings: Any, of_interval: Any, of_none: Any
) -> None:
    assert described(subject, subscription) == of_none
    assert alter(subject, subscription, (INTERVAL, SET, "1000"), (METRICS, SET, " a , b ")) == OK
    wait_until(
        subject,
        lambda: described(subject, subscription) == settings,
        f"DescribeConfigs returns the new settings of the client metrics subscription {subscription}",
    )
    assert described(subject, subscription, INTERVAL, "unknown") == of_interval
