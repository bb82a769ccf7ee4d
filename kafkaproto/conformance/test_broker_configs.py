"""Tests of changes of dynamic broker settings: which of them are rejected, and with which error.

They cover read-only settings, values out of range, values that contradict each other, listeners, and broker ids in config resource names.
"""

from __future__ import annotations

import pytest

from kafkaproto.conformance.scene import wait_until
from kafkaproto.conformance.subject import Subject
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

BROKER = 4
SET, DELETE, APPEND, SUBTRACT = range(4)
INVALID_CONFIG, INVALID_REQUEST = 40, 42
ALL = ""
EITHER = pytest.mark.parametrize("broker", ["0", ALL])
NOT_DYNAMIC = "Cannot update these configs dynamically: "
NOT_OF_ALL = "Cannot update these configs at default cluster level, broker id must be specified: "
RETENTION, LOCAL_RETENTION = "log.retention.ms", "log.local.retention.ms"
BUFFER, THREADS = "log.cleaner.dedupe.buffer.size", "log.cleaner.threads"
INVALID_VALUES = [
    ("leader.replication.throttled.rate", "-1"),
    ("follower.replication.throttled.rate", "x"),
    ("min.insync.replicas", "0"),
    ("message.max.bytes", "-1"),
    ("num.io.threads", "0"),
    ("log.segment.bytes", "x"),
    ("log.retention.ms", "x"),
    (THREADS, "x"),
    ("log.retention.bytes", "x"),
]
"""Dynamic settings in the order in which Kafka 3.9 and 4.2 check them, each with an invalid value."""
Error = tuple[int, str | None]
VALID: Error = (0, None)


def altered(
    subject: Subject, broker: str, *operations: tuple[str, int, str | None], validate_only: bool = True
) -> Error:
    """Change settings of a broker with IncrementalAlterConfigs. Returns (error code, message); the message is None if there is no error.

    broker: a broker id, or "" for all brokers. operations: (setting, operation, value) of each change; the value is None for null. validate_only:
    whether the broker only checks the changes.
    """
    resource = AlterConfigsResource(BROKER, broker, [AlterableConfig(*operation) for operation in operations])
    [result] = subject.ask_once(IncrementalAlterConfigsRequest([resource], validate_only), 1).responses
    return result.error_code, result.error_message


def checked(subject: Subject, broker: str, **values: str) -> Error:
    """Validate new settings of a broker without changing them.

    broker: a broker id, or "" for all brokers. values: settings by name, with underscores in place of dots. Returns (error code, message); the
    message is None if there is no error.
    """
    return altered(subject, broker, *((name.replace("_", "."), SET, value) for name, value in values.items()))


def invalid(reason: str) -> Error:
    """Return the (error code, message) that a change of dynamic settings gets if one of Kafka's classes rejects the new values.

    The class is one that applies dynamic settings, such as `ConnectionQuotas`. reason: the message of the ConfigException that the class throws.
    """
    exception = "org.apache.kafka.common.config.ConfigException"
    return INVALID_REQUEST, f"Invalid value {exception}: {reason} for configuration Invalid dynamic configuration"


def value_of(subject: Subject, name: str) -> str | None:
    """Return the value of the setting `name` of broker 0 in a DescribeConfigs response; None if this value is null."""
    request = DescribeConfigsRequest([DescribeConfigsResource(BROKER, "0", [name])])
    [result] = subject.ask_once(request, 4).results
    value: str | None = result.configs[0].value
    return value


@pytest.mark.rule("CF-18")
@EITHER
@pytest.mark.parametrize(
    ("name", "value", "requirement"),
    [
        (RETENTION, "0", "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"),
        ("log.roll.ms", "0", "log.roll.ms must be greater than or equal to 1"),
        ("log.roll.ms", "-5", "log.roll.ms must be greater than or equal to 1"),
        ("log.roll.jitter.ms", "-1", "log.roll.jitter.ms must be greater than or equal to 0"),
        (BUFFER, "1048576", "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."),
    ],
)
def test_broker_settings_cannot_be_changed_to_values_rejected_at_broker_start(
    subject: Subject, broker: str, name: str, value: str, requirement: str
) -> None:
    assert altered(subject, broker, (name, SET, value)) == (INVALID_REQUEST, f"requirement failed: {requirement}")


