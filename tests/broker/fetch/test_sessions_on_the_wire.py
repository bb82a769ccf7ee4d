"""Fetch sessions on the wire (KIP-227): ids, epochs, and the contents and order of incremental responses."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.broker.testing.memory import MemoryClient, VirtualCluster
from kafkaproto.messages.fetch import FetchRequest, ForgottenTopic
from tests.support.scene import answered_at, fill, topic_ids
from tests.support.wire import batch, batch_of_bytes, errors, fetch, flat, limit, sizes

LATEST = 17
NEW, NONE = (0, 0), (0, -1)
BY_NAME_AND_BY_ID = pytest.mark.parametrize("version", [7, 12, 13, LATEST])


@pytest.fixture
def cluster() -> VirtualCluster:
    virtual_cluster = VirtualCluster()
    for name in ("foo", "bar"):
        virtual_cluster.topic(name, 3)
    return virtual_cluster


class Reader:
    """A client that fetches in one version, by topic name or topic id."""

    def __init__(self, cluster: VirtualCluster, version: int = LATEST, **more: Any) -> None:
        self.cluster = cluster
        self.version = version
        self.client: MemoryClient = cluster.connect(**more)

    def request(
        self,
        session: tuple[int, int],
        *partitions: tuple[str, int, int],
        forget: tuple[tuple[str, int], ...] = (),
        **more: Any,
    ) -> FetchRequest:
        ids = topic_ids(self.cluster)
        request = fetch(
            *partitions, session=session, version=self.version, topic_ids={**ids, **more.pop("ids", {})}, **more
        )
        request.forgotten_topics_data = [
            ForgottenTopic(topic, ids[topic], [index])
            if self.version >= 13
            else ForgottenTopic(topic, bytes(16), [index])
            for topic, index in forget
        ]
        return request

    def ask(self, session: tuple[int, int], *partitions: tuple[str, int, int], **more: Any) -> Any:
        return self.client.ask(self.request(session, *partitions, **more), self.version)

    def named(self, answer: Any) -> list[tuple[str, int, int]]:
        """Return (topic, partition, error code) for each partition of a response, in order."""
        names = {topic_id: name for name, topic_id in topic_ids(self.cluster).items()}
        return [
            (names.get(topic.topic_id, topic.topic), data.partition_index, data.error_code)
            for topic in answer.responses
            for data in topic.partitions
        ]


def top(answer: Any) -> tuple[int, int, int]:
    """Return (error code, session id, number of partitions) of a response."""
    return answer.error_code, answer.session_id, len(flat(answer))


@pytest.mark.rule("S-3")
def test_fetch_with_a_session_error_is_answered_immediately_despite_its_max_wait(cluster: VirtualCluster) -> None:
    reader = Reader(cluster)
    assert top(reader.ask((77, 1), ("foo", 0, 0), max_wait_ms=20_000)) == (70, 0, 0)


@pytest.mark.rule("S-3")
def test_restarted_broker_rejects_fetch_session_ids_from_before_the_restart(cluster: VirtualCluster) -> None:
    session = Reader(cluster).ask(NEW, ("foo", 0, 0)).session_id
    cluster.state.stop_broker(0)
    cluster.state.start_broker(0)
    cluster.run()
    assert top(Reader(cluster).ask((session, 1))) == (70, 0, 0)


@pytest.mark.rule("S-4")
@BY_NAME_AND_BY_ID
def test_incremental_fetch_reads_unlisted_partitions_from_their_stored_offset(
    cluster: VirtualCluster, version: int
) -> None:
    fill(cluster, "foo", batch_of_bytes(100), batch_of_bytes(110), batch_of_bytes(120))
    reader = Reader(cluster, version)
    session = reader.ask(NEW, ("foo", 0, 1), ("bar", 0, 0)).session_id
    assert sizes(reader.ask((session, 1))) == [230]
    assert sizes(reader.ask((session, 2), ("foo", 0, 2))) == [120]
    assert sizes(reader.ask((session, 3))) == [120]
    added = reader.ask((session, 4), ("foo", 0, 3), ("bar", 2, 0))
    assert reader.named(added) == [("bar", 2, 0)]
    forgotten = reader.ask((session, 5), ("foo", 0, 0), forget=(("foo", 0),))
    assert top(forgotten) == (0, session, 0)  # a partition both requested and forgotten in one request is forgotten


@pytest.mark.rule("S-9")
def test_incremental_fetch_returns_newly_added_partitions_after_other_partitions(cluster: VirtualCluster) -> None:
    reader = Reader(cluster)
    session = reader.ask(NEW, ("foo", 2, 0), ("bar", 0, 0)).session_id
    reader.ask((session, 1), ("foo", 0, 0), ("foo", 2, 0))
    for topic, index in (("foo", 0), ("foo", 2), ("bar", 0)):
        fill(cluster, topic, batch(b"a"), partition=index)
    named = [(topic, index) for topic, index, _ in reader.named(reader.ask((session, 2)))]
    assert named == [("foo", 2), ("bar", 0), ("foo", 0)]


@pytest.mark.rule("S-10")
def test_throttled_fetch_ignores_a_wrong_session_epoch_and_keeps_the_session(cluster: VirtualCluster) -> None:
    limit(cluster, client_id="reader", request_percentage=0.1)
    reader = Reader(cluster, client_id="reader")
    session = reader.ask(NEW, ("foo", 0, 0)).session_id
    cluster.state.request_cost_ms["Fetch"] = 100.0
    response = reader.ask((session, 9))
    assert response.throttle_time_ms == 1000
    assert top(response) == (0, 0, 0)
    cluster.advance(20_000)
    cluster.state.request_cost_ms["Fetch"] = 0.0
    assert top(reader.ask((session, 1))) == (0, session, 0)


@pytest.mark.rule("S-10", "S-14")
def test_partitions_omitted_from_a_throttled_fetch_are_returned_by_the_next_fetch(cluster: VirtualCluster) -> None:
    reader = Reader(cluster, client_id="reader")
    session = reader.ask(NEW, ("foo", 0, 0), ("foo", 1, 0)).session_id
    fill(cluster, "foo", batch_of_bytes(500), partition=1)
    limit(cluster, client_id="reader", request_percentage=0.1)
    cluster.state.request_cost_ms["Fetch"] = 100.0
    response = reader.ask((session, 1), ("foo", 0, 0), ("bar", 2, 0))
    assert top(response) == (0, session, 0)
    assert response.throttle_time_ms == 1000
    cluster.state.request_cost_ms["Fetch"] = 0.0
    cluster.advance(20_000)
    again = reader.ask((session, 2))
    assert [(topic, index) for topic, index, _ in reader.named(again)] == [("foo", 1), ("bar", 2)]
    assert sizes(again) == [500, 0]


@pytest.mark.rule("S-11")
@pytest.mark.parametrize("version", [13, LATEST])
def test_each_session_fetch_returns_an_unknown_topic_id_error_until_topic_creation(version: int) -> None:
    """Kafka's FetchSessionTest.testFetchSessionWithUnknownId."""
    cluster = VirtualCluster()
    cluster.topic("foo", 1)
    controller = cluster.state.controller
    planned = controller.plan_topic("late", 1, 1)
    reader = Reader(cluster, version)
    first = reader.ask(NEW, ("late", 0, 0), ("foo", 0, 0), ids={"late": planned.topic_id})
    session = first.session_id
    assert errors(first) == [0, 100]
    assert errors(reader.ask((session, 1))) == [100]
    controller.put_topic(planned)
    cluster.run()
    assert reader.named(reader.ask((session, 2))) == [("late", 0, 0)]
    assert top(reader.ask((session, 3))) == (0, session, 0)
    controller.delete_topic("late")
    cluster.run()
    assert errors(reader.ask((session, 4))) == [3]  # the session remembers the topic's former name


