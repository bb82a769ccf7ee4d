"""Conversations about transactions or groups, from a seed: steps as plain values, whose `repr` creates the conversation again.

Independent of the players (`transactions`, `groups`) and of the expected responses.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol

from tests.differential.assignments import AssignmentWriter
from tests.differential.classic_groups import ClassicWriter
from tests.differential.group_admin import FIRST, AdminWriter
from tests.differential.odd_transactions import OddWriter
from tests.differential.request_sequences import LOG
from tests.differential.settings import SettingsWriter
from tests.differential.stored import RECORDS

Step = tuple[str, dict[str, Any]]

TRANSACTIONS, GROUPS, CLASSIC_GROUPS, ASSIGNMENTS = "transactions", "groups", "classic-groups", "assignments"
SETTINGS = "settings"
PRODUCERS, PARTITIONS = 2, 2
"""The producers, whose first epoch is 0, and the partitions of their topic."""
MEMBERS = ("A", "B", "C")
CLASSIC = "classic"
"""The name of the classic member in a group of the new protocol."""
STATIC_MEMBERS = ("A", "B")
"""The members that share an instance id in some conversations."""


@dataclass(frozen=True)
class Conversation:
    """A sequence of requests.

    about: `TRANSACTIONS`, `GROUPS`, `CLASSIC_GROUPS`, `ASSIGNMENTS` or `SETTINGS`, which chooses the player. release: "3.9" or "4.2", which chooses
    versions.
    """

    about: str
    release: str
    steps: tuple[Step, ...] = ()

    def __str__(self) -> str:
        lines = "".join(f"        {step!r},\n" for step in self.steps)
        return f"Conversation(\n    {self.about!r},\n    {self.release!r},\n    (\n{lines}    ),\n)"


class TransactionWriter:
    """A generator of one conversation of two transactional producers, a group and readers."""

    def __init__(self, seed: int, release: str) -> None:
        self.chance = Random(seed)
        self.is_newer = release == "4.2"
        self.sequences: dict[tuple[int, int], int] = {}
        self.odd = OddWriter(self.chance, self.is_newer)

    def write(self) -> tuple[Step, ...]:
        return tuple(self._step() for _ in range(self.chance.randint(10, 30)))

    def _step(self) -> Step:
        kinds = [self._produce] * 6 + [self._add] * 4 + [self._end] * 5 + [self._fetch] * 2 + [self._commit_offsets] * 2
        kinds += [self._init, self._add_offsets, self._describe, self._verify, self._list, self._offsets, self._latest]
        kinds += [self._markers] + [self.odd.step] * 6
        return self.chance.choice(kinds)()

    def _producer(self) -> dict[str, Any]:
        """Choose a producer and the ids in its request: usually its own, sometimes others."""
        ids = ["own"] * 12 + ["older epoch", "newer epoch", "wrong id", "other", "two older"]
        return {"producer": self.chance.choice([0, 0, 1]), "ids": self.chance.choice(ids)}

    def _init(self) -> Step:
        ids = self.chance.choice(["none", "none", "own", "own", "older epoch", "newer epoch", "wrong id", "other"])
        version = self.chance.choice([3, 4, 4, 5]) if ids != "none" else self.chance.randrange(6)
        return "init", {"producer": self.chance.choice([0, 0, 1]), "version": version, "ids": ids}

    def _add(self) -> Step:
        partitions = self.chance.choice([[0], [0], [1], [0, 1], [0, PARTITIONS]])
        return "add", {**self._producer(), "version": self.chance.randrange(4), "partitions": partitions}

    def _verify(self) -> Step:
        partitions = self.chance.choice([[0], [1], [0, 1]])
        only = self.chance.random() < 0.7
        return "verify", {
            **self._producer(),
            "version": self.chance.choice([4, 5]),
            "partitions": partitions,
            "only": only,
        }

    def _produce(self) -> Step:
        chance, producer_fields = self.chance, self._producer()
        versions = [3, 7, 9, 10, 11, 11] + [12] * 4 * self.is_newer
        return "produce", {
            **producer_fields,
            "version": chance.choice(versions),
            "partition": chance.choice([0, 0, 1]),
            "sequence": chance.choice(["next"] * 8 + ["zero", "again", "gap"]),
            "transactional": chance.random() < 0.93,
        }

    def _end(self) -> Step:
        versions = [0, 1, 2, 3, 4] + [5] * 6 * self.is_newer
        return "end", {
            **self._producer(),
            "version": self.chance.choice(versions),
            "commit": self.chance.random() < 0.6,
        }

    def _add_offsets(self) -> Step:
        return "add_offsets", {**self._producer(), "version": self.chance.randrange(5)}

    def _commit_offsets(self) -> Step:
        versions = [0, 2, 3, 3, 4] + [5] * 4 * self.is_newer
        return "commit_offsets", {
            **self._producer(),
            "version": self.chance.choice(versions),
            "partition": self.chance.choice([0, 1, PARTITIONS]),
            "offset": self.chance.randrange(100),
            "generation": self.chance.choice([-1, -1, -1, 3]),
        }

    def _fetch(self) -> Step:
        return "fetch", {
            "version": self.chance.choice([4, 5, 11, 12]),
            "partition": self.chance.choice([0, 0, 1]),
            "offset": self.chance.choice([0, 0, 1, 2, 3, 5]),
            "isolation": self.chance.choice([1, 1, 0]),
        }

    def _latest(self) -> Step:
        return "latest", {"partition": self.chance.choice([0, 1]), "isolation": self.chance.choice([0, 1, 1])}

    def _offsets(self) -> Step:
        return "offsets", {"stable": self.chance.random() < 0.6, "all": self.chance.random() < 0.4}

    def _describe(self) -> Step:
        return "describe", {}

    def _list(self) -> Step:
        states = self.chance.choice([[], ["Ongoing"], ["Empty"], ["CompleteCommit", "Unknown"], ["Nothing"]])
        return "list", {"version": self.chance.choice([0, 1]), "states": states, "own_ids": self.chance.random() < 0.4}

    def _markers(self) -> Step:
        return "markers", {
            **self._producer(),
            "partition": self.chance.choice([0, 1, PARTITIONS]),
            "commit": self.chance.random() < 0.3,
            "coordinator_epoch": self.chance.choice([0, 0, -1]),
        }


class GroupWriter:
    """A generator of one conversation of members of the new protocol, with topics by name and by regular expression, and a classic member."""

    def __init__(self, seed: int, release: str) -> None:
        self.chance = Random(seed)
        self.is_newer = release == "4.2"
        self.is_mixed = self.chance.random() < 0.5
        self.is_static = self.chance.random() < 0.3
        members = (*MEMBERS[:2], CLASSIC) if self.is_mixed else MEMBERS
        self.admin = AdminWriter(self.chance, members, (FIRST,), release)

    def write(self) -> tuple[Step, ...]:
        return tuple([self._join()] + [self._step() for _ in range(self.chance.randint(8, 26))])

    def _step(self) -> Step:
        kinds = [self._beat] * 10 + [self._join] * 3 + [self._change] * 2 + [self._leave, self._commit, self._describe]
        kinds += [self.admin.step] * 8
        if self.is_mixed:
            kinds += [self._classic_join] * 4 + [self._classic_sync] * 4 + [self._classic_beat] * 3
            kinds += [self._classic_leave, self._classic_describe, self._classic_refused]
        return self.chance.choice(kinds)()

    def _member(self) -> str:
        return self.chance.choice(MEMBERS[: 2 if self.is_mixed else 3])

    def _subscription(self) -> dict[str, Any]:
        if self.is_mixed:
            return {"names": [0], "regex": None}
        names = self.chance.choice([[0], [0], [0], []])
        if not self.is_newer or self.chance.random() < 0.5:
            return {"names": names or [0], "regex": None}
        regex = self.chance.choice(["first", "first", "matching", "nothing", "invalid", "", "prefix"])
        return {"names": self.chance.choice([None, None, names]), "regex": regex}

    def _join(self) -> Step:
        member = self._member()
        is_static = self.is_static and member in STATIC_MEMBERS and self.chance.random() < 0.7
        instance = self.chance.choice(["i1", "i1", "i1", "i2"]) if is_static else None
        assignor = self.chance.choice([None, None, "uniform", "range", "range"])
        return "join", {"member": member, "instance": instance, "assignor": assignor, **self._subscription()}

    def _beat(self) -> Step:
        epoch = self.chance.choice(["own"] * 12 + ["older", "newer", "zero"])
        owned = self.chance.choice(["none", "assigned", "assigned", "assigned", "assigned", "nothing", "all"])
        return "beat", {"member": self._member(), "epoch": epoch, "owned": owned}

    def _change(self) -> Step:
        return "change", {"member": self._member(), **self._subscription()}

    def _leave(self) -> Step:
        return "leave", {"member": self._member(), "epoch": self.chance.choice([-1, -1, -2])}

    def _commit(self) -> Step:
        epoch = self.chance.choice(["own", "own", "older", "newer", "no member"])
        return "commit", {"member": self._member(), "version": self.chance.choice([8, 9, 9]), "epoch": epoch}

    def _describe(self) -> Step:
        return "describe", {}

    def _classic_join(self) -> Step:
        owned = self.chance.choice(["assigned", "assigned", "nothing"])
        return "classic_join", {"version": self.chance.choice([5, 9]), "owned": owned}

    def _classic_refused(self) -> Step:
        return "classic_refused", {"version": self.chance.choice([3, 5, 9]), "static": self.chance.random() < 0.3}

    def _classic_sync(self) -> Step:
        return "classic_sync", {"generation": self.chance.choice(["own"] * 5 + ["older", "newer"])}

    def _classic_beat(self) -> Step:
        return "classic_beat", {"generation": self.chance.choice(["own"] * 5 + ["older", "newer"])}

    def _classic_leave(self) -> Step:
        return "classic_leave", {"version": self.chance.choice([3, 5])}

    def _classic_describe(self) -> Step:
        return "classic_describe", {}


class Writer(Protocol):
    """A generator of the steps of one conversation."""

    def write(self) -> tuple[Step, ...]: ...


WRITERS: dict[str, Callable[[int, str], Writer]] = {
    TRANSACTIONS: TransactionWriter,
    GROUPS: GroupWriter,
    CLASSIC_GROUPS: ClassicWriter,
    ASSIGNMENTS: AssignmentWriter,
    SETTINGS: SettingsWriter,
}
"""Maps what conversations are about to their generator, which gets the seed and the release."""
PLAYED = {
    LOG: (LOG,),
    TRANSACTIONS: (TRANSACTIONS,),
    GROUPS: (GROUPS, CLASSIC_GROUPS),
    CLASSIC_GROUPS: (CLASSIC_GROUPS,),
    ASSIGNMENTS: (ASSIGNMENTS,),
    SETTINGS: (SETTINGS,),
}
"""Maps what clusters are for to what conversations on them are about."""


STORED = (TRANSACTIONS, GROUPS, CLASSIC_GROUPS)
"""Conversations that end with a comparison of the records that coordinators have written."""


def conversation(about: str, seed: int, release: str) -> Conversation:
    """Return the conversation of a seed. Half of the seeds about groups give groups with classic members only."""
    kinds = PLAYED[about]
    kind = kinds[seed % len(kinds)]
    last = (RECORDS,) if kind in STORED else ()
    return Conversation(kind, release, WRITERS[kind](seed, release).write() + last)
