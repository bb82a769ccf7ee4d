"""The test API of transactions: reading and waiting for them, and ending them in ways that are rare in life."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.conformance.groups import Group
from kafkaproto.conformance.scene import Topic, wait_until
from kafkaproto.conformance.transactions import Producer
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.find_coordinator import FindCoordinatorRequest
from kafkaproto.testing import ProducerSeen, TestCluster, async_cluster, cluster
from tests.support.broker.subject import subject_of

FENCED, INVALID_STATE, OLD_EPOCH = 90, 48, 47
FIRST_WITH_NEW_EPOCH = 5
"""The first version of EndTxn that raises the producer's epoch (KIP-890)."""
FIRST_THAT_ADDS = 12
"""The first version of Produce that adds its partitions to the transaction (KIP-890)."""


@pytest.fixture
def c() -> Iterator[TestCluster]:
    with cluster(topics={"orders": 2}) as running:
        yield running


def begun(c: TestCluster, transactional_id: str = "shop") -> tuple[Producer, Topic]:
    """Return a producer with an open transaction, which has one record in `orders-0`."""
    subject = subject_of(c)
    producer, topic = Producer(subject, transactional_id), Topic(subject, "orders")
    producer.init()
    producer.add_once_free(topic)
    assert producer.send(topic, 0)[0] == 0
    return producer, topic


def test_cluster_returns_state_and_partitions_of_a_transaction_by_transactional_id(c: TestCluster) -> None:
    assert c.transactions() == {}
    producer, topic = begun(c)
    transaction = c.transaction("shop")
    assert (transaction.state, transaction.partitions, transaction.epoch, transaction.timeout_ms) == (
        "Ongoing",
        (("orders", 0),),
        0,
        60_000,
    )
    assert (
        transaction.producer_id == producer.producer_id and transaction.started_ms > 0 and transaction.coordinator == 0
    )
    assert c.transactions("Ongoing") == {"shop": transaction} and c.transactions("Empty") == {}
    assert c.producers("orders") == [ProducerSeen(producer.producer_id, 0, 0, 0)]
    assert c.producers("orders", 1) == [] and c.last_stable_offset("orders") == 0
    group = Group(producer.subject)
    assert producer.add_offsets(group) == 0
    assert producer.commit_offsets(group, {("orders", 1): 5}) == {("orders", 1): 0}
    assert c.pending_offsets(group.id) == {("orders", 1): 5}
    assert producer.end(commit=True)[0] == 0
    completed = c.wait_for_transaction("shop", "CompleteCommit")
    assert completed.partitions == () and c.last_stable_offset("orders") == 2
    assert c.pending_offsets(group.id) == {} and c.committed(group.id) == {("orders", 1): 5}
    changes = [event.facts for event in c.journal.events("transaction")]
    end_cause = "the producer ended it"
    [offsets_partition] = changes[2]["added"]
    assert offsets_partition.startswith("__consumer_offsets-")
    assert [(change["state"], change["cause"], change["added"]) for change in changes] == [
        ("Empty", "the producer got a new epoch", []),
        ("Ongoing", "partitions were added", ["orders-0"]),
        ("Ongoing", "partitions were added", [offsets_partition]),
        ("PrepareCommit", end_cause, []),
        ("CompleteCommit", end_cause, []),
    ]
    assert topic.name == "orders"
    [past] = c.past_transactions("shop")
    assert past.partitions == (("orders", 0), ("__consumer_offsets", int(offsets_partition.rpartition("-")[2])))
    assert (past.state, past.cause, past.transactional_id) == ("CompleteCommit", end_cause, "shop")
    assert str(past) == c.explain().splitlines()[-1]
    c.stop()
    assert c.past_transactions("shop") == [past] and str(past) in c.explain()


def test_error_for_the_history_of_an_unknown_transactional_id_lists_all_known_ids(c: TestCluster) -> None:
    producer, _ = begun(c)
    Producer(producer.subject, "idle").init()
    assert c.past_transactions("idle") == []
    with pytest.raises(ValueError, match="'idle', 'shop'"):
        c.past_transactions("x")


