"""Removal of what must differ between two clusters from the output of a tool: addresses, ids, times. Everything else is compared exactly."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from tests.support.tools.jvm import Output


class Pattern(NamedTuple):
    """Text that is replaced before a comparison, and why this text cannot be equal in two clusters."""

    expression: re.Pattern[str]
    replacement: str | Callable[[re.Match[str]], str]
    reason: str


_LOGGED = re.compile(r'\{"key":\{(?:(?!\{"key":\{).)*|(?<=Processed a total of )\d+')
"""A record of an internal topic as the tools print it, JSON without a line break between records; or the number of all records."""

_ID = re.compile(r'"id": (\d+)')


def _if_formatted(record: str) -> str:
    """Return a printed record and a line break if it belongs to a group or transactional id `tools-formatted...`, otherwise "".

    The number of all records becomes `<count>`.
    """
    if record.isdigit():
        return "<count>"
    return f"{record}\n" if re.search(r'"(?:group|transactionalId)":"tools-formatted', record) else ""


def _value_of_the_quorum(name: str, value: str) -> str:
    """Return the part of a field of the quorum's status that two clusters must have in common, or `<value>` if there is none.

    The part is the number of voters in `CurrentVoters`, and the ids of the observers in `CurrentObservers`, except id 0: broker 0 of this project is
    the controller and so no observer.
    """
    ids = [int(number) for number in _ID.findall(value)]
    if name == "CurrentVoters":
        return f"{len(ids)} nodes"
    return str(sorted(set(ids) - {0})) if name == "CurrentObservers" else "<value>"


PATTERNS: Mapping[str, Pattern] = {
    "topic id": Pattern(re.compile(r"(?<=TopicId: )[\w-]{22}"), "<topic id>", "each topic gets a random id"),
    "epoch of features": Pattern(re.compile(r"(?<=Epoch: )\d+"), "<epoch>", "it counts all changes of the metadata"),
    "time": Pattern(
        re.compile(r"\b1\d{12}\b|\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[:,]\d{3}"),
        "<time>",
        "the commands run at different times",
    ),
    "producer id": Pattern(re.compile(r"^\d+\s+"), "<id> ", "each cluster counts its producer ids"),
    "directory": Pattern(re.compile(r'(?<="logDir":")[^"]*'), "<directory>", "each cluster has its own folder"),
    "log directories": Pattern(
        re.compile(r"(?<=\blog\.dirs=)[^ ,}]+"), "<directory>", "each broker of Kafka has its own folder (rule CF-25)"
    ),
    "settings of the controller": Pattern(
        re.compile(r"^(\s+(?:process\.roles|controller\.listener\.names|controller\.quorum\.voters)=).*"),
        r"\1<value>",
        "the controller of this broker is in the same process and has no listener (rules AD-25 and CF-25); that of Kafka runs alone",
    ),
    "coordinator": Pattern(
        re.compile(r"broker-\d\s+\(\d\)"), "<broker>", "each cluster spreads its offsets topic differently"
    ),
    "directories": Pattern(
        re.compile(r'(?<=["[,])"/[^"]*"(?=[],])'), '"<directory>"', "each cluster has its own folders"
    ),
    "open transaction": Pattern(
        re.compile(r"^(?:\d+\s+(tools-open)\s+\d+\s+(.*<time>)\s+\d+|(tools-open)\s+\d+\s+\d+)\s+"),
        r"<broker> \1\3 <id> \2 ",
        "coordinator, producer id and duration differ",
    ),
    "controller": Pattern(
        re.compile(r"(?<=[Cc]ontroller )\d+"),
        "<id>",
        "the controller of this broker has the lowest broker id (rule AD-25)",
    ),
    "quorum": Pattern(
        re.compile(
            r"^(?P<name>ClusterId|LeaderId|HighWatermark|MaxFollowerLag|MaxFollowerLagTimeMs|CurrentVoters|CurrentObservers):\s+(?P<value>\S.*)"
        ),
        lambda line: f"{line['name']}: {_value_of_the_quorum(line['name'], line['value'])}",
        "this broker has one controller without a listener (rule AD-25): broker 0, which is therefore no observer; "
        "other ids, offsets and lags differ, too",
    ),
    "member id": Pattern(
        re.compile(r"\b[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}\b|(?<!\S)[\w+/-]{22}(?!\S)"),
        "<member id>",
        "it has a random part",
    ),
    "cluster id": Pattern(re.compile(r"(?<=Cluster ID: )[\w-]{22}"), "<cluster id>", "each cluster has its own id"),
    "port": Pattern(re.compile(r"(?<=127\.0\.0\.1)\s+\d{4,5}\b"), " <port>", "each cluster has its own ports"),
    "quorum replicas": Pattern(
        re.compile(
            r"^(?:0\s.*Observer|(?P<leader>\d+)\s.*(?P<role>Leader)|(?P<follower>[12])\s.*\s(?P<other>Observer))(?=\s*$)"
        ),
        lambda row: (
            "<controller> <values> Leader"
            if row["leader"]
            else f"{row['follower']} <values> Observer"
            if row["follower"]
            else ""
        ),
        "this broker's controller is the broker of the lowest id, and directory ids differ between clusters (rule AD-25); "
        "offsets and times grow during a run",
    ),
    "share and streams groups": Pattern(
        re.compile(r"^\s*(\w*(?:Share|Streams)\w*\(\d+\)): .*"), r"\1: <versions>", "these groups are not served"
    ),
    "measured times": Pattern(re.compile(r"\d+, \d+(?=, \S+, \S+$)"), "<ms>, <ms>", "they depend on the machine"),
    "latency": Pattern(re.compile(r"(?<== )\d+(?=,|$)"), "<ms>", "it depends on the machine"),
    "generated name": Pattern(
        re.compile(r"\b[\w-]{22}(?= \(|$|\.)|(?<=Client metrics configs for )[\w-]{22}|(?<=for )[\w-]{22}"),
        "<name>",
        "it is random",
    ),
    "other groups and transactions": Pattern(
        _LOGGED, lambda record: _if_formatted(record[0]), "other commands write to the same partition"
    ),
    "id of a producer": Pattern(re.compile(r'(?<="producerId":)\d+'), "<id>", "each cluster counts its producer ids"),
    "other loggers": Pattern(
        re.compile(r"^\s+(?!root=)[\w.$-]+=\w+ sensitive=\w+ synonyms=.*"),
        "",
        "they are named after classes of Kafka and modules of this broker",
    ),
    "assignment of nothing": Pattern(
        re.compile(r'^\{"name":"partitions_assigned","partitions":\[\],.*'),
        "",
        "the consumer reports it if it is assigned partitions before it has the metadata of their topic",
    ),
    "rate": Pattern(re.compile(r"\d+\.\d+|\b\d+(?= ms\b)"), "<rate>", "it depends on the machine"),
}
"""Maps a name to a pattern. A step of a scenario names the patterns that apply to the output of the step."""

_STACK = re.compile(r"\s+at |\s+\.\.\. \d+ more$")
_NOISE = re.compile(rf"SLF4J: |the tool ended$|Tools\$Exited: |{_STACK.pattern}|$")
"""Lines of standard error that Java writes, not the tool."""
_ADDRESS = re.compile(r"(?:127\.0\.0\.1|localhost):(\d+)")


def normalised(output: Output, ports: Sequence[int], patterns: Sequence[str], *, unordered: bool) -> list[str]:
    """Return the exit code and the lines of a tool's output, with `PATTERNS` applied.

    A line that a pattern empties is left out.

    ports: those of the brokers by id, whose addresses become `broker-ID`. patterns: names. unordered: whether the order of the lines is
    left to chance, so that they are sorted.
    """
    lines = [_in_order(line.rstrip()) for line in output.out.splitlines() if not _STACK.match(line)]
    errors = [line.rstrip() for line in output.err.splitlines() if not _NOISE.match(line)]
    numbers = {port: f"broker-{broker_id}" for broker_id, port in enumerate(ports)}

    def clean(line: str) -> str:
        line = _ADDRESS.sub(lambda match: numbers.get(int(match[1]), "<address>"), line)
        for name in patterns:
            line = PATTERNS[name].expression.sub(PATTERNS[name].replacement, line)
        return line

    cleaned = [cleaned for line in lines if (cleaned := clean(line)) or not line]
    complaints = [clean(line) for line in errors]
    if unordered:
        cleaned.sort()
    return [f"exit {output.code}", *cleaned, *(f"error: {line}" for line in complaints)]


def _in_order(line: str) -> str:
    """Sort the fields of a line that is a JSON object. Each process of the JVM may print them in another order."""
    try:
        content = json.loads(line) if line.startswith('{"') else None
    except ValueError:
        content = None
    return line if content is None else json.dumps(content, sort_keys=True, separators=(",", ":"))
