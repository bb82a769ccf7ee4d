"""The commands that are run against both clusters, tool by tool. The table in docs/reference/kafka-tools.md lists these commands, too."""

from __future__ import annotations

import json

from tests.support.tools.cluster_scenarios import CLUSTER_SCENARIOS
from tests.support.tools.config_scenarios import CONFIGS, ENTITIES, LOGGERS
from tests.support.tools.console_scenarios import CONSUMER, INTERNAL_TOPICS, PRODUCER
from tests.support.tools.group_scenarios import GROUP_SCENARIOS
from tests.support.tools.steps import NEWER, OLDER, SERVER, TOOLS, Client, Scenario, Step, created, filled, same

_DESCRIBED = ("topic id",)
TOPICS = Scenario(
    "kafka-topics",
    same(TOOLS + "TopicCommand"),
    (
        created("tools-a", more="--config retention.ms=1000000 --config cleanup.policy=compact"),
        Step("create an existing topic", f"{SERVER} --create --topic tools-a"),
        Step("create an existing topic", f"{SERVER} --create --topic tools-a --if-not-exists"),
        Step("create with a bad name", f"{SERVER} --create --topic bad%name"),
        Step("create with a dot in the name", f"{SERVER} --create --topic tools.a --replica-assignment 0"),
        Step("create with colliding names", f"{SERVER} --create --topic tools_a --replica-assignment 0"),
        Step("create with a bad setting", f"{SERVER} --create --topic tools-b --config retention.ms=x"),
        Step(
            "create with too many replicas",
            f"{SERVER} --create --topic tools-b --replication-factor 5",
        ),
        Step("create with an unknown setting", f"{SERVER} --create --topic tools-b --config nope=1"),
        Step("describe", f"{SERVER} --describe --topic tools-a", patterns=_DESCRIBED),
        Step("describe a missing topic", f"{SERVER} --describe --topic tools-none"),
        Step("list topics of a pattern", f"{SERVER} --list --topic tools-a.*"),
        Step("list all topics", f"{SERVER} --list --exclude-internal"),
        Step("describe all topics", f"{SERVER} --describe --exclude-internal", patterns=_DESCRIBED),
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
        Step("remove partitions", f"{SERVER} --alter --topic tools-a --partitions 1"),
        Step("add partitions to a missing topic", f"{SERVER} --alter --topic tools-none --partitions 2"),
        Step("describe", f"{SERVER} --describe --topic tools-a", patterns=_DESCRIBED),
        Step(
            "describe page by page",
            f"{SERVER} --describe --topic tools-a --partition-size-limit-per-response 1",
            patterns=_DESCRIBED,
        ),
        Step("describe an unknown id", f"{SERVER} --describe --topic-id AAAAAAAAAAAAAAAAAAAABw"),
        created("tools-min", "0:1", "--config min.insync.replicas=2"),
        created("tools-under", "0:1", "--config min.insync.replicas=3"),
        Step(
            "describe partitions at min ISR",
            f"{SERVER} --describe --at-min-isr-partitions --topic tools-(min|under)",
            settles=True,
        ),
        Step(
            "describe partitions under min ISR",
            f"{SERVER} --describe --under-min-isr-partitions --topic tools-(min|under)",
        ),
        Step(
            "create with a number of partitions",
            f"{SERVER} --create --topic tools-n --partitions 2 --replication-factor 3",
        ),
        Step("describe a missing topic", f"{SERVER} --describe --topic tools-none --if-exists"),
        Step("add partitions to a missing topic", f"{SERVER} --alter --topic tools-none --partitions 2 --if-exists"),
        Step("delete", f"{SERVER} --delete --topic tools-(min|under|n)"),
        Step("delete", f"{SERVER} --delete --topic tools-a"),
        Step("delete a missing topic", f"{SERVER} --delete --topic tools-none"),
        Step("delete a missing topic", f"{SERVER} --delete --topic tools-none --if-exists"),
    ),
)

