"""Ordinary traffic of real clients on correct brokers, which breaks no rule."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kafkaproto.conformance.client import SocketConnection
from kafkaproto.testing import TestCluster, cluster
from tests.support.wire import batch, fetch, metadata, produce

RATE = 20_000
TOO_MUCH_BYTES = 45_000
"""The size of one batch that exceeds a quota of RATE in any window, however slow the machine is."""
CONFIG = {
    "quota.window.num": "2",
    "replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector",
    "0.broker.rack": "a",
    "1.broker.rack": "b",
    "2.broker.rack": "c",
}


def record(trace: Path) -> None:
    """Record the traffic of `work` into a trace folder and return it."""
    with cluster(3, {"t": {"partitions": 2, "replication_factor": 3}}, CONFIG, trace=trace) as c:
        work(c)


def ask(connection: SocketConnection, request: Any, version: int) -> Any:
    connection.send_bytes(connection.frame(request, version))
    received = connection.take(20)
    assert received is not None
    return connection.decode(*received, 0.0).message


def work(c: TestCluster) -> None:
    """Run three real clients on three brokers in three racks.

    They use quotas, fetch sessions, transaction isolation, idempotence, racks, a broker that restarts, and a topic that is created again
    under the same name.
    """
    c.set_quota(client_id="w", producer_byte_rate=RATE)
    c.set_quota(client_id="r", consumer_byte_rate=RATE)
    _kafka_python(c)
    _confluent(c)
    _raw(c)
    _group(c)
    _transactions(c)
    c.broker(2).stop()
    c.broker(2).start()
    c.delete_topic("t")
    c.create_topic("t", 2, 3)
    _confluent(c)


def _kafka_python(c: TestCluster) -> None:
    from kafka import KafkaConsumer, KafkaProducer, TopicPartition

    producer = KafkaProducer(bootstrap_servers=c.bootstrap, client_id="p", batch_size=4000)
    for number in range(240):
        producer.send("t", b"x" * 500, partition=number % 2)
    producer.flush()
    producer.close()
    consumer = KafkaConsumer(
        "t",
        bootstrap_servers=c.bootstrap,
        client_id="c",
        auto_offset_reset="earliest",
        max_partition_fetch_bytes=20_000,
        isolation_level="read_committed",
    )
    read_count = 0
    while read_count < 240:
        read_count += sum(map(len, consumer.poll(1000).values()))
    consumer.offsets_for_times({TopicPartition("t", 0): 1})
    consumer.end_offsets([TopicPartition("t", 0), TopicPartition("t", 1)])
    consumer.close()


def _confluent(c: TestCluster) -> None:
    from confluent_kafka import Consumer, Producer, TopicPartition

    producer = Producer(
        {"bootstrap.servers": c.bootstrap, "client.id": "i", "enable.idempotence": True, "linger.ms": 0}
    )
    for _ in range(20):
        producer.produce("t", b"y" * 200, partition=0)
        producer.flush()
    for rack in "abc":
        config = {"bootstrap.servers": c.bootstrap, "group.id": f"of {rack}", "client.id": rack, "client.rack": rack}
        consumer = Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False})
        consumer.assign([TopicPartition("t", 0, 0)])
        read_count = 0
        while read_count < 20:
            message = consumer.poll(1.0)
            read_count += message is not None and message.error() is None
        consumer.close()


def _group(c: TestCluster) -> None:
    """Let two consumers share topic t in a group, and commit; the second one leaves."""
    from confluent_kafka import Consumer

    members: list[Consumer] = []
    for name in ("g1", "g2"):
        config = {"bootstrap.servers": c.bootstrap, "group.id": "g", "client.id": name, "heartbeat.interval.ms": 200}
        members.append(Consumer({**config, "auto.offset.reset": "earliest", "enable.auto.commit": False}))
        members[-1].subscribe(["t"])
        while any(len(member.assignment()) != 2 // len(members) for member in members):
            for member in members:
                member.poll(0.1)
    for member in (members[1], members[0]):
        message: Any = None
        while message is None:
            message = member.poll(0.1)
        member.commit(message=message, asynchronous=False)
        member.close()


def _transactions(c: TestCluster) -> None:
    """Commit and abort transactions of two producers, of which the second one fences the first, and read what is committed."""
    from confluent_kafka import Consumer, Producer, TopicPartition

    c.create_topic("tx", 1, 3)
    for _ in range(2):
        producer = Producer({"bootstrap.servers": c.bootstrap, "client.id": "tx", "transactional.id": "tx"})
        producer.init_transactions(30)
        for commits in (True, False, True):
            producer.begin_transaction()
            producer.produce("tx", b"y" * 200)
            producer.flush(30)
            (producer.commit_transaction if commits else producer.abort_transaction)(30)
    consumer = Consumer({"bootstrap.servers": c.bootstrap, "group.id": "tx", "client.id": "tx reader"})
    consumer.assign([TopicPartition("tx", 0, 0)])
    read_count = 0
    while read_count < 4:
        read_count += consumer.poll(0.1) is not None
    consumer.close()


def _raw(c: TestCluster) -> None:
    leader = {index: c.partition("t", index).leader for index in (0, 1)}

    def connect(client_id: str, index: int = 0) -> SocketConnection:
        host, port = c.bootstrap_servers[leader[index]].split(":")
        return SocketConnection(host, int(port), client_id)

    raw = connect("w", 1)
    written = ask(raw, produce("t", batch(b"x" * TOO_MUCH_BYTES), partition=1), 9)
    ask(raw, metadata(["t"]), 9)
    raw.close()
    raw = connect("r", 1)
    for _ in range(2):
        ask(raw, fetch(("t", 1, written.responses[0].partition_responses[0].base_offset)), 11)
    raw.close()
    raw = connect("o")
    for offset in (0, 1_000_000, 0):
        ask(raw, fetch(("t", 0, offset)), 11)
    end = ask(raw, fetch(("t", 0, 0)), 11).responses[0].partitions[0].high_watermark
    ask(raw, fetch(("t", 0, end), max_wait_ms=50, min_bytes=1), 11)
    raw.send_bytes(raw.frame(produce("t", batch(b"x", b"y"), acks=0), 9))
    ask(raw, metadata(["t"]), 9)
    raw.close()
