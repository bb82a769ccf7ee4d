"""Client libraries in one group whose broker is killed with `kill -9`, and started again on the same port and data directory.

All brokers of a cluster are one process, so `kill -9` ends all of them: no other broker can take over as coordinator, and the tests have one broker.
"""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.support.broker.kills import broker_processes
from tests.support.groups.killed import NOTHING, PARTITIONS, TOPIC, KilledBroker
from tests.support.groups.members import SESSION_SETTINGS, Client, Members

pytestmark = [pytest.mark.slow, pytest.mark.java, pytest.mark.clients, pytest.mark.timeout(300)]

GROUP = "readers"
ALL = {(TOPIC, index) for index in range(PARTITIONS)}
DRAIN_SECONDS = 0.3
"""Longer than members need to write the events of responses that they got before the broker was killed."""


class Scenario:
    """A group whose broker is killed and restarted."""

    def __init__(self, broker: KilledBroker, members: Members) -> None:
        self.broker = broker
        self.members = members
        self.history = members.history

    def read_all(self) -> None:
        """Wait until each member has partitions, and all records are read."""
        self.members.wait(self._is_all_read, f"{self.members.running} share all partitions and read all records")

    def _is_all_read(self) -> bool:
        owned = self.history.owners.keys() == ALL and all(map(self.history.owned, self.members.running))
        return owned and all(self.history.next_offsets[p] == self.broker.produced[p[1]] for p in ALL)

    def commit(self) -> None:
        """Let the members commit all records. The broker then has these offsets."""
        ends = {(topic, index): self.broker.produced[index] for topic, index in ALL}
        self.members.commit(ends)
        assert self.broker.committed(GROUP) == ends

    def recover(self) -> None:
        """Check the records and committed offsets of a restarted broker, which may have commits whose responses were lost."""
        self.broker.check_records()
        committed = self.broker.committed(GROUP)
        for partition, acknowledged in self.history.committed.items():
            read = self.history.next_offsets[partition]
            stored = committed.get(partition, NOTHING)
            assert acknowledged <= stored <= read, f"{partition}: {acknowledged} became {stored}, and {read} were read"
        self.history.committed.update(committed)

    def begin_rebalance(self, client: Client) -> None:
        """Kill a member, start another one in its place, and wait only until the first partitions move."""
        before = self.history.rebalances.copy()
        self.members.kill(self.members.running[0])
        self.members.start("replacement", client)
        self.members.wait(lambda: self.history.rebalances != before, "a rebalance begins")

    def begin_commits(self) -> None:
        """Let the members commit new records, and wait only until the first offsets are acknowledged."""
        before = self.history.committed.copy()
        self.broker.produce()
        self.read_all()
        for member in self.members.running:
            self.members.send(member, command="commit")
        self.members.wait(lambda: self.history.committed != before, "a member has committed")


@pytest.mark.parametrize(
    ("release", "libraries", "protocol", "assignor"),
    [
        ("3.9", "java confluent-kafka kafka-python aiokafka franz-go", "classic", "range"),
        ("4.2", "confluent-kafka franz-go java", "consumer", "range"),
        ("3.9", "kafkajs kafkajs kafkajs", "classic", "RoundRobinAssigner"),
        ("4.2", "kafkajs kafkajs kafkajs", "classic", "RoundRobinAssigner"),
    ],
)
def test_groups_of_client_libraries_survive_kill_9_of_their_broker(
    tmp_path: Path, release: str, libraries: str, protocol: str, assignor: str
) -> None:
    clients = [Client(library, protocol, assignor) for library in libraries.split()]
    with ExitStack() as stack:
        broker = KilledBroker(stack.enter_context(broker_processes()), tmp_path / "data", release, SESSION_SETTINGS)
        members = stack.enter_context(Members(broker, GROUP, TOPIC))
        scenario = Scenario(broker, members)
        with broker.running():
            for number, client in enumerate(clients):
                members.start(f"member-{number}", client)
                broker.produce()
                scenario.read_all()
            scenario.commit()
            scenario.begin_commits()
        members.settle(DRAIN_SECONDS)
        with broker.running():
            scenario.recover()
            scenario.read_all()
            scenario.commit()
            scenario.begin_rebalance(clients[-1])
        members.settle(DRAIN_SECONDS)
        with broker.running():
            scenario.recover()
            broker.produce()
            scenario.read_all()
            scenario.commit()
            while members.running:
                # A Java member of the new protocol that closes while it gets partitions reports these as revoked, but not as assigned before.
                scenario.read_all()
                members.stop(members.running[0])
        with broker.running():
            scenario.recover()
            members.start("resumed", clients[0])
            scenario.read_all()
            scenario.commit()
            members.stop("resumed")