_READ = f"{SERVER} --topic tools-g --group tools-readers --from-beginning --max-messages 4 --timeout-ms 20000"
_COUNT = "--group tools-readers"
GROUPS = Scenario(
    "kafka-consumer-groups",
    same(TOOLS + "consumer.group.ConsumerGroupCommand"),
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

OFFSETS = Scenario(
    "kafka-get-offsets",
    same(TOOLS + "GetOffsetShell"),
    (
        created("tools-o", "0,1,2"),
        filled("tools-o", "one", "two", "three"),
        Step("earliest offsets", f"{SERVER} --topic tools-o --partitions 0,1,2 --time -2"),
        Step("earliest offsets", f"{SERVER} --topic-partitions tools-o:0-2 --time earliest"),
        Step("offsets of a missing partition", f"{SERVER} --topic-partitions tools-o:9 --time max-timestamp"),
        Step("offsets of a missing topic", f"{SERVER} --topic tools-none"),
        created("tools-o-one", "0"),
        filled("tools-o-one", "one"),
        filled("tools-o-one", "two"),
        # A topic with one partition: the producer picks a random one for records without a key.
        Step("latest offsets", f"{SERVER} --topic tools-o-one --partitions 0 --time -1"),
        Step("latest offsets", f"{SERVER} --topic-partitions tools-o-one:0-2 --time latest"),
        Step("offset of the largest timestamp", f"{SERVER} --topic tools-o-one --time max-timestamp"),
        Step("offsets after a time", f"{SERVER} --topic tools-o-one --time 1000"),
        Step("offsets in local logs", f"{SERVER} --topic tools-o-one --time earliest-local"),
        Step("offsets in remote logs", f"{SERVER} --topic tools-o-one --time latest-tiered"),
        Step(
            "offsets that are not uploaded yet",
            f"{SERVER} --topic tools-o-one --time earliest-pending-upload",
            only=(NEWER,),
        ),
        Step("offsets of topics of a pattern", f"{SERVER} --topic tools-o-.* --exclude-internal-topics"),
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
    same(TOOLS + "DeleteRecordsCommand"),
    (
        created("tools-d", "0"),
        filled("tools-d", "one", "two", "three"),
        Step("delete records", f"{SERVER} --offset-json-file {{file:some}}"),
        Step("delete records beyond the end", f"{SERVER} --offset-json-file {{file:beyond}}"),
        Step("earliest offset", f"{SERVER} --topic tools-d --time -2", tool="kafka-get-offsets"),
        Step("delete all records", f"{SERVER} --offset-json-file {{file:all}}"),
        Step("earliest offset", f"{SERVER} --topic tools-d --time -2", tool="kafka-get-offsets"),
    ),
    {
        name: json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": offset}], "version": 1})
        for name, topic, offset in (
            ("some", "tools-d", 2),
            ("beyond", "tools-d", 9),
            ("all", "tools-d", -1),
        )
    },
)
TRANSACTIONS = Scenario(
    "kafka-transactions",
    same(TOOLS + "TransactionsCommand"),
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
_OPEN = ("time", "open transaction")
OPEN_TRANSACTIONS = Scenario(
    "kafka-transactions of a client",
    same(TOOLS + "TransactionsCommand"),
    (
        created("tools-y", "0"),
        filled("tools-y", "one"),
        Step(
            "describe an open transaction",
            f"{SERVER} describe --transactional-id tools-open",
            patterns=_OPEN,
            starts=Client("open transaction", "tools-y", "tools-open"),
        ),
        Step("list an open transaction", f"{SERVER} list", patterns=_OPEN),
        Step(
            "list transactions of a pattern",
            f"{SERVER} list --transactional-id-pattern tools-o.*",
            patterns=_OPEN,
            only=(NEWER,),
        ),
        Step(
            "list no transactions of a pattern",
            f"{SERVER} list --transactional-id-pattern other-.*",
            only=(NEWER,),
        ),
        Step("list transactions that have run longer", f"{SERVER} list --duration-filter 3600000"),
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
        Step(
            "force the end of a transaction",
            f"{SERVER} forceTerminateTransaction --transactionalId tools-open",
            only=(NEWER,),
        ),
        Step(
            "force the end of a missing transaction",
            f"{SERVER} forceTerminateTransaction --transactionalId tools-none",
            only=(NEWER,),
        ),
    ),
)
CLIENT_METRICS = Scenario(
    "kafka-client-metrics",
    same(TOOLS + "ClientMetricsCommand"),
    (
        Step("list when there is no subscription", f"{SERVER} --list"),
        Step(
            "create a subscription",
            f"{SERVER} --alter --name tools-m --metrics org.apache.kafka.producer. --interval 30000 --match client_id=tools.*",
        ),
        Step("change a subscription to an invalid interval", f"{SERVER} --alter --name tools-m --interval 1"),
        Step("describe a subscription", f"{SERVER} --describe --name tools-m", settles=True),
        Step("describe all subscriptions", f"{SERVER} --describe"),
        Step("describe a missing subscription", f"{SERVER} --describe --name tools-none"),
        Step("list subscriptions", f"{SERVER} --list"),
        Step("delete a subscription", f"{SERVER} --delete --name tools-m"),
        Step("list after the deletion", f"{SERVER} --list", settles=True),
        Step("delete a missing subscription", f"{SERVER} --delete --name tools-none"),
        Step(
            "create a subscription with a generated name",
            f"{SERVER} --alter --generate-name --interval 5000",
            patterns=("generated name",),
        ),
        Step(
            "describe the subscription with a generated name",
            f"{SERVER} --describe",
            patterns=("generated name",),
            settles=True,
        ),
    ),
)
_BATCH = ("time",)
VERIFIABLE = Scenario(
    "kafka-verifiable-producer",
    same(TOOLS + "VerifiableProducer"),
    (
        created("tools-v", "0"),
        Step("write", f"{SERVER} --topic tools-v --max-messages 3", patterns=("time", "rate")),
        Step(
            "read",
            f"{SERVER} --topic tools-v --group-id tools-v --max-messages 3 --reset-policy earliest",
            patterns=("time",),
            tool="kafka-verifiable-consumer",
        ),
        Step(
            "write with acks, keys and times",
            f"{SERVER} --topic tools-v --max-messages 3 --acks 1 --throughput 100 --value-prefix 7 --repeating-keys 2"
            " --message-create-time 1000",
            patterns=("time", "rate"),
        ),
        Step(
            "read verbosely with automatic commits",
            f"{SERVER} --topic tools-v --group-id tools-v2 --max-messages 6 --reset-policy earliest --enable-autocommit --verbose"
            " --session-timeout 20000 --assignment-strategy org.apache.kafka.clients.consumer.RoundRobinAssignor",
            patterns=("time",),
            tool="kafka-verifiable-consumer",
        ),
        Step(
            "read in a group of the new protocol",
            f"{SERVER} --topic tools-v --group-id tools-v3 --max-messages 6 --reset-policy earliest --group-protocol consumer",
            patterns=("time", "assignment of nothing"),
            tool="kafka-verifiable-consumer",
            only=(NEWER,),
        ),
    ),
)
VERIFIABLE_CONSUMER = Scenario("kafka-verifiable-consumer", same(TOOLS + "VerifiableConsumer"), ())
API_VERSIONS = Scenario(
    "kafka-broker-api-versions",
    {OLDER: "kafka.admin.BrokerApiVersionsCommand", NEWER: TOOLS + "BrokerApiVersionsCommand"},
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
    same(TOOLS + "ProducerPerformance"),
    (
        created("tools-f", "0"),
        Step(
            "write",
            "--topic tools-f --num-records 50 --record-size 10 --throughput -1 --producer-props bootstrap.servers={bootstrap}",
            patterns=("rate",),
        ),
        Step(
            "write in transactions",
            "--topic tools-f --num-records 50 --record-size 10 --throughput 1000 --producer-props bootstrap.servers={bootstrap} acks=all"
            " --transactional-id tools-performance --transaction-duration-ms 20",
            patterns=("rate",),
        ),
    ),
)
CONSUMER_PERFORMANCE = Scenario(
    "kafka-consumer-perf-test",
    same(TOOLS + "ConsumerPerformance"),
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
END_TO_END = Scenario(
    "kafka-e2e-latency",
    same(TOOLS + "EndToEndLatency"),
    (
        created("tools-i", "0"),
        Step("measure", "{bootstrap} tools-i 20 all 10", patterns=("rate", "latency"), only=(OLDER,), settles=True),
        Step(
            "measure",
            f"{SERVER} --topic tools-i --num-records 20 --producer-acks all --record-size 10",
            patterns=("rate", "latency"),
            only=(NEWER,),
            settles=True,
        ),
    ),
)
# Commands on all groups or transactions come before the tools that leave groups with random names, and transactions.
SCENARIOS: tuple[Scenario, ...] = (
    *GROUP_SCENARIOS, TOPICS, CONFIGS, ENTITIES, LOGGERS, GROUPS, CONSUMER, PRODUCER, OFFSETS, RECORDS, TRANSACTIONS, VERIFIABLE,
    VERIFIABLE_CONSUMER, API_VERSIONS, OPEN_TRANSACTIONS, INTERNAL_TOPICS, PERFORMANCE, CONSUMER_PERFORMANCE, END_TO_END, CLIENT_METRICS,
    *CLUSTER_SCENARIOS,
)  # fmt: skip
BY_NAME = {scenario.name: scenario for scenario in SCENARIOS}