@pytest.mark.rule("CF-18")
@EITHER
def test_error_names_the_non_numeric_broker_setting_if_another_is_out_of_range(subject: Subject, broker: str) -> None:
    failed = "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    not_int = "Invalid value x for configuration log.cleaner.threads: Not a number of type INT"
    assert checked(subject, broker, log_retention_ms="0", log_cleaner_threads="x") == (INVALID_REQUEST, not_int)
    assert checked(subject, broker, log_retention_ms="0", log_cleaner_threads="100") == (INVALID_REQUEST, failed)
    small = checked(subject, broker, log_cleaner_dedupe_buffer_size="2097153", log_cleaner_threads="2")
    assert small[0] == INVALID_REQUEST
    assert checked(subject, broker, log_cleaner_dedupe_buffer_size="2097154", log_cleaner_threads="2") == VALID


@pytest.mark.rule("CF-18")
@EITHER
def test_any_negative_retention_setting_of_a_broker_means_unlimited_retention(subject: Subject, broker: str) -> None:
    assert checked(subject, broker, log_retention_ms="-2") == VALID
    assert checked(subject, broker, log_retention_ms="-2", log_local_retention_ms="50") == VALID
    assert checked(subject, broker, log_retention_bytes="-5", log_flush_interval_ms="-1") == VALID


@pytest.mark.rule("CF-18")
@EITHER
@pytest.mark.parametrize("unit", ["ms", "bytes"])
def test_local_log_retention_of_a_broker_must_not_exceed_its_log_retention(
    subject: Subject, broker: str, unit: str
) -> None:
    name, local = f"log.retention.{unit}", f"log.local.retention.{unit}"
    above = f"Invalid value 50 for configuration {local}: Value must not be more than {name} property value: 20"
    unlimited = f"Invalid value -1 for configuration {local}: Value must not be -1 as {name} value is set as 20."
    for value, expected in (("50", invalid(above)), ("-1", invalid(unlimited)), ("-2", VALID), ("20", VALID)):
        assert altered(subject, broker, (name, SET, "20"), (local, SET, value)) == expected, value


@pytest.mark.rule("CF-18")
def test_local_log_retention_of_a_broker_above_the_default_log_retention_is_rejected(subject: Subject) -> None:
    above = "Value must not be more than log.retention.ms property value: 604800000"
    error = invalid(f"Invalid value 700000000 for configuration {LOCAL_RETENTION}: {above}")
    assert checked(subject, "0", log_local_retention_ms="700000000") == error
    assert checked(subject, "0", log_local_retention_bytes="-1") == VALID


@pytest.mark.rule("CF-19")
@EITHER
def test_error_for_changing_read_only_settings_lists_exactly_those_settings(subject: Subject, broker: str) -> None:
    """The error lists up to four read-only settings in the order of a Java hash table, and more than four in the order of a Scala hash table.

    Each request also changes a dynamic setting to an invalid value. The error does not list the dynamic setting. broker: a broker id, or "" for all
    brokers.
    """
    names = ["broker.rack", "node.id", "num.partitions", "log.dirs", "process.roles", "log.dir", "delete.topic.enable"]
    sets = {
        1: "Set(broker.rack)",
        2: "Set(node.id, broker.rack)",
        4: "Set(node.id, num.partitions, broker.rack, log.dirs)",
        5: "HashSet(num.partitions, process.roles, log.dirs, node.id, broker.rack)",
        7: "HashSet(delete.topic.enable, num.partitions, process.roles, log.dirs, node.id, broker.rack, log.dir)",
    }
    for count, settings_text in sets.items():
        changes = [(THREADS, SET, "x"), *((name, SET, "5") for name in names[:count])]
        assert altered(subject, broker, *changes) == (INVALID_REQUEST, NOT_DYNAMIC + settings_text)


