"""The comparison of tool outputs ignores what two clusters cannot share, and nothing else."""

from __future__ import annotations

import pytest

from tests.support.tools.jvm import Output
from tests.support.tools.normalising import PATTERNS, normalised
from tests.support.tools.playing import Lines, differences
from tests.support.tools.scenarios import SCENARIOS
from tests.support.tools.steps import Step

PORTS = [9092, 9093, 9094]
OTHER_PORTS = [41001, 41002, 41003]
DESCRIBED = """Topic: t\tTopicId: {id}\tPartitionCount: 1\tReplicationFactor: 2
\tTopic: t\tPartition: 0\tLeader: 127.0.0.1:{port} (0)\tReplicas: 0,1\tIsr: 0,1
"""
FIRST = Output(0, DESCRIBED.format(id="a" * 22, port=9092), "warning: slow\n")
SECOND = Output(0, DESCRIBED.format(id="b" * 22, port=41001), "SLF4J: noise\nwarning: slow\n\tat a.b(C.java)\n")
STEP = Step("describe", "--describe", patterns=("topic id",))


def lines(output: Output, ports: list[int], *patterns: str, unordered: bool = False) -> Lines:
    return normalised(output, ports, patterns, unordered=unordered)


def test_tool_outputs_that_differ_only_in_ids_addresses_and_stack_traces_are_equal() -> None:
    expected = lines(FIRST, PORTS, "topic id")
    assert expected == lines(SECOND, OTHER_PORTS, "topic id")
    assert differences([(STEP, expected)], [(STEP, expected)]) == []
    assert "Leader: broker-0 (0)" in expected[2]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("Topic: t", "Topic: u"),
        ("PartitionCount: 1", "PartitionCount: 2"),
        ("Replicas: 0,1", "Replicas: 1,0"),
        ("Isr: 0,1", "Isr: 0"),
        (":9092", ":9093"),
        (":9092", ":9999"),
        ("TopicId:", "TopicID:"),
        ("\n\tTopic", "\n\nTopic"),
    ],
)
def test_comparison_of_tool_outputs_returns_a_difference_for_a_single_changed_word(old: str, new: str) -> None:
    changed = FIRST._replace(out=FIRST.out.replace(old, new))
    expected, actual = lines(FIRST, PORTS, "topic id"), lines(changed, PORTS, "topic id")
    [difference] = differences([(STEP, expected)], [(STEP, actual)])
    assert "--- Kafka" in difference and "+++ this broker" in difference


@pytest.mark.parametrize(
    "changed", [FIRST._replace(code=1), FIRST._replace(err=""), FIRST._replace(err="error: slow\n")]
)
def test_tool_comparison_reports_a_difference_in_exit_code_or_stderr_text(changed: Output) -> None:
    assert lines(FIRST, PORTS, "topic id") != lines(changed, PORTS, "topic id")


def test_topic_ids_in_tool_outputs_are_compared_unless_a_pattern_excludes_them() -> None:
    assert lines(FIRST, PORTS) != lines(SECOND, OTHER_PORTS)


def test_line_order_of_tool_outputs_is_compared_unless_a_call_is_marked_unordered() -> None:
    forward, backward = Output(0, "a\nb\n", ""), Output(0, "b\na\n", "")
    assert lines(forward, PORTS) != lines(backward, PORTS)
    assert lines(forward, PORTS, unordered=True) == lines(backward, PORTS, unordered=True)


def test_comparison_of_json_tool_outputs_ignores_field_order_but_no_field_or_value() -> None:
    expected = lines(Output(0, '{"offset":0,"topic":"t","key":null}\n', ""), PORTS)
    assert lines(Output(0, '{"topic":"t","key":null,"offset":0}\n', ""), PORTS) == expected
    for other in (
        '{"offset":1,"topic":"t","key":null}',
        '{"offset":0,"topic":"t"}',
        '{"offset":0,"topic":"t","key":null',
    ):
        assert lines(Output(0, f"{other}\n", ""), PORTS) != expected


def test_tool_comparison_reports_different_error_messages_and_different_exceptions() -> None:
    error = "error: java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.{}: {}"
    first = Output(1, "", error.format("InvalidConfigurationException", "Invalid value x") + "\n")
    other_text = Output(1, "", error.format("InvalidConfigurationException", "must be a number") + "\n")
    other_type = Output(1, "", error.format("InvalidRequestException", "Invalid value x") + "\n")
    assert len({tuple(lines(output, PORTS)) for output in (first, other_text, other_type)}) == 3


def test_each_pattern_for_masking_tool_output_is_used_by_at_least_one_comparison() -> None:
    used = {name for scenario in SCENARIOS for step in scenario.steps for name in step.patterns}
    assert used == set(PATTERNS)


def test_comparison_of_kafka_tools_reports_different_leader_epochs_of_the_quorum() -> None:
    epoch_1, epoch_2 = (Output(0, f"LeaderEpoch:            {epoch}", "") for epoch in (1, 2))
    assert lines(epoch_1, PORTS, "quorum") != lines(epoch_2, PORTS, "quorum")