@pytest.mark.parametrize(
    ("release", "version", "raised"),
    [("3.9", 3, 0), ("4.2", 3, 0), ("4.2", 4, 0), ("4.2", 5, 1)],
    ids=["3.9 EndTxn v3", "4.2 EndTxn v3", "4.2 EndTxn v4", "4.2 EndTxn v5"],
)
def test_producer_cannot_commit_a_transaction_after_method_abort_transaction(
    release: str, version: int, raised: int
) -> None:
    """The epoch rises only if the producer's own abort would raise it: with EndTxn v5, which returns the new epoch (TX-38)."""
    with cluster(topics={"orders": 2}, release=release) as c:
        producer, topic = Producer(subject_of(c), "shop"), Topic(subject_of(c), "orders")
        producer.init()
        produce_version = 11
        if version >= FIRST_WITH_NEW_EPOCH:
            produce_version = FIRST_THAT_ADDS
        else:
            producer.add_once_free(topic)
        assert producer.send(topic, 0, version=produce_version)[0] == 0
        c.abort_transaction("shop")
        assert c.wait_for_transaction("shop", "CompleteAbort").epoch == raised
        assert producer.end(commit=True, version=version)[0] == INVALID_STATE
        with pytest.raises(ValueError, match="transactional id with an open transaction"):
            c.abort_transaction("shop")
        error, _, epoch = producer.end(commit=False, version=version)
        assert error == 0
        if version >= FIRST_WITH_NEW_EPOCH:
            producer.epoch = epoch
        else:
            producer.add_once_free(topic)
        sequence = 0 if raised else 1
        assert producer.send(topic, sequence, version=produce_version)[0] == 0
        assert producer.end(commit=True, version=version)[0] == 0


@pytest.mark.parametrize(
    ("method", "cause"),
    [
        ("abort_transaction", "a test aborted it"),
        ("expire_transaction", "its timeout passed"),
        ("fence_producer", "a newer producer fenced it"),
    ],
)
def test_history_of_an_aborted_transaction_contains_the_cause_of_the_abort(
    c: TestCluster, method: str, cause: str
) -> None:
    begun(c)
    getattr(c, method)("shop")
    c.wait_for_transaction("shop", "CompleteAbort")
    [past] = c.past_transactions("shop")
    assert (past.state, past.cause) == ("CompleteAbort", cause)
    assert c.explain().splitlines()[-1].endswith(f"with orders-0: {cause}")
    causes = [event.facts["cause"] for event in c.journal.events("transaction")]
    assert causes[-2:] == [cause, cause]


@pytest.mark.parametrize("method", ["expire_transaction", "fence_producer"])
def test_commit_after_a_transaction_expired_or_its_producer_was_fenced_is_rejected(c: TestCluster, method: str) -> None:
    producer, topic = begun(c)
    getattr(c, method)("shop")
    aborted = c.wait_for_transaction("shop", "CompleteAbort")
    assert aborted.epoch == 1
    assert producer.end(commit=True)[0] == FENCED
    assert producer.send(topic, 1)[0] == OLD_EPOCH
    c.fence_producer("shop")
    assert c.transaction("shop").epoch == 2 and c.transaction("shop").state == "Empty"


@pytest.mark.parametrize("commit", [True, False])
def test_fenced_producer_of_transaction_version_2_can_neither_end_nor_produce(commit: bool) -> None:
    """With transaction version 2, EndTxn with the previous epoch counts as repeated (TX-59), so fence_producer raises the epoch by two."""
    with cluster(topics={"orders": 1}, release="4.2") as c:
        producer, topic = Producer(subject_of(c), "shop"), Topic(subject_of(c), "orders")
        producer.init()
        assert producer.send(topic, 0, version=FIRST_THAT_ADDS)[0] == 0
        c.fence_producer("shop")
        assert c.wait_for_transaction("shop", "CompleteAbort").epoch == 2
        assert producer.end(commit=commit, version=FIRST_WITH_NEW_EPOCH)[0] == FENCED
        assert producer.send(topic, 1, version=FIRST_THAT_ADDS)[0] == OLD_EPOCH
        successor = Producer(subject_of(c), "shop")
        successor.init()
        assert successor.epoch == 3 and successor.send(topic, 0, version=FIRST_THAT_ADDS)[0] == 0
        assert successor.end(commit=True, version=FIRST_WITH_NEW_EPOCH)[0] == 0


