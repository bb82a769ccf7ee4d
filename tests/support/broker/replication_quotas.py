"""Set the throttled replicas and rates of replication quotas (KIP-73) in a virtual cluster."""

from __future__ import annotations

from kafkaproto.broker.config.dynamic import BrokerResource, Change, change
from kafkaproto.broker.testing.memory import VirtualCluster

LEADER, FOLLOWER = "leader.replication.throttled.replicas", "follower.replication.throttled.replicas"
RATE = {LEADER: "leader.replication.throttled.rate", FOLLOWER: "follower.replication.throttled.rate"}


def set_rate(cluster: VirtualCluster, side: str, rate: int | None, broker_id: int = -1) -> None:
    text = None if rate is None else str(rate)
    rate_change = Change(RATE[side], 1 if rate is None else 0, text)
    change(BrokerResource(cluster.state, broker_id), [rate_change], cluster.state.strict_kip)
    cluster.run()


def set_list(cluster: VirtualCluster, side: str, text: str, topic: str = "t") -> None:
    controller = cluster.state.controller
    controller.set_topic_configs(topic, {**controller.image.topics[topic].configs, side: text})
    cluster.run()
