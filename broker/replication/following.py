"""Fetches records for the follower replicas of one broker, with one fetcher for each other broker that leads some of their partitions.

Tests can stop the fetches of a partition at an offset, delay the fetches, and cut the link to a leading broker.

Corresponds to `ReplicaFetcherManager` in Kafka. This module does not depend on wire messages, clients or how a leader appends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from kafkaproto.broker.config.cluster_config import BrokerConfig
from kafkaproto.broker.log.replica_log import ReplicaLog
from kafkaproto.broker.quota.replication_quotas import ReplicationQuota
from kafkaproto.broker.replication.fetcher import ReplicaFetcher
from kafkaproto.broker.replication.followed_partition import FetcherOverrides, FetcherSettings
from kafkaproto.broker.replication.partition import Partition
from kafkaproto.broker.runtime.actions import ActionQueue
from kafkaproto.broker.runtime.timers import Timers


class Peer(Protocol):
    """Interface of another running broker: its replicas, from which this broker fetches, and its replication quota for sending."""

    partitions: dict[tuple[str, int], Partition]
    leader_quota: ReplicationQuota


class Following:
    """The fetches of broker `broker_id` from all leaders. peers: a function that returns another broker by its id, None while that broker is down.

    fetchers: maps the id of another broker to this broker's fetcher for the partitions that the other broker leads. A fetcher that has no partitions
    any more stays in this dict.
    """

    def __init__(
        self,
        broker_id: int,
        config: BrokerConfig,
        actions: ActionQueue,
        timers: Timers,
        follower_quota: ReplicationQuota,
        *,
        peers: Callable[[int], Peer | None],
        strict_kip: bool,
    ) -> None:
        self._broker_id = broker_id
        self._config = config
        self._actions = actions
        self._timers = timers
        self._follower_quota = follower_quota
        self._peers = peers
        self._strict_kip = strict_kip
        self.fetchers: dict[int, ReplicaFetcher] = {}
        self._overrides: dict[tuple[str, int], FetcherOverrides] = {}
        """Maps (topic, partition index) to what a test has set for the fetches of the partition: an offset at which they stop, and a delay.

        All fetchers of this broker share this mapping, so that the entries remain in effect when the leader changes.
        """
        self._cut_links: set[int] = set()
        """The ids of brokers whose link to this broker a test has cut, so that this broker fetches nothing from them."""

    # ---- partitions ----------------------------------------------------------------------------------------------------------

    def follow(self, partition: Partition) -> None:
        """Truncate a follower replica to the records that its leader has, and fetch the partition from the leader.

        Does nothing if the partition is already fetched from this leader. Stops fetching the partition if this broker leads it, or if no running
        broker leads it.
        """
        leader = None if partition.is_leader else self._leader_of(partition)
        if leader is None:
            self.unfollow(partition.topic, partition.index)
            return
        fetcher = self.fetchers.get(leader.broker_id)
        if fetcher is not None and leader.fetchers.get(self._broker_id) is fetcher:
            return
        self.unfollow(partition.topic, partition.index)
        truncate_to_leader(partition.log, leader.log)
        if fetcher is None:
            fetcher = self.fetchers[leader.broker_id] = self._new_fetcher(leader.broker_id)
        fetcher.add(leader, partition)

    def unfollow(self, topic: str, index: int) -> None:
        """Stop fetching a partition from the broker that leads it."""
        for fetcher in self.fetchers.values():
            fetcher.remove(topic, index)

    def forget_topic(self, name: str) -> None:
        """Remove the stop offsets and the delays that tests have set for the fetches of a topic, because the topic was deleted."""
        for key in [key for key in self._overrides if key[0] == name]:
            del self._overrides[key]

    def stop(self) -> None:
        """Close all fetchers, because the broker stops. The stop offsets, delays and cut links that tests have set apply again after a restart."""
        for fetcher in self.fetchers.values():
            fetcher.close()
        self.fetchers.clear()

    def _leader_of(self, partition: Partition) -> Partition | None:
        peer = self._peers(partition.leader_id)
        if peer is None:
            return None
        leader = peer.partitions.get((partition.topic, partition.index))
        return leader if leader is not None and leader.is_leader else None

    def _new_fetcher(self, leader_id: int) -> ReplicaFetcher:
        peer = self._peers(leader_id)
        assert peer is not None, f"broker {leader_id} is followed and does not run"
        fetcher = ReplicaFetcher(
            self._broker_id,
            self.fetcher_settings(),
            self._actions,
            self._timers,
            self._overrides,
            peer.leader_quota,
            self._follower_quota,
        )
        fetcher.cut = leader_id in self._cut_links
        return fetcher

    def fetcher_settings(self) -> FetcherSettings:
        """Return the current settings for a new fetcher (R-9)."""
        config = self._config
        return FetcherSettings(
            config["replica.fetch.max.bytes"],
            config["replica.fetch.response.max.bytes"],
            config["replica.fetch.min.bytes"],
            config["replica.fetch.wait.max.ms"],
            config["replica.fetch.backoff.ms"],
            config["kafkaproto.replica.delay.ms"],
            self._strict_kip,
        )

    # ---- changes by tests ----------------------------------------------------------------------------------------------------

    def release(self, topic: str, index: int) -> None:
        """Remove the stop offset and the delay that tests have set for fetches of a partition, even while this broker does not follow it."""
        self._overrides.pop((topic, index), None)
        for fetcher in self.fetchers.values():
            fetcher.release(topic, index)

    def cut_link(self, leader_id: int, cut: bool, now_ms: int) -> None:
        """Stop fetching any partition from broker `leader_id`, or start again if `cut` is False."""
        (self._cut_links.add if cut else self._cut_links.discard)(leader_id)
        if leader_id in self.fetchers:
            self.fetchers[leader_id].cut_link(cut, now_ms)

    def clear_overrides(self) -> None:
        """Remove all stop offsets, delays and cut links that tests have set. Call it only while this broker follows no partition."""
        self._overrides.clear()
        self._cut_links.clear()


def truncate_to_leader(log: ReplicaLog, leader: ReplicaLog) -> None:
    """Remove from `log` the records that the leader does not have (KIP-101, KIP-279).

    Compares the end offsets of leader epochs in the two logs, from the latest epoch of `log` down, until both logs have the epoch. In Kafka, a
    follower gets the leader's end offsets with OffsetForLeaderEpoch.
    """
    while log.log_end_offset > log.log_start_offset:
        epoch, end = leader.end_offset_for_epoch(log.epochs.latest)
        if epoch < 0:
            log.restart_at(leader.log_start_offset)
            return
        own_epoch, own_end = log.end_offset_for_epoch(epoch)
        if own_epoch == epoch:
            log.truncate_to(min(end, own_end))
            return
        # The leader has no records of the epochs after own_epoch: drop them, and ask again about own_epoch.
        log.truncate_to(own_end)
