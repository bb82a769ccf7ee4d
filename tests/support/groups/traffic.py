"""Client libraries as members of groups on any cluster, for checking rules: they join, commit, crash, leave and come back."""

from __future__ import annotations

from typing import Any, NamedTuple

from tests.support.groups.history import Partition
from tests.support.groups.members import SESSION_SETTINGS, Client, Members

TOPIC, PARTITIONS, RECORDS = "orders", 4, 40
SETTINGS = {
    "group.coordinator.rebalance.protocols": "classic,consumer",
    "group.initial.rebalance.delay.ms": "500",
    **SESSION_SETTINGS,
}
"""Broker settings for groups of both protocols. Kafka 3.9 needs the first setting; Kafka 4.2 does not."""
ENDS: dict[Partition, int] = {(TOPIC, index): RECORDS // PARTITIONS for index in range(PARTITIONS)}


class Address(NamedTuple):
    """A cluster of which only the address is known, as `Members` needs it."""

    bootstrap: str

    def groups(self) -> dict[str, Any]:
        return {}


def produce(bootstrap: str) -> None:
    """Create the topic, and write the same number of records to each partition."""
    from kafka import KafkaProducer
    from kafka.admin import KafkaAdminClient, NewTopic

    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)])
    admin.close()
    producer = KafkaProducer(bootstrap_servers=bootstrap, acks="all", client_id="producer")
    for number in range(RECORDS):
        producer.send(TOPIC, b"%d" % number, partition=number % PARTITIONS).get(30)
    producer.close()


def work(bootstrap: str, group: str, first: Client, second: Client) -> None:
    """Let two members share a topic and commit. The second one is killed and replaced by a static member, which restarts, and all leave."""
    with Members(Address(bootstrap), group, TOPIC) as members:  # type: ignore[arg-type]
        history = members.history

        def share() -> None:
            members.wait(
                lambda: history.owners.keys() == ENDS.keys() and all(map(history.owned, members.running)),
                f"{members.running} share all partitions",
            )

        members.start("first", first)
        members.wait(lambda: history.next_offsets == ENDS, "everything is read")
        members.commit(ENDS)
        members.start("second", second)
        share()
        members.commit(ENDS)
        members.kill("second")
        members.wait(lambda: history.owned("first") == ENDS.keys(), "the first member gets all partitions")
        members.start("third", second, "instance")
        share()
        members.stop("third")
        members.start("fourth", second, "instance")
        share()
        members.commit(ENDS)
        for member in ("fourth", "first"):
            members.stop(member)