QUORUM_OF_KAFKA = """NodeId\tDirectoryId\tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus
100\tAAAAAAAAAAAAAAAAAAAAAA\t90\t0\t5 ms ago\t5 ms ago\tLeader
0\tjUn2X-B65KpmF6Wib6cUog\t90\t0\t9 ms ago\t9 ms ago\tObserver
1\tkUn2X-B65KpmF6Wib6cUog\t89\t1\t9 ms ago\t9 ms ago\tObserver
2\tlUn2X-B65KpmF6Wib6cUog\t90\t0\t9 ms ago\t9 ms ago\tObserver
"""
QUORUM_OF_THIS_BROKER = """NodeId\tDirectoryId\tLogEndOffset\tLag\tLastFetchTimestamp\tLastCaughtUpTimestamp\tStatus
0\tAAAAAAAAAAAAAAAAAAAAAA\t7\t0\t0 ms ago\t0 ms ago\tLeader
1\tAAAAAAAAAAAAAAAAAAAAAA\t7\t0\t0 ms ago\t0 ms ago\tObserver
2\tAAAAAAAAAAAAAAAAAAAAAA\t7\t0\t0 ms ago\t0 ms ago\tObserver
"""


def test_quorum_tool_outputs_may_differ_in_offsets_and_times_but_not_in_roles() -> None:
    expected = lines(Output(0, QUORUM_OF_KAFKA, ""), PORTS, "quorum replicas")
    assert expected == lines(Output(0, QUORUM_OF_THIS_BROKER, ""), PORTS, "quorum replicas")
    for old, new in (("Lag\t", "Lags\t"), ("2\tA", "3\tA"), ("Observer\n2", "Follower\n2"), ("Leader", "Observer")):
        changed = Output(0, QUORUM_OF_THIS_BROKER.replace(old, new), "")
        assert lines(changed, PORTS, "quorum replicas") != expected


def _printed(field: str, *names: str) -> str:
    """Return records of an internal topic as the console consumer prints them. field: the field of the key with a name."""
    return "".join(f'{{"key":{{"type":0,"data":{{"{field}":"{name}"}}}},"value":{{"version":1}}}}' for name in names)


