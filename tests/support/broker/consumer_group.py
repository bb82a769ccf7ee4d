"""One consumer group of the new protocol (KIP-848) for tests in virtual time: heartbeats of its members, and what the broker shows of it."""

from __future__ import annotations

from collections.abc import Collection, Sequence, Set
from typing import Any

from kafkaproto.broker.testing.memory import VirtualCluster
from kafkaproto.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from kafkaproto.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatRequestTopicPartitions,
)

INVALID, UNSUPPORTED_ASSIGNOR, NOT_FOUND, UNKNOWN_MEMBER, FENCED_EPOCH, STALE_EPOCH = 42, 112, 69, 25, 110, 113
UNSUPPORTED_VERSION, FENCED_INSTANCE, UNRELEASED, FULL, SUBSCRIBED = 35, 82, 111, 81, 86
TIMEOUT_MS, SESSION_MS = 60_000, 45_000
ALL = frozenset(range(6))


class Group:
    """Group `g` on one broker of release `release`: sends heartbeats of members and describes the group. Topic T has 6 partitions."""

    def __init__(self, release: str = "4.2", brokers: int = 1, **config: str) -> None:
        settings = {name.replace("_", "."): value for name, value in config.items()}
        if release == "3.9":
            settings["group.coordinator.rebalance.protocols"] = "classic,consumer"
        self.cluster = VirtualCluster(brokers, settings, release_name=release)
        self.release = release
        for name in ("T", "t1"):
            self.cluster.topic(name, 6, brokers)
        self.reconnect()

    def reconnect(self) -> None:
        self.client = self.cluster.connect(self.cluster.state.coordinator_of("g"))

    @property
    def version(self) -> int:
        return 0 if self.release == "3.9" else 1

    def id_of(self, topic: str) -> bytes:
        return self.cluster.state.controller.image.topics[topic].topic_id

    def beat(
        self,
        member_id: str,
        epoch: int,
        owned: Sequence[int] | None = None,
        names: Sequence[str] | None = None,
        *,
        timeout_ms: int = -1,
        group: str = "g",
        **more: Any,
    ) -> Any:
        request = self.request(member_id, epoch, owned, names, timeout_ms=timeout_ms, group=group, **more)
        return self.client.ask(request, self.version)

    def request(
        self,
        member_id: str,
        epoch: int,
        owned: Collection[int] | None = None,
        names: Sequence[str] | None = None,
        *,
        timeout_ms: int = -1,
        group: str = "g",
        **more: Any,
    ) -> ConsumerGroupHeartbeatRequest:
        """Return a heartbeat. owned: partitions of T; more: other fields of the request."""
        places = None if owned is None else _places(self.id_of("T"), owned)
        request = ConsumerGroupHeartbeatRequest(
            group,
            member_id,
            epoch,
            rebalance_timeout_ms=timeout_ms,
            subscribed_topic_names=None if names is None else list(names),
            topic_partitions=places,
        )
        for name, value in more.items():
            setattr(request, name, value)
        return request

    def join(self, member_id: str, *names: str, timeout_ms: int = TIMEOUT_MS, **more: Any) -> Any:
        return self.beat(member_id, 0, [], list(names) or ["T"], timeout_ms=timeout_ms, **more)

    def epoch_and_partitions(self, response: Any) -> tuple[int, Set[int] | None]:
        """Return (member epoch, assigned partitions of T) of a response; None for an unchanged assignment."""
        assert response.error_code == 0, response
        if response.assignment is None:
            return response.member_epoch, None
        by_topic = {t.topic_id: set(t.partitions) for t in response.assignment.topic_partitions}
        return response.member_epoch, by_topic.get(self.id_of("T"), set())

    def described(self) -> Any:
        [group] = self.client.ask(ConsumerGroupDescribeRequest(["g"]), self.version).groups
        return group

    @property
    def epochs(self) -> tuple[str, int, int]:
        group = self.described()
        return group.group_state, group.group_epoch, group.assignment_epoch

    def targets(self, topic: str = "T") -> dict[str, list[int]]:
        return {
            member.member_id: next(
                (list(t.partitions) for t in member.target_assignment.topic_partitions if t.topic_name == topic), []
            )
            for member in self.described().members
        }


def _places(topic_id: bytes, indexes: Collection[int]) -> list[ConsumerGroupHeartbeatRequestTopicPartitions]:
    return [ConsumerGroupHeartbeatRequestTopicPartitions(topic_id, list(indexes))] if indexes else []
