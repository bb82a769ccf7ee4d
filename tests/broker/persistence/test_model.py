"""Random work on three brokers with a data directory, and crashes: each process recovers what was acknowledged to clients before."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import NO_LEADER
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.records.batch import NewRecord, batches, build_batch, records
from tests.support.broker.processes import Processes, commit, committed, leader
from tests.support.scene import replica
from tests.support.wire import limit, produce, produced

pytestmark = pytest.mark.timeout(240)

BROKERS = 3
TOPICS = ("a", "b")


class Model:
    """The expected state of a topic. records: offset to value of all records of the leader; compacted ones may be missing."""

    def __init__(self, topic_id: bytes, cleaned: bool) -> None:
        self.topic_id = topic_id
        self.cleaned = cleaned
        self.records: dict[int, bytes] = {}
        self.start = 0
        self.end = 0
        self.configs: dict[str, str] = {}


def stored(cluster: VirtualCluster, topic: str, broker_id: int) -> dict[int, bytes]:
    log = replica(cluster, broker_id, topic).log
    stored_records = [record for stored_batch in batches(log.read_all()) for record in records(stored_batch.view)]
    return {record.offset: record.value or b"" for record in stored_records if record.offset >= log.log_start_offset}


class Restarts(RuleBasedStateMachine):
    @initialize(segment_bytes=st.sampled_from([200, 500, 100_000]))
    def begin(self, segment_bytes: int) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="processes-"))
        self.processes = Processes(self.folder / "data", BROKERS, config={"log.segment.bytes": str(segment_bytes)})
        self.models: dict[str, Model] = {}
        self.commits: dict[str, int] = {}
        self.quotas: dict[str, float] = {}
        self.sequences: dict[str, int] = {}
        self.producer_ids: set[int] = set()
        self.number = 0
        self.create("a", cleaned=True)
        self.create("b", cleaned=False)

    @property
    def cluster(self) -> VirtualCluster:
        return self.processes.cluster

    def learn(self, topic: str) -> None:
        """Take the log of the new leader as the expected records."""
        broker_id = leader(self.cluster, topic)
        if broker_id != NO_LEADER:
            model, log = self.models[topic], replica(self.cluster, broker_id, topic).log
            model.records = stored(self.cluster, topic, broker_id)
            model.start, model.end = log.log_start_offset, log.log_end_offset

    @rule(topic=st.sampled_from(TOPICS), cleaned=st.booleans())
    def create(self, topic: str, cleaned: bool) -> None:
        if topic not in self.models:
            policy = "compact" if cleaned else "delete"
            try:
                self.cluster.topic(topic, 1, BROKERS, cleanup_policy=policy)
            except KafkaError:
                return  # too few brokers are running
            self.models[topic] = Model(self.cluster.state.controller.image.topics[topic].topic_id, cleaned)
            self.models[topic].configs = {"cleanup.policy": policy}

    @rule(topic=st.sampled_from(TOPICS))
    def delete(self, topic: str) -> None:
        if self.models.pop(topic, None) is not None:
            self.cluster.state.controller.delete_topic(topic)
            self.cluster.run()
            self.commits.pop(topic, None)
            self.sequences.pop(topic, None)

    @rule(
        topic=st.sampled_from(TOPICS),
        count=st.integers(1, 6),
        size=st.integers(1, 20),
        idempotent=st.booleans(),
        key=st.integers(0, 2),
    )
    def append(self, topic: str, count: int, size: int, idempotent: bool, key: int) -> None:
        for _ in range(count):
            self.append_one(topic, size, idempotent, key)

    def append_one(self, topic: str, size: int, idempotent: bool, key: int) -> None:
        if topic not in self.models or leader(self.cluster, topic) == NO_LEADER:
            return
        model = self.models[topic]
        self.number += 1
        value = (b"%d " % self.number * size)[:60]
        options: dict[str, Any] = {}
        if idempotent:
            options = {"producer_id": 7, "producer_epoch": 0, "base_sequence": self.sequences.get(topic, 0)}
        data = build_batch([NewRecord(value, b"%d" % key, 1_700_000_000_000)], **options)
        client = self.cluster.connect(leader(self.cluster, topic))
        response = produced(client.ask(produce(topic, data, acks=1), 9))
        if idempotent and response.error_code == 45:
            # A new leader may lack batches of this producer, which continues after those that the leader has.
            entry = replica(self.cluster, leader(self.cluster, topic), topic).log.producers.producers.get(7)
            self.sequences[topic] = entry.batches[-1].last_sequence + 1 if entry is not None and entry.batches else 0
            return
        assert (response.error_code, response.base_offset) == (0, model.end)
        model.records[model.end] = value
        model.end += 1
        if idempotent:
            self.sequences[topic] = self.sequences.get(topic, 0) + 1

    @rule(topic=st.sampled_from(TOPICS), part=st.sampled_from([0.3, 0.6, 1.0]))
    def delete_records(self, topic: str, part: float) -> None:
        model = self.models.get(topic)
        if model is None or model.cleaned or leader(self.cluster, topic) == NO_LEADER:
            return
        partition = replica(self.cluster, leader(self.cluster, topic), topic)
        model.start = max(model.start, int(partition.log.high_watermark * part))
        partition.delete_records_before(int(partition.log.high_watermark * part))
        model.records = {offset: value for offset, value in model.records.items() if offset >= model.start}

    @rule(topic=st.sampled_from(TOPICS))
    def compact(self, topic: str) -> None:
        model = self.models.get(topic)
        if model is not None and model.cleaned:
            self.cluster.state.log_manager.compaction.clean(topic, 0, self.cluster.now_ms)
            self.learn(topic)

    @rule(topic=st.sampled_from(TOPICS), number=st.integers(1, 10**6), rate=st.none() | st.just(5.0))
    def set_something(self, topic: str, number: int, rate: float | None) -> None:
        self.configure(topic, number)
        self.commit(topic, number)
        self.set_quota("x" if number % 2 else "y", rate)
        self.take_producer_id()

    def configure(self, topic: str, value: int) -> None:
        model = self.models.get(topic)
        if model is not None:
            model.configs["retention.bytes"] = str(value)
            self.cluster.state.controller.set_topic_configs(topic, model.configs)

    def commit(self, topic: str, offset: int) -> None:
        try:
            if topic in self.models and commit(self.cluster, "g", topic, offset) == 0:
                self.commits[topic] = offset
        except KafkaError:
            pass  # no coordinator while brokers are down

    def set_quota(self, client_id: str, rate: float | None) -> None:
        limit(self.cluster, client_id, consumer_byte_rate=rate)
        self.quotas.pop(client_id, None)
        if rate is not None:
            self.quotas[client_id] = rate

    def take_producer_id(self) -> None:
        given_id = self.cluster.state.nodes[0].transactions.producer_ids.take()
        assert given_id not in self.producer_ids
        self.producer_ids.add(given_id)

    @rule(broker_id=st.integers(0, BROKERS - 1))
    def stop(self, broker_id: int) -> None:
        if sum(node.running for node in self.cluster.state.nodes) > 1:
            self.cluster.state.stop_broker(broker_id)
            self.cluster.run()
            for topic in self.models:
                self.learn(topic)

    @rule()
    def start_all(self) -> None:
        for broker_id in range(BROKERS):
            self.cluster.state.start_broker(broker_id)
        self.cluster.run()
        for topic in self.models:
            self.learn(topic)

    @rule(topic=st.sampled_from(TOPICS), follower=st.integers(0, BROKERS - 1))
    def hold_follower(self, topic: str, follower: int) -> None:
        if topic in self.models:
            for fetcher in self.cluster.state.nodes[follower].replicas.fetchers.values():
                if (topic, 0) in fetcher.partitions:
                    fetcher.hold(topic, 0, None, self.cluster.now_ms)

    @rule(topic=st.sampled_from(TOPICS), broker_id=st.integers(0, BROKERS - 1))
    def elect(self, topic: str, broker_id: int) -> None:
        """Elect any in-sync replica, even one that is held and lacks records."""
        if topic not in self.models:
            return
        try:
            self.cluster.state.controller.elect(topic, 0, broker_id)
        except KafkaError:
            return
        self.cluster.run()
        self.learn(topic)

    @rule(by_itself=st.booleans())
    def restart(self, by_itself: bool) -> None:
        leaders = {topic: self.cluster.state.controller.image.leader_of(topic, 0) for topic in self.models}
        epochs = {topic: self.epochs(topic) for topic in self.models}
        producers = {topic: self.producers(topic) for topic in self.models}
        if by_itself:
            self.processes.end()
        else:
            self.processes.crash()
        cluster = self.processes.restart()
        image = cluster.state.controller.image
        assert {name for name in image.topics if name in TOPICS} == set(self.models)
        for topic, model in self.models.items():
            assert image.topics[topic].topic_id == model.topic_id
            if leaders[topic][0] != NO_LEADER:
                assert image.leader_of(topic, 0) == leaders[topic]
                assert self.epochs(topic) == epochs[topic]
                assert self.producers(topic) == producers[topic]
                for broker_id in range(BROKERS):
                    assert stored(cluster, topic, broker_id) == model.records
            self.learn(topic)
        assert not cluster.state.journal.events("recovery")

    def producers(self, topic: str) -> Any:
        broker_id = leader(self.cluster, topic)
        producer_states = (
            {} if broker_id == NO_LEADER else replica(self.cluster, broker_id, topic).log.producers.producers
        )
        return {producer_id: (entry.epoch, list(entry.batches)) for producer_id, entry in producer_states.items()}

    def epochs(self, topic: str) -> Any:
        broker_id = leader(self.cluster, topic)
        return None if broker_id == NO_LEADER else replica(self.cluster, broker_id, topic).log.epochs.entries()

    @invariant()
    def acknowledged_data_are_recovered(self) -> None:
        state = self.cluster.state
        for topic, model in self.models.items():
            assert dict(state.controller.image.topics[topic].configs) == model.configs
            broker_id = leader(self.cluster, topic)
            if broker_id != NO_LEADER:
                log = replica(self.cluster, broker_id, topic).log
                assert (log.log_start_offset, log.log_end_offset) == (model.start, model.end)
                assert stored(self.cluster, topic, broker_id) == model.records
        assert {entity.client_id: value for (entity, _), value in state.quota_store.all().items()} == self.quotas
        for topic, offset in self.commits.items():
            try:
                assert committed(self.cluster, "g", topic) == offset
            except KafkaError:
                return

    def teardown(self) -> None:
        if hasattr(self, "processes"):
            self.restart(by_itself=False)
            self.acknowledged_data_are_recovered()
            self.processes.end()
            shutil.rmtree(self.folder)


Restarts.TestCase.settings = settings(
    max_examples=80,
    stateful_step_count=50,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestRestarts = Restarts.TestCase
