"""Commands about groups: groups with a member, each way to reset offsets, and resets of Kafka Streams applications."""

from __future__ import annotations

from tests.support.tools.steps import NEWER, SERVER, TOOLS, VERSIONS, Client, Scenario, Step, created, filled, same

_GROUPS = same(TOOLS + "consumer.group.ConsumerGroupCommand")
_MEMBER = ("member id",)
_STATE = ("coordinator",)


def _reset(group: str, how: str, topics: str = "--topic tools-gb", mode: str = "--execute") -> str:
    return f"{SERVER} --reset-offsets --group {group} {topics} {how} {mode}"


def _member_steps(group: str, topic: str, kind: str, only: tuple[str, ...]) -> tuple[Step, ...]:
    """Return the steps on a group with one member. kind: the kind of the client, and the name of these steps in the table."""
    of_group, of_kind = f"--group {group}", f"group with a {kind}"
    return (
        Step(
            f"describe the offsets of a {of_kind}",
            f"{SERVER} --describe {of_group} --offsets",
            patterns=_MEMBER,
            only=only,
            starts=Client(kind, topic, group),
        ),
        Step(
            f"describe the members of a {of_kind}",
            f"{SERVER} --describe {of_group} --members",
            patterns=_MEMBER,
            only=only,
        ),
        Step(
            f"describe the members of a {of_kind}, verbose",
            f"{SERVER} --describe {of_group} --members --verbose",
            patterns=_MEMBER,
            only=only,
        ),
        Step(
            f"describe the state of a {of_kind}",
            f"{SERVER} --describe {of_group} --state",
            patterns=_STATE,
            only=only,
        ),
        Step(
            f"describe the offsets of a {of_kind}, verbose",
            f"{SERVER} --describe {of_group} --offsets --verbose",
            patterns=_MEMBER,
            only=(NEWER,),
        ),
        Step(
            f"describe the state of a {of_kind}, verbose",
            f"{SERVER} --describe {of_group} --state --verbose",
            patterns=_STATE,
            only=(NEWER,),
        ),
        Step(
            f"reset offsets of a {of_kind}",
            _reset(group, "--to-earliest", f"--topic {topic}", "--dry-run"),
            only=only,
        ),
        Step(
            f"delete offsets of a {of_kind}",
            f"{SERVER} --delete-offsets {of_group} --topic {topic}:0",
            only=only,
        ),
        Step(f"delete a {of_kind}", f"{SERVER} --delete {of_group}", only=only),
    )


MEMBERS = Scenario(
    "kafka-consumer-groups with members",
    _GROUPS,
    (
        created("tools-ga", "0"),
        filled("tools-ga", "one", "two", "three", "four"),
        *_member_steps("tools-classic", "tools-ga", "member", VERSIONS),
        *_member_steps("tools-modern", "tools-ga", "member of the new protocol", (NEWER,)),
        Step("list groups in a state", f"{SERVER} --list --state Stable", unordered=True, tool="kafka-consumer-groups"),
        Step(
            "list groups of a type",
            f"{SERVER} --list --state --type classic",
            unordered=True,
            tool="kafka-consumer-groups",
        ),
        Step("list groups of a type", f"{SERVER} --list --type consumer", unordered=True, tool="kafka-consumer-groups"),
        Step(
            "describe the states of all groups",
            f"{SERVER} --describe --all-groups --state",
            patterns=_STATE,
            unordered=True,
        ),
        Step(
            "describe the members of all groups",
            f"{SERVER} --describe --all-groups --members",
            patterns=_MEMBER,
            unordered=True,
        ),
    ),
)
_BOTH = "--topic tools-gb --topic tools-gc"
RESETS = Scenario(
    "kafka-consumer-groups resets",
    _GROUPS,
    (
        created("tools-gb", "0"),
        created("tools-gc", "1"),
        filled("tools-gb", "one", "two", "three", "four"),
        filled("tools-gc", "one", "two"),
        Step("reset offsets to the earliest", _reset("tools-reset", "--to-earliest")),
        Step("reset offsets to the latest, dry run", _reset("tools-reset", "--to-latest", mode="--dry-run")),
        Step("reset offsets to the latest", _reset("tools-reset", "--to-latest")),
        Step("reset offsets to the current ones", _reset("tools-reset", "--to-current")),
        Step("reset offsets by a negative shift", _reset("tools-reset", "--shift-by -2")),
        Step("reset offsets by a shift below the start", _reset("tools-reset", "--shift-by -100")),
        Step("reset offsets to an offset", _reset("tools-reset", "--to-offset 3", "--topic tools-gb:0")),
        Step("reset offsets to an offset beyond the end", _reset("tools-reset", "--to-offset 99")),
        Step("reset offsets by a duration", _reset("tools-reset", "--by-duration PT1H")),
        Step("reset offsets by a duration after the last record", _reset("tools-reset", "--by-duration PT0S")),
        Step("reset offsets to a time", _reset("tools-reset", "--to-datetime 2020-01-01T00:00:00.000+01:00")),
        Step(
            "reset offsets to a time after the last record",
            _reset("tools-reset", "--to-datetime 2099-01-01T00:00:00.000"),
        ),
        Step("reset offsets of several topics", _reset("tools-reset", "--to-earliest", _BOTH), unordered=True),
        Step("reset offsets of all topics", _reset("tools-reset", "--to-latest", "--all-topics"), unordered=True),
        Step(
            "reset offsets of a missing partition",
            _reset("tools-reset", "--to-latest", "--topic tools-gb:7"),
            only=(NEWER,),
        ),
        Step(
            "reset offsets of all groups, dry run",
            f"{SERVER} --reset-offsets --all-groups --all-topics --to-earliest --dry-run",
            unordered=True,
        ),
        Step("reset offsets, export", _reset("tools-reset", "--to-offset 1 --export", _BOTH), unordered=True),
        Step(
            "reset offsets from a file, dry run",
            _reset("tools-reset", "--from-file {file:offsets}", "", "--dry-run"),
            unordered=True,
        ),
        Step("reset offsets from a file", _reset("tools-reset", "--from-file {file:offsets}", ""), unordered=True),
        Step(
            "reset offsets from a file, export",
            _reset("tools-reset", "--from-file {file:offsets} --export", ""),
            unordered=True,
        ),
        Step("reset offsets from a file with a missing topic", _reset("tools-reset", "--from-file {file:missing}", "")),
        Step("describe offsets", f"{SERVER} --describe --group tools-reset", unordered=True),
        Step(
            "describe two groups",
            f"{SERVER} --describe --group tools-reset --group tools-none --offsets",
            unordered=True,
        ),
        Step(
            "delete offsets of several topics",
            f"{SERVER} --delete-offsets --group tools-reset --topic tools-gb:0 --topic tools-gc",
            unordered=True,
        ),
        Step("delete two groups", f"{SERVER} --delete --group tools-reset --group tools-none", unordered=True),
        Step("delete all groups", f"{SERVER} --delete --all-groups"),
        Step("list", f"{SERVER} --list"),
    ),
    {"offsets": "tools-gb,0,2\ntools-gc,0,1\n", "missing": "tools-none,0,2\n"},
)

