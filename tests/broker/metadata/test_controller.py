"""The controller: metadata images, topic names, leader elections and in-sync replicas (M-3, M-4, M-6)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import FrozenInstanceError
from random import Random
from types import MappingProxyType

import pytest

from kafkaproto.broker.config.cluster_config import ClusterConfig
from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.controller import Controller
from kafkaproto.broker.metadata.image import NO_LEADER, BrokerState, Image, PartitionState
from kafkaproto.broker.metadata.planning import topic_name_is_legal
from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.error_codes import ErrorCode


class Bench:
    def __init__(self, brokers: int = 3, **settings: str) -> None:
        config = ClusterConfig({name.replace("_", "."): text for name, text in settings.items()})
        self.controller = Controller("cluster", config, Random(0), self._note)
        self.images: list[tuple[Image, Image, tuple[str, ...]]] = []
        for broker_id in range(brokers):
            self.controller.set_broker(BrokerState(broker_id, None, {"A": ("h", broker_id)}))
        self.images.clear()

    def _note(self, old: Image, new: Image, changed: Sequence[str]) -> None:
        self.images.append((old, new, tuple(changed)))

    def topic(self, name: str = "t", *assignment: Sequence[int], **configs: str) -> None:
        replicas_by_index = dict(enumerate(assignment)) or {0: [0, 1, 2]}
        named = {key.replace("_", "."): value for key, value in configs.items()}
        self.controller.put_topic(self.controller.plan_topic(name, assignment=replicas_by_index, configs=named))

    def state(self, topic: str = "t", index: int = 0) -> PartitionState:
        partition_state = self.controller.image.partition(topic, index)
        assert partition_state is not None
        return partition_state

    def leadership(self, topic: str = "t") -> tuple[int, int, tuple[int, ...]]:
        """Return (leader, leader epoch, in-sync replicas) of partition 0."""
        state = self.state(topic)
        return state.leader, state.leader_epoch, state.isr


def refused(error: ErrorCode, bench: Bench, *args: object, **kwargs: object) -> str:
    before = bench.controller.image
    with pytest.raises(KafkaError) as raised:
        bench.controller.plan_topic(*args, **kwargs)  # type: ignore[arg-type]
    assert raised.value.error_code == error
    assert bench.controller.image is before
    return str(raised.value)


# ---- topics ----------------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("M-3")
@pytest.mark.parametrize("name", ["a", "A.b_c-1", "x" * 249, "...", "__consumer_offsets"])
def test_controller_accepts_legal_topic_names(name: str) -> None:
    assert topic_name_is_legal(name)


@pytest.mark.rule("M-3")
@pytest.mark.parametrize("name", ["", ".", "..", "x" * 250, "a b", "a/b", "ä", "a\n", "a:b"])
def test_controller_rejects_illegal_topic_names(name: str) -> None:
    assert not topic_name_is_legal(name)
    refused(ErrorCode.INVALID_TOPIC_EXCEPTION, Bench(), name)


def test_method_plan_topic_changes_no_metadata_and_put_topic_adds_the_topic() -> None:
    bench = Bench()
    planned = bench.controller.plan_topic("t", 2, 3)
    assert bench.images == []
    bench.controller.put_topic(planned)
    [(old, new, changed)] = bench.images
    assert changed == ("t",)
    assert "t" not in old.topics
    assert new.topics["t"] is planned
    assert new.topic_by_id(planned.topic_id) is planned


@pytest.mark.rule("M-6")
def test_new_topic_starts_at_leader_epoch_zero_with_leaders_spread_over_brokers() -> None:
    bench = Bench()
    bench.controller.put_topic(bench.controller.plan_topic("t", 4, 2))
    partitions = bench.controller.image.topics["t"].partitions
    assert [p.leader for p in partitions] == [0, 1, 2, 0]
    assert {(p.leader_epoch, p.partition_epoch) for p in partitions} == {(0, 0)}
    assert all(p.isr == p.replicas for p in partitions)


def test_recreated_topic_gets_a_different_topic_id() -> None:
    bench = Bench()
    bench.topic("t")
    first = bench.controller.image.topics["t"].topic_id
    bench.controller.delete_topic("t")
    assert bench.controller.image.topic_by_id(first) is None
    bench.topic("t")
    assert bench.controller.image.topics["t"].topic_id != first
    assert bench.controller.image.topic_by_id(first) is None


def test_controller_rejects_invalid_topics_with_the_error_codes_of_create_topics() -> None:
    bench = Bench()
    bench.topic("t")
    refused(ErrorCode.TOPIC_ALREADY_EXISTS, bench, "t")
    refused(ErrorCode.INVALID_PARTITIONS, bench, "u", 0)
    refused(ErrorCode.INVALID_PARTITIONS, bench, "u", -2)
    refused(ErrorCode.INVALID_REPLICATION_FACTOR, bench, "u", 1, 0)
    assert "only 3 broker(s) are registered" in refused(ErrorCode.INVALID_REPLICATION_FACTOR, bench, "u", 1, 4)
    refused(ErrorCode.INVALID_CONFIG, bench, "u", configs={"no.such.setting": "1"})
    refused(ErrorCode.INVALID_CONFIG, bench, "u", configs={"max.message.bytes": "-1"})


@pytest.mark.parametrize(
    "assignment",
    [{1: [0]}, {0: [0], 2: [1]}, {0: []}, {0: [0, 0]}, {0: [0, 1], 1: [2]}, {0: [0], 1: [9]}],
)
def test_invalid_replica_assignment_is_rejected(assignment: dict[int, list[int]]) -> None:
    refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, Bench(), "t", assignment=assignment)


def test_default_partitions_and_replication_factor_come_from_broker_settings() -> None:
    bench = Bench(num_partitions="5", default_replication_factor="2")
    planned = bench.controller.plan_topic("t")
    assert (len(planned.partitions), planned.replication_factor) == (5, 2)


def test_new_topic_has_no_leaders_on_stopped_brokers_but_may_have_replicas_there() -> None:
    bench = Bench()
    bench.controller.broker_stopped(0)
    assert [p.replicas for p in bench.controller.plan_topic("t", 2, 3).partitions] == [(1, 2, 0), (2, 1, 0)]
    refused(ErrorCode.INVALID_REPLICATION_FACTOR, bench, "t", 1, 4)
    bench.topic("t", [0, 1, 2], [0, 2, 1])
    assert [(p.leader, p.isr) for p in bench.controller.image.topics["t"].partitions] == [(1, (1, 2)), (2, (2, 1))]
    bench.controller.broker_stopped(1)
    refused(ErrorCode.INVALID_REPLICA_ASSIGNMENT, bench, "u", -1, -1, {0: [0, 1]})
    bench.controller.broker_stopped(2)
    refused(ErrorCode.INVALID_REPLICATION_FACTOR, bench, "u", 1, 1)


def test_controller_rejects_deleting_or_configuring_unknown_topics() -> None:
    bench = Bench()
    for action in (
        lambda: bench.controller.delete_topic("t"),
        lambda: bench.controller.set_topic_configs("t", {}),
        lambda: bench.controller.elect("t", 0, 0),
    ):
        with pytest.raises(KafkaError) as raised:
            action()
        assert raised.value.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_valid_topic_settings_replace_all_previous_settings_of_the_topic() -> None:
    bench = Bench()
    bench.topic("t", max_message_bytes="100")
    bench.controller.set_topic_configs("t", {"retention.ms": "5"})
    assert bench.controller.image.topics["t"].configs == {"retention.ms": "5"}
    with pytest.raises(ConfigError):
        bench.controller.set_topic_configs("t", {"retention.ms": "soon"})
    assert bench.controller.image.topics["t"].configs == {"retention.ms": "5"}


def test_consumer_offsets_topic_is_created_only_once_with_the_configured_partitions() -> None:
    bench = Bench(offsets_topic_num_partitions="6", offsets_topic_replication_factor="2")
    offsets_topic = bench.controller.ensure_internal("__consumer_offsets")
    assert (len(offsets_topic.partitions), offsets_topic.replication_factor, offsets_topic.internal) == (6, 2, True)
    assert offsets_topic.configs == {
        "cleanup.policy": "compact",
        "compression.type": "producer",
        "segment.bytes": "104857600",
    }
    assert bench.controller.ensure_internal("__consumer_offsets") is offsets_topic
    few = Bench(1)
    with pytest.raises(KafkaError, match="needs 3 brokers"):
        few.controller.ensure_internal("__consumer_offsets")


# ---- elections -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("M-6")
def test_next_in_sync_replica_leads_in_a_new_epoch_when_the_leader_stops() -> None:
    bench = Bench()
    bench.topic()
    bench.controller.broker_stopped(0)
    assert bench.leadership() == (1, 1, (1, 2))
    assert bench.state().partition_epoch == 1
    bench.controller.broker_started(0)
    assert bench.leadership() == (1, 1, (1, 2))  # it does not lead, and joins the ISR only after it has caught up


def test_stopped_follower_leaves_the_isr_without_changing_the_leader_epoch() -> None:
    bench = Bench()
    bench.topic()
    bench.controller.broker_stopped(2)
    assert bench.leadership() == (0, 0, (0, 1))
    assert bench.state().partition_epoch == 1


@pytest.mark.rule("M-4")
def test_last_in_sync_replica_stays_in_the_isr_and_leads_again_after_a_restart() -> None:
    bench = Bench()
    bench.topic()
    for broker_id in (1, 2, 0):
        bench.controller.broker_stopped(broker_id)
    assert bench.leadership() == (NO_LEADER, 1, (0,))
    bench.controller.broker_started(1)
    assert bench.leadership() == (NO_LEADER, 1, (0,))  # it may lack records: no unclean election
    bench.controller.broker_started(0)
    assert bench.leadership() == (0, 2, (0,))


@pytest.mark.parametrize("where", ["topic", "broker"])
def test_unclean_leader_election_happens_only_if_a_topic_or_broker_setting_allows_it(where: str) -> None:
    if where == "topic":
        bench = Bench()
        bench.topic(unclean_leader_election_enable="true")
    else:
        bench = Bench(unclean_leader_election_enable="true")
        bench.topic()
    for broker_id in (1, 2, 0):
        bench.controller.broker_stopped(broker_id)
    bench.controller.broker_started(2)
    assert bench.leadership() == (2, 2, (2,))


def test_stopping_a_broker_changes_all_its_partitions_in_one_metadata_image() -> None:
    bench = Bench()
    for name in ("a", "b", "c"):
        bench.topic(name, [0, 1], [1, 2])
    bench.images.clear()
    bench.controller.broker_stopped(0)
    # The death of its broker, and its consequences.
    assert [changed for _, _, changed in bench.images] == [(), ("a", "b", "c")]


def test_leader_election_accepts_only_a_running_in_sync_replica() -> None:
    bench = Bench()
    bench.topic()
    bench.controller.elect("t", 0, 2)
    assert bench.leadership() == (2, 1, (0, 1, 2))
    bench.controller.broker_stopped(1)
    for broker_id in (1, 7):
        with pytest.raises(KafkaError) as raised:
            bench.controller.elect("t", 0, broker_id)
        assert raised.value.error_code == ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
    assert bench.leadership() == (2, 1, (0, 2))


# ---- in-sync replicas ---------------------------------------------------------------------------------------------------------------


def test_isr_changes_of_several_partitions_publish_a_single_metadata_image() -> None:
    bench = Bench()
    bench.topic("t", [0, 1, 2], [1, 2, 0])
    bench.topic("u")
    bench.images.clear()
    bench.controller.change_isr({("t", 0): [0], ("t", 1): [1, 0], ("u", 0): [2, 0], ("gone", 0): [0], ("t", 9): [0]})
    assert [changed for _, _, changed in bench.images] == [("t", "u")]
    assert (bench.state("t", 0).isr, bench.state("t", 1).isr, bench.state("u").isr) == ((0,), (1, 0), (0, 2))
    assert (bench.state("t", 0).leader_epoch, bench.state("t", 0).partition_epoch) == (0, 1)


def test_controller_never_adds_a_stopped_broker_to_an_isr_or_makes_an_isr_empty() -> None:
    bench = Bench(4)
    bench.topic()
    bench.controller.broker_stopped(2)
    bench.images.clear()
    bench.controller.change_isr({("t", 0): [0, 2, 3]})
    assert bench.leadership() == (0, 0, (0,))
    bench.images.clear()
    bench.controller.change_isr({("t", 0): [2, 3]})
    bench.controller.change_isr({("t", 0): [0]})
    bench.controller.change_isr({})
    assert bench.images == []


# ---- the image ------------------------------------------------------------------------------------------------------------------------


def test_metadata_image_is_immutable() -> None:
    bench = Bench()
    bench.topic()
    image = bench.controller.image
    assert isinstance(image.topics, MappingProxyType) and isinstance(image.brokers, MappingProxyType)
    with pytest.raises(FrozenInstanceError):
        image.topics["t"].name = "u"  # type: ignore[misc]
    bench.controller.broker_stopped(0)
    bench.topic("u", [1])
    assert image.is_alive(0)
    assert list(image.topics) == ["t"]
    assert image.leader_of("t", 0) == (0, 0)


@pytest.mark.rule("M-5")
def test_metadata_image_lists_only_running_brokers_with_the_requested_listener() -> None:
    bench = Bench(2)
    image = bench.controller.image
    assert [b.broker_id for b in image.alive_on("A")] == [0, 1]
    assert image.alive_on("B") == []
    assert image.endpoint(1, "A") == (1, "h", 1, None)
    assert image.endpoint(1, "B") is None
    assert image.endpoint(7, "A") is None
    bench.controller.broker_stopped(1)
    image = bench.controller.image
    assert [b.broker_id for b in image.alive_on("A")] == [0]
    assert image.endpoint(1, "A") is None


def test_metadata_image_returns_no_leader_for_unknown_topics_and_partitions() -> None:
    image = Bench().controller.image
    assert image.leader_of("t", 0) == (NO_LEADER, -1)
    assert image.partition("t", -1) is None
    assert image.topic_by_id(bytes(16)) is None


def test_auto_leader_rebalance_returns_leadership_to_the_preferred_replicas() -> None:
    cluster = VirtualCluster(3, {"leader.imbalance.check.interval.seconds": "100"})
    cluster.topic("t", 3, 3)
    before = [p.leader for p in cluster.state.controller.image.topics["t"].partitions]
    cluster.state.stop_broker(1)
    cluster.run()
    cluster.advance(150_000)
    assert 1 not in [p.leader for p in cluster.state.controller.image.topics["t"].partitions]
    cluster.state.start_broker(1)
    cluster.run()
    moved = cluster.now_ms
    cluster.advance(99_999)
    assert [p.leader for p in cluster.state.controller.image.topics["t"].partitions] != before
    cluster.advance(1)
    assert [p.leader for p in cluster.state.controller.image.topics["t"].partitions] == before
    assert cluster.now_ms == moved + 100_000
    assert cluster.state.timers.next_deadline_ms() is None, "a balanced cluster causes no event"


def test_preferred_replicas_do_not_regain_leadership_if_auto_rebalance_is_disabled() -> None:
    cluster = VirtualCluster(2, {"auto.leader.rebalance.enable": "false"})
    cluster.topic("t", 1, 2)
    cluster.state.controller.elect("t", 0, 1)
    cluster.advance(1_000_000)
    assert cluster.state.controller.image.leader_of("t", 0)[0] == 1
