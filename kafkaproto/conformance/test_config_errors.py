"""Tests of the errors of DescribeConfigs, AlterConfigs, IncrementalAlterConfigs and CreateTopics: codes, messages and the order of the checks."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from kafkaproto.conformance.scene import new_topic
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.alter_configs import AlterableConfig as ReplacedConfig
from kafkaproto.messages.alter_configs import AlterConfigsRequest
from kafkaproto.messages.alter_configs import AlterConfigsResource as ReplacedResource
from kafkaproto.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

TOPIC, BROKER, CLIENT_METRICS, GROUP, UNKNOWN_TYPE = 2, 4, 16, 32, 77
SET, DELETE, APPEND, SUBTRACT, UNKNOWN = 0, 1, 2, 3, 9
FAILED, NOT_FOUND, ILLEGAL_TOPIC, INVALID_CONFIG, INVALID_REQUEST = -1, 3, 17, 40, 42
MALFORMED = (
    "This most likely occurs because of a request being malformed by the client library or the message was sent to an incompatible broker. "
    "See the broker logs for more details."
)
ILLEGAL = (
    "Topic name is invalid: 'a b' contains one or more characters other than ASCII alphanumerics, '.', '_' and '-'"
)
NO_DEFAULT = "Default topic resources are not allowed."
REPLICAS = "the literal '*' or a list of replicas in the following format: [partitionId]:[brokerId],[partitionId]:[brokerId],..."
Error = tuple[int, str | None]
Operations = Sequence[tuple[str, int, str | None]]


def changed(subject: Subject, *resources: tuple[int, str, Operations], validate_only: bool = True) -> list[Error]:
    """Send IncrementalAlterConfigs, and return (error code, message) of each resource in the order of the request.

    resources: (resource type, name, operations), with (setting, operation, value) for each operation. The value is None for null. validate_only:
    whether the broker only checks the changes. A message is None if there is no error.
    """
    requests = [AlterConfigsResource(t, n, [AlterableConfig(*operation) for operation in c]) for t, n, c in resources]
    results = subject.ask_once(IncrementalAlterConfigsRequest(requests, validate_only), 1).responses
    errors = {(r.resource_type, r.resource_name): (r.error_code, r.error_message) for r in results}
    return [errors[resource_type, name] for resource_type, name, _ in resources]


def replaced(subject: Subject, topic: str, configs: dict[str, str]) -> Error:
    """Validate new settings of a topic with AlterConfigs and validate_only, so that no setting changes. Returns (error code, message).

    configs: maps names of settings to values. The message is None if there is no error.
    """
    resource = ReplacedResource(TOPIC, topic, [ReplacedConfig(*config) for config in configs.items()])
    [result] = subject.ask_once(AlterConfigsRequest([resource], True), 2).responses
    return result.error_code, result.error_message


def created(subject: Subject, name: str, configs: dict[str, str | None]) -> Error:
    """Validate a new topic with CreateTopics and validate_only, so that no topic is created. Returns (error code, message).

    configs: maps names of settings to values, None for null. The message is None if there is no error.
    """
    topic = CreatableTopic(name, 1, 1, configs=[CreatableTopicConfig(*config) for config in configs.items()])
    [result] = subject.ask_once(CreateTopicsRequest([topic], 5_000, True), 5).topics
    return result.error_code, result.error_message


def described(subject: Subject, *resources: tuple[int, str]) -> list[Error]:
    """Send DescribeConfigs, and return (error code, message) of each resource. resources: (resource type, name) of each."""
    requests = [DescribeConfigsResource(resource_type, name, None) for resource_type, name in resources]
    results = subject.ask_once(DescribeConfigsRequest(requests), 4).results
    return [(result.error_code, result.error_message) for result in results]


def not_list(operation: str, setting: str) -> Error:
    return INVALID_CONFIG, f"Can't {operation} to key {setting} because its type is not LIST."


@pytest.mark.rule("AD-38")
@pytest.mark.parametrize("validate_only", [False, True])
def test_alter_configs_error_names_the_invalid_operation_not_the_illegal_topic_name(
    subject: Subject, validate_only: bool
) -> None:
    """Kafka checks, in this order: repeated and null settings, operations, the topic's name, the topic's settings, whether the topic exists.

    Each topic gets the error of the first check that fails. The test uses an existing topic, a missing topic, an illegal name and an empty name.
    validate_only: whether the broker only checks the changes.
    """
    names = [new_topic(subject).name, subject.new_name("missing"), "a b", ""]
    unknown = INVALID_CONFIG, "Unknown topic config name: no.such"
    invalid = INVALID_CONFIG, "Invalid value x for configuration retention.ms: Not a number of type LONG"
    duplicate = INVALID_REQUEST, "Error due to duplicate config keys"
    illegal: Error = (ILLEGAL_TOPIC, ILLEGAL)
    unnamed: Error = (INVALID_REQUEST, NO_DEFAULT)
    failed: Error = (FAILED, None)
    missing: Error = (NOT_FOUND, f"The topic '{names[1]}' does not exist.")
    null: Error = (INVALID_REQUEST, "Null value not supported for : retention.ms")
    cases: list[tuple[Operations, list[Error]]] = [
        ([("retention.ms", SET, "1000")], [(0, None), missing, illegal, unnamed]),
        ([], [(0, None), missing, illegal, unnamed]),
        ([("no.such", DELETE, None)], [(0, None), missing, illegal, unnamed]),
        ([("no.such", SET, "x")], [unknown, unknown, illegal, unnamed]),
        ([("retention.ms", SET, "x")], [invalid, invalid, illegal, unnamed]),
        ([("retention.ms", SET, "x"), ("no.such", SET, "x")], [unknown, unknown, illegal, unnamed]),
        ([("retention.ms", APPEND, "1")], [not_list("APPEND", "retention.ms")] * 4),
        ([("no.such", SET, "x"), ("retention.ms", SUBTRACT, "1")], [not_list("SUBTRACT", "retention.ms")] * 4),
        ([("no.such", APPEND, "x")], [not_list("APPEND", "no.such")] * 4),
        ([("no.such", UNKNOWN, "x")], [failed] * 4),
        ([("retention.ms", UNKNOWN, "1000"), ("no.such", SET, "x")], [failed] * 4),
        ([("retention.ms", UNKNOWN, "1"), ("retention.ms", SET, "2")], [duplicate] * 4),
        ([("no.such", SET, "1"), ("no.such", SET, "2")], [duplicate] * 4),
        ([("retention.ms", UNKNOWN, None)], [null] * 4),
    ]
    for operations, expected in cases:
        errors = [changed(subject, (TOPIC, n, operations), validate_only=validate_only)[0] for n in names]
        assert errors == expected, operations


@pytest.mark.rule("AD-38")
def test_unknown_config_operation_for_one_topic_changes_no_topic_of_the_request(subject: Subject) -> None:
    topic, other = new_topic(subject).name, new_topic(subject).name
    unknown_operation = (TOPIC, topic, [("retention.ms", UNKNOWN, "1000")])
    broker: tuple[int, str, Operations] = (BROKER, "0", [("log.cleaner.threads", SET, "1")])
    invalid_broker: tuple[int, str, Operations] = (BROKER, "x", [("log.cleaner.threads", SET, "1")])
    twice: tuple[int, str, Operations] = (TOPIC, "missing", [("a", SET, "1"), ("a", SET, "1")])
    valid: tuple[int, str, Operations] = (TOPIC, other, [("retention.ms", SET, "1000")])
    assert changed(subject, unknown_operation, broker, invalid_broker, twice, valid, validate_only=False) == [
        (FAILED, None),
        (FAILED, None),
        (INVALID_REQUEST, "Node id must be an integer, but it is: x"),
        (INVALID_REQUEST, "Error due to duplicate config keys"),
        (FAILED, None),
    ]
    [result] = subject.ask_once(
        DescribeConfigsRequest([DescribeConfigsResource(TOPIC, other, ["retention.ms"])]), 4
    ).results
    assert result.configs[0].value != "1000"
    assert changed(subject, (BROKER, "0", [("log.cleaner.threads", UNKNOWN, "1")]), valid)[1] == (0, None)
    for operation in (("retention.ms", APPEND, "1"), ("retention.ms", SET, "x"), ("no.such", SET, "x")):
        assert changed(subject, (TOPIC, other, [operation]), unknown_operation) == [(FAILED, None)] * 2
    duplicated = (TOPIC, topic, [("retention.ms", UNKNOWN, "1"), ("retention.ms", SET, "1")])
    assert changed(subject, duplicated, valid)[1] == (0, None)


@pytest.mark.rule("AD-17", "AD-38")
@pytest.mark.parametrize("kind", [TOPIC, CLIENT_METRICS], ids=["topic", "client-metrics"])
def test_first_invalid_config_operation_in_java_hash_order_is_reported(subject: Subject, kind: int) -> None:
    """Kafka checks `interval.ms` first, in Java hash order. An invalid APPEND to it fails one resource, an unknown operation the whole request."""
    valid: tuple[int, str, Operations] = (TOPIC, new_topic(subject).name, [("retention.ms", SET, "1000")])
    for operations, error, error_of_valid in (
        ([("metrics", UNKNOWN, "a"), ("interval.ms", APPEND, "5")], not_list("APPEND", "interval.ms"), (0, None)),
        ([("metrics", SUBTRACT, "a"), ("interval.ms", UNKNOWN, "5")], (FAILED, None), (FAILED, None)),
    ):
        for ordered in (operations, operations[::-1]):
            assert changed(subject, (kind, subject.new_name("name"), ordered), valid) == [error, error_of_valid]


NOT_DYNAMIC = "Cannot update these configs dynamically: "
NOT_OF_ALL = "Cannot update these configs at default cluster level, broker id must be specified: "
OF_LISTENER = "These security configs can be dynamically updated only per-listener using the listener prefix: "
KEY_STORE = "ssl.keystore.location"


@pytest.mark.rule("AD-39", "CF-9", "CF-13")
@pytest.mark.parametrize(
    ("broker", "setting", "value", "message"),
    [
        ("0", "broker.rack", "x", f"{NOT_DYNAMIC}Set(broker.rack)"),
        ("", "broker.rack", "x", f"{NOT_DYNAMIC}Set(broker.rack)"),
        ("0", KEY_STORE, "x", f"{OF_LISTENER}HashSet({KEY_STORE})"),
        ("", KEY_STORE, "x", f"{OF_LISTENER}HashSet({KEY_STORE})"),
        ("", f"listener.name.a.{KEY_STORE}", "x", f"{NOT_OF_ALL}Set(listener.name.a.{KEY_STORE})"),
        ("", "listener.name.a.no.such", "x", f"{NOT_OF_ALL}Set(listener.name.a.no.such)"),
        (
            "0",
            "log.cleaner.threads",
            "x",
            "Invalid value x for configuration log.cleaner.threads: Not a number of type INT",
        ),
        (
            "0",
            "log.cleaner.threads",
            "100",
            "Invalid value org.apache.kafka.common.config.ConfigException: Log cleaner threads cannot be increased to more than double "
            "the current value 1 for configuration Invalid dynamic configuration",
        ),
        ("0", "log.cleaner.threads", "0", "/ by zero"),
        ("", "log.cleaner.threads", "0", "/ by zero"),
    ],
)
def test_read_only_or_invalid_broker_settings_get_kafkas_exact_error_message(
    subject: Subject, broker: str, setting: str, value: str, message: str
) -> None:
    assert changed(subject, (BROKER, broker, [(setting, SET, value)])) == [(INVALID_REQUEST, message)]


@pytest.mark.rule("AD-39", "CF-13")
@pytest.mark.parametrize(
    ("count", "limit"),
    [("100", "value should not be greater than double"), ("1", "value should be at least half")],
)
def test_change_of_a_thread_count_to_more_than_double_or_less_than_half_is_rejected(
    subject: Subject, count: str, limit: str
) -> None:
    reason = f"Dynamic thread count update validation failed for num.io.threads={count}, {limit} the current value 8"
    exception = "org.apache.kafka.common.config.ConfigException"
    message = f"Invalid value {exception}: {reason} for configuration Invalid dynamic configuration"
    assert changed(subject, (BROKER, "0", [("num.io.threads", SET, count)])) == [(INVALID_REQUEST, message)]


@pytest.mark.rule("AD-39", "CF-13")
@pytest.mark.parametrize(
    ("configs", "message"),
    [
        ({"no.such": "x"}, "Unknown topic config name: no.such"),
        ({"log.retention.ms": "5"}, "Unknown topic config name: log.retention.ms"),
        ({"retention.ms": "x", "no.such": "x"}, "Unknown topic config name: no.such"),
        (
            {"retention.ms": "x", "segment.ms": "y"},
            "Invalid value y for configuration segment.ms: Not a number of type LONG",
        ),
        ({"retention.ms": "-5"}, "Invalid value -5 for configuration retention.ms: Value must be at least -1"),
        ({"segment.bytes": "1.5"}, "Invalid value 1.5 for configuration segment.bytes: Not a number of type INT"),
        (
            {"cleanup.policy": "delete,x"},
            "Invalid value x for configuration cleanup.policy: String must be one of: compact, delete",
        ),
        (
            {"preallocate": "x"},
            "Invalid value x for configuration preallocate: Expected value to be either true or false",
        ),
        (
            {"min.cleanable.dirty.ratio": "2"},
            "Invalid value 2.0 for configuration min.cleanable.dirty.ratio: Value must be no more than 1",
        ),
        (
            {"compression.gzip.level": "77"},
            "Invalid value 77 for configuration compression.gzip.level: Value must be between 1 and 9 or equal to -1",
        ),
        (
            {"leader.replication.throttled.replicas": "0:x"},
            "Invalid value [0:x] for configuration leader.replication.throttled.replicas: leader.replication.throttled.replicas must be "
            + REPLICAS,
        ),
        (
            {"min.compaction.lag.ms": "10", "max.compaction.lag.ms": "5"},
            "conflict topic config setting min.compaction.lag.ms (10) > max.compaction.lag.ms (5)",
        ),
        (
            {"remote.storage.enable": "true"},
            "Tiered Storage functionality is disabled in the broker. Topic cannot be configured with remote log storage.",
        ),
        pytest.param(
            {"message.format.version": "x"},
            "Invalid value x for configuration message.format.version: Version x is not a valid version",
            marks=pytest.mark.releases(before="4.0"),
        ),
        pytest.param(
            {"message.format.version": "x"},
            "Unknown topic config name: message.format.version",
            marks=pytest.mark.releases(first="4.0"),
        ),
    ],
)
def test_invalid_topic_settings_are_rejected_with_kafkas_exact_error_message(
    subject: Subject, configs: dict[str, str], message: str
) -> None:
    topic = new_topic(subject).name
    assert replaced(subject, topic, configs) == (INVALID_CONFIG, message)
    operations = [(name, SET, value) for name, value in configs.items()]
    assert changed(subject, (TOPIC, topic, operations)) == [(INVALID_CONFIG, message)]
    assert created(subject, subject.new_name(), dict(configs)) == (INVALID_CONFIG, message)


@pytest.mark.rule("AD-39")
def test_create_topics_rejects_null_settings_and_illegal_topic_names(
    subject: Subject,
) -> None:
    nulls: dict[str, str | None] = {"no.such": None, "retention.ms": None}
    message = "Null value not supported for topic configs: no.such,retention.ms"
    assert created(subject, subject.new_name(), nulls) == (INVALID_CONFIG, message)
    assert created(subject, "a b", {"no.such": "x"}) == (ILLEGAL_TOPIC, ILLEGAL)


@pytest.mark.rule("AD-40")
def test_describe_configs_with_one_unknown_resource_type_fails_for_all_resources(subject: Subject) -> None:
    topic = new_topic(subject).name
    malformed: Error = (INVALID_REQUEST, MALFORMED)
    for unknown in (-1, 0, 1, 3, 31, 64, UNKNOWN_TYPE):
        assert described(subject, (TOPIC, topic), (unknown, "x")) == [malformed] * 2, unknown
    assert described(subject, (CLIENT_METRICS, "x"), (TOPIC, topic)) == [(0, "")] * 2


@pytest.mark.rule("AD-40")
@pytest.mark.parametrize(
    "expected",
    [
        pytest.param((INVALID_REQUEST, MALFORMED), marks=pytest.mark.releases(before="4.0"), id="unknown"),
        pytest.param((0, ""), marks=pytest.mark.releases(first="4.0"), id="known"),
    ],
)
def test_describe_configs_rejects_resource_type_group_before_4_0(subject: Subject, expected: Error) -> None:
    assert described(subject, (TOPIC, new_topic(subject).name), (GROUP, "x")) == [expected] * 2


@pytest.mark.rule("AD-40")
def test_describe_configs_error_says_what_is_wrong_with_a_topic_name_or_broker_id(subject: Subject) -> None:
    no_name = "Client metrics subscription name must not be empty"
    resources = [(TOPIC, "a b"), (TOPIC, ""), (BROKER, "1"), (BROKER, "x"), (CLIENT_METRICS, "")]
    assert described(subject, *resources) == [
        (ILLEGAL_TOPIC, ILLEGAL),
        (ILLEGAL_TOPIC, "Topic name is invalid: the empty string is not allowed"),
        (INVALID_REQUEST, "Unexpected broker id, expected 0 or empty string, but received 1"),
        (INVALID_REQUEST, "Broker id must be an integer, but it is: x"),
        (INVALID_REQUEST, no_name),
    ]


@pytest.mark.rule("CF-22")
@pytest.mark.parametrize("value", ["NaN", "0.5f", "0.5d", "0x1p-1", ".5", "1.", " 5e-1 "])
def test_setting_of_type_double_accepts_java_spellings_such_as_0_5f_and_5e_1(subject: Subject, value: str) -> None:
    assert created(subject, subject.new_name(), {"min.cleanable.dirty.ratio": value}) == (0, None)


@pytest.mark.rule("CF-22")
@pytest.mark.parametrize("value", ["1_0", "nan", "inf", "0x1", "0.5x"])
def test_setting_of_type_double_rejects_nan_inf_hex_underscores_and_trailing_text(subject: Subject, value: str) -> None:
    message = f"Invalid value {value} for configuration min.cleanable.dirty.ratio: Not a number of type DOUBLE"
    assert created(subject, subject.new_name(), {"min.cleanable.dirty.ratio": value}) == (INVALID_CONFIG, message)


@pytest.mark.rule("CF-22")
def test_number_settings_accept_digits_of_any_unicode_script(subject: Subject) -> None:
    assert created(subject, subject.new_name(), {"retention.ms": "\u0663"}) == (0, None)
    topic = new_topic(subject, min_cleanable_dirty_ratio="0.5f", retention_ms="\u0663\u0664").name
    keys = ["min.cleanable.dirty.ratio", "retention.ms"]
    [result] = subject.ask_once(DescribeConfigsRequest([DescribeConfigsResource(TOPIC, topic, keys)]), 4).results
    assert {config.name: config.value for config in result.configs} == dict(zip(keys, ("0.5", "34"), strict=True))


@pytest.mark.rule("CF-27")
def test_topic_setting_values_are_trimmed_only_of_blanks_and_control_characters(subject: Subject) -> None:
    """The characters U+0000 to U+0020 around a value are removed, other kinds of space are not. Inside a list, U+0000 after a comma is kept."""
    topic = new_topic(
        subject, retention_ms="\0\x1f60000 \1", cleanup_policy="\0compact\t,\v delete\0", preallocate="\x1fTRUE"
    ).name
    values = {"retention.ms": "60000", "preallocate": "true"}
    [result] = subject.ask_once(DescribeConfigsRequest([DescribeConfigsResource(TOPIC, topic, [*values])]), 4).results
    assert {config.name: config.value for config in result.configs} == values
    number, switch = "Not a number of type LONG", "Expected value to be either true or false"
    for name, text, value, reason in (
        ("retention.ms", "\u00a060000", "\u00a060000", number),
        ("retention.ms", "60000\u2003", "60000\u2003", number),
        ("preallocate", "\u0085true", "\u0085true", switch),
        ("cleanup.policy", "compact,\0delete", "\0delete", "String must be one of: compact, delete"),
    ):
        message = f"Invalid value {value} for configuration {name}: {reason}"
        assert created(subject, subject.new_name(), {name: text}) == (INVALID_CONFIG, message)


NOT_ALLOWED = "Invalid value  for configuration cleanup.policy: String must be one of: compact, delete"
EMPTY_ITEM = "Configuration 'cleanup.policy' values must not be empty."


@pytest.mark.rule("CF-23")
@pytest.mark.parametrize(
    "message",
    [
        pytest.param(NOT_ALLOWED, marks=pytest.mark.releases("3.9", "4.0"), id="3.9"),
        pytest.param(EMPTY_ITEM, marks=pytest.mark.releases("4.2"), id="4.2"),
    ],
)
def test_setting_or_appending_a_cleanup_policy_with_an_empty_first_item_is_rejected(
    subject: Subject, message: str
) -> None:
    """The test validates SET, APPEND and SUBTRACT for `cleanup.policy`, with the empty string and with lists that have an empty or unknown item.

    SET rejects all of these values except the empty string. APPEND rejects the empty string, unknown items, and empty items before another item.
    APPEND accepts `,` and `delete,`, because Java's `String.split` drops empty items at the end. SUBTRACT accepts all of the values. message: the
    error message for a list with an empty item.
    """
    topic = new_topic(subject).name
    reason = "Invalid value x for configuration cleanup.policy: String must be one of: compact, delete"
    cases: list[tuple[str, Error, Error]] = [
        ("", (0, None), (INVALID_CONFIG, message)),
        (",", (INVALID_CONFIG, message), (0, None)),
        ("delete,", (INVALID_CONFIG, message), (0, None)),
        (",delete", (INVALID_CONFIG, message), (INVALID_CONFIG, message)),
        ("delete,,compact", (INVALID_CONFIG, message), (INVALID_CONFIG, message)),
        ("x,", (INVALID_CONFIG, reason), (INVALID_CONFIG, reason)),
    ]
    for value, if_set, if_appended in cases:
        assert changed(subject, (TOPIC, topic, [("cleanup.policy", SET, value)])) == [if_set], value
        assert changed(subject, (TOPIC, topic, [("cleanup.policy", APPEND, value)])) == [if_appended], value
        assert changed(subject, (TOPIC, topic, [("cleanup.policy", SUBTRACT, value)])) == [(0, None)], value
    broker: Error = (INVALID_REQUEST, message.replace("cleanup.policy", "log.cleanup.policy"))
    assert changed(subject, (BROKER, "0", [("log.cleanup.policy", APPEND, "")])) == [broker]
