"""The test API of transactions: reading and waiting for them, and ending them in ways that are rare in life."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.conformance.foreign import Foreign
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic
from kafkaproto.conformance.transactions import Producer
from kafkaproto.testing import ProducerSeen, TestCluster, async_cluster, cluster

FENCED, INVALID_STATE, OLD_EPOCH = 90, 48, 47


@pytest.fixture
def c() -> Iterator[TestCluster]:
    with cluster(topics={"orders": 2}) as running:
        yield running


def subject_of(c: TestCluster) -> Foreign:
    addresses = [address.rpartition(":") for address in c.bootstrap_servers]
    return Foreign([(host, int(port)) for host, _, port in addresses], "kafka", "ours")


def begun(c: TestCluster, transactional_id: str = "shop") -> tuple[Producer, Topic]:
    """Return a producer with an open transaction, which has one record in `orders-0`."""
    subject = subject_of(c)
    producer, topic = Producer(subject, transactional_id), Topic(subject, "orders")
    producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 0)[0] == 0
    return producer, topic


def test_transaction_shows_state_partitions_and_producer(c: TestCluster) -> None:
    assert c.transactions() == {}
    producer, topic = begun(c)
    seen = c.transaction("shop")
    assert (seen.state, seen.partitions, seen.epoch, seen.timeout_ms) == ("Ongoing", (("orders", 0),), 0, 60_000)
    assert seen.producer_id == producer.producer_id and seen.started_ms > 0 and seen.coordinator == 0
    assert c.transactions("Ongoing") == {"shop": seen} and c.transactions("Empty") == {}
    assert c.producers("orders") == [ProducerSeen(producer.producer_id, 0, 0, 0)]
    assert c.producers("orders", 1) == [] and c.last_stable_offset("orders") == 0
    group = Group(producer.subject)
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {("orders", 1): 5}) == {("orders", 1): 0}
    assert c.pending_offsets(group.id) == {("orders", 1): 5}
    assert producer.end(commit=True)[0] == 0
    done = c.wait_for_transaction("shop", "CompleteCommit")
    assert done.partitions == () and c.last_stable_offset("orders") == 2
    assert c.pending_offsets(group.id) == {} and c.committed(group.id) == {("orders", 1): 5}
    states = [event.facts["state"] for event in c.journal.events("transaction")]
    assert states == ["Empty", "Ongoing", "PrepareCommit", "CompleteCommit"]
    assert topic.name == "orders"


def test_aborted_transaction_fails_the_commit_of_its_producer(c: TestCluster) -> None:
    producer, _ = begun(c)
    c.abort_transaction("shop")
    c.wait_for_transaction("shop", "CompleteAbort")
    assert producer.end(commit=True)[0] == INVALID_STATE
    with pytest.raises(ValueError, match="transactional id with an open transaction"):
        c.abort_transaction("shop")


@pytest.mark.parametrize("method", ["expire_transaction", "fence_producer"])
def test_expired_or_fenced_producer_has_an_old_epoch(c: TestCluster, method: str) -> None:
    producer, topic = begun(c)
    getattr(c, method)("shop")
    seen = c.wait_for_transaction("shop", "CompleteAbort")
    assert seen.epoch == 1
    assert producer.end(commit=True)[0] == FENCED
    assert producer.send(topic, 1)[0] == OLD_EPOCH
    c.fence_producer("shop")
    assert c.transaction("shop").epoch == 2 and c.transaction("shop").state == "Empty"


def test_hanging_transaction_holds_the_last_stable_offset(c: TestCluster) -> None:
    seen = c.hang_transaction("orders", 1)
    assert seen in c.producers("orders", 1) and c.last_stable_offset("orders", 1) == 0
    assert c.transactions() == {}
    c.produce("orders", [b"later"], partition=1)
    assert c.last_stable_offset("orders", 1) == 0
    with pytest.raises(KafkaError):
        c.hang_transaction("orders", 9)


def test_unknown_transactional_id_names_the_existing_ones(c: TestCluster) -> None:
    begun(c)
    with pytest.raises(ValueError, match="did you mean 'shop'"):
        c.transaction("shot")
    with pytest.raises(ValueError, match="state"):
        c.wait_for_transaction("shop", "Committed")
    with pytest.raises(TimeoutError, match="shop is Ongoing, and did not become CompleteAbort"):
        c.wait_for_transaction("shop", "CompleteAbort", timeout_s=0.05)


async def test_async_cluster_waits_for_transactions() -> None:
    async with async_cluster(topics={"orders": 1}) as c:
        producer, _ = await asyncio.to_thread(begun, c)
        c.expire_transaction("shop")
        assert (await c.wait_for_transaction("shop", "CompleteAbort")).producer_id == producer.producer_id