@pytest.mark.rule("CF-19")
@EITHER
def test_error_for_ssl_settings_without_a_listener_prefix_lists_all_these_settings(
    subject: Subject, broker: str
) -> None:
    reason = "These security configs can be dynamically updated only per-listener using the listener prefix"
    settings_text = "HashSet(ssl.truststore.location, ssl.key.password, ssl.keystore.location)"
    error = checked(
        subject,
        broker,
        log_cleaner_threads="x",
        ssl_keystore_location="x",
        ssl_key_password="x",
        ssl_truststore_location="x",
    )
    assert error == (INVALID_REQUEST, f"{reason}: {settings_text}")
    assert checked(subject, broker, ssl_keystore_location="x", broker_rack="y")[1] == f"{NOT_DYNAMIC}Set(broker.rack)"


@pytest.mark.rule("CF-19")
def test_listener_prefixed_connection_limits_can_be_set_as_cluster_wide_defaults(subject: Subject) -> None:
    prefix = "listener.name.plaintext."
    for name in ("max.connections", "max.connection.creation.rate", "num.network.threads"):
        assert altered(subject, ALL, (prefix + name, SET, "5")) == VALID
    names = ("listener.name.b.y", "listener.name.a.x", "listener.name.a.ssl.keystore.location")
    error = altered(subject, ALL, *((name, SET, "1") for name in names))
    assert error[0] == INVALID_REQUEST and error[1] is not None and error[1].startswith(f"{NOT_OF_ALL}Set(")
    assert all(name in error[1] for name in names)
    wrong_type = "Invalid value x for configuration num.network.threads: Not a number of type INT"
    for broker in ("0", ALL):
        error = altered(subject, broker, (f"{prefix}num.network.threads", SET, "x"), ("listener.name.a.x", SET, "1"))
        assert error == (INVALID_REQUEST, wrong_type)


@pytest.mark.rule("CF-18", "W-12")
@EITHER
def test_error_names_max_connections_per_ip_if_max_connections_is_zero_as_well(subject: Subject, broker: str) -> None:
    name, limit, rate = "max.connections.per.ip", "max.connections", "max.connection.creation.rate"
    only = f"requirement failed: {name} can be set to zero only if {name}.overrides property is set."
    assert altered(subject, broker, (name, SET, "0")) == (INVALID_REQUEST, only)
    assert altered(subject, broker, (name, SET, "0"), (f"{name}.overrides", SET, "127.0.0.9:10")) == VALID
    assert altered(subject, broker, (limit, SET, "0"), (name, SET, "0")) == (INVALID_REQUEST, only)
    assert altered(subject, broker, (name, SET, "0"), (THREADS, SET, "0")) == (INVALID_REQUEST, "/ by zero")
    retention = "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    assert altered(subject, broker, (name, SET, "0"), (RETENTION, SET, "0")) == (INVALID_REQUEST, retention)
    for setting in (limit, rate):
        for prefix in ("", "listener.name.plaintext."):
            assert altered(subject, broker, (prefix + setting, SET, "0")) == invalid(f"Invalid {setting} 0")
        assert altered(subject, broker, (f"listener.name.other.{setting}", SET, "0")) == VALID
    assert altered(subject, broker, (rate, SET, "0"), (limit, SET, "0")) == invalid(f"Invalid {limit} 0")
    assert altered(subject, broker, ("num.io.threads", SET, "100"), (limit, SET, "0")) == invalid(f"Invalid {limit} 0")
    assert altered(subject, broker, (limit, SET, "0"), (f"listener.name.plaintext.{limit}", SET, "5")) == VALID


