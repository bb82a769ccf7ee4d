"""Reduced request sequences that once got different responses from the real broker. Each is a test named after the fixed bug."""

from __future__ import annotations

from typing import Any

from tests.differential.conversations import (
    ASSIGNMENTS,
    CLASSIC_GROUPS,
    GROUPS,
    SETTINGS,
    TRANSACTIONS,
    Conversation,
)
from tests.differential.group_admin import FIRST, MISSING, SECOND
from tests.differential.request_sequences import NOBODY, TOPIC, RequestSequence, Step


def _produce(version: int = 9, acks: int = 1, partition: int = 0, **batch: Any) -> Step:
    whole = {"values": [30], "codec": 0, **batch}
    return "produce", {"topic": TOPIC, "partition": partition, "version": version, "acks": acks, "batch": whole}


def _partition(
    partition: int = 0, offset: int = 0, max_bytes: int = 1 << 20, topic: str = TOPIC, last_epoch: int = -1
) -> dict[str, Any]:
    partition_request = {"topic": topic, "partition": partition, "offset": offset, "max": max_bytes}
    return partition_request | {"epoch": -1, "last_epoch": last_epoch}


def _fetch(version: int, *partitions: dict[str, Any], **more: Any) -> Step:
    usual = {"max_bytes": 1 << 20, "min_bytes": 0, "isolation": 0, "session": "none", "forgotten": []}
    return "fetch", {"version": version, "partitions": list(partitions), "replica_id": -1, "rack": "", **usual, **more}


ONCE_DIFFERENT = {
    "a recompressed batch keeps its log append time": RequestSequence(
        configs={"compression.type": "zstd"},
        steps=(_produce(5, values=[5, 5], codec=2, damage="log append time"), _fetch(15, _partition())),
    ),
    "a second batch is rejected before acks is checked": RequestSequence(
        steps=(_produce(5, 2, damage="cut"), _produce(9, 2)),
    ),
    "an invalid batch length rejects the whole request": RequestSequence(
        steps=(_produce(4, 2, damage="magic 3"), _produce(5, partition=2, damage="length tiny")),
    ),
    "transactional batches need a transactional id": RequestSequence(
        steps=(_produce(9, damage="transactional"), _produce(3, 2, damage="transactional")),
    ),
    "an unknown codec is UNKNOWN_SERVER_ERROR": RequestSequence(
        steps=(_produce(4, codec=1, damage="unknown codec"), _produce(9, codec=1, damage="unknown codec")),
    ),
    "unknown topic ids are reported before other errors": RequestSequence(
        steps=(_fetch(14, _partition(0), _partition(2), session="next"), _fetch(17, _partition(topic=NOBODY), session="next")),
    ),
    "errors found without a log list no aborted transactions": RequestSequence(
        steps=(_fetch(4, _partition(2), isolation=1), _fetch(13, _partition(topic=NOBODY)), _fetch(12, _partition(topic=NOBODY))),
    ),
    "a zstd topic lists no aborted transactions for old versions": RequestSequence(
        configs={"compression.type": "zstd"}, steps=(_fetch(6, _partition()), _fetch(5, _partition(), isolation=1)),
    ),
    "diverging epochs list no aborted transactions": RequestSequence(
        steps=(_produce(), _fetch(17, _partition(offset=1, last_epoch=0), _partition(offset=8, last_epoch=0), isolation=1)),
    ),
    "a first batch beyond the limit lists no aborted transactions": RequestSequence(
        steps=(_produce(), _produce(partition=1), _fetch(5, _partition(1), _partition(0, max_bytes=1), isolation=1)),
    ),
    "followers get no list of aborted transactions": RequestSequence(
        3, steps=(_fetch(10, _partition(), isolation=1, replica_id=2),),
    ),
    "a converted lz4 batch is no larger than Kafka's": RequestSequence(
        steps=(
            _produce(3, partition=1, values=[30, 150], codec=2),
            _produce(3, partition=1, codec=3),
            _fetch(3, _partition(1)),
        ),
    ),
    "a fetch in a follower's name has no effect after the follower's next fetch": RequestSequence(
        3,
        steps=(
            _produce(acks=-1),
            _fetch(10, _partition(), replica_id=2),
            ("delete", {"version": 0, "partition": 0, "offset": 0}),
            ("list_offsets", {"version": 7, "topic": TOPIC, "partition": 0, "timestamp": -3, "epoch": -1, "isolation": 0, "replica_id": -1}),
        ),
    ),
    "a leader is not a follower of its own partition": RequestSequence(
        3,
        {"max.message.bytes": "300"},
        (
            ("stop", {"who": "leader"}),
            _fetch(10, {**_partition(1, 1, 100), "epoch": 0}, _partition(0, 1, 200, last_epoch=1), min_bytes=1, replica_id=1, rack="r1"),
        ),
    ),
    "messages about batches without a known magic or size are Kafka's": RequestSequence(
        steps=(_produce(damage="magic 3"), _produce(damage="length tiny"), _produce(damage="transactional")),
    ),
    "messages about records without a key are Kafka's": RequestSequence(
        configs={"cleanup.policy": "compact"}, steps=(_produce(values=[30] * 4, keys=False),),
    ),
    "messages about old timestamps are Kafka's": RequestSequence(
        configs={"message.timestamp.before.max.ms": "3600000"}, steps=(_produce(values=[5, 30]), _produce(codec=1)),
    ),
    **{
        f"messages about LogAppendTime are Kafka's for codec {codec} and compression.type={compression_type}": RequestSequence(
            configs={"message.timestamp.type": "LogAppendTime", "compression.type": compression_type},
            steps=tuple(_produce(codec=codec, damage="log append time", keys=keys) for keys in (True, False)),
        )
        for codec, compression_type in ((0, "producer"), (1, "producer"), (2, "lz4"), (0, "gzip"))
    },
}  # fmt: skip


