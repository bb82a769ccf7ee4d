"""What the members of a group reported, in order, and the rules that these reports must keep."""

from __future__ import annotations

from collections import deque
from typing import Any

Partition = tuple[str, int]
KEPT_EVENTS = 60


class History:
    """Applies events and notes each that breaks a rule in `faults`:

    - A partition is assigned to one member at a time.
    - A member reports and commits only records of partitions that it owns.
    - The first record after an assignment is at the committed offset, or at 0 without a commit. The others follow without a gap.
    - A member that commits before the first record after an assignment may also start at this commit.
    - Each committed offset is at most the one after the last record that any member reported, so that a start there loses no record.
    - A member may continue where it stopped, and says so when it is assigned, if no other member owned the partition meanwhile.
    """

    def __init__(self) -> None:
        self.owners: dict[Partition, str] = {}
        self.next_offsets: dict[Partition, int] = {}
        """By owned partition: the offset after the last record that its owner reported since it got the partition."""
        self.committed: dict[Partition, int] = {}
        self._reported: dict[Partition, int] = {}
        """By partition: the offset after the last record that any member reported."""
        self._starts: dict[Partition, set[int]] = {}
        """By partition whose owner has reported no record since its assignment: the offsets at which it may start.

        There are two if the owner has committed meanwhile. KafkaJS 2.2.4 does so when a rebalance ends before the response to a commit:
        `OffsetManager.nextOffset` then starts at that commit.
        """
        self._last_owners: dict[Partition, str] = {}
        self.stopped: set[str] = set()
        self.failed_commits: set[str] = set()
        """Members whose latest commit failed."""
        self.rebalances: dict[str, int] = {}
        """By member: the number of its events that changed its partitions."""
        self.returned: list[tuple[str, Partition]] = []
        """Members with partitions that were revoked from them and then assigned to them again: cooperative members keep such partitions."""
        self.lost: list[tuple[str, Partition]] = []
        """Members with partitions that they gave up because they fell out of the group."""
        self.faults: list[str] = []
        self._latest: deque[str] = deque(maxlen=KEPT_EVENTS)

    def owned(self, member: str) -> set[Partition]:
        return {partition for partition, owner in self.owners.items() if owner == member}

    def latest(self) -> str:
        """Return the latest events as text."""
        return "\n".join(self._latest)

    def apply(self, event: dict[str, Any]) -> None:
        self._latest.append(str(event))
        member = event["member"]
        match event["event"]:
            case "assigned":
                self._assign(member, event["partitions"], event.get("positions", []))
            case "revoked":
                self._release(member, event["partitions"])
            case "lost":
                self._release(member, event["partitions"])
                for topic, index in event["partitions"]:
                    self.lost.append((member, (topic, index)))
                    self._last_owners.pop((topic, index), None)
            case "records":
                self._report(member, event["records"])
            case "committed":
                self._commit(member, event["offsets"])
            case "commit failed":
                self.failed_commits.add(member)
            case "stopped" | "killed":
                self.stopped.add(member)
                for partition in self.owned(member):
                    del self.owners[partition]
            case other:
                self._fault(f"{member} reported an unknown event {other}")

    def _fault(self, text: str) -> None:
        self.faults.append(text)
        self._latest.append(f"FAULT: {text}")

    def _assign(self, member: str, partitions: list[list[Any]], positions: list[list[Any]]) -> None:
        """Assign partitions. positions: where the member continues without looking up the committed offset."""
        start_offsets = {(topic, index): offset for topic, index, offset in positions}
        for topic, index in partitions:
            partition = topic, index
            owner = self.owners.get(partition)
            if owner is not None:
                self._fault(f"{topic}-{index} was assigned to {member} while {owner} owned it")
            if self._last_owners.get(partition) == member:
                self.returned.append((member, partition))
            last = self._last_owners.get(partition), self.next_offsets.get(partition)
            if partition in start_offsets and last != (member, start_offsets[partition]):
                self._fault(
                    f"{member} continues {topic}-{index} at {start_offsets[partition]}, but the last owner and offset were {last}"
                )
            self.owners[partition] = self._last_owners[partition] = member
            start = start_offsets.get(partition, self.committed.get(partition, 0))
            self.next_offsets[partition], self._starts[partition] = start, {start}
        if partitions:
            self.rebalances[member] = self.rebalances.get(member, 0) + 1

    def _release(self, member: str, partitions: list[list[Any]]) -> None:
        for topic, index in partitions:
            if self.owners.get((topic, index)) != member:
                self._fault(f"{topic}-{index} was revoked from {member}, which did not own it")
            else:
                del self.owners[topic, index]
        if partitions:
            self.rebalances[member] = self.rebalances.get(member, 0) + 1

    def _report(self, member: str, records: list[list[Any]]) -> None:
        for topic, index, offset in records:
            if self.owners.get((topic, index)) != member:
                self._fault(f"{member} reported {topic}-{index} offset {offset}, which it did not own")
            elif offset not in self._starts.get((topic, index), {self.next_offsets[topic, index]}):
                expected = self.next_offsets[topic, index]
                self._fault(f"{member} reported {topic}-{index} offset {offset} instead of {expected}")
            self.next_offsets[topic, index] = offset + 1
            self._reported[topic, index] = max(offset + 1, self._reported.get((topic, index), 0))
            self._starts.pop((topic, index), None)

    def _commit(self, member: str, offsets: list[list[Any]]) -> None:
        self.failed_commits.discard(member)
        for topic, index, offset in offsets:
            if self.owners.get((topic, index)) != member:
                self._fault(f"{member} committed {topic}-{index}, which it did not own")
            elif offset > (end := self._reported.get((topic, index), 0)):
                self._fault(
                    f"{member} committed {topic}-{index} offset {offset}, but records were reported only to {end}"
                )
            elif (topic, index) in self._starts:
                self._starts[topic, index] = {self.next_offsets[topic, index], offset}
            self.committed[topic, index] = offset