def test_error_of_transaction_methods_names_the_broker_of_a_stopped_coordinator() -> None:
    """The coordinator stops without a handover, so that it stays the leader in the metadata until its session ends."""
    config = {"controlled.shutdown.enable": "false", "broker.session.timeout.ms": 9_000}
    topics = {"orders": {"partitions": 3, "replication_factor": 3}}
    with cluster(brokers=3, topics=topics, config=config, clock="jump") as c:
        producer, topic = Producer(subject_of(c), "shop"), Topic(subject_of(c), "orders")
        producer.init()
        coordinator = c.transaction("shop").coordinator
        index = next(i for i in range(3) if c.partition("orders", i).leader != coordinator)
        producer.add_once_free(topic, index)
        assert producer.send(topic, 0, index=index)[0] == 0
        c.broker(coordinator).stop()
        explained = c.explain()
        assert "its coordinator is unknown" in explained and "hanging" not in explained
        for method in ("transaction", *METHODS):
            with pytest.raises(
                KafkaError, match=rf"no coordinator, because broker {coordinator}, .* is stopped"
            ) as raised:
                getattr(c, method)("shop")
            assert raised.value.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        with pytest.raises(TimeoutError, match=f"has no coordinator, because broker {coordinator}"):
            c.wait_for_transaction("shop", "CompleteAbort", timeout_s=0.05)
        c.clock.advance(10_000)
        assert c.transaction("shop").state == "Ongoing" and "its coordinator" not in c.explain()


def test_last_stable_offset_does_not_advance_past_a_hanging_transaction(c: TestCluster) -> None:
    hanging = c.hang_transaction("orders", 1)
    assert hanging in c.producers("orders", 1) and c.last_stable_offset("orders", 1) == 0
    assert c.transactions() == {}
    c.produce("orders", [b"later"], partition=1)
    assert c.last_stable_offset("orders", 1) == 0
    with pytest.raises(KafkaError):
        c.hang_transaction("orders", 9)


def test_method_explain_lists_hanging_transactions_but_not_open_transactions(c: TestCluster) -> None:
    begun(c)
    hanging = c.hang_transaction("orders", 1)
    [line] = [line for line in c.explain().splitlines() if "hanging" in line]
    place = f"orders-1 has a hanging transaction of producer {hanging.producer_id} epoch 0, which began at offset 0: "
    assert line.startswith(place)
    c.stop()
    assert "hanging" not in c.explain()


def test_method_hang_transaction_writes_a_text_record_and_a_journal_event(c: TestCluster) -> None:
    hanging = c.hang_transaction("orders", 1, "text")
    assert [record.value for record in c.records("orders", 1)] == [b"text"]
    [event] = c.journal.events("transaction")
    facts = {
        name: event.facts[name] for name in ("transactional_id", "state", "producer_id", "epoch", "added", "cause")
    }
    assert facts == {
        "transactional_id": None,
        "state": "Ongoing",
        "producer_id": hanging.producer_id,
        "epoch": 0,
        "added": ["orders-1"],
        "cause": "a test wrote it without a coordinator",
    }
    with pytest.raises(TypeError, match="value must be bytes, str or None"):
        c.hang_transaction("orders", 1, 7)  # type: ignore[arg-type]


def test_method_hang_transaction_rejects_a_compacted_topic_or_a_too_large_value() -> None:
    with cluster(topics={"table": {"partitions": 1, "configs": {"cleanup.policy": "compact"}}}) as c:
        text = "table-0 .*without a key.* topic that is not compacted"
        with pytest.raises(KafkaError, match=text) as raised:
            c.hang_transaction("table")
        assert raised.value.error_code == ErrorCode.INVALID_RECORD
        with pytest.raises(KafkaError) as raised:
            c.hang_transaction("table", value=bytes(2_000_000))
        assert raised.value.error_code == ErrorCode.MESSAGE_TOO_LARGE
        assert c.producers("table") == [] and not c.journal.events("transaction")


def test_method_pending_offsets_returns_the_offset_of_the_last_begun_transaction(c: TestCluster) -> None:
    first, _ = begun(c)
    second = Producer(first.subject, "other")
    second.init()
    group = Group(first.subject)
    for producer, offset in ((first, 5), (second, 9), (first, 7)):
        assert producer.add_offsets(group) == 0
        assert producer.commit_offsets(group, {("orders", 1): offset}) == {("orders", 1): 0}
    assert c.pending_offsets(group.id) == {("orders", 1): 9}
    second.finish(commit=False)
    assert c.pending_offsets(group.id) == {("orders", 1): 7}