def _send(ids: str, version: int = 10, *, producer: int = 0, transactional: bool = True) -> Step:
    fields = {"producer": producer, "ids": ids, "version": version, "partition": 0, "sequence": "next"}
    return "produce", {**fields, "transactional": transactional}


def _add(producer: int = 0) -> Step:
    return "add", {"producer": producer, "ids": "own", "version": 0, "partitions": [0]}


def _join(member: str, names: list[int] | None = None, regex: str | None = None, instance: str | None = None) -> Step:
    return "join", {"member": member, "instance": instance, "names": names, "regex": regex}


def _enter(member: str, assignor: str | None = None) -> Step:
    return "enter", {"member": member, "missing": False, "assignor": assignor}


def _leave(member: str) -> Step:
    return "leave", {"member": member, "epoch": -1}


_FORMER_INSTANCE = (
    _join("A", [0], instance="i1"),
    _join("A", [0], instance="i2"),
    _leave("A"),
    _join("B", [0], instance="i1"),
)
_TWO_ASSIGNORS = (
    ("join", {"member": "C", "instance": None, "assignor": "uniform", "names": [0], "regex": None}),
    ("join", {"member": "B", "instance": None, "assignor": "range", "names": [0], "regex": None}),
    ("describe", {}),
)
_REMAINING_PARTITION = (
    ("topic", {"partitions": 3}),
    _enter("B"),
    _enter("Q"),
)
_ASSIGNOR_OF_ONE = (
    _enter("f", assignor="range"),
    _enter("H", assignor="uniform"),
    ("change", {"member": "f", "missing": True}),
)
_GROWN_TABLE = (
    ("topic", {"partitions": 16}),
    *map(_enter, ("V", "AL3KCuWudJH1CRxFfDnzqT", "z", "b", "R")),
    ("leave", {"member": "AL3KCuWudJH1CRxFfDnzqT"}),
)
_REFUSED_IN_EMPTY_GROUP = (
    _join("A", [0]),
    _leave("A"),
    ("classic_refused", {"version": 5, "static": False}),
    ("classic_describe", {}),
)
_TWO_PRODUCERS = (
    (
        "odd_produce",
        {
            "version": 9,
            "name": "own",
            "acks": 1,
            "batches": [
                {
                    "partition": producer,
                    "producer": producer,
                    "numbers": "own",
                    "epoch": None,
                    "sequence": 0,
                    "transactional": True,
                }
                for producer in (0, 1)
            ],
        },
    ),
)
_STALE_EPOCH = (_send("newer epoch", 11, transactional=False), _send("own"), _send("own", 11), _add(), _send("own"))
_FENCED_PRODUCER = (_add(1), ("init", {"producer": 1, "version": 0, "ids": "none"}), _send("other", 9))
_NEWER_EPOCH = (
    _add(),
    _send("own"),
    _send("newer epoch"),
    ("end", {"producer": 0, "ids": "own", "version": 1, "commit": True}),
)
_FENCED_MARKER = (
    ("verify", {"producer": 0, "ids": "own", "version": 5, "partitions": [0, 1], "only": False}),
    _send("own"),
    *_NEWER_EPOCH[2:],
    ("describe", {}),
)


def _enter(
    member: int = 0, version: int = 9, instance: str | None = None, topic: str = FIRST, protocols: str = "a"
) -> Step:
    fields = {"member": member, "version": version, "id": "own", "instance": instance, "kind": "consumer"}
    return "join", {**fields, "protocols": list(protocols), "topics": [topic], "session_ms": 45_000}