@pytest.mark.rule("CF-18")
@EITHER
def test_metric_reporters_of_a_broker_cannot_name_a_class_that_kafka_lacks(subject: Subject, broker: str) -> None:
    def failed(*names: str) -> Error:
        update = f"Validation of dynamic config update of Set({', '.join(names)})"
        return invalid(f"{update} failed with class class kafka.server.DynamicMetricsReporters")

    name, jmx = "metric.reporters", "org.apache.kafka.common.metrics.JmxReporter"
    for value in ("x.Y", "java.lang.String", f"{jmx},x.Y"):
        assert altered(subject, broker, (name, SET, value)) == failed(name), value
    assert altered(subject, broker, (name, APPEND, "x.Y")) == failed(name)
    for value in ("", " ", jmx):
        assert altered(subject, broker, (name, SET, value)) == VALID, value
    assert altered(subject, broker, (name, DELETE, None)) == VALID
    others = {"message.max.bytes": "9", "num.io.threads": "100", THREADS: "10", "background.threads": "100"}
    for other, value in others.items():
        assert altered(subject, broker, (other, SET, value), (name, SET, "x.Y")) == failed(name, other)
    changes = [(other, SET, value) for other, value in others.items()]
    assert altered(subject, broker, *changes, (name, SET, "x.Y")) == failed(name, *others)
    limit = "max.connections"
    assert altered(subject, broker, (limit, SET, "0"), (name, SET, "x.Y")) == invalid(f"Invalid {limit} 0")


