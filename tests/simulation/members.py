"""The members of all groups of a simulation: processes that start, pause, crash, leave and are replaced."""

from __future__ import annotations

from tests.simulation.classic_member import ClassicMember
from tests.simulation.consumer_member import ConsumerMember
from tests.simulation.group_truth import GroupTruth
from tests.simulation.member import Member
from tests.simulation.world import World

KINDS: dict[str, list[type[Member]]] = {
    "classic": [ClassicMember],
    "consumer": [ConsumerMember],
    "both": [ClassicMember, ConsumerMember],
}
"""The kinds of members in the groups, by protocol. Members of both protocols in one group convert it, as the migration policy allows."""
GROUPS = {"classic-group": "classic", "consumer-group": "consumer", "both-group": "both"}
"""The groups of a world by name, with their protocols."""
GROUPS_OF_THE_OLD_COORDINATOR = dict.fromkeys(("classic-a", "classic-b", "classic-c"), "classic")
"""The groups of a world with Kafka's group coordinator in Scala."""
TOPICS = "clean", "compact", "short", "unclean"
"""Topics that no fault deletes, because the offsets of a deleted topic are deleted."""
MOST_MEMBERS = 4
PATIENCE_MS = 300_000
ROUND_MS = 300


class Slot:
    """A place for a process that is started again after it ended. instance_id: that of its processes, or None."""

    def __init__(self, group: GroupTruth, number: int, instance_id: str | None, client_id: str | None) -> None:
        self.group = group
        self.number = number
        self.instance_id = instance_id
        self.client_id = client_id
        self.started = 0
        self.members: list[Member] = []
        """Usually one; a static member's old process may be paused while a new one replaces it."""


class Members:
    """All groups and their members. Each call of `act` lets the members of one group do something."""

    def __init__(self, world: World) -> None:
        self.world = world
        chance = world.chance
        self.groups: list[GroupTruth] = []
        self.slots: dict[str, list[Slot]] = {}
        for name, protocol in (GROUPS_OF_THE_OLD_COORDINATOR if world.has_old_coordinator else GROUPS).items():
            group = GroupTruth(name, protocol, sorted(chance.sample(TOPICS, chance.randint(1, 3))))
            self.groups.append(group)
            prefix = name.removesuffix("-group")
            instance_ids = [f"{prefix}-{i}" if chance.random() < 0.35 else None for i in range(MOST_MEMBERS)]
            client_ids = [chance.choice(world.client_ids) for _ in instance_ids]
            self.slots[group.name] = [
                Slot(group, i, instance_ids[i], client_ids[i]) for i in range(chance.randint(1, MOST_MEMBERS))
            ]
        self.preferred: type[Member] = chance.choice(KINDS["both"])
        """The kind of most new processes in a group of both protocols."""
        self.calm = False
        """Whether all new processes in such a group are of this kind, because the policy may keep members of the other kind out."""
        world.groups += self.groups

    def act(self) -> None:
        """Let the members of one group act in random order, and let some members join and leave."""
        chance = self.world.chance
        slots = list(self.slots[chance.choice(self.groups).name])
        chance.shuffle(slots)
        for slot in slots:
            self._come_and_go(slot)
            for member in list(slot.members):
                if chance.random() < 0.8:
                    member.act()

    def _come_and_go(self, slot: Slot) -> None:
        chance = self.world.chance
        self._bury(slot)
        if not slot.members:
            if chance.random() < 0.4:
                self._start(slot)
            return
        member, draw = slot.members[-1], chance.random()
        if draw < 0.01:
            member.crash()
        elif draw < 0.025 and not member.is_busy and not member.is_gone:
            member.leave()
        elif draw < 0.05 and slot.instance_id is not None and len(slot.members) == 1:
            member.pause()
            self._start(slot)  # in place of a process that is not dead

    def _start(self, slot: Slot) -> None:
        slot.started += 1
        name = f"{slot.group.name.removesuffix('-group')}-{slot.number}.{slot.started}"
        kind = self._kind(slot.group)
        member = kind(self.world, name, slot.group, slot.client_id, slot.instance_id)
        slot.members.append(member)
        slot.group.members.append(member)

    def _kind(self, group: GroupTruth) -> type[Member]:
        """Return the kind of the next process. In a group of both protocols, most follow the last one, so that the group is often converted."""
        kinds, chance = KINDS[group.protocol], self.world.chance
        if len(kinds) == 1:
            return kinds[0]
        if not self.calm and chance.random() < 0.1:
            self.preferred = chance.choice(kinds)
        return self.preferred if self.calm or chance.random() < 0.8 else chance.choice(kinds)

    def _bury(self, slot: Slot) -> None:
        for member in [member for member in slot.members if member.is_gone]:
            slot.members.remove(member)
            slot.group.members.remove(member)

    # ---- at the end ----------------------------------------------------------------------------------------------------------

    def come_to_rest(self) -> None:
        """Let all members act without faults until each group has assigned all partitions, and check all committed offsets."""
        deadline_ms = self.world.now_ms + PATIENCE_MS
        self.calm = True
        for slots in self.slots.values():
            for slot in slots:
                for member in slot.members:
                    is_other = slot.group.protocol == "both" and not isinstance(member, self.preferred)
                    if is_other or member is not slot.members[-1]:
                        member.crash()
                self._bury(slot)
                if not slot.members:
                    self._start(slot)
                slot.members[0].rest()
        while not all(self._is_at_rest(group) for group in self.groups):
            assert self.world.now_ms < deadline_ms, f"not at rest: {[self._shown(group) for group in self.groups]}"
            for slots in self.slots.values():
                for slot in slots:
                    self._bury(slot)
                    if not slot.members:
                        self._start(slot)
                    slot.members[0].rest()
                    slot.members[0].act()
            self.world.advance(ROUND_MS)

    def _is_at_rest(self, group: GroupTruth) -> bool:
        """Return whether all members have their partitions, and have fetched the committed offset of each."""
        members = [member for slot in self.slots[group.name] for member in slot.members]
        if not all(member.is_member and not member.is_busy for member in members):
            return False
        subscribed = {name for member in members for name in getattr(member, "names", group.topics)}
        topics = self.world.image.topics
        expected = {(topics[name].topic_id, state.index) for name in subscribed for state in topics[name].partitions}
        return {place for member in members for place in member.positions} == expected

    def _shown(self, group: GroupTruth) -> str:
        members = [member for slot in self.slots[group.name] for member in slot.members]
        return "; ".join(f"{m.name} epoch {m.epoch}, owns {len(m.owned)}, knows {len(m.positions)}" for m in members)
