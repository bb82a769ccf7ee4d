"""The comparison of tool outputs ignores what two clusters cannot share, and nothing else."""

from __future__ import annotations

import pytest

from tests.support.tools.jvm import Output
from tests.support.tools.normalising import PATTERNS, normalised
from tests.support.tools.playing import Lines, differences
from tests.support.tools.scenarios import SCENARIOS, Step

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


def test_tool_outputs_with_other_ids_addresses_and_stack_traces_count_as_equal() -> None:
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
def test_one_changed_word_or_number_in_a_tool_output_counts_as_a_difference(old: str, new: str) -> None:
    changed = FIRST._replace(out=FIRST.out.replace(old, new))
    expected, actual = lines(FIRST, PORTS, "topic id"), lines(changed, PORTS, "topic id")
    [difference] = differences([(STEP, expected)], [(STEP, actual)])
    assert "--- Kafka" in difference and "+++ this broker" in difference


@pytest.mark.parametrize(
    "changed", [FIRST._replace(code=1), FIRST._replace(err=""), FIRST._replace(err="error: slow\n")]
)
def test_different_exit_codes_or_standard_errors_of_a_tool_count_as_a_difference(changed: Output) -> None:
    assert lines(FIRST, PORTS, "topic id") != lines(changed, PORTS, "topic id")


def test_topic_ids_in_tool_outputs_are_compared_unless_a_pattern_excludes_them() -> None:
    assert lines(FIRST, PORTS) != lines(SECOND, OTHER_PORTS)


def test_line_order_of_tool_outputs_is_compared_unless_a_step_is_marked_unordered() -> None:
    one, other = Output(0, "a\nb\n", ""), Output(0, "b\na\n", "")
    assert lines(one, PORTS) != lines(other, PORTS)
    assert lines(one, PORTS, unordered=True) == lines(other, PORTS, unordered=True)


def test_tool_error_messages_may_differ_from_kafka_but_exception_types_may_not() -> None:
    error = "error: java.util.concurrent.ExecutionException: org.apache.kafka.common.errors.{}: {}"
    one = Output(1, "", error.format("InvalidConfigurationException", "Invalid value x") + "\n")
    same = Output(1, "", error.format("InvalidConfigurationException", "must be a number") + "\n")
    other = Output(1, "", error.format("InvalidRequestException", "Invalid value x") + "\n")
    assert lines(one, PORTS, "message") == lines(same, PORTS, "message") != lines(other, PORTS, "message")


def test_every_pattern_named_by_a_tool_test_step_exists_and_none_is_unused() -> None:
    used = {name for scenario in SCENARIOS for step in scenario.steps for name in step.patterns}
    assert used == set(PATTERNS)
