"""The commands that are run against both clusters, tool by tool. They are also the table in docs/reference/kafka-tools.md."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import NamedTuple

OLDER, NEWER = "3.9.1", "4.2.0"
VERSIONS = OLDER, NEWER
_TOOLS = "org.apache.kafka.tools."


class Step(NamedTuple):
    """One command. verb: what it shows, for the table. arguments: `{bootstrap}` and `{file:NAME}` are replaced. stdin: what the tool reads.

    patterns: names of `PATTERNS` that apply to its output. unordered: whether the order of the lines is left to chance. only: the versions
    of Kafka that have it. settles: whether it shows a change that brokers of a real Kafka apply some time after the controller.
    """

    verb: str
    arguments: str
    stdin: str = ""
    patterns: tuple[str, ...] = ()
    unordered: bool = False
    only: tuple[str, ...] = VERSIONS
    tool: str | None = None
    settles: bool = False


class Scenario(NamedTuple):
    """The commands of one tool, in order, on topics and groups of its own. classes: its main class, by version if it has moved.

    A step with a `tool` uses that of another scenario. files: the contents of files that steps name. open_transaction: the topic in whose
    partition 0 a client leaves a transaction open, with the transactional id `tools-open`, before the first step that names this id.
    """

    name: str
    classes: Mapping[str, str]
    steps: tuple[Step, ...]
    files: Mapping[str, str] = {}
    open_transaction: str | None = None


def _same(name: str) -> dict[str, str]:
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


_DESCRIBED = ("topic id",)
TOPICS = Scenario(
    "kafka-topics",
    _same(_TOOLS + "TopicCommand"),
    (
        created("tools-a", more="--config retention.ms=1000000 --config cleanup.policy=compact"),
        Step("create an existing topic", f"{SERVER} --create --topic tools-a", patterns=()),
        Step("create an existing topic", f"{SERVER} --create --topic tools-a --if-not-exists"),
        Step("create with a bad name", f"{SERVER} --create --topic bad%name", patterns=("message",)),
        Step("create with colliding names", f"{SERVER} --create --topic tools.a --replica-assignment 0"),
        Step("create with a bad setting", f"{SERVER} --create --topic tools-b --config retention.ms=x"),
        Step(
            "create with too many replicas",
            f"{SERVER} --create --topic tools-b --replication-factor 5",
            patterns=("message",),
        ),
        Step("create with an unknown setting", f"{SERVER} --create --topic tools-b --config nope=1"),
        Step("describe", f"{SERVER} --describe --topic tools-a", patterns=_DESCRIBED),
        Step("describe a missing topic", f"{SERVER} --describe --topic tools-none"),
        Step(
            "describe under-replicated partitions", f"{SERVER} --describe --under-replicated-partitions --topic tools-a"
        ),
        Step("describe partitions without leader", f"{SERVER} --describe --unavailable-partitions --topic tools-a"),
        Step("describe partitions at min ISR", f"{SERVER} --describe --at-min-isr-partitions --topic tools-a"),
        Step(
            "describe topics with settings",
            f"{SERVER} --describe --topics-with-overrides --topic tools-a",
            patterns=_DESCRIBED,
        ),
        Step(
            "add partitions", f"{SERVER} --alter --topic tools-a --partitions 3 --replica-assignment 0:1:2,1:2:0,2:0:1"
        ),
        Step("remove partitions", f"{SERVER} --alter --topic tools-a --partitions 1", patterns=("message",)),
        Step("add partitions to a missing topic", f"{SERVER} --alter --topic tools-none --partitions 2"),
        Step("describe", f"{SERVER} --describe --topic tools-a", patterns=_DESCRIBED),
        Step("delete", f"{SERVER} --delete --topic tools-a"),
        Step("delete a missing topic", f"{SERVER} --delete --topic tools-none"),
        Step("delete a missing topic", f"{SERVER} --delete --topic tools-none --if-exists"),
    ),
)

CONFIGS = Scenario(
    "kafka-configs",
    _same("kafka.admin.ConfigCommand"),
    (
        created("tools-c", "0"),
        Step(
            "alter a topic",
            f"{SERVER} --alter --topic tools-c --add-config retention.ms=2000,cleanup.policy=[compact,delete]",
        ),
        Step("describe a topic", f"{SERVER} --describe --topic tools-c"),
        Step("describe all settings of a topic", f"{SERVER} --describe --all --topic tools-c"),
        Step(
            "alter a topic with a bad value",
            f"{SERVER} --alter --topic tools-c --add-config retention.ms=x",
            patterns=("message",),
        ),
        Step(
            "alter a missing topic",
            f"{SERVER} --alter --topic tools-none --add-config retention.ms=1",
            patterns=("message",),
        ),
        Step("delete a setting of a topic", f"{SERVER} --alter --topic tools-c --delete-config retention.ms"),
        Step("delete a setting that is not set", f"{SERVER} --alter --topic tools-c --delete-config segment.ms"),
        Step("describe a topic", f"{SERVER} --describe --topic tools-c"),
        Step("alter a broker", f"{SERVER} --alter --broker 1 --add-config log.cleaner.threads=2"),
        Step("describe a broker", f"{SERVER} --describe --broker 1", settles=True),
        Step("alter all brokers", f"{SERVER} --alter --broker-defaults --add-config message.max.bytes=500000"),
        Step("describe all brokers", f"{SERVER} --describe --broker-defaults", settles=True),
        Step(
            "alter a read-only setting",
            f"{SERVER} --alter --broker 1 --add-config num.io.threads=0",
            patterns=("message",),
        ),
        Step("delete a setting of a broker", f"{SERVER} --alter --broker 1 --delete-config log.cleaner.threads"),
        Step(
            "delete a setting of all brokers", f"{SERVER} --alter --broker-defaults --delete-config message.max.bytes"
        ),
        Step("alter a client", f"{SERVER} --alter --client tools --add-config producer_byte_rate=5000"),
        Step("describe a client", f"{SERVER} --describe --client tools", settles=True),
        Step("delete a quota", f"{SERVER} --alter --client tools --delete-config producer_byte_rate"),
        Step("alter a group", f"{SERVER} --alter --group tools --add-config consumer.session.timeout.ms=50000"),
        Step("describe a group", f"{SERVER} --describe --group tools", settles=True),
    ),
)

_READ = f"{SERVER} --topic tools-g --group tools-readers --from-beginning --max-messages 4 --timeout-ms 20000"
_COUNT = "--group tools-readers"
GROUPS = Scenario(
    "kafka-consumer-groups",
    _same(_TOOLS + "consumer.group.ConsumerGroupCommand"),
    (
        created("tools-g", "0"),
        filled("tools-g", "one", "two", "three", "four"),
        Step("read records", _READ, tool="kafka-console-consumer", unordered=True),
        Step("list", f"{SERVER} --list"),
        Step("list with states", f"{SERVER} --list --state"),
        Step("list with types", f"{SERVER} --list --type"),
        Step("describe offsets", f"{SERVER} --describe {_COUNT}", unordered=True),
        Step("describe members", f"{SERVER} --describe {_COUNT} --members --verbose"),
        Step("describe the state", f"{SERVER} --describe {_COUNT} --state", patterns=("coordinator",)),
        Step("describe all groups", f"{SERVER} --describe --all-groups --offsets", unordered=True),
        Step("describe a missing group", f"{SERVER} --describe --group tools-none"),
        Step("describe the state of a missing group", f"{SERVER} --describe --group tools-none --state"),
        Step(
            "reset offsets, dry run",
            f"{SERVER} --reset-offsets {_COUNT} --topic tools-g --to-earliest --dry-run",
            unordered=True,
        ),
        Step("reset offsets", f"{SERVER} --reset-offsets {_COUNT} --topic tools-g:0 --to-offset 1 --execute"),
        Step(
            "reset offsets by a shift", f"{SERVER} --reset-offsets {_COUNT} --topic tools-g:0 --shift-by 100 --execute"
        ),
        Step(
            "reset offsets to a time",
            f"{SERVER} --reset-offsets {_COUNT} --topic tools-g --to-datetime 2020-01-01T00:00:00.000 --execute",
            unordered=True,
        ),
        Step(
            "reset offsets of a missing topic",
            f"{SERVER} --reset-offsets {_COUNT} --topic tools-none --to-latest --execute",
        ),
        Step(
            "reset offsets, export",
            f"{SERVER} --reset-offsets {_COUNT} --topic tools-g --to-current --export --dry-run",
            unordered=True,
        ),
        Step("delete offsets", f"{SERVER} --delete-offsets {_COUNT} --topic tools-g:0"),
        Step("delete offsets of a missing topic", f"{SERVER} --delete-offsets {_COUNT} --topic tools-none"),
        Step("delete offsets of a missing group", f"{SERVER} --delete-offsets --group tools-none --topic tools-g"),
        Step("describe offsets", f"{SERVER} --describe {_COUNT}", unordered=True),
        Step("delete", f"{SERVER} --delete {_COUNT}"),
        Step("delete a missing group", f"{SERVER} --delete --group tools-none"),
        Step("list", f"{SERVER} --list"),
    ),
)

_PRINT = "--property print.key=true --property print.offset=true --property print.partition=true --property print.headers=true"
CONSUMER = Scenario(
    "kafka-console-consumer",
    _same(_TOOLS + "consumer.ConsoleConsumer"),
    (
        created("tools-p", "0"),
        Step(
            "write keys",
            f"{SERVER} --topic tools-p --sync --property parse.key=true --property key.separator=:",
            "a:1\nb:2\na:3\n",
            tool="kafka-console-producer",
        ),
        Step(
            "read from the beginning",
            f"{SERVER} --topic tools-p --from-beginning --max-messages 3 --timeout-ms 20000 {_PRINT}",
        ),
        Step(
            "read a partition from an offset",
            f"{SERVER} --topic tools-p --partition 0 --offset 2 --max-messages 1 --timeout-ms 20000",
        ),
        Step("read until a timeout", f"{SERVER} --topic tools-p --timeout-ms 1500", patterns=("time",)),
        Step(
            "read a missing partition",
            f"{SERVER} --topic tools-p --partition 7 --offset 0 --timeout-ms 3000",
            patterns=("time",),
        ),
    ),
)
PRODUCER = Scenario(
    "kafka-console-producer",
    {OLDER: "kafka.tools.ConsoleProducer", NEWER: _TOOLS + "ConsoleProducer"},
    (
        created("tools-q", "0"),
        filled("tools-q", "x", "y"),
        Step(
            "write with acks and compression",
            f"{SERVER} --topic tools-q --sync --request-required-acks all --compression-codec lz4",
            "z\n",
        ),
        Step(
            "write without a separator",
            f"{SERVER} --topic tools-q --property parse.key=true",
            "nokey\n",
            patterns=("time",),
        ),
        Step(
            "read",
            f"{SERVER} --topic tools-q --from-beginning --max-messages 3 --timeout-ms 20000",
            tool="kafka-console-consumer",
        ),
    ),
)
OFFSETS = Scenario(
    "kafka-get-offsets",
    _same(_TOOLS + "GetOffsetShell"),
    (
        created("tools-o", "0,1,2"),
        filled("tools-o", "one", "two", "three"),
        Step("latest offsets", f"{SERVER} --topic tools-o --partitions 0,1,2 --time -2"),
        Step("earliest offsets", f"{SERVER} --topic-partitions tools-o:0-2 --time earliest"),
        Step("offsets of the largest timestamp", f"{SERVER} --topic-partitions tools-o:9 --time max-timestamp"),
        Step("offsets of a missing topic", f"{SERVER} --topic tools-none"),
        Step(
            "delete records",
            "--bootstrap-server {bootstrap} --offset-json-file {file:records}",
            tool="kafka-delete-records",
        ),
    ),
    {"records": json.dumps({"partitions": [{"topic": "tools-o", "partition": 0, "offset": 0}], "version": 1})},
)
RECORDS = Scenario(
    "kafka-delete-records",
    _same(_TOOLS + "DeleteRecordsCommand"),
    (
        created("tools-d", "0"),
        filled("tools-d", "one", "two", "three"),
        Step("delete records", f"{SERVER} --offset-json-file {{file:some}}"),
        Step("delete records beyond the end", f"{SERVER} --offset-json-file {{file:beyond}}"),
        Step("earliest offset", f"{SERVER} --topic tools-d --time -2", tool="kafka-get-offsets"),
    ),
    {
        name: json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": offset}], "version": 1})
        for name, topic, offset in (("some", "tools-d", 2), ("beyond", "tools-d", 9))
    },
)
TRANSACTIONS = Scenario(
    "kafka-transactions",
    _same(_TOOLS + "TransactionsCommand"),
    (
        created("tools-t", "0"),
        filled("tools-t", "one"),
        Step("list", f"{SERVER} list"),
        Step("list with a filter", f"{SERVER} list --duration-filter 1000"),
        Step("describe a missing id", f"{SERVER} describe --transactional-id tools-none"),
        Step(
            "describe producers",
            f"{SERVER} describe-producers --topic tools-t --partition 0",
            patterns=("time", "producer id"),
        ),
        Step("find hanging transactions", f"{SERVER} find-hanging --topic tools-t"),
        Step(
            "abort",
            f"{SERVER} abort --topic tools-t --partition 0 --producer-id 99999 --producer-epoch 0 --coordinator-epoch 0",
        ),
        Step(
            "abort at an offset without a transaction", f"{SERVER} abort --topic tools-t --partition 0 --start-offset 0"
        ),
    ),
)
OPEN_ID = "tools-open"
"""The transactional id of a client whose transaction is open."""
_OPEN = ("time", "open transaction")
OPEN_TRANSACTIONS = Scenario(
    "kafka-transactions of a client",
    _same(_TOOLS + "TransactionsCommand"),
    (
        created("tools-y", "0"),
        filled("tools-y", "one"),
        Step("describe an open transaction", f"{SERVER} describe --transactional-id {OPEN_ID}", patterns=_OPEN),
        Step("list an open transaction", f"{SERVER} list", patterns=_OPEN),
        Step(
            "describe producers of an open transaction",
            f"{SERVER} describe-producers --topic tools-y --partition 0",
            patterns=("time", "producer id"),
            unordered=True,
        ),
        Step("find no hanging transaction", f"{SERVER} find-hanging --topic tools-y --max-transaction-timeout 15"),
        Step("abort an open transaction", f"{SERVER} abort --topic tools-y --partition 0 --start-offset 1"),
        Step(
            "describe producers after the abort",
            f"{SERVER} describe-producers --topic tools-y --partition 0",
            patterns=("time", "producer id"),
            unordered=True,
        ),
        Step(
            "read committed records",
            f"{SERVER} --topic tools-y --from-beginning --isolation-level read_committed --timeout-ms 3000",
            patterns=("time",),
            tool="kafka-console-consumer",
        ),
    ),
    open_transaction="tools-y",
)
CLIENT_METRICS = Scenario(
    "kafka-client-metrics",
    _same(_TOOLS + "ClientMetricsCommand"),
    (
        Step("list none", f"{SERVER} --list"),
        Step(
            "alter",
            f"{SERVER} --alter --name tools-m --metrics org.apache.kafka.producer. --interval 30000 --match client_id=tools.*",
        ),
        Step("alter with a bad interval", f"{SERVER} --alter --name tools-m --interval 1", patterns=("message",)),
        Step("describe", f"{SERVER} --describe --name tools-m", settles=True),
        Step("describe all", f"{SERVER} --describe"),
        Step("describe a missing one", f"{SERVER} --describe --name tools-none"),
        Step("list", f"{SERVER} --list"),
        Step("delete", f"{SERVER} --delete --name tools-m"),
        Step("list after the deletion", f"{SERVER} --list", settles=True),
    ),
)
LOG_DIRS = Scenario(
    "kafka-log-dirs",
    _same(_TOOLS + "LogDirsCommand"),
    (
        created("tools-l", "0:1"),
        Step(
            "describe",
            f"{SERVER} --describe --topic-list tools-l --broker-list 0,1",
            patterns=("directory",),
            settles=True,
        ),
        Step(
            "describe a missing topic",
            f"{SERVER} --describe --topic-list tools-none --broker-list 0",
            patterns=("directory",),
        ),
        Step("describe a missing broker", f"{SERVER} --describe --broker-list 9"),
    ),
)
ELECTIONS = Scenario(
    "kafka-leader-election",
    _same(_TOOLS + "LeaderElectionCommand"),
    (
        created("tools-e", "0:1"),
        Step("preferred", f"{SERVER} --election-type preferred --topic tools-e --partition 0"),
        Step("unclean", f"{SERVER} --election-type unclean --topic tools-e --partition 0"),
        Step("preferred, missing partition", f"{SERVER} --election-type preferred --topic tools-e --partition 7"),
        Step("preferred, missing topic", f"{SERVER} --election-type preferred --topic tools-none --partition 0"),
    ),
)
FEATURES = Scenario(
    "kafka-features",
    _same(_TOOLS + "FeatureCommand"),
    (Step("describe", f"{SERVER} describe", patterns=("epoch of features",), unordered=True),),
)
QUORUM = Scenario(
    "kafka-metadata-quorum",
    _same(_TOOLS + "MetadataQuorumCommand"),
    (
        Step("describe the status", f"{SERVER} describe --status", patterns=("quorum",)),
        Step(
            "remove a controller",
            f"{SERVER} remove-controller --controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ",
            only=(NEWER,),
        ),
    ),
)
REASSIGNMENTS = Scenario(
    "kafka-reassign-partitions",
    _same(_TOOLS + "reassign.ReassignPartitionsCommand"),
    (
        created("tools-r", "0:1"),
        Step("execute", f"{SERVER} --execute --reassignment-json-file {{file:move}}", patterns=("directories",)),
        Step("verify", f"{SERVER} --verify --reassignment-json-file {{file:move}}", settles=True),
        Step("list", f"{SERVER} --list"),
        Step("cancel nothing", f"{SERVER} --cancel --reassignment-json-file {{file:move}}"),
        Step("execute with a missing topic", f"{SERVER} --execute --reassignment-json-file {{file:missing}}"),
        Step("execute with a missing broker", f"{SERVER} --execute --reassignment-json-file {{file:broker}}"),
    ),
    {
        name: json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]})
        for name, topic, replicas in (
            ("move", "tools-r", [1, 2]),
            ("missing", "tools-none", [1]),
            ("broker", "tools-r", [1, 9]),
        )
    },
)
_BATCH = ("time",)
VERIFIABLE = Scenario(
    "kafka-verifiable-producer",
    _same(_TOOLS + "VerifiableProducer"),
    (
        created("tools-v", "0"),
        Step("write", f"{SERVER} --topic tools-v --max-messages 3", patterns=("time", "rate")),
        Step(
            "read",
            f"{SERVER} --topic tools-v --group-id tools-v --max-messages 3 --reset-policy earliest",
            patterns=("time",),
            tool="kafka-verifiable-consumer",
        ),
    ),
)
VERIFIABLE_CONSUMER = Scenario("kafka-verifiable-consumer", _same(_TOOLS + "VerifiableConsumer"), ())
API_VERSIONS = Scenario(
    "kafka-broker-api-versions",
    {OLDER: "kafka.admin.BrokerApiVersionsCommand", NEWER: _TOOLS + "BrokerApiVersionsCommand"},
    (
        Step("list", f"{SERVER}", unordered=True, only=(OLDER,)),
        Step(
            "list, also share and streams groups",
            f"{SERVER}",
            patterns=("share and streams groups",),
            unordered=True,
            only=(NEWER,),
        ),
    ),
)
PERFORMANCE = Scenario(
    "kafka-producer-perf-test",
    _same(_TOOLS + "ProducerPerformance"),
    (
        created("tools-f", "0"),
        Step(
            "write",
            "--topic tools-f --num-records 50 --record-size 10 --throughput -1 --producer-props bootstrap.servers={bootstrap}",
            patterns=("rate",),
        ),
    ),
)
CONSUMER_PERFORMANCE = Scenario(
    "kafka-consumer-perf-test",
    _same(_TOOLS + "ConsumerPerformance"),
    (
        created("tools-h", "0"),
        filled("tools-h", "one", "two", "three"),
        Step(
            "read",
            f"{SERVER} --topic tools-h --messages 3 --timeout 20000",
            patterns=("time", "rate", "measured times"),
        ),
        Step(
            "read too few records",
            f"{SERVER} --topic tools-h --messages 9 --timeout 2000",
            patterns=("time", "rate", "measured times"),
        ),
    ),
)
RESETTER = Scenario(
    "kafka-streams-application-reset",
    _same(_TOOLS + "StreamsResetter"),
    (
        created("tools-s", "0"),
        filled("tools-s", "one"),
        Step("dry run", f"{SERVER} --application-id tools-app --input-topics tools-s --dry-run"),
        Step("reset", f"{SERVER} --application-id tools-app --input-topics tools-s"),
        Step("missing input topic", f"{SERVER} --application-id tools-app --input-topics tools-none"),
    ),
)
SCENARIOS = (
    TOPICS, CONFIGS, GROUPS, CONSUMER, PRODUCER, OFFSETS, RECORDS, TRANSACTIONS, LOG_DIRS, ELECTIONS, FEATURES, QUORUM, REASSIGNMENTS, VERIFIABLE,
    VERIFIABLE_CONSUMER, API_VERSIONS, PERFORMANCE, CONSUMER_PERFORMANCE, RESETTER, OPEN_TRANSACTIONS, CLIENT_METRICS,
)  # fmt: skip
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
