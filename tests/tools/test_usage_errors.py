"""A command that a tool itself rejects fails the comparison of the tools, because it proves nothing about a broker."""

from __future__ import annotations

import pytest

from tests.support.tools.jvm import Output
from tests.support.tools.normalising import normalised
from tests.support.tools.steps import Step
from tests.support.tools.usage import misused

OPTIONS = """Option                                   Description
------                                   -----------
--alter                                  Alter the number of partitions.
"""
REQUIRED_OPTIONS = OPTIONS.replace("Option                ", "Option (* = required)")
ARGPARSE = """usage: kafka-features [-h] --bootstrap-server BOOTSTRAP_SERVER
                      {{describe,upgrade}} ...
kafka-features: error: {}
"""
EXCEPTION = 'Exception in thread "main" joptsimple.{}: {}\n\tat joptsimple.OptionParser.parse(OptionParser.java:396)\n'
USAGE_ERRORS = [
    Output(1, "", f"tpoic is not a recognized option\n{OPTIONS}"),
    Output(1, "tpoic is not a recognized option\n", ""),
    Output(1, "", f'Missing required argument "[topic]"\n{OPTIONS}'),
    Output(1, 'Missing required argument "[bootstrap-server]"\n', ""),
    Output(1, "Missing required option(s): topic-partition\n", ""),
    Output(1, "", f"Option topic requires an argument\n{OPTIONS}"),
    Output(1, "", EXCEPTION.format("OptionMissingRequiredArgumentException", "Option [t, topic] requires an argument")),
    Output(1, "", EXCEPTION.format("UnrecognizedOptionException", "x is not a recognized option")),
    Output(1, "Found multiple arguments for option topic, but you asked for only one\n", ""),
    Output(1, "Cannot parse argument 'x' of option partitions\n", ""),
    Output(1, "Option(s) [a] are unavailable given other options on the command line\n", ""),
    Output(1, 'Option "[list]" can\'t be used with option "[topic]"\n', ""),
    Output(1, "Command must include exactly one action: --list, --describe, --create, --alter or --delete\n", ""),
    Output(1, "", OPTIONS),
    Output(1, "", REQUIRED_OPTIONS),
    Output(0, f"This tool helps to create topics.\n{OPTIONS}", ""),
    Output(1, "", ARGPARSE.format("unrecognized arguments: '--nope'")),
    Output(1, "", ARGPARSE.format("too few arguments")),
    Output(1, "USAGE: java org.apache.kafka.tools.EndToEndLatency broker_list topic num_messages\n", ""),
]
RESULTS = [
    Output(0, "Created topic tools-a.\n", ""),
    Output(1, "Error while executing topic command : Topic 'tools-none' does not exist as expected\n", ""),
    Output(1, "", "java.lang.IllegalArgumentException: Topic 'tools-none' does not exist as expected\n"),
    Output(1, "", "org.apache.kafka.common.errors.InvalidConfigurationException: Unknown topic config name: nope\n"),
    Output(1, "Could not upgrade tools to 1. The update failed for all features since the following feature had an error\n", ""),
    Output(0, "  compression.type=producer sensitive=false synonyms={}\n", ""),
]  # fmt: skip
STEP = Step("describe", "--describe")


def lines(output: Output) -> list[str]:
    return normalised(output, [9092], (), unordered=False)


@pytest.mark.parametrize("output", USAGE_ERRORS)
def test_usage_error_of_a_kafka_tool_is_reported_unless_the_call_is_marked_for_one(output: Output) -> None:
    [text] = misused([(STEP, lines(output))])
    assert text.startswith("describe: --describe\nthe tool rejects its arguments")
    assert misused([(STEP._replace(usage_error=True), lines(output))]) == []


@pytest.mark.parametrize("output", RESULTS)
def test_tool_output_with_a_result_or_a_broker_error_is_not_a_usage_error(output: Output) -> None:
    assert misused([(STEP, lines(output))]) == []
    [text] = misused([(STEP._replace(usage_error=True), lines(output))])
    assert "the tool accepts its arguments" in text


def test_each_tool_call_with_a_usage_error_is_reported_and_other_calls_are_not() -> None:
    steps = [Step(f"verb {i}", "") for i in range(3)]
    played = list(zip(steps, map(lines, (USAGE_ERRORS[0], RESULTS[0], USAGE_ERRORS[-1])), strict=True))
    assert [text.partition(":")[0] for text in misused(played)] == ["verb 0", "verb 2"]
