"""Conversations about the target assignments of groups of the new protocol: many members with ids like those of clients join and leave.

There is one topic, because assignors order topics by their random ids. Some members also subscribe to a topic that does not exist, so that the
subscriptions of the group differ.
"""

from __future__ import annotations

import string
from random import Random
from typing import Any

from kafkaproto.conformance.consumer_groups import LEAVE_EPOCH, TIMEOUT_MS, ConsumerGroup
from kafkaproto.conformance.subject import Subject
from tests.differential.shown import Shown

Step = tuple[str, dict[str, Any]]

ID_CHARACTERS = string.ascii_letters + string.digits + "-_"
MOST_MEMBERS, MOST_PARTITIONS = 14, 16
"""With more partitions, which of them a member loses may depend on the order in which it got them (GN-45)."""


class AssignmentWriter:
    """A generator of one conversation. The releases have the same steps."""

    def __init__(self, seed: int, release: str) -> None:
        self.chance = Random(seed)
        self.present: list[str] = []

    def write(self) -> tuple[Step, ...]:
        topic = "topic", {"partitions": self.chance.randint(1, MOST_PARTITIONS)}
        return topic, *(self._step() for _ in range(self.chance.randint(6, 24)))

    def _step(self) -> Step:
        kind = self.chance.random()
        assignor = self.chance.choice([None, None, None, "uniform", "range"])
        if kind < 0.25 and len(self.present) > 1:
            self.present.remove(member := self.chance.choice(self.present))
            return "leave", {"member": member}
        if kind < 0.4 and self.present:
            return "change", {"member": self.chance.choice(self.present), "missing": self.chance.random() < 0.5}
        member = "".join(self.chance.choices(ID_CHARACTERS, k=self.chance.choice([1, 2, 22, 22])))
        if member in self.present or len(self.present) == MOST_MEMBERS:
            return "change", {"member": self.present[0], "missing": True}
        self.present.append(member)
        return "enter", {"member": member, "missing": self.chance.random() < 0.2, "assignor": assignor}


class AssignmentPlayer:
    """A conversation on one subject, with a group and a topic of its own. The response to each step is the error and all target assignments."""

    def __init__(self, subject: Subject) -> None:
        self.group = ConsumerGroup(subject)
        self.topic = self.group.topic.name
        self.epochs: dict[str, int] = {}
        self.shown = Shown()
        self.shown.add(self.group.id, "group")

    def answered(self, step: Step) -> Any:
        kind, arguments = step
        return getattr(self, f"_{kind}")(**arguments)

    def _topic(self, partitions: int) -> None:
        self.topic = self.group.add_topic(partitions).name
        self.shown.add(self.topic, "topic")

    def _error(self, response: Any) -> Any:
        return response.error_code, self.shown.plain(response.error_message)

    def _names(self, missing: bool) -> list[str]:
        return [self.topic, f"no-{self.topic}"] if missing else [self.topic]

    def _seen(self, member: str, response: Any) -> Any:
        if not response.error_code:
            self.epochs[member] = response.member_epoch
        targets = {member: [*target.values()] for member, target in self.group.targets().items()}
        return *self._error(response), self.group.epochs[1:], targets

    def _enter(self, member: str, missing: bool, assignor: str | None) -> Any:
        names = self._names(missing)
        return self._seen(member, self.group.heartbeat(member, 0, [], names, TIMEOUT_MS, server_assignor=assignor))

    def _change(self, member: str, missing: bool) -> Any:
        epoch = self.epochs.get(member, 1)
        return self._seen(member, self.group.heartbeat(member, epoch, [], self._names(missing)))

    def _leave(self, member: str) -> Any:
        """Let a member leave, and another one send a heartbeat, with which the coordinator computes the new target assignments."""
        error = self._error(self.group.heartbeat(member, LEAVE_EPOCH))
        self.epochs.pop(member, None)
        other = next(iter(self.epochs), None)
        if other is None:
            return error
        return error, self._seen(other, self.group.heartbeat(other, self.epochs[other], []))
