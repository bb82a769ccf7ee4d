"""Make the artifacts again, with the code of this checkout.

    python -m tests.artifacts.make data       the data directories, cleanly stopped and killed
    python -m tests.artifacts.make trace      a trace and its tables
    python -m tests.artifacts.make groups     a trace of consumer groups and its tables
    python -m tests.artifacts.make transactions    a trace of transactions and its tables
    python -m tests.artifacts.make streams    a data directory with the checkpoints of two streaming queries (needs Spark)

They were made with commit 7c3b0af, the groups with commit 7dc9971, the transactions with commit 970a5c3, and stay as they are: their use is to
be old. When a format changes with intent, add artifacts of the new commit beside them.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from kafkaproto.broker.runtime.clock import ManualClock
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from kafkaproto.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from kafkaproto.messages.delete_topics import DeleteTopicsRequest
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.pipeline.trace import tables
from kafkaproto.testing import TestCluster, cluster
from tests.artifacts.holding import BROKERS, START_MS, ask, contents, expect, expected, pack, recovered, unpack
from tests.golden.api_runs import alter_quotas
from tests.golden.batches import COMPRESSED, batch, message_set, values
from tests.golden.world import commit, join, produce, sync

TRACE_PORT = 19092
TOPIC, BROKER = 2, 4


# ---- data directories ---------------------------------------------------------------------------------------------------


def make_data() -> None:
    for name in ("clean", "killed"):
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch) / "data"
            command = [sys.executable, "-m", "tests.artifacts.make", "fill", name, str(folder)]
            completed = subprocess.run(command, check=False)
            assert completed.returncode == (0 if name == "clean" else -signal.SIGKILL), completed
            pack(f"data-{name}", folder)
        with tempfile.TemporaryDirectory() as scratch:
            again = recovered(unpack(f"data-{name}", Path(scratch) / "data"))
            assert contents(again) == expected(f"data-{name}")
            again.state.close()


def fill(artifact: str, folder: Path) -> None:
    """Fill a data directory in this process, and kill the process at the end for the artifact of a killed broker."""
    kafka = VirtualCluster(BROKERS, clock=ManualClock(START_MS), data_dir=folder, seed=1)

    def topic(name: str, partitions: int, **configs: str) -> None:
        settings = [CreatableTopicConfig(key.replace("_", "."), value) for key, value in configs.items()]
        [result] = ask(
            kafka, 0, CreateTopicsRequest([CreatableTopic(name, partitions, 3, [], settings)], 1000), 5
        ).topics
        assert result.error_code == 0, result

    def write(name: str, data: bytes, index: int = 0, version: int = 9) -> None:
        leader, _ = kafka.state.controller.image.leader_of(name, index)
        answer = ask(kafka, leader, produce(name, data, index, acks=-1), version)
        assert answer.responses[0].partition_responses[0].error_code == 0, answer
        kafka.advance(100)

    topic("events", 2, segment_bytes="1000", retention_ms="-1")
    topic("table", 1, cleanup_policy="compact", segment_bytes="1000", min_cleanable_dirty_ratio="0.01")
    topic("trimmed", 1, message_timestamp_type="LogAppendTime", retention_ms="-1")
    topic("deleted", 1)
    for number in range(10):
        for index in range(2):
            write("events", batch(*values(3 + number, 40), keys=True, headers=True), index)
        write("table", batch(b"%d" % number, None if number % 3 == 2 else b"x" * 90, b"y" * 90, keys=True))
    for data in COMPRESSED.values():
        write("events", data)
    write("events", message_set(b"old", b"older", magic=0), 1, version=1)
    kafka.state.log_manager.compaction.clean("table", 0, kafka.now_ms)
    kafka.run()
    write("table", batch(b"open", b"segment", keys=True))
    write("trimmed", batch(*values(12)))
    leader, _ = kafka.state.controller.image.leader_of("trimmed", 0)
    trimmed = [DeleteRecordsTopic("trimmed", [DeleteRecordsPartition(0, 5)])]
    ask(kafka, leader, DeleteRecordsRequest(trimmed, 1000), 2)
    kafka.state.controller.elect("events", 1, (kafka.state.controller.image.leader_of("events", 1)[0] + 1) % BROKERS)
    kafka.run()
    write("events", batch(b"in the next epoch"), 1)
    ask(kafka, 0, DeleteTopicsRequest([], ["deleted"], 1000), 5)
    producer = ask(kafka, 0, InitProducerIdRequest(None, 1000), 4).producer_id
    for sequence in (0, 2, 4):
        write("events", batch(*values(2), producer_id=producer, producer_epoch=0, base_sequence=sequence))
    _commit_offsets(kafka)
    _set_quotas_and_settings(kafka)
    kafka.advance(1000)
    expect(f"data-{artifact}", contents(kafka))
    if artifact == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    kafka.state.close()


def _commit_offsets(kafka: VirtualCluster) -> None:
    coordinator = kafka.state.coordinator_of("committed")
    kafka.run()
    ask(kafka, coordinator, commit("committed", ("events", 0, 7), ("events", 1, 9), ("table", 0, 3)), 8)
    ask(kafka, coordinator, commit("committed", ("events", 0, 11)), 8)
    member = kafka.connect(kafka.state.coordinator_of("with a member"), client_id="member")
    member_id = member.ask(join("with a member"), 9).member_id
    member.send(join("with a member", member_id), 9)
    kafka.advance(10)
    assert not member.ask(sync("with a member", member_id, 1, {member_id: b"everything"}), 5).error_code
    response = member.ask(commit("with a member", ("trimmed", 0, 8), member_id=member_id, generation=1), 8)
    assert response.topics[0].partitions[0].error_code == 0, response


def _set_quotas_and_settings(kafka: VirtualCluster) -> None:
    quotas = alter_quotas(
        ({"client-id": "limited"}, "producer_byte_rate", 1000.0),
        ({"client-id": None}, "consumer_byte_rate", 2500.0),
        ({"user": "someone", "client-id": "limited"}, "request_percentage", 12.5),
        ({"user": None}, "controller_mutation_rate", 3.0),
        ({"ip": "10.0.0.1"}, "connection_creation_rate", 7.0),
        ({"client-id": "gone"}, "producer_byte_rate", 1.0),
    )
    assert not any(entry.error_code for entry in ask(kafka, 0, quotas, 1).entries)
    ask(kafka, 0, alter_quotas(({"client-id": "gone"}, "producer_byte_rate", None)), 1)
    for kind, name, setting, value in (
        (BROKER, "", "log.retention.ms", "70000000"),
        (BROKER, "1", "leader.replication.throttled.rate", "1000000"),
        (TOPIC, "events", "max.message.bytes", "500000"),
    ):
        resource = AlterConfigsResource(kind, name, [AlterableConfig(setting, 0, value)])
        broker_id = int(name) if name.isdigit() else 0
        assert not ask(kafka, broker_id, IncrementalAlterConfigsRequest([resource]), 1).responses[0].error_code


# ---- a trace and its tables ---------------------------------------------------------------------------------------------


def make_trace() -> None:
    """Record a trace that continues beyond the end of its tables."""
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with cluster(1, {"t": 2}, port=TRACE_PORT, trace=folder / "trace") as kafka:
            kafka.set_quota(client_id="writer", producer_byte_rate=10_000)
            producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, client_id="writer", linger_ms=5, acks="all")
            for number in range(300):
                producer.send("t", b"x" * 100, key=b"%d" % (number % 7), partition=number % 2)
                if number % 10 == 9:
                    producer.flush(30)
                if number % 100 == 99:
                    kafka.clock.advance(20_000)
            producer.close(5)
            consumer = KafkaConsumer(
                bootstrap_servers=kafka.bootstrap,
                client_id="reader",
                group_id="g",
                auto_offset_reset="earliest",
                max_partition_fetch_bytes=1000,
            )
            consumer.assign([TopicPartition("t", 0), TopicPartition("t", 1)])
            read = 0
            while read < 300:
                read += sum(map(len, consumer.poll(1000).values()))
            consumer.commit()
            consumer.close()
        [path] = (folder / "trace").iterdir()
        whole = path.read_bytes()
        path.write_bytes(whole[: end_of_an_entry(path, len(whole) * 2 // 3)])
        tables.build(folder / "trace", folder / "tables", tables.without_spark)
        path.write_bytes(whole)
        pack("trace", folder)


def make_groups() -> None:
    """Record a trace with consumer groups of both protocols that continues beyond the end of its tables."""
    from confluent_kafka import Consumer
    from kafka import KafkaProducer

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with cluster(1, {"t": 2}, release="4.2", port=TRACE_PORT, trace=folder / "trace") as kafka:
            producer = KafkaProducer(bootstrap_servers=kafka.bootstrap, client_id="writer", acks="all")
            for number in range(100):
                producer.send("t", b"x" * 100, partition=number % 2)
            producer.flush(30)
            producer.close(5)
            for protocol in ("classic", "consumer"):
                members: list[Any] = []
                for name in ("first", "second"):
                    options = {"bootstrap.servers": kafka.bootstrap, "group.id": protocol, "client.id": name}
                    options |= {"group.protocol": protocol, "auto.offset.reset": "earliest"}
                    members.append(Consumer({**options, "enable.auto.commit": False}))
                    members[-1].subscribe(["t"])
                    owned = 2 // len(members)
                    while any(len(member.assignment()) != owned for member in members):
                        for member in members:
                            member.poll(0.1)
                for member in members:
                    message = None
                    while message is None:
                        message = member.poll(0.1)
                    member.commit(message, asynchronous=False)
                members[1].close()
                while len(members[0].assignment()) != 2:
                    members[0].poll(0.1)
                members[0].close()
        [path] = (folder / "trace").iterdir()
        whole = path.read_bytes()
        path.write_bytes(whole[: end_of_an_entry(path, len(whole) * 2 // 3)])
        tables.build(folder / "trace", folder / "tables", tables.without_spark)
        path.write_bytes(whole)
        pack("groups", folder)


def make_transactions() -> None:
    """Record a trace with committed and aborted transactions, and an open one, that continues beyond the end of its tables."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        with cluster(1, {"t": 2}, release="4.2", port=TRACE_PORT, trace=folder / "trace") as kafka:
            options = {"bootstrap.servers": kafka.bootstrap}
            consumer = Consumer({**options, "group.id": "g", "client.id": "reader", "auto.offset.reset": "earliest"})
            producer = Producer({**options, "transactional.id": "tx", "client.id": "writer", "linger.ms": 0})
            producer.init_transactions(30)
            for number in range(12):
                producer.begin_transaction()
                for index in (0, 1):
                    producer.produce("t", b"x" * 100, partition=index)
                producer.flush(30)
                if number % 3 == 1:
                    offsets = [TopicPartition("t", 0, number)]
                    producer.send_offsets_to_transaction(offsets, consumer.consumer_group_metadata(), 30)
                if number == 11:
                    break
                (producer.abort_transaction if number % 3 else producer.commit_transaction)(30)
            consumer.assign([TopicPartition("t", 0, 0), TopicPartition("t", 1, 0)])
            received = 0
            while received < 8:
                received += consumer.poll(0.1) is not None
            consumer.close()
            producer.abort_transaction(30)
        [path] = (folder / "trace").iterdir()
        whole = path.read_bytes()
        path.write_bytes(whole[: end_of_an_entry(path, len(whole) * 2 // 3)])
        tables.build(folder / "trace", folder / "tables", tables.without_spark)
        path.write_bytes(whole)
        pack("transactions", folder)


def end_of_an_entry(path: Path, at_least: int) -> int:
    """Return the end of the first entry of a trace file that ends at byte `at_least` or later."""
    from kafkaproto.trace.reading import Trace

    trace = Trace(path)
    return next(trace.read_bytes for _ in trace.entries() if trace.read_bytes >= at_least)


# ---- checkpoints --------------------------------------------------------------------------------------------------------


def make_streams() -> None:
    from kafkaproto.pipeline.session import local_session
    from tests.artifacts.streams import ALERTS, JOURNAL, run_kafka_py, run_live, write

    with tempfile.TemporaryDirectory() as scratch, local_session("artifacts", connector=True) as spark:
        folder = Path(scratch)
        topics: dict[str, Any] = {
            "t": {"partitions": 2, "configs": {"retention.ms": -1}},
            ALERTS: {"partitions": 1, "configs": {"retention.ms": -1}},
        }
        with cluster(1, topics, data_dir=folder / "data", journal_topic=JOURNAL) as kafka:
            kafka.alter_topic(JOURNAL, retention_ms=-1)
            kafka.set_quota(client_id="writer", producer_byte_rate=10_000)
            rows: list[tuple[int, int]] = []
            for _ in range(2):
                write(kafka, "writer", 120)
                kafka.clock.advance(30_000)
                rows += run_kafka_py(spark, kafka.bootstrap, folder / "kafka_py")
                run_live(spark, kafka.bootstrap, folder / "live")
            expect("streams", _stream_facts(kafka, spark, folder, rows))
        pack("streams", folder)


def _stream_facts(kafka: TestCluster, spark: Any, folder: Path, rows: list[tuple[int, int]]) -> dict[str, Any]:
    from tests.artifacts.streams import ALERTS, table_rows

    return {
        "read by kafka_py": [sum(partition == index for partition, _ in rows) for index in range(2)],
        "table of the live job": table_rows(spark, folder / "live"),
        "alerts": len(kafka.records(ALERTS)),
    }


COMMANDS: dict[str, Callable[[], None]] = {
    "data": make_data,
    "trace": make_trace,
    "groups": make_groups,
    "transactions": make_transactions,
    "streams": make_streams,
}

if __name__ == "__main__":
    if sys.argv[1] == "fill":
        fill(sys.argv[2], Path(sys.argv[3]))
    else:
        COMMANDS[sys.argv[1]]()