OBSERVER_0, OBSERVER_1, OBSERVER_2 = (
    f'{{"id": {broker_id}, "directoryId": "jUn2X-B65KpmF6Wib6cUo{broker_id}"}}' for broker_id in range(3)
)
VARYING = [
    ("member id", "g Bek0LQ02Rf+s6Co6YKBloQ h 1", "g cek0LQ02Rf+s6Co6YKBloR h 1", "g cek0LQ02Rf+s6Co6YKBloR h 2"),
    (
        "member id",
        "g tools-member-33518783-7d8a-4e5a-a767-9da6a7d52232 h",
        "g tools-member-a8f4d730-3cee-462e-a90b-72839166c5a6 h",
        "g tools-a8f4d730-3cee-462e-a90b-72839166c5a6 h",
    ),
    ("cluster id", f"Cluster ID: {'a' * 22}", f"Cluster ID: {'b' * 22}", f"Cluster Id: {'b' * 22}"),
    ("port", "0  127.0.0.1 9092   r0", "0  127.0.0.1 41001   r0", "0  127.0.0.1 41001   r1"),
    ("controller", "Local controller 100 only", "Local controller 0 only", "Local controller 0 also"),
    (
        "other groups and transactions",
        _printed("group", "tools-formatted", "g1", "tools-formatted", "g2"),
        _printed("group", "g4", "tools-formatted", "g3", "tools-formatted"),
        _printed("group", "g4", "tools-formatted", "g3"),
    ),
    (
        "other groups and transactions",
        _printed("transactionalId", "tools-formatted-a", "t1", "tools-formatted-a"),
        _printed("transactionalId", "tools-formatted-a", "tools-formatted-a"),
        _printed("transactionalId", "tools-formatted-a"),
    ),
    (
        "id of a producer",
        '"producerId":7,"producerEpoch":0',
        '"producerId":1000,"producerEpoch":0',
        '"producerEpoch":0',
    ),
    (
        "latency",
        "Percentiles: 50th = 2, 99th = 8",
        "Percentiles: 50th = 11, 99th = 12",
        "Percentiles: 51th = 2, 99th = 8",
    ),
    (
        "other loggers",
        "  kafka.server.KafkaApis=INFO sensitive=false synonyms={}",
        "  kafkaproto.requests=WARN sensitive=false synonyms={}",
        "  root=WARN sensitive=false synonyms={}",
    ),
    ("epoch of features", "Epoch: 12", "Epoch: 7", "Epochs: 7"),
    ("time", "at 2026-11-27 03:00:00,123 x", "at 2026-11-28 04:10:00,456 x", "at 2026-11-28 04:10:00,456 y"),
    (
        "time",
        '{"timestamp":1795748508942,"n":3}',
        '{"timestamp":1695748508942,"n":3}',
        '{"timestamp":1695748508942,"n":4}',
    ),
    ("producer id", "1000  0  5", "7     0  5", "7     1  5"),
    (
        "directory",
        '{"logDir":"/tmp/a","error":null}',
        '{"logDir":"/b","error":null}',
        '{"logDir":"/b","error":"x"}',
    ),
    (
        "log directories",
        "  log.dirs=/data/kafka-1 sensitive=false synonyms={STATIC_BROKER_CONFIG:log.dirs=/data/kafka-1}",
        "  log.dirs=/kafkaproto/broker-1 sensitive=false synonyms={STATIC_BROKER_CONFIG:log.dirs=/kafkaproto/broker-1}",
        "  log.dirs=/kafkaproto/broker-1 sensitive=false synonyms={DEFAULT_CONFIG:log.dirs=/kafkaproto/broker-1}",
    ),
    (
        "settings of the controller",
        "  process.roles=broker sensitive=false synonyms={STATIC_BROKER_CONFIG:process.roles=broker}",
        "  process.roles=broker,controller sensitive=false synonyms={}",
        "  process.roless=broker,controller sensitive=false synonyms={}",
    ),
    ("directories", '"log_dirs":["/a","any"]}', '"log_dirs":["/b/c","any"]}', '"log_dirs":["/b/c","/d"]}'),
    (
        "coordinator",
        "g  127.0.0.1:9092 (0)  Stable",
        "g  127.0.0.1:9094  (2)  Stable",
        "g  127.0.0.1:9094 (2)  Empty",
    ),
    (
        "open transaction",
        "tools-open  1  1000  Ongoing",
        "tools-open  0  7  Ongoing",
        "tools-open  0  7  PrepareCommit",
    ),
    (
        "share and streams groups",
        "\tShareFetch(78): 1 to 2 [usable: 2],",
        "\tShareFetch(78): UNSUPPORTED,",
        "\tShareFetch(79): UNSUPPORTED,",
    ),
    ("measured times", "3, 1.5, 120, 340, 2.5, 9.5", "3, 1.5, 99, 4, 2.5, 9.5", "4, 1.5, 99, 4, 2.5, 9.5"),
    (
        "rate",
        "50 records sent, 12.5 records/sec, 3 ms avg",
        "50 records sent, 9.1 records/sec, 8 ms avg",
        "49 records sent, 9.1 records/sec, 8 ms avg",
    ),
    ("quorum", "HighWatermark:  21", "HighWatermark:  7", "Watermark:  7"),
    (
        "quorum",
        'CurrentVoters:  [{"id": 100, "directoryId": null, "endpoints": []}]',
        'CurrentVoters:  [{"id": 0}]',
        'CurrentVoters:  [{"id": 0}, {"id": 1}]',
    ),
    (
        "quorum",
        f"CurrentObservers:       [{OBSERVER_0}, {OBSERVER_2}, {OBSERVER_1}]",
        'CurrentObservers:       [{"id": 1, "directoryId": null}, {"id": 2, "directoryId": null}]',
        'CurrentObservers:       [{"id": 1, "directoryId": null}]',
    ),
    (
        "quorum",
        f"CurrentObservers:       [{OBSERVER_0}, {OBSERVER_1}]",
        f"CurrentObservers:       [{OBSERVER_1}]",
        f"CurrentObservers:       [{OBSERVER_0}, {OBSERVER_1}, {OBSERVER_2}]",
    ),
    (
        "generated name",
        f"Altered client metrics config for {'a' * 22}.",
        f"Altered client metrics config for {'b' * 22}.",
        f"Altered client metrics configs for {'b' * 22}.",
    ),
    (
        "assignment of nothing",
        '{"name":"partitions_assigned","partitions":[],"timestamp":1}\n{"name":"records_consumed"}',
        '{"name":"records_consumed"}',
        '{"name":"partitions_assigned","partitions":[{"partition":0}],"timestamp":1}\n{"name":"records_consumed"}',
    ),
]
"""Pattern, a line, one that differs only in what the pattern hides, and one that differs in something else, too."""


@pytest.mark.parametrize(("pattern", "line", "same", "other"), VARYING)
def test_masking_pattern_hides_a_cluster_specific_value_but_no_other_difference(
    pattern: str, line: str, same: str, other: str
) -> None:
    expected = lines(Output(0, line, ""), PORTS, pattern)
    assert expected == lines(Output(0, same, ""), PORTS, pattern)
    assert expected != lines(Output(0, other, ""), PORTS, pattern) != lines(Output(0, line, ""), PORTS)


def test_stack_traces_that_a_tool_prints_are_left_out_of_the_comparison() -> None:
    printed = Output(1, "Error: x\n\tat a.b(C.java)\n\t... 3 more\nCaused by: y\n", "")
    assert lines(printed, PORTS) == ["exit 1", "Error: x", "Caused by: y"]


def test_each_pattern_for_masking_tool_output_has_a_test_case() -> None:
    elsewhere = {"topic id", "quorum replicas"}
    assert {pattern for pattern, *_ in VARYING} | elsewhere == set(PATTERNS)