def _sync(member: int = 0) -> Step:
    fields = {"member": member, "version": 4, "id": "own", "generation": "own", "instance": True}
    return "sync", {**fields, "kind": "own", "protocol": "own"}


def _delete_offsets(**partitions: list[int]) -> Step:
    names = {"first": FIRST, "second": SECOND, "missing": MISSING}
    return "admin_delete_offsets", {"partitions": {names[name]: indexes for name, indexes in partitions.items()}}


_SHOWN: Step = ("admin_describe", {"version": 5, "operations": False, "times": 1})
_STATIC_WITH_PENDING_ID = (_enter(), _enter(instance="i0"))
_NOTHING_TO_DELETE = (_enter(), _delete_offsets(missing=[0]), _SHOWN, _enter())
_SUBSCRIBED_TOPIC = (_enter(version=1, topic=SECOND), _delete_offsets(first=[0], second=[1]))
_PENDING_ID_LEAVES = (
    *(_enter(), _enter(), _sync(), _enter(1)),
    ("admin_leave", {"version": 3, "members": [1], "by": "id"}),
    ("beat", {"member": 0, "version": 3, "id": "own", "generation": "own", "instance": True}),
    _SHOWN,
)
_EQUAL_VOTES = (
    *(_enter(0, 3, protocols="ba"), _enter(1, 3, protocols="ab")),
    _enter(0, 3, protocols="ba"),
)
_REBALANCE = (_enter(), _enter(), _sync(), _enter(1), _enter(1), _SHOWN, _enter(), _SHOWN)