@pytest.mark.rule("S-12", "S-13")
@pytest.mark.parametrize(("slots", "session_count"), [("0", 0), ("1", 1), ("2", 2)])
def test_fetch_without_a_free_session_slot_succeeds_with_session_id_zero(slots: str, session_count: int) -> None:
    cluster = VirtualCluster(config={"max.incremental.fetch.session.cache.slots": slots})
    cluster.topic("foo")
    fill(cluster, "foo", batch_of_bytes(100))
    responses = [Reader(cluster).ask(NEW, ("foo", 0, 0)) for _ in range(3)]
    assert [sizes(response) for response in responses] == [[100]] * 3
    assert sum(response.session_id > 0 for response in responses) == session_count


@pytest.mark.rule("S-13")
def test_full_session_cache_evicts_a_fetch_session_unused_for_more_than_two_minutes() -> None:
    cluster = VirtualCluster(config={"max.incremental.fetch.session.cache.slots": "1"})
    cluster.topic("foo")
    old = Reader(cluster).ask(NEW, ("foo", 0, 0)).session_id
    cluster.advance(120_000)
    assert Reader(cluster).ask(NEW, ("foo", 0, 0)).session_id == 0
    cluster.advance(1)
    new = Reader(cluster).ask(NEW, ("foo", 0, 0)).session_id
    assert new > 0
    assert top(Reader(cluster).ask((old, 1))) == (70, 0, 0)


@pytest.mark.rule("S-13")
def test_parked_fetch_completes_after_its_session_is_evicted() -> None:
    cluster = VirtualCluster(config={"max.incremental.fetch.session.cache.slots": "1"})
    cluster.topic("foo")
    reader = Reader(cluster)
    session_id = reader.ask(NEW, ("foo", 0, 0)).session_id
    reader.client.send(reader.request((session_id, 1), max_wait_ms=130_000), LATEST)
    cluster.advance(120_001)
    assert Reader(cluster).ask(NEW, ("foo", 0, 0)).session_id > 0
    assert cluster.state.nodes[0].sessions.get(session_id) is None
    cluster.advance(9_999)
    assert top(reader.client.latest) == (0, session_id, 0)
    assert top(reader.ask((session_id, 2))) == (70, 0, 0)


@pytest.mark.rule("S-2")
def test_fetch_session_is_created_when_the_fetch_completes_not_when_parked(cluster: VirtualCluster) -> None:
    reader = Reader(cluster)
    start_ms = cluster.now_ms
    reader.client.send(reader.request(NEW, ("foo", 0, 0), max_wait_ms=500), LATEST)
    assert len(cluster.state.nodes[0].sessions) == 0
    cluster.advance(500)
    assert answered_at(reader.client, start_ms) == [500]
    assert reader.client.latest.session_id > 0
    assert len(cluster.state.nodes[0].sessions) == 1