_APP = "--application-id tools-app"
_INPUT = f"{_APP} --input-topics tools-s"
RESETTER = Scenario(
    "kafka-streams-application-reset",
    same(TOOLS + "StreamsResetter"),
    (
        created("tools-s", "0"),
        filled("tools-s", "one", "two", "three"),
        created("tools-app-store-changelog", "0"),
        Step("dry run", f"{SERVER} {_INPUT} --dry-run"),
        Step("reset", f"{SERVER} {_INPUT} --internal-topics tools-app-store-changelog"),
        Step("reset to an offset", f"{SERVER} {_INPUT} --to-offset 1"),
        Step("reset by a shift", f"{SERVER} {_INPUT} --shift-by 1"),
        Step("reset to the latest", f"{SERVER} {_INPUT} --to-latest"),
        Step("reset to the earliest", f"{SERVER} {_INPUT} --to-earliest"),
        Step("reset by a duration", f"{SERVER} {_INPUT} --by-duration PT1H"),
        Step("reset to a time", f"{SERVER} {_INPUT} --to-datetime 2020-01-01T00:00:00.000"),
        Step("reset from a file", f"{SERVER} {_INPUT} --from-file {{file:offsets}}"),
        Step("describe offsets", f"{SERVER} --describe --group tools-app", tool="kafka-consumer-groups"),
        Step("missing input topic", f"{SERVER} {_APP} --input-topics tools-none"),
        Step("missing internal topic", f"{SERVER} {_INPUT} --internal-topics tools-app-x-changelog"),
        Step(
            "reset with an active member",
            f"{SERVER} {_INPUT}",
            patterns=_MEMBER,
            starts=Client("member", "tools-s", "tools-app"),
        ),
        Step("remove the active member and reset", f"{SERVER} {_INPUT} --force"),
    ),
    {"offsets": "tools-s,0,2\n"},
)
LISTED_GROUPS = Scenario(
    "kafka-groups",
    {NEWER: TOOLS + "GroupsCommand"},
    (
        created("tools-gl", "0"),
        filled("tools-gl", "one", "two"),
        Step(
            "list",
            f"{SERVER} --list",
            unordered=True,
            only=(NEWER,),
            starts=Client("member of the new protocol", "tools-gl", "tools-listed"),
        ),
        Step(
            "list groups of a type",
            f"{SERVER} --list --group-type classic",
            unordered=True,
            only=(NEWER,),
            starts=Client("member", "tools-gl", "tools-listed-classic"),
        ),
        Step("list consumer groups", f"{SERVER} --list --consumer", unordered=True, only=(NEWER,)),
        Step("list groups of a protocol", f"{SERVER} --list --protocol consumer", unordered=True, only=(NEWER,)),
    ),
)
GROUP_SCENARIOS = MEMBERS, RESETS, LISTED_GROUPS, RESETTER
