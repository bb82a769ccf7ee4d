"""The classes of a command, which runs against both clusters, and of a scenario of commands; and steps that many scenarios share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

OLDER, NEWER = "3.9.1", "4.2.0"
VERSIONS = OLDER, NEWER
TOOLS = "org.apache.kafka.tools."


class Client(NamedTuple):
    """A client that runs from one step to the end of its scenario. kind: a name of `CLIENTS`. topic: the client uses its partition 0.

    name: its transactional id or group.
    """

    kind: str
    topic: str
    name: str


class Step(NamedTuple):
    """One command. verb: what the command does, for the table. arguments: its options, in which `{bootstrap}` and `{file:NAME}` are replaced.

    stdin: the standard input of the tool. patterns: names of `PATTERNS` that apply to its output. unordered: whether the order of the lines is
    left to chance. only: the versions of Kafka whose tools have the command. settles: whether the command shows a change that brokers of a real
    Kafka apply some time after the controller. starts: a client that starts before the command. stopped_after_s: for a tool that runs until it
    is stopped; its lines count once each, in any order. stops_broker, starts_broker: the id of a broker that stops or starts again before the
    command. usage_error: whether the tool itself must reject the arguments; such a command proves nothing about a broker.
    """

    verb: str
    arguments: str
    stdin: str = ""
    patterns: tuple[str, ...] = ()
    unordered: bool = False
    only: tuple[str, ...] = VERSIONS
    tool: str | None = None
    settles: bool = False
    starts: Client | None = None
    stopped_after_s: float = 0
    stops_broker: int | None = None
    starts_broker: int | None = None
    usage_error: bool = False


class Scenario(NamedTuple):
    """The commands of one tool, in order, on topics and groups of its own. classes: its main class, by version if it has moved.

    A step with a `tool` runs the tool of the scenario with this name. files: the contents of files that steps name.
    """

    name: str
    classes: Mapping[str, str]
    steps: tuple[Step, ...]
    files: Mapping[str, str] = {}


def same(name: str) -> dict[str, str]:
    return dict.fromkeys(VERSIONS, name)


SERVER = "--bootstrap-server {bootstrap}"


def created(topic: str, assignment: str = "0:1:2,1:2:0", more: str = "") -> Step:
    """Return the step that creates a topic with leaders on known brokers."""
    arguments = f"{SERVER} --create --topic {topic} --replica-assignment {assignment} {more}"
    return Step("create", arguments, tool="kafka-topics")


def filled(topic: str, *values: str) -> Step:
    """Return the step that writes a record to a topic for each value."""
    lines = "".join(f"{value}\n" for value in values)
    return Step("write records", f"{SERVER} --topic {topic} --sync", lines, tool="kafka-console-producer")