def test_unknown_transactional_id_raises_an_error_that_suggests_an_existing_id(c: TestCluster) -> None:
    begun(c)
    with pytest.raises(ValueError, match="did you mean 'shop'"):
        c.transaction("shot")
    with pytest.raises(ValueError, match="state"):
        c.wait_for_transaction("shop", "Committed")
    with pytest.raises(TimeoutError, match="shop is Ongoing, and did not become CompleteAbort"):
        c.wait_for_transaction("shop", "CompleteAbort", timeout_s=0.05)


async def test_async_method_wait_for_transaction_returns_the_producer_id_after_an_abort() -> None:
    async with async_cluster(topics={"orders": 1}) as c:
        producer, _ = await asyncio.to_thread(begun, c)
        c.expire_transaction("shop")
        assert (await c.wait_for_transaction("shop", "CompleteAbort")).producer_id == producer.producer_id


METHODS = "abort_transaction", "expire_transaction", "fence_producer"
LOAD_MS = 600_000


def test_transaction_methods_raise_a_loading_error_while_the_coordinator_loads() -> None:
    topics = {"orders": {"partitions": 1, "replication_factor": 3}}
    config = {"transaction.state.log.replication.factor": 3, "kafkaproto.transaction.load.ms": LOAD_MS}
    with cluster(brokers=3, topics=topics, config=config, clock="jump") as c:
        subject, request = subject_of(c), FindCoordinatorRequest("shop", 1)
        wait_until(subject, lambda: subject.ask_once(request, 3).error_code == 0, "the coordinator is known")
        c.clock.advance(LOAD_MS)
        begun(c)
        c.broker(c.transaction("shop").coordinator).stop()
        assert "hanging" not in c.explain()
        for method in ("transaction", *METHODS):
            with pytest.raises(KafkaError, match=r"broker \d is still loading the transactional id 'shop'") as raised:
                getattr(c, method)("shop")
            assert raised.value.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert [past.state for past in c.past_transactions("shop")] == ["Ongoing"]
        with pytest.raises(TimeoutError, match="the coordinator of the transactional id shop is still loading it"):
            c.wait_for_transaction("shop", "Ongoing", timeout_s=0.05)
        c.clock.advance(LOAD_MS)
        assert c.transaction("shop").state == "Ongoing"


@pytest.fixture
def replicated() -> Iterator[TestCluster]:
    """Return three brokers whose transaction topic needs two in-sync replicas."""
    config = {"transaction.state.log.replication.factor": 3, "transaction.state.log.min.isr": 2}
    with cluster(brokers=3, topics={"orders": 1}, config=config) as running:
        yield running


def other_brokers(c: TestCluster) -> list[int]:
    return [broker_id for broker_id in range(3) if broker_id != c.transaction("shop").coordinator]


@pytest.mark.parametrize("method", METHODS)
def test_abort_or_fencing_of_a_transaction_fails_if_too_few_replicas_are_in_sync(
    replicated: TestCluster, method: str
) -> None:
    producer, _ = begun(replicated)
    others = other_brokers(replicated)
    for broker_id in others:
        replicated.broker(broker_id).stop()
    for _ in range(2):
        with pytest.raises(
            KafkaError, match=rf"{method}\('shop'\) failed, because .* returned COORDINATOR_NOT_AVAILABLE"
        ) as raised:
            getattr(replicated, method)("shop")
        assert raised.value.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert replicated.transaction("shop").state == "Ongoing"
    for broker_id in others:
        replicated.broker(broker_id).start()
    getattr(replicated, method)("shop")
    assert replicated.wait_for_transaction("shop", "CompleteAbort").producer_id == producer.producer_id


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_fence_producer_fails_while_replicas_are_down_and_succeeds_after_they_return(release: str) -> None:
    config = {"transaction.state.log.replication.factor": 3, "transaction.state.log.min.isr": 2}
    topics = {"orders": {"partitions": 1, "replication_factor": 3}}
    with cluster(brokers=3, topics=topics, config=config, release=release) as c:
        producer, topic = Producer(subject_of(c), "shop"), Topic(subject_of(c), "orders")
        producer.init()
        if release == "3.9":
            producer.add_once_free(topic)
        version = 11 if release == "3.9" else FIRST_THAT_ADDS
        assert producer.send(topic, 0, version=version)[0] == 0
        others = other_brokers(c)
        for broker_id in others:
            c.broker(broker_id).stop()
        with pytest.raises(KafkaError, match="COORDINATOR_NOT_AVAILABLE"):
            c.fence_producer("shop")
        for broker_id in others:
            c.broker(broker_id).start()
        c.fence_producer("shop")
        fenced = c.wait_for_transaction("shop", "CompleteAbort")
        assert fenced.epoch == (1 if release == "3.9" else 2)
        end_version = 4 if release == "3.9" else FIRST_WITH_NEW_EPOCH
        assert producer.end(commit=False, version=end_version)[0] == FENCED
        assert producer.send(topic, 1, version=version)[0] == OLD_EPOCH