@pytest.mark.rule("CF-18")
@EITHER
def test_network_thread_count_can_be_halved_or_doubled_but_not_more_than_doubled(subject: Subject, broker: str) -> None:
    name = "num.network.threads"
    of_listener = f"listener.name.plaintext.{name}"
    present = int(value_of(subject, name) or 0)
    failed = "Dynamic thread count update validation failed for"
    limit = f"value should not be greater than double the current value {present}"
    above = str(2 * present + 1)
    for setting in (name, of_listener):
        assert altered(subject, broker, (setting, SET, str(2 * present))) == VALID
        assert altered(subject, broker, (setting, SET, str(max(1, present // 2)))) == VALID
        for other in ((), (("num.io.threads", SET, "100"),)):
            error = altered(subject, broker, (setting, SET, above), *other)
            assert error == invalid(f"{failed} {name}={above}, {limit}")
    assert altered(subject, broker, (name, SET, above), (of_listener, SET, str(present))) == VALID
    assert altered(subject, broker, (f"listener.name.other.{name}", SET, above)) == VALID


@pytest.mark.rule("CF-19")
@pytest.mark.parametrize(
    ("broker", "operation", "expected"),
    [
        ("0", SET, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        ("0", DELETE, "Broker-level min.insync.replicas cannot be altered while ELR is enabled."),
        (ALL, DELETE, "Cluster-level min.insync.replicas cannot be removed while ELR is enabled."),
    ],
)
@pytest.mark.releases(first="4.1")
def test_min_insync_replicas_of_a_broker_cannot_be_changed_while_elr_is_enabled(
    subject: Subject, broker: str, operation: int, expected: str
) -> None:
    change = ("min.insync.replicas", operation, "2" if operation == SET else None)
    assert altered(subject, broker, change) == (INVALID_CONFIG, expected)
    assert altered(subject, broker, change, (THREADS, SET, "x"))[0] == INVALID_REQUEST
    if operation == SET:
        below = "Invalid value 0 for configuration min.insync.replicas: Value must be at least 1"
        assert checked(subject, broker, min_insync_replicas="0") == (INVALID_REQUEST, below)


@pytest.mark.rule("CF-19")
@EITHER
@pytest.mark.parametrize("is_reversed", [False, True])
def test_error_for_several_invalid_values_names_the_setting_that_kafka_checks_first(
    subject: Subject, broker: str, is_reversed: bool
) -> None:
    """The error names the invalid setting that Kafka checks first, whatever the order of the settings in the request.

    The first request has all settings of `INVALID_VALUES`. Each further request omits the setting that the last error named, until none is left.
    broker: a broker id, or "" for all brokers. is_reversed: whether the requests have the settings in the reverse order of `INVALID_VALUES`.
    """
    invalid_values = [*INVALID_VALUES] if not is_reversed else [*reversed(INVALID_VALUES)]
    reported_names = []
    while invalid_values:
        code, message = altered(subject, broker, *((name, SET, value) for name, value in invalid_values))
        [name] = [name for name, _ in invalid_values if f" for configuration {name}: " in (message or "")]
        assert code == INVALID_REQUEST
        reported_names.append(name)
        invalid_values = [change for change in invalid_values if change[0] != name]
    assert reported_names == [name for name, _ in INVALID_VALUES]


@pytest.mark.rule("CF-19")
@EITHER
def test_append_and_subtract_are_rejected_for_broker_settings_that_are_not_lists(subject: Subject, broker: str) -> None:
    for operation, name in ((APPEND, "append"), (SUBTRACT, "subtract")):
        error = altered(subject, broker, ("broker.rack", operation, "x"), ("node.id", SET, "3"))
        assert error == (INVALID_CONFIG, f"Config value {name} is not allowed for config key: broker.rack")


@pytest.mark.rule("CF-23")
def test_subtract_from_a_list_setting_of_a_broker_ignores_the_cluster_wide_value(subject: Subject) -> None:
    name = "log.cleanup.policy"

    def change(broker: str, operation: int, value: str | None, expected: str) -> None:
        assert altered(subject, broker, (name, operation, value), validate_only=False) == VALID
        wait_until(
            subject, lambda: value_of(subject, name) == expected, f"broker 0 reports log.cleanup.policy={expected}"
        )

    change(ALL, SET, "compact", "compact")
    try:
        change("0", SUBTRACT, "compact", "delete")
        change("0", APPEND, "compact", "delete,compact")
        change("0", DELETE, None, "compact")
    finally:
        change("0", DELETE, None, "compact")
        change(ALL, DELETE, None, "delete")


@pytest.mark.rule("CF-20")
def test_listeners_of_a_broker_can_be_set_to_their_present_value(subject: Subject) -> None:
    host, port = subject.bootstrap[0]
    for form in ("PLAINTEXT", "plaintext"):
        assert checked(subject, "0", listeners=f"{form}://{host}:{port}") == VALID
    present = f"PLAINTEXT://{host}:{port}"
    assert altered(subject, ALL, ("listeners", SET, present)) == (INVALID_REQUEST, f"{NOT_OF_ALL}Set(listeners)")
    assert altered(subject, "0", ("listeners", SET, present), validate_only=False) == VALID
    try:
        wait_until(
            subject, lambda: value_of(subject, "listeners") == present, "broker 0 reports the value set for listeners"
        )
    finally:
        assert altered(subject, "0", ("listeners", DELETE, None), validate_only=False) == VALID


@pytest.mark.rule("CF-20")
@pytest.mark.releases(before="4.0")
def test_before_4_0_advertised_listeners_can_be_set_only_to_their_present_value(subject: Subject) -> None:
    host, port = subject.bootstrap[0]
    assert checked(subject, "0", advertised_listeners=f"PLAINTEXT://{host}:{port}") == VALID
    reason = "Advertised listeners cannot be altered when using a Raft-based metadata quorum."
    assert checked(subject, "0", advertised_listeners=f"PLAINTEXT://{host}:1") == invalid(reason)


@pytest.mark.rule("CF-20")
@pytest.mark.releases(first="4.0")
def test_advertised_listeners_cannot_be_set_from_4_0_on(subject: Subject) -> None:
    host, port = subject.bootstrap[0]
    error = checked(subject, "0", advertised_listeners=f"PLAINTEXT://{host}:{port}")
    assert error == (INVALID_REQUEST, f"{NOT_DYNAMIC}Set(advertised.listeners)")


@pytest.mark.rule("CF-21")
def test_config_requests_accept_00_or_plus_0_or_minus_0_as_the_id_of_broker_0(subject: Subject) -> None:
    for name in ("0", "00", "+0", "-0"):
        assert checked(subject, name, log_cleaner_threads="1") == VALID, name
        [result] = subject.ask_once(
            DescribeConfigsRequest([DescribeConfigsResource(BROKER, name, [THREADS])]), 4
        ).results
        assert (result.error_code, [config.name for config in result.configs]) == (0, [THREADS]), name
    for name in ("01", "-1"):
        text = f"Unexpected broker id, expected 0, but received {name}"
        assert checked(subject, name, log_cleaner_threads="1") == (INVALID_REQUEST, text)
    for name in (" 0", "99999999999"):
        text = f"Node id must be an integer, but it is: {name}"
        assert checked(subject, name, log_cleaner_threads="1") == (INVALID_REQUEST, text)
