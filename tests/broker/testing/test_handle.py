"""Easy mistakes with a test cluster: conditions that call the cluster, unknown options, and missing topics."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.quota.entities import QuotaEntity
from kafkaproto.broker.testing.brokers import FollowerHandle
from kafkaproto.broker.testing.threaded import TestCluster
from kafkaproto.testing import DEFAULT, async_cluster, cluster


def test_condition_of_method_wait_for_may_call_methods_of_the_cluster() -> None:
    with cluster(topics={"t": 1}) as c:
        c.produce("t", ["a"])
        assert c.wait_for(lambda _: len(c.records("t")) == 1 and c.journal.requests() == [], timeout_s=5)
        with pytest.raises(TimeoutError, match="nothing fulfilled"):
            c.wait_for(lambda _: len(c.records("t")) == 2, timeout_s=0.05)
        assert c.bootstrap


def test_error_for_an_unknown_cluster_option_names_the_option() -> None:
    with pytest.raises(TypeError, match=r"nonsense.*; known are .*memory_bytes"), cluster(nonsense=3):  # type: ignore[call-arg]
        pass


def test_error_for_changing_an_unknown_topic_names_the_topic() -> None:
    with cluster() as c:
        with pytest.raises(KafkaError, match="no topic nosuch"):
            c.alter_topic("nosuch", max_message_bytes="1")
        with pytest.raises(KafkaError, match="no topic nosuch"):
            c.delete_topic("nosuch")


async def test_async_cluster_can_advance_its_clock_and_be_reset() -> None:
    async with async_cluster(topics={"t": 1}) as c:
        before = c.clock.now_ms()
        await c.clock.advance(60_000)
        assert c.clock.now_ms() >= before + 60_000
        c.produce("t", ["a"])
        c.reset()
        assert c.records("t") == []
        assert c.clock.now_ms() < before + 60_000


def test_cluster_settings_can_be_given_as_numbers_and_booleans() -> None:
    with cluster(
        config={"num.partitions": 3, "auto.create.topics.enable": True}, topics={"t": {"configs": {"retention.ms": 5}}}
    ) as c:
        c.produce("made-by-use", ["a"])
        assert len({r.partition for r in c.records("made-by-use")} | set(range(3))) == 3
        c.alter_topic("t", max_message_bytes=2000)
        assert c.run_in_loop(lambda: c.state.controller.image.topics["t"].configs) == {
            "retention.ms": "5",
            "max.message.bytes": "2000",
        }


def test_alter_topic_with_none_removes_the_setting_from_the_topic() -> None:
    with cluster(topics={"t": {"configs": {"retention.ms": 5, "cleanup.policy": "compact"}}}) as c:
        c.alter_topic("t", retention_ms=None, cleanup_policy=None, segment_ms=7, flush_ms=None)
        assert c.run_in_loop(lambda: c.state.controller.image.topics["t"].configs) == {"segment.ms": "7"}
        with pytest.raises(ConfigError, match='unknown topic setting "nope"'):
            c.alter_topic("t", nope=None)


def test_error_for_topics_or_records_of_a_wrong_type_names_the_accepted_type() -> None:
    with pytest.raises(TypeError, match="dict of names"), cluster(topics=["t"]):  # type: ignore[arg-type]
        pass
    with cluster() as c:
        with pytest.raises(TypeError, match="list of records"):
            c.produce("t", "abc")
        with pytest.raises(TypeError, match="NewRecord"):
            c.produce("t", [("k", "v", "h")])  # type: ignore[list-item]
    with pytest.raises(RuntimeError, match="the cluster is stopped"):
        c.records("t")


OF_ALL = {"t": {"assignment": {0: [0, 1, 2]}}}


def followed(c: TestCluster) -> list[int]:
    """Return the log end offsets of the three replicas after one more record and enough time."""
    c.produce("t", ["another"], 0)
    c.clock.advance(5000)
    return [c.follower("t", 0, broker_id).log_end_offset for broker_id in range(3)]


def test_replication_stopped_by_method_cut_link_does_not_resume_after_a_restart() -> None:
    with cluster(brokers=3, clock="manual") as c:
        c.broker(1).cut_link(0)
        c.create_topic("t", assignment={0: [0, 1, 2]})
        assert followed(c) == [1, 0, 1]
        c.broker(1).stop()
        c.broker(1).start()
        assert followed(c) == [2, 0, 2]
        c.elect("t", 0, 2)
        assert followed(c) == [3, 3, 3]
        c.elect("t", 0, 0)
        assert followed(c) == [4, 3, 4]
        c.broker(1).cut_link(0, False)
        assert followed(c) == [5, 5, 5]


def test_topic_deletion_and_cluster_reset_remove_delays_of_follower_replication() -> None:
    with cluster(brokers=3, clock="manual", topics=OF_ALL) as c:
        c.follower("t", 0, 1).hold()
        c.follower("t", 0, 2).slow(60_000)
        assert followed(c) == [1, 0, 0]
        c.delete_topic("t")
        c.create_topics()
        assert followed(c) == [1, 1, 1]
        c.follower("t", 0, 1).hold(at=1)
        c.broker(1).stop()
        c.broker(2).cut_link(0)
        assert followed(c) == [2, 1, 1]
        c.reset()
        assert followed(c) == [1, 1, 1]


def test_methods_follower_and_cut_link_reject_a_wrong_broker_id_and_list_valid_ids() -> None:
    with cluster(brokers=2, topics={"t": 1}) as c:
        for wrong in (lambda: c.follower("t", 0, 2), lambda: c.broker(0).cut_link(2), lambda: c.broker(0).cut_link(0)):
            with pytest.raises(ValueError, match="ids are 0 to 1"):
                wrong()
        with pytest.raises(ValueError, match="at least 0"):
            c.follower("t", 0, 1).slow(-1)
        with pytest.raises(KafkaError, match="no replica of nosuch-0"):
            _ = c.follower("nosuch", 0, 1).log_end_offset


@pytest.mark.parametrize("change", [lambda f: f.hold(), lambda f: f.slow(5)], ids=["hold", "slow"])
def test_delaying_replication_to_a_broker_without_a_replica_raises_value_error(
    change: Callable[[FollowerHandle], None],
) -> None:
    topics = {"t": {"assignment": {0: [0, 1]}}, "u": {"assignment": {0: [0, 2]}}}
    with cluster(brokers=3, topics=topics) as c, pytest.raises(ValueError, match=r"broker 2 does not follow t-0"):
        change(c.follower("t", 0, 2))


@pytest.mark.rule("Q-20")
def test_method_set_quota_with_one_invalid_value_sets_none_of_the_given_quotas() -> None:
    with cluster() as c:
        with pytest.raises(KafkaError, match="greater than 0"):
            c.set_quota(client_id="x", producer_byte_rate=1000, consumer_byte_rate=0)
        with pytest.raises(KafkaError, match="Invalid empty client quota entity"):
            c.set_quota(producer_byte_rate=1000)
        assert c.state.quota_store.all() == {}


@pytest.mark.rule("Q-19")
def test_method_set_quota_sets_and_removes_quotas_of_users_and_of_ip_addresses() -> None:
    with cluster() as c:
        c.set_quota(user="alice", client_id=DEFAULT, controller_mutation_rate=0.5, request_percentage=1)
        c.set_quota(ip="127.0.0.1", connection_creation_rate=7)
        c.set_quota(ip=DEFAULT, connection_creation_rate=9)
        c.set_quota(ip="127.0.0.1", connection_creation_rate=None)
        assert c.state.quota_store.all() == {
            (QuotaEntity("alice", ""), "controller_mutation_rate"): 0.5,
            (QuotaEntity("alice", ""), "request_percentage"): 1,
            (QuotaEntity(ip=""), "connection_creation_rate"): 9,
        }
        with pytest.raises(KafkaError, match="Invalid quota entity combination"):
            c.set_quota(ip="127.0.0.1", user="alice", connection_creation_rate=7)
