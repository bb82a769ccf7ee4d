"""Commands of the console consumer and producer, also on internal topics."""

from __future__ import annotations

from tests.support.tools.steps import NEWER, OLDER, SERVER, TOOLS, Client, Scenario, Step, created, filled, same

_PRINT = "--property print.key=true --property print.offset=true --property print.partition=true --property print.headers=true"
CONSUMER = Scenario(
    "kafka-console-consumer",
    same(TOOLS + "consumer.ConsoleConsumer"),
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
            "read topics of a pattern",
            f"{SERVER} --include tools-p.? --from-beginning --max-messages 3 --timeout-ms 20000",
        ),
        Step(
            "read a partition from the earliest offset",
            f"{SERVER} --topic tools-p --partition 0 --offset earliest --max-messages 3 --timeout-ms 20000",
        ),
        Step(
            "read a partition from the latest offset",
            f"{SERVER} --topic tools-p --partition 0 --offset latest --timeout-ms 1500",
            patterns=("time",),
        ),
        Step(
            "read in a group",
            f"{SERVER} --topic tools-p --group tools-console --from-beginning --max-messages 3 --timeout-ms 20000",
        ),
        Step(
            "read in a group from its offsets",
            f"{SERVER} --topic tools-p --group tools-console --timeout-ms 3000 --consumer-property auto.offset.reset=earliest",
            patterns=("time",),
        ),
        Step(
            "read with timestamps and separators",
            f"{SERVER} --topic tools-p --from-beginning --max-messages 3 --timeout-ms 20000 --isolation-level read_committed"
            " --property print.timestamp=true --property print.key=true --property key.separator=! --property line.separator=;"
            " --key-deserializer org.apache.kafka.common.serialization.StringDeserializer",
            patterns=("time",),
        ),
        Step(
            "read values of another type",
            f"{SERVER} --topic tools-p --from-beginning --max-messages 3 --timeout-ms 3000 --skip-message-on-error"
            " --value-deserializer org.apache.kafka.common.serialization.LongDeserializer",
            patterns=("time",),
        ),
        Step(
            "read without output",
            f"{SERVER} --topic tools-p --from-beginning --max-messages 3 --timeout-ms 20000"
            " --formatter org.apache.kafka.tools.consumer.NoOpMessageFormatter",
        ),
        Step("read an illegal topic", f"{SERVER} --topic tools%none --timeout-ms 3000", patterns=("time",)),
        Step(
            "read a missing partition",
            f"{SERVER} --topic tools-p --partition 7 --offset 0 --timeout-ms 3000",
            patterns=("time",),
        ),
    ),
)
_INTERNAL = f"{SERVER} --from-beginning --timeout-ms 3000 --partition 2"
"""Options that read partition 2 of an internal topic, which has the records of the groups and transactional ids `tools-formatted...`."""
_FORMATTER = "--formatter org.apache.kafka.tools.consumer"
INTERNAL_TOPICS = Scenario(
    "kafka-console-consumer of internal topics",
    same(TOOLS + "consumer.ConsoleConsumer"),
    (
        created("tools-r", "0"),
        filled("tools-r", "one", "two", "three"),
        Step(
            "reset offsets",
            f"{SERVER} --reset-offsets --group tools-formatted --topic tools-r:0 --to-offset 1 --execute",
            tool="kafka-consumer-groups",
        ),
        Step(
            "read in a group",
            f"{SERVER} --topic tools-r --group tools-formatted --max-messages 2 --timeout-ms 20000 --consumer-property client.id=tools",
            tool="kafka-console-consumer",
        ),
        Step(
            "write in a transaction",
            "--topic tools-r --num-records 2 --record-size 10 --throughput 1000 --producer-props bootstrap.servers={bootstrap} acks=all"
            " --transactional-id tools-formatted-1 --transaction-duration-ms 10000",
            patterns=("rate",),
            tool="kafka-producer-perf-test",
        ),
        Step(
            "read members of groups",
            f"{_INTERNAL} --topic __consumer_offsets {_FORMATTER}.GroupMetadataMessageFormatter",
            patterns=("time", "member id", "other groups and transactions"),
        ),
        Step(
            "delete",
            f"{SERVER} --delete --group tools-formatted",
            tool="kafka-consumer-groups",
        ),
        Step(
            "read committed offsets and tombstones",
            f"{_INTERNAL} --topic __consumer_offsets {_FORMATTER}.OffsetsMessageFormatter",
            patterns=("time", "other groups and transactions"),
        ),
        Step(
            "read states of transactions",
            f"{_INTERNAL} --topic __transaction_state {_FORMATTER}.TransactionLogMessageFormatter",
            patterns=("time", "other groups and transactions", "id of a producer"),
            starts=Client("open transaction", "tools-r", "tools-formatted-a"),
        ),
    ),
)
PRODUCER = Scenario(
    "kafka-console-producer",
    {OLDER: "kafka.tools.ConsoleProducer", NEWER: TOOLS + "ConsoleProducer"},
    (
        created("tools-q", "0"),
        filled("tools-q", "x", "y"),
        Step(
            "write with acks and compression",
            f"{SERVER} --topic tools-q --sync --request-required-acks all --compression-codec lz4",
            "z\n",
        ),
        Step(
            "write with acks of the leader",
            f"{SERVER} --topic tools-q --sync --request-required-acks 1 --compression-codec zstd --batch-size 1",
            "u\nv\n",
        ),
        Step(
            "write without acks",
            f"{SERVER} --topic tools-q --request-required-acks 0 --compression-codec gzip --timeout 100"
            " --producer-property linger.ms=0",
            "t\n",
        ),
        Step(
            "write headers, keys and null values",
            f"{SERVER} --topic tools-q --sync --property parse.headers=true --property parse.key=true --property key.separator=!"
            " --property null.marker=NULL --property headers.delimiter=|",
            "h1:v1,h2:v2|k!value\nh3:v3|k!NULL\n",
        ),
        Step(
            "write to an illegal topic",
            f"{SERVER} --topic tools%q --sync --max-block-ms 3000",
            "x\n",
            patterns=("time",),
        ),
        Step(
            "write a record that is too large",
            f"{SERVER} --topic tools-q --sync --producer-property max.request.size=2000000",
            "x" * 1_100_000 + "\n",
            patterns=("time",),
        ),
        Step(
            "write without a separator",
            f"{SERVER} --topic tools-q --property parse.key=true",
            "nokey\n",
            patterns=("time",),
        ),
        Step(
            "read",
            f"{SERVER} --topic tools-q --from-beginning --max-messages 8 --timeout-ms 20000 --property print.headers=true"
            " --property print.key=true --property null.literal=nothing",
            tool="kafka-console-consumer",
        ),
    ),
)