@pytest.mark.parametrize("second", METHODS)
@pytest.mark.parametrize("first", METHODS)
def test_second_abort_or_fencing_fails_while_the_first_abort_is_not_replicated(
    replicated: TestCluster, first: str, second: str
) -> None:
    begun(replicated)
    coordinator, others = replicated.transaction("shop").coordinator, other_brokers(replicated)
    for broker_id in others:
        replicated.broker(broker_id).cut_link(coordinator)
    getattr(replicated, first)("shop")
    with pytest.raises(KafkaError, match="'shop' is not replicated yet") as raised:
        getattr(replicated, second)("shop")
    assert raised.value.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
    for broker_id in others:
        replicated.broker(broker_id).cut_link(coordinator, cut=False)
    replicated.wait_for_transaction("shop", "CompleteAbort")


@pytest.mark.parametrize(("commit", "state"), [(True, "Commit"), (False, "Abort")])
def test_fence_producer_error_during_commit_or_abort_says_which_state_to_wait_for(commit: bool, state: str) -> None:
    config = {"kafkaproto.transaction.completion.ms": 60_000}
    with cluster(topics={"orders": 1}, config=config) as c:
        producer, _ = begun(c)
        assert producer.end(commit=commit)[0] == 0
        text = rf"'shop' is not complete yet \(state Prepare{state}\); call wait_for_transaction\('shop', 'Complete{state}'\)"
        with pytest.raises(KafkaError, match=text) as raised:
            c.fence_producer("shop")
        assert raised.value.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
        assert c.transaction("shop").state == f"Prepare{state}"


def test_fencing_that_fails_after_method_fence_producer_has_returned_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    config = {"transaction.state.log.replication.factor": 3, "replica.lag.time.max.ms": 60_000}
    with cluster(brokers=3, topics={"orders": 1}, config=config, clock="jump") as c:
        begun(c)
        coordinator = c.transaction("shop").coordinator
        for broker_id in other_brokers(c):
            c.broker(broker_id).cut_link(coordinator)
        c.fence_producer("shop")
        c.clock.advance(20_000)
        assert not caplog.records
        c.clock.advance(20_000)
    prefix, reason = "the test's call fence_producer('shop') had no effect", "failed with COORDINATOR_NOT_AVAILABLE"
    texts = [line.getMessage() for line in caplog.records]
    assert any(text.startswith(prefix) and reason in text for text in texts), texts


def test_condition_of_wait_for_can_read_transaction_offsets_and_producer_epochs() -> None:
    """The condition of `wait_for` may read everything that the test API shows about transactions, not only their state."""
    with cluster(topics={"orders": 2}, clock="system") as c:
        producer, _ = begun(c)
        group = Group(producer.subject)
        assert producer.add_offsets(group) == 0
        later: list[tuple[Callable[[], object], Callable[[], object]]] = [
            (lambda: producer.commit_offsets(group, {("orders", 0): 5}), lambda: c.pending_offsets(group.id)),
            (lambda: producer.end(commit=True), lambda: c.last_stable_offset("orders") == 2),
            (lambda: c.fence_producer("shop"), lambda: c.transaction("shop").epoch == 1),
        ]
        for act, condition in later:
            assert not condition()
            acting = threading.Timer(0.2, act)
            acting.start()
            c.wait_for(lambda _, condition=condition: condition())  # type: ignore[misc]
            acting.join()
            assert condition()
