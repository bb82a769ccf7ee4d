"""Request sequences from a seed: the settings of a topic and the steps, as plain values.

The `repr` of a sequence is Python code that creates it again. Independent of the player (`playing`) and of the expected responses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.conformance.served import settings_in, unsupported_settings
from kafkaproto.releases import versions

LOG = "log"
RELEASE = "3.9"
TOPIC, NOBODY = "topic", "nobody"
"""The topic of the request sequence, and a topic that does not exist."""
PARTITIONS = 2
REMEMBERED_BATCHES = 5

Step = tuple[str, dict[str, Any]]

LOWEST = {ApiKey.PRODUCE: 3, ApiKey.METADATA: 1}
"""The lowest versions in request sequences, where brokers serve lower ones: those are of another format."""
NOT_PLAYED = {
    "null records": "the real broker never responds",
    "the largest timestamp after a deletion": "the real broker finds it below the log start until the segment's file is deleted",
    "ListOffsets v0 for a time": "the real broker uses the modification times of its files",
    "records that do not match their codec": "this broker checks only the header and checksum (P-9); the real one returns error 87",
}
"""Requests that no sequence contains, with the reason."""
DAMAGES = [
    "checksum", "magic 0", "magic 1", "magic 3", "length short", "length long", "length tiny", "last delta", "count 0",
    "count many", "base offset", "two batches", "tail", "cut", "nothing", "control", "transactional",
    "log append time", "no sequence", "old time", "unknown codec",
]  # fmt: skip


@dataclass(frozen=True)
class RequestSequence:
    """A sequence of requests.

    replication: replicas of its topic, whose preferred leader is broker 0. configs: settings of the topic. release: "3.9" or "4.2", which chooses
    versions and settings.
    """

    replication: int = 1
    configs: dict[str, str] = field(default_factory=dict)
    steps: tuple[Step, ...] = ()
    release: str = RELEASE

    about = LOG

    def __str__(self) -> str:
        lines = "".join(f"        {step!r},\n" for step in self.steps)
        release = f"    {self.release!r},\n"
        return f"RequestSequence(\n    {self.replication},\n    {self.configs!r},\n    (\n{lines}    ),\n{release})"

    @property
    def recompresses(self) -> bool:
        """Return whether the broker recompresses batches, so that sizes depend on its compression library."""
        return self.configs.get("compression.type", "producer") not in ("producer", "uncompressed")


CONFIGS: list[dict[str, str]] = [
    {},
    {},
    {},
    {"max.message.bytes": "300"},
    {"cleanup.policy": "compact"},
    {"message.timestamp.type": "LogAppendTime"},
    {"message.timestamp.before.max.ms": "3600000"},
    {"message.timestamp.after.max.ms": "1000"},
    {"compression.type": "gzip"},
    {"compression.type": "zstd"},
    {"compression.type": "uncompressed"},
    {"segment.bytes": "400"},
    {"message.downconversion.enable": "false"},
    {"min.insync.replicas": "2"},
]


class Writer:
    """A generator of one request sequence, which tracks roughly what the log contains so that most steps have an effect."""

    def __init__(self, seed: int, release: str) -> None:
        self.chance = Random(seed)
        self.release = release
        self.ends = [0] * PARTITIONS
        self.epoch = 0
        self.deleted = False
        self.sequences: dict[tuple[int, int], list[tuple[int, int, int]]] = {}
        """(partition, producer) to its batches: (epoch, base sequence, count)."""
        replication = self.chance.choice([1, 1, 1, 3])
        self.request_sequence = RequestSequence(replication, supported(self.chance.choice(CONFIGS), release))

    def write(self, steps: int, nodes: bool) -> RequestSequence:
        """Return a sequence of `steps` steps; with `nodes`, a broker stops and restarts at the end."""
        written = [self._step() for _ in range(steps)]
        if nodes:
            role = self.chance.choice(["leader", "follower"])
            written += [("stop", {"who": role}), *(self._step() for _ in range(5))]
            written += [("start", {}), *(self._step() for _ in range(5))]
        replication = 3 if nodes else self.request_sequence.replication
        return RequestSequence(replication, self.request_sequence.configs, tuple(written), self.release)

    def _version(self, key: ApiKey) -> int:
        low, high = versions(self.release)[key]
        return self.chance.choice(range(max(low, LOWEST.get(key, 0)), high + 1))

    def _step(self) -> Step:
        kinds = (
            [self._produce] * 8
            + [self._fetch] * 7
            + [self._list_offsets] * 3
            + [self._epochs, self._delete, self._metadata]
        )
        return self.chance.choice(kinds)()

    def _partition(self) -> int:
        return (
            self.chance.choice([0, 0, 0, 1, 1, PARTITIONS])
            if self.chance.random() < 0.2
            else self.chance.choice([0, 0, 1])
        )

    def _topic(self) -> str:
        return NOBODY if self.chance.random() < 0.03 else TOPIC

    def _offset(self, partition: int) -> int:
        end = self.ends[partition] if partition < PARTITIONS else 0
        return self.chance.choice([0, end, end + 1, -1, *[self.chance.randint(0, max(end, 1)) for _ in range(4)]])

    def _leader_epoch(self) -> int:
        return self.chance.choice([-1, -1, -1, -1, self.epoch, self.epoch, self.epoch - 1, self.epoch + 1])

    # ---- produce ---------------------------------------------------------------------------------------------------------------

    def _produce(self) -> Step:
        chance, partition = self.chance, self._partition()
        batch: dict[str, Any] = {
            "values": [chance.choice([0, 5, 30, 30, 150]) for _ in range(chance.choice([1, 1, 2, 5]))],
            "codec": chance.choice([0, 0, 0, 1, 2, 3, 4]),
        }
        if chance.random() < 0.3:
            batch["keys"] = False
        damage = chance.choice(DAMAGES) if chance.random() < 0.3 else None
        if damage:
            batch["damage"] = damage
        if chance.random() < 0.4:
            batch |= self._sequence(partition, len(batch["values"]), bool(damage))
        elif not damage and partition < PARTITIONS:
            self.ends[partition] += len(batch["values"])
        acks = chance.choice([1, 1, 1, -1, -1, 0, 2])
        version = self._version(ApiKey.PRODUCE)
        return "produce", {
            "topic": self._topic(),
            "partition": partition,
            "version": version,
            "acks": acks,
            "batch": batch,
        }

    def _sequence(self, partition: int, count: int, damaged: bool) -> dict[str, Any]:
        """Return producer fields: usually the next sequence, sometimes a duplicate, a gap or another epoch."""
        chance, producer = self.chance, self.chance.randrange(2)
        earlier_batches = self.sequences.setdefault((partition, producer), [])
        epoch, base, before = earlier_batches[-1] if earlier_batches else (0, 0, 0)
        following = (epoch, base + before, count)
        kind = chance.choice(["next", "next", "next", "again", "gap", "new epoch", "old epoch", "start late", "wrap"])
        if kind == "again" and earlier_batches:
            epoch, base, count = chance.choice(earlier_batches[-REMEMBERED_BATCHES - 2 :])
            return {"producer": producer, "epoch": epoch, "sequence": base, "values": [30] * count}
        if kind == "gap":
            following = (epoch, following[1] + chance.choice([1, -1, 7]), count)
        elif kind == "new epoch":
            following = (epoch + 1, chance.choice([0, 0, 3]), count)
        elif kind == "old epoch":
            following = (max(0, epoch - 1), following[1], count)
        elif kind == "wrap" and not earlier_batches:
            following = (0, 2**31 - 2, count)
        following = following[0], following[1] % 2**31 if following[1] >= 0 else following[1], count
        if kind in ("next", "new epoch", "wrap") and not damaged and partition < PARTITIONS:
            earlier_batches.append(following)
            self.ends[partition] += count
        return {"producer": producer, "epoch": following[0], "sequence": following[1]}

    # ---- everything else -------------------------------------------------------------------------------------------------------

    def _fetch(self) -> Step:
        chance = self.chance
        sizes = [1 << 20] if self.request_sequence.recompresses else [0, 1, 70, 100, 200, 500, 1 << 20, 1 << 20]
        listed = []
        for _ in range(chance.choice([0, 1, 1, 1, 2, 3])):
            partition = self._partition()
            listed.append(
                {
                    "topic": self._topic(),
                    "partition": partition,
                    "offset": self._offset(partition),
                    "max": chance.choice(sizes),
                    "epoch": self._leader_epoch(),
                    "last_epoch": chance.choice([-1, -1, -1, 0, 1, self.epoch]),
                }
            )
        session = chance.choice(["none"] * 4 + ["new"] * 2 + ["next"] * 4 + ["wrong epoch", "wrong id", "close"])
        forgotten = [chance.randrange(PARTITIONS)] if session == "next" and chance.random() < 0.3 else []
        return "fetch", {
            "version": self._version(ApiKey.FETCH),
            "partitions": listed,
            "max_bytes": chance.choice(sizes),
            "min_bytes": chance.choice([0, 1, 1, 300]),
            "isolation": chance.choice([0, 0, 1]),
            "session": session,
            "forgotten": forgotten,
            "replica_id": chance.choice([-1] * 8 + [-2, 1, 2]),
            "rack": chance.choice(["", "", "r1"]),
        }

    def _list_offsets(self) -> Step:
        chance = self.chance
        version = self._version(ApiKey.LIST_OFFSETS)
        latest = [] if self.deleted else [-3]
        times = [*latest, -1, -1, -2, -2, -4, -5, -6] + [0, 1000, 3000, 2**40] * (version > 0)
        return "list_offsets", {
            "version": version,
            "topic": self._topic(),
            "partition": self._partition(),
            "timestamp": chance.choice(times),
            "epoch": self._leader_epoch(),
            "isolation": chance.choice([0, 1]),
            "replica_id": chance.choice([-1, -1, -1, -2, 1]),
        }

    def _epochs(self) -> Step:
        return "epochs", {
            "version": self._version(ApiKey.OFFSET_FOR_LEADER_EPOCH),
            "topic": self._topic(),
            "partition": self._partition(),
            "epoch": self._leader_epoch(),
            "epoch_requested": self.chance.choice([-1, 0, 0, 1, 5, self.epoch]),
        }

    def _delete(self) -> Step:
        partition = self._partition()
        offset = self._offset(partition)
        self.deleted = True
        return "delete", {"version": self._version(ApiKey.DELETE_RECORDS), "partition": partition, "offset": offset}

    def _metadata(self) -> Step:
        return "metadata", {"version": self._version(ApiKey.METADATA), "topic": self._topic()}


def supported(configs: dict[str, str], release: str) -> dict[str, str]:
    """Return those topic settings that a release supports, with the names that it knows."""
    return {n: v for n, v in settings_in(release, configs).items() if not unsupported_settings(release, {n: v})}


def request_sequence(seed: int, nodes: bool = False, release: str = RELEASE) -> RequestSequence:
    """Return the request sequence of a seed."""
    writer = Writer(seed, release)
    return writer.write(writer.chance.randint(8, 24), nodes)
