"""Clusters whose broker ids do not begin at 0 (CF-26): records, groups, transactions, stopped brokers and a data directory."""

from __future__ import annotations

from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.testing import TestCluster, cluster

FIRST_ID = 5
CONFIG = {"node.id": str(FIRST_ID), "6.broker.rack": "b"}


def commit_a_transaction(kafka: TestCluster) -> None:
    """Write one record in a transaction."""
    producer = Producer({"bootstrap.servers": kafka.bootstrap, "transactional.id": "tx"})
    producer.init_transactions()
    producer.begin_transaction()
    producer.produce("orders", b"in a transaction", partition=0)
    producer.commit_transaction()


@pytest.mark.clients
@pytest.mark.rule("CF-26")
def test_consumer_and_transactions_work_in_a_cluster_with_broker_ids_5_to_7(tmp_path: Path) -> None:
    topics = {"orders": {"partitions": 3, "replication_factor": 3}}
    with cluster(3, topics, config=CONFIG, data_dir=tmp_path) as kafka:
        assert {kafka.partition("orders", i).leader for i in range(3)} == {5, 6, 7}
        kafka.produce("orders", ["first"], partition=0)
        commit_a_transaction(kafka)
        consumer = Consumer(
            {"bootstrap.servers": kafka.bootstrap, "group.id": "g", "auto.offset.reset": "earliest", "client.rack": "b"}
        )
        consumer.subscribe(["orders"])
        values = [message.value() for message in consumer.consume(2, 20)]
        consumer.commit(asynchronous=False)
        consumer.close()
        assert values == [b"first", b"in a transaction"]
        leader = kafka.partition("orders", 0).leader
        kafka.broker(leader).stop()
        assert kafka.partition("orders", 0).leader in {5, 6, 7} - {leader}
        kafka.broker(leader).start()
    with cluster(3, config=CONFIG, data_dir=tmp_path) as kafka:
        assert [record.value for record in kafka.records("orders")] == [b"first", b"in a transaction"]
        assert kafka.lag("g")[("orders", 0)] in (0, 1)  # the marker of the transaction may be left


@pytest.mark.rule("CF-26")
def test_start_is_rejected_if_a_replica_is_on_a_broker_id_outside_the_cluster(tmp_path: Path) -> None:
    with cluster(1, {"orders": 1}, config={"node.id": "3"}, data_dir=tmp_path):
        pass
    for config, ids in (({"node.id": "4"}, "4 to 4"), ({}, "0 to 0")):
        message = (
            f"topic orders of the data directory has a replica on broker 3, but the ids of the brokers are {ids}; .*"
            "brokers=1 and the setting node.id=3"
        )
        with pytest.raises(ConfigError, match=message), cluster(1, config=config, data_dir=tmp_path):
            pass


@pytest.mark.rule("CF-26")
@pytest.mark.parametrize("broker_id", [0, 4, 8])
def test_unknown_broker_id_is_rejected_with_the_ids_that_exist(broker_id: int) -> None:
    with (
        cluster(3, config=CONFIG) as kafka,
        pytest.raises(ValueError, match=f"there is no broker {broker_id}: ids are 5 to 7"),
    ):
        kafka.broker(broker_id)


@pytest.mark.rule("CF-26")
def test_settings_of_all_brokers_can_be_altered_if_broker_ids_begin_at_5() -> None:
    with cluster(3, config=CONFIG) as kafka:
        kafka.alter_broker(log_retention_ms=1000)
        assert {node.config["log.retention.ms"] for node in kafka.state.nodes} == {1000}
    memory = VirtualCluster(2, {"node.id": "5"})
    assert memory.connect().ask(MetadataRequest([]), 9).controller_id == 5
