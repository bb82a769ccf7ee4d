"""Commands that change or show the cluster: feature levels, the quorum, moves of replicas, elections, directories, and checks of replicas."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tests.support.tools.steps import NEWER, OLDER, SERVER, TOOLS, Client, Scenario, Step, created, filled, same

_FEATURES = same(TOOLS + "FeatureCommand")
FEATURES = Scenario(
    "kafka-features",
    _FEATURES,
    (
        Step("describe", f"{SERVER} describe", patterns=("epoch of features",), unordered=True),
        Step("upgrade an unknown feature", f"{SERVER} upgrade --feature tools=1", patterns=("controller",)),
        Step("upgrade to the same level", f"{SERVER} upgrade --feature metadata.version=21", only=(OLDER,)),
        Step(
            "upgrade to an unknown level", f"{SERVER} upgrade --feature metadata.version=99", patterns=("controller",)
        ),
        Step("upgrade, dry run", f"{SERVER} upgrade --feature metadata.version=99 --dry-run", patterns=("controller",)),
        Step("downgrade, dry run", f"{SERVER} downgrade --feature metadata.version=20 --dry-run", only=(OLDER,)),
        Step("downgrade", f"{SERVER} downgrade --feature metadata.version=20", only=(OLDER,)),
        Step("downgrade by release", f"{SERVER} downgrade --metadata 3.7", only=(OLDER,)),
        Step("downgrade that loses metadata", f"{SERVER} downgrade --metadata 3.5", only=(OLDER,)),
        Step("unsafe downgrade that loses metadata", f"{SERVER} downgrade --metadata 3.5 --unsafe", only=(OLDER,)),
        Step("describe", f"{SERVER} describe", patterns=("epoch of features",), unordered=True, settles=True),
        Step("upgrade by release", f"{SERVER} upgrade --metadata 3.9", only=(OLDER,)),
        Step("disable", f"{SERVER} disable --feature metadata.version", patterns=("controller",)),
        Step(
            "disable, unsafe dry run",
            f"{SERVER} disable --feature metadata.version --unsafe --dry-run",
            patterns=("controller",),
        ),
        Step("downgrade", f"{SERVER} downgrade --feature transaction.version=1", only=(NEWER,)),
        Step("disable, dry run", f"{SERVER} disable --feature group.version --dry-run", only=(NEWER,)),
        Step("disable", f"{SERVER} disable --feature eligible.leader.replicas.version", only=(NEWER,)),
        Step("downgrade by release, dry run", f"{SERVER} downgrade --release-version 4.0 --dry-run", only=(NEWER,)),
        Step("describe", f"{SERVER} describe", patterns=("epoch of features",), unordered=True, settles=True),
        Step("upgrade by release, dry run", f"{SERVER} upgrade --release-version 4.2 --dry-run", only=(NEWER,)),
        Step(
            "upgrade two features",
            f"{SERVER} upgrade --feature transaction.version=2 --feature eligible.leader.replicas.version=1",
            only=(NEWER,),
        ),
        Step(
            "describe one broker",
            f"{SERVER} describe --node-id 1",
            patterns=("epoch of features",),
            unordered=True,
            only=(NEWER,),
            settles=True,
        ),
        Step("show the levels of a release", f"{SERVER} version-mapping --release-version 4.0", only=(NEWER,)),
        Step("show dependencies", f"{SERVER} feature-dependencies --feature transaction.version=2", only=(NEWER,)),
    ),
)
QUORUM = Scenario(
    "kafka-metadata-quorum",
    same(TOOLS + "MetadataQuorumCommand"),
    (
        Step("describe the status", f"{SERVER} describe --status", patterns=("quorum",)),
        Step(
            "describe the replication",
            f"{SERVER} describe --replication",
            patterns=("quorum replicas",),
            unordered=True,
        ),
        Step(
            "describe the replication with relative times",
            f"{SERVER} describe --replication --human-readable",
            patterns=("quorum replicas",),
            unordered=True,
        ),
        Step(
            "remove a controller",
            f"{SERVER} remove-controller --controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ",
        ),
        Step(
            "remove a controller, dry run",
            f"{SERVER} remove-controller --controller-id 9 --controller-directory-id AAAAAAAAAAAAAAAAAAAAAQ --dry-run",
        ),
        Step("add a controller", f"{SERVER} --command-config {{file:controller}} add-controller"),
        Step(
            "add a controller, dry run",
            f"{SERVER} --command-config {{file:controller}} add-controller --dry-run",
        ),
    ),
    {
        "controller": "process.roles=controller\nnode.id=9\nmetadata.log.dir={folder}/kafka-metadata-quorum-log\n"
        "controller.listener.names=CONTROLLER\nlisteners=CONTROLLER://localhost:1\n",
        "log/meta.properties": "version=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\nnode.id=9\ndirectory.id=AAAAAAAAAAAAAAAAAAAAAg\n",
    },
)


def _moves(**moves: tuple[str, list[int]]) -> Mapping[str, str]:
    """Return the contents of files that name new replicas for partition 0 of a topic."""
    return {
        name: json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": replicas}]})
        for name, (topic, replicas) in moves.items()
    }


_MOVE = "--reassignment-json-file {file:move}"
_SLOW = "--reassignment-json-file {file:slow}"
REASSIGNMENTS = Scenario(
    "kafka-reassign-partitions",
    same(TOOLS + "reassign.ReassignPartitionsCommand"),
    (
        created("tools-r", "0:1"),
        Step("execute", f"{SERVER} --execute {_MOVE}", patterns=("directories",)),
        Step("verify", f"{SERVER} --verify {_MOVE}", settles=True),
        Step("list", f"{SERVER} --list"),
        Step("cancel nothing", f"{SERVER} --cancel {_MOVE}"),
        Step("execute with a missing topic", f"{SERVER} --execute --reassignment-json-file {{file:missing}}"),
        Step("execute with a missing broker", f"{SERVER} --execute --reassignment-json-file {{file:broker}}"),
        created("tools-rg", "0"),
        Step(
            "generate",
            f"{SERVER} --generate --topics-to-move-json-file {{file:topics}} --broker-list 1",
            patterns=("directories",),
        ),
        Step(
            "generate for a missing broker",
            f"{SERVER} --generate --topics-to-move-json-file {{file:topics}} --broker-list 9",
        ),
        created("tools-rs", "0"),
        Step(
            "write",
            "--topic tools-rs --num-records 3000 --record-size 1000 --throughput -1 --producer-props bootstrap.servers={bootstrap}",
            patterns=("rate",),
            tool="kafka-producer-perf-test",
        ),
        Step("execute with throttles", f"{SERVER} --execute {_SLOW} --throttle 1", patterns=("directories",)),
        Step("list a reassignment in progress", f"{SERVER} --list", settles=True),
        Step("verify a reassignment in progress", f"{SERVER} --verify {_SLOW}"),
        Step("describe a throttled topic", f"{SERVER} --describe --topic tools-rs", tool="kafka-configs"),
        Step("describe a throttled broker", f"{SERVER} --describe --broker 1", tool="kafka-configs"),
        Step("execute during a reassignment", f"{SERVER} --execute {_MOVE}"),
        Step(
            "execute an additional reassignment with another throttle",
            f"{SERVER} --execute --additional {_MOVE} --throttle 2 --replica-alter-log-dirs-throttle 3",
            patterns=("directories",),
        ),
        Step("cancel and preserve throttles", f"{SERVER} --cancel {_SLOW} --preserve-throttles"),
        Step("describe a throttled topic", f"{SERVER} --describe --topic tools-rs", tool="kafka-configs"),
        Step("execute with throttles", f"{SERVER} --execute {_SLOW} --throttle 1", patterns=("directories",)),
        Step("cancel", f"{SERVER} --cancel {_SLOW}", settles=True),
        Step(
            "describe a topic without throttles",
            f"{SERVER} --describe --topic tools-rs",
            tool="kafka-configs",
            settles=True,
        ),
        Step("verify a cancelled reassignment", f"{SERVER} --verify {_SLOW}"),
        Step("list", f"{SERVER} --list"),
    ),
    {
        **_moves(
            move=("tools-r", [1, 2]),
            missing=("tools-none", [1]),
            broker=("tools-r", [1, 9]),
            slow=("tools-rs", [1, 2]),
        ),
        "topics": json.dumps({"topics": [{"topic": "tools-rg"}], "version": 1}),
    },
)
ELECTIONS = Scenario(
    "kafka-leader-election",
    same(TOOLS + "LeaderElectionCommand"),
    (
        created("tools-e", "0:1"),
        Step("preferred", f"{SERVER} --election-type preferred --topic tools-e --partition 0"),
        Step("unclean", f"{SERVER} --election-type unclean --topic tools-e --partition 0"),
        Step("preferred, missing partition", f"{SERVER} --election-type preferred --topic tools-e --partition 7"),
        Step("preferred, missing topic", f"{SERVER} --election-type preferred --topic tools-none --partition 0"),
        Step(
            "execute",
            f"{SERVER} --execute --reassignment-json-file {{file:order}}",
            patterns=("directories",),
            tool="kafka-reassign-partitions",
        ),
        Step(
            "preferred, elected",
            f"{SERVER} --election-type preferred --path-to-json-file {{file:partitions}}",
            settles=True,
        ),
        Step("preferred, all partitions", f"{SERVER} --election-type preferred --all-topic-partitions"),
        Step(
            "describe",
            f"{SERVER} --describe --topic tools-e",
            patterns=("topic id",),
            tool="kafka-topics",
            settles=True,
        ),
    ),
    {
        **_moves(order=("tools-e", [1, 0])),
        "partitions": json.dumps({"partitions": [{"topic": "tools-e", "partition": 0}]}),
    },
)
_DIRECTORIES = ("directory",)
LOG_DIRS = Scenario(
    "kafka-log-dirs",
    same(TOOLS + "LogDirsCommand"),
    (
        created("tools-l", "0:1"),
        Step(
            "describe",
            f"{SERVER} --describe --topic-list tools-l --broker-list 0,1",
            patterns=_DIRECTORIES,
            settles=True,
        ),
        Step(
            "describe a missing topic",
            f"{SERVER} --describe --topic-list tools-none --broker-list 0",
            patterns=_DIRECTORIES,
        ),
        Step("describe a missing broker", f"{SERVER} --describe --broker-list 9"),
        filled("tools-l", "one", "two", "three"),
        Step(
            "delete records",
            f"{SERVER} --offset-json-file {{file:records}}",
            tool="kafka-delete-records",
        ),
        Step(
            "describe a topic with deleted records",
            f"{SERVER} --describe --topic-list tools-l --broker-list 0,1",
            patterns=_DIRECTORIES,
            settles=True,
        ),
    ),
    {"records": json.dumps({"partitions": [{"topic": "tools-l", "partition": 0, "offset": 2}], "version": 1})},
)
_CHECK = "--broker-list {bootstrap} --time -2 --report-interval-ms 200 --max-wait-ms 100"
REPLICAS = Scenario(
    "kafka-replica-verification",
    same(TOOLS + "ReplicaVerificationTool"),
    (
        created("tools-w", "0:1:2"),
        filled("tools-w", "one", "two", "three"),
        Step(
            "compare replicas",
            f"{_CHECK} --topics-include tools-w",
            patterns=("time",),
            settles=True,
            stopped_after_s=3,
        ),
        Step("compare replicas of no topic", f"{_CHECK} --topics-include tools-none"),
    ),
)
CLUSTERS = Scenario(
    "kafka-cluster",
    same(TOOLS + "ClusterTool"),
    (
        Step("show the id", f"cluster-id {SERVER}", patterns=("cluster id",)),
        Step("list endpoints", f"list-endpoints {SERVER}", patterns=("port",), only=(NEWER,)),
        Step(
            "list endpoints, also of fenced brokers",
            f"list-endpoints {SERVER} --include-fenced-brokers",
            patterns=("port",),
            only=(NEWER,),
        ),
        Step("unregister a missing broker", f"unregister {SERVER} --id 9"),
    ),
)
ACLS = Scenario(
    "kafka-acls",
    {OLDER: "kafka.admin.AclCommand", NEWER: TOOLS + "AclCommand"},
    (
        Step("list without an authorizer", f"{SERVER} --list"),
        Step(
            "add without an authorizer",
            f"{SERVER} --add --allow-principal User:tools --operation Read --topic tools",
            unordered=True,
        ),
    ),
)
TOKENS = Scenario(
    "kafka-delegation-tokens",
    same(TOOLS + "DelegationTokenCommand"),
    (
        Step("describe without authentication", f"{SERVER} --describe --command-config {{file:empty}}"),
        Step(
            "create without authentication",
            f"{SERVER} --create --max-life-time-period -1 --command-config {{file:empty}}",
        ),
    ),
    {"empty": ""},
)
_FIND = f"{SERVER} find-hanging --topic tools-z --partition 0"
HANGING = Scenario(
    "kafka-transactions that hang",
    same(TOOLS + "TransactionsCommand"),
    (
        created("tools-z", "0"),
        filled("tools-z", "one"),
        Step(
            "alter a broker",
            f"{SERVER} --alter --broker 0 --add-config transaction.partition.verification.enable=false",
            tool="kafka-configs",
        ),
        Step("describe a broker", f"{SERVER} --describe --broker 0", tool="kafka-configs", settles=True),
        Step(
            "find a hanging transaction",
            _FIND,
            patterns=("time",),
            starts=Client("hanging transaction", "tools-z", "tools-hanging"),
        ),
        Step("find hanging transactions of a broker", f"{SERVER} find-hanging --broker-id 0", patterns=("time",)),
        Step("find transactions that hang longer", f"{_FIND} --max-transaction-timeout 90"),
        Step(
            "describe producers of a hanging transaction",
            f"{SERVER} describe-producers --topic tools-z --partition 0",
            patterns=("time", "producer id"),
            unordered=True,
        ),
        Step("abort a hanging transaction", f"{SERVER} abort --topic tools-z --partition 0 --start-offset 1"),
        Step("find no hanging transaction", _FIND),
        Step(
            "delete a setting of a broker",
            f"{SERVER} --alter --broker 0 --delete-config transaction.partition.verification.enable",
            tool="kafka-configs",
        ),
    ),
)
_ELECT = f"{SERVER} --election-type"
STOPPED_BROKER = Scenario(
    "kafka-topics with a stopped broker",
    same(TOOLS + "TopicCommand"),
    (
        created("tools-u", "2:0,0:2"),
        created("tools-ua", "2"),
        Step(
            "describe topics with a stopped broker",
            f"{SERVER} --describe --topic tools-u.*",
            patterns=("topic id",),
            settles=True,
            stops_broker=2,
        ),
        Step(
            "describe under-replicated partitions",
            f"{SERVER} --describe --under-replicated-partitions --topic tools-u.*",
        ),
        Step("describe partitions without leader", f"{SERVER} --describe --unavailable-partitions --topic tools-u.*"),
        Step("describe partitions at min ISR", f"{SERVER} --describe --at-min-isr-partitions --topic tools-u.*"),
        Step("describe partitions under min ISR", f"{SERVER} --describe --under-min-isr-partitions --topic tools-u.*"),
        Step("create on a stopped broker", f"{SERVER} --create --topic tools-ux --replica-assignment 2"),
        Step(
            "create on a stopped and a running broker", f"{SERVER} --create --topic tools-uy --replica-assignment 2:1"
        ),
        Step(
            "create with more replicas than running brokers",
            f"{SERVER} --create --topic tools-uz --replication-factor 3",
        ),
        Step("describe", f"{SERVER} --describe --topic tools-uy", patterns=("topic id",), settles=True),
        Step(
            "elect a preferred leader on a stopped broker",
            f"{_ELECT} preferred --topic tools-u --partition 0",
            tool="kafka-leader-election",
        ),
        Step(
            "elect an unclean leader on a stopped broker",
            f"{_ELECT} unclean --topic tools-ua --partition 0",
            tool="kafka-leader-election",
        ),
        Step("offsets beside a stopped broker", f"{SERVER} --topic tools-u", tool="kafka-get-offsets"),
        Step(
            "describe topics after the broker has started",
            f"{SERVER} --describe --topic tools-u[ay]?",
            patterns=("topic id",),
            settles=True,
            starts_broker=2,
        ),
        Step("describe partitions without leader", f"{SERVER} --describe --unavailable-partitions --topic tools-u.*"),
        Step(
            "elect a preferred leader",
            f"{_ELECT} preferred --topic tools-u --partition 0",
            tool="kafka-leader-election",
        ),
        Step("describe", f"{SERVER} --describe --topic tools-u", patterns=("topic id",), settles=True),
        Step("delete", f"{SERVER} --delete --topic tools-u.*"),
    ),
)
CLUSTER_SCENARIOS = (
    FEATURES,
    QUORUM,
    REASSIGNMENTS,
    ELECTIONS,
    LOG_DIRS,
    REPLICAS,
    CLUSTERS,
    ACLS,
    TOKENS,
    HANGING,
    STOPPED_BROKER,
)