_QUOTA = {"user": "user", "client-id": "client"}
_QUOTA_OF_TWO = (
    (
        "alter_quotas",
        {"version": 1, "entity": _QUOTA, "changes": [("producer_byte_rate", 1.0, False)], "validate_only": False},
    ),
    (
        "describe_quotas",
        {"version": 1, "components": [("user", 0, "user"), ("client-id", 0, "client")], "strict": True},
    ),
)
_INVALID_QUOTAS = (
    (
        "alter_quotas",
        {
            "version": 1,
            "entity": _QUOTA,
            "changes": [("request_percentage", 0.0, False), ("connection_creation_rate", 7.0, False)],
            "validate_only": True,
        },
    ),
)
_UNKNOWN_SETTING = (
    (
        "alter",
        {"version": 1, "resource": (4, "1"), "changes": [("nothing", 0, "1")], "validate_only": False},
    ),
    ("describe", {"version": 4, "resource": (4, "1"), "keys": ["nothing"], "synonyms": True}),
)
CONVERSATIONS_ONCE_DIFFERENT: dict[str, Conversation | RequestSequence] = {
    "a follower gets no endpoint of a new leader in 4.2": RequestSequence(
        steps=(_fetch(16, _partition(), replica_id=1), _fetch(18, _partition())), release="4.2"
    ),
    "a transaction with a fenced marker keeps the partitions without marker": Conversation(
        TRANSACTIONS, "3.9", _FENCED_MARKER
    ),
    "a newer epoch in an open transaction is not verified in 3.9": Conversation(TRANSACTIONS, "3.9", _NEWER_EPOCH),
    "a newer epoch in an open transaction is verified in 4.2": Conversation(TRANSACTIONS, "4.2", _NEWER_EPOCH),
    "a stale epoch is checked after the verification in 3.9": Conversation(TRANSACTIONS, "3.9", _STALE_EPOCH),
    "a stale epoch is checked before the verification in 4.2": Conversation(TRANSACTIONS, "4.2", _STALE_EPOCH),
    "ids of a fenced producer do not match another id in 3.9": Conversation(TRANSACTIONS, "3.9", _FENCED_PRODUCER),
    "ids of a fenced producer are stale in 4.2": Conversation(TRANSACTIONS, "4.2", _FENCED_PRODUCER),
    "a removed member keeps a former instance id in 3.9": Conversation(GROUPS, "3.9", _FORMER_INSTANCE),
    "a removed member keeps a former instance id in 4.2": Conversation(GROUPS, "4.2", _FORMER_INSTANCE),
    "the first member of the hash table has one partition more in 3.9": Conversation(
        ASSIGNMENTS, "3.9", _REMAINING_PARTITION
    ),
    "the owner keeps one partition more in 4.2": Conversation(ASSIGNMENTS, "4.2", _REMAINING_PARTITION),
    "an assignor that only the requesting member names wins in 3.9": Conversation(ASSIGNMENTS, "3.9", _ASSIGNOR_OF_ONE),
    "an assignor that only the requesting member names wins in 4.2": Conversation(ASSIGNMENTS, "4.2", _ASSIGNOR_OF_ONE),
    "the hash table of members keeps its size in 4.2": Conversation(ASSIGNMENTS, "4.2", _GROWN_TABLE),
    "the first member that names an assignor decides in 3.9": Conversation(GROUPS, "3.9", _TWO_ASSIGNORS),
    "the first member that names an assignor decides in 4.2": Conversation(GROUPS, "4.2", _TWO_ASSIGNORS),
    "a new regular expression that starts no epoch counts as equal": Conversation(
        GROUPS,
        "4.2",
        (
            _join("C", None, "first"),
            _join("B", None, "prefix"),
            ("beat", {"member": "C", "epoch": "own", "owned": "nothing"}),
        ),
    ),
    "a rejected JoinGroup replaces an empty group in 3.9": Conversation(GROUPS, "3.9", _REFUSED_IN_EMPTY_GROUP),
    "a rejected JoinGroup replaces an empty group in 4.2": Conversation(GROUPS, "4.2", _REFUSED_IN_EMPTY_GROUP),
    "an id of a dynamic member with an instance id is not repeated in 3.9": Conversation(
        CLASSIC_GROUPS, "3.9", _STATIC_WITH_PENDING_ID
    ),
    "an id of a dynamic member with an instance id is not repeated in 4.2": Conversation(
        CLASSIC_GROUPS, "4.2", _STATIC_WITH_PENDING_ID
    ),
    "OffsetDelete of unknown partitions keeps the group": Conversation(CLASSIC_GROUPS, "3.9", _NOTHING_TO_DELETE),
    "OffsetDelete lists the topics that members read first in 3.9": Conversation(
        CLASSIC_GROUPS, "3.9", _SUBSCRIBED_TOPIC
    ),
    "an id without a member leaves and the group rebalances in 4.2": Conversation(
        CLASSIC_GROUPS, "4.2", _PENDING_ID_LEAVES
    ),
    "an id without a member leaves in 3.9": Conversation(CLASSIC_GROUPS, "3.9", _PENDING_ID_LEAVES),
    "of protocols with equal votes a hash table decides in 3.9": Conversation(CLASSIC_GROUPS, "3.9", _EQUAL_VOTES),
    "of protocols with equal votes a hash table decides in 4.2": Conversation(CLASSIC_GROUPS, "4.2", _EQUAL_VOTES),
    "a group that rebalances has its former assignments in 4.2": Conversation(CLASSIC_GROUPS, "4.2", _REBALANCE),
    "a group that rebalances is described in 3.9": Conversation(CLASSIC_GROUPS, "3.9", _REBALANCE),
    "a dynamic member becomes static": Conversation(GROUPS, "4.2", (_join("C", [0]), _join("C", [0], instance="i1"))),
    "a member that becomes static while it must revoke loses its partitions": Conversation(
        GROUPS,
        "4.2",
        (
            _join("B", [0]),
            _join("C", [0]),
            _join("B", [0], instance="i1"),
            ("describe", {}),
            ("beat", {"member": "B", "epoch": "own", "owned": "assigned"}),
        ),
    ),
    "a member that becomes static changes its subscription": Conversation(
        GROUPS, "4.2", (_join("B", [0]), _join("B", [], "", instance="i1"))
    ),
    "a regular expression beside a name makes subscriptions different": Conversation(
        GROUPS, "4.2", (_join("A", None, "matching"), _join("C", [0], "prefix"))
    ),
    "a regular expression is resolved at once if none is resolved": Conversation(
        GROUPS,
        "4.2",
        (
            _join("B", None, "first"),
            ("change", {"member": "B", "names": None, "regex": "matching"}),
            ("beat", {"member": "B", "epoch": "own", "owned": "nothing"}),
            ("beat", {"member": "B", "epoch": "own", "owned": "assigned"}),
        ),
    ),
    **{
        f"components of a quota entity come in the order of a hash table in {release}": Conversation(
            SETTINGS, release, _QUOTA_OF_TWO
        )
        for release in ("3.9", "4.2")
    },
    **{
        f"the message about invalid quotas names the first key of a hash table in {release}": Conversation(
            SETTINGS, release, _INVALID_QUOTAS
        )
        for release in ("3.9", "4.2")
    },
    **{
        f"batches of two producers are rejected with a message in {release}": Conversation(
            TRANSACTIONS, release, _TWO_PRODUCERS
        )
        for release in ("3.9", "4.2")
    },
    "version 0 marks no setting as default in 3.9": Conversation(
        SETTINGS,
        "3.9",
        (("describe", {"version": 0, "resource": (2, "topic"), "keys": ["retention.ms"], "synonyms": False}),),
    ),
    "an unknown setting of a broker has no documentation in 4.2": Conversation(SETTINGS, "4.2", _UNKNOWN_SETTING),
}
"""Conversations, and request sequences of release 4.2, as `ONCE_DIFFERENT`."""
