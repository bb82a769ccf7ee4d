"""The records of the metadata log: functions that build them, and the state that the next process gets by replaying them.

This module does not depend on files, or on the components that use the state.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from kafkaproto.broker.config.cluster_config import ConfigOwner, SubscriptionName
from kafkaproto.broker.group.offsets import CommittedOffset, PartitionKey
from kafkaproto.broker.log.epochs import EpochStart
from kafkaproto.broker.log.producer_state import ProducerEntry, RememberedBatch
from kafkaproto.broker.log.replica_log import LogState
from kafkaproto.broker.log.runs import OffsetRange
from kafkaproto.broker.log.transaction_index import AbortedTransaction
from kafkaproto.broker.metadata.image import PartitionState, Topic
from kafkaproto.broker.metadata.scram import CredentialKey, Credentials, ScramCredential
from kafkaproto.broker.persistence.recovery import LogFacts, LogStart
from kafkaproto.broker.persistence.wal import MetadataRecord

Components = tuple[tuple[str, str | None], ...]
ALL_BROKERS = -1


class MetadataState:
    """The state of a cluster that results from replaying the records of its metadata log in order.

    - process_number: the number of the last process that has used the data directory, from 1; 0 for none.
    - was_closed: whether that process stopped properly.
    - offset: the offset of the last metadata image of that process. The records of earlier versions of this broker have no offsets; then this is the
      number of records.
    - configs: maps owners (a broker id, -1 for all brokers, a group id, or the name of a client metrics subscription) to their settings.
    - quotas: maps (entity, key) to the value of the quota; an example of a key is "producer_byte_rate". The value is None for a quota that was
      removed. The quota then remains removed after a restart, even if a setting of the broker defines it.
    - features: maps the names of features to their finalized levels, for the features whose level differs from that of a new cluster.
    - scram: maps (user, mechanism) to the SCRAM credential.
    - next_producer_id: no producer has this id or a higher one.
    - no_op_records: the number of no-op records that this process may have counted.
    - groups: maps a group id to (protocol type, committed offsets), as stored by an earlier version of this broker.
    - logs: maps (topic id, partition) to the state of this partition's log, as far as the metadata log contains it.
    """

    def __init__(self, facts: Iterable[MetadataRecord]) -> None:
        self.process_number = 0
        self.no_op_records = 0
        self.was_closed = False
        self.topics: dict[str, Topic] = {}
        self.configs: dict[ConfigOwner, dict[str, str]] = {}
        self.quotas: dict[tuple[Components, str], float | None] = {}
        self.features: dict[str, int] = {}
        self.scram: dict[CredentialKey, ScramCredential] = {}
        self.groups: dict[str, tuple[str | None, dict[PartitionKey, CommittedOffset]]] = {}
        self.next_producer_id = 0
        self.logs: dict[tuple[bytes, int], LogFacts] = {}
        offset: int | None = None
        record_count = 0
        for fact in facts:
            self.was_closed = False
            getattr(self, f"_on_{fact['kind']}")(fact)
            record_count += 1
            offset = fact.get("offset", offset)
        self.offset = record_count if offset is None else offset

    def logs_of(self, topic_id: bytes, index: int) -> LogFacts:
        return self.logs.get((topic_id, index)) or LogFacts()

    def _on_life(self, fact: MetadataRecord) -> None:
        self.process_number = fact["number"]

    def _on_closed(self, fact: MetadataRecord) -> None:
        self.was_closed = True

    def _on_offset(self, fact: MetadataRecord) -> None:
        """Read the no-op records. The constructor reads the offsets of all records itself."""
        self.no_op_records = fact.get("no_ops", self.no_op_records)

    def _on_image(self, fact: MetadataRecord) -> None:
        for name in fact["deleted"]:
            deleted_topic = self.topics.pop(name, None)
            if deleted_topic is not None:
                for state in deleted_topic.partitions:
                    self.logs.pop((deleted_topic.topic_id, state.index), None)
                for _, offsets in self.groups.values():
                    for key in [key for key in offsets if key[0] == name]:
                        del offsets[key]
        for topic in fact["topics"]:
            before = self.topics.get(topic["name"])
            topic_id = bytes.fromhex(topic["id"])
            old_states = before.partitions if before is not None and before.topic_id == topic_id else ()
            states = {state.index: state for state in old_states}
            states.update((p[0], _partition(p)) for p in topic["partitions"])
            self.topics[topic["name"]] = Topic(
                topic["name"], topic_id, tuple(states[i] for i in sorted(states)), dict(topic["configs"])
            )

    def _on_config(self, fact: MetadataRecord) -> None:
        self.configs[fact["broker"]] = dict(fact["layer"])

    def _on_group_config(self, fact: MetadataRecord) -> None:
        self.configs[fact["group"]] = dict(fact["layer"])

    def _on_features(self, fact: MetadataRecord) -> None:
        self.features = dict(fact["levels"])

    def _on_scram(self, fact: MetadataRecord) -> None:
        for user, mechanism in fact["deleted"]:
            self.scram.pop((user, mechanism), None)
        for user, mechanism, salt, stored_key, server_key, iterations in fact["set"]:
            self.scram[user, mechanism] = ScramCredential(
                bytes.fromhex(salt), bytes.fromhex(stored_key), bytes.fromhex(server_key), iterations
            )

    def _on_client_metrics(self, fact: MetadataRecord) -> None:
        self.configs[SubscriptionName(fact["name"])] = dict(fact["layer"])

    def _on_quotas(self, fact: MetadataRecord) -> None:
        for components, key, value in fact["set"]:
            self.quotas[(tuple((kind, name) for kind, name in components), key)] = value

    def _on_commit(self, fact: MetadataRecord) -> None:
        _, offsets = self.groups.get(fact["group"], (None, {}))
        self.groups[fact["group"]] = fact["type"], offsets
        for topic, index, *committed in fact["offsets"]:
            offsets[(topic, index)] = CommittedOffset(*committed)

    def _on_group_gone(self, fact: MetadataRecord) -> None:
        self.groups.pop(fact["group"], None)

    def _on_producer_id(self, fact: MetadataRecord) -> None:
        self.next_producer_id = fact["next"]

    def _on_log(self, fact: MetadataRecord) -> None:
        state = LogState(
            fact["at"],
            fact["start"],
            fact["end"],
            fact["dirty"],
            [OffsetRange(*run) for run in fact["runs"]],
            [EpochStart(*epoch) for epoch in fact["epochs"]],
            _producers(fact["producers"]),
            tuple(AbortedTransaction(*entry) for entry in fact.get("aborted", ())),
        )
        self.logs[(bytes.fromhex(fact["topic"]), fact["partition"])] = LogFacts(state)

    def _on_log_start(self, fact: MetadataRecord) -> None:
        log_facts = self.logs.setdefault((bytes.fromhex(fact["topic"]), fact["partition"]), LogFacts())
        log_facts.starts.append(LogStart(fact["at"], fact["start"], _producers(fact["producers"])))


def process_started(number: int) -> MetadataRecord:
    return {"kind": "life", "number": number}


def closed() -> MetadataRecord:
    """Return the record that a process writes last when it stops properly. It proves that all earlier data was written completely."""
    return {"kind": "closed"}


def offset(image_offset: int, no_op_records: int = 0) -> MetadataRecord:
    """Return a record that has only the offset of a metadata image, and the number of no-op records that the process may count, if it is above 0.

    It is for an image with no other change that must be persisted. If there is a change, `at_offset` adds the offset to the record of the change.
    """
    return {"kind": "offset", "offset": image_offset} | ({"no_ops": no_op_records} if no_op_records else {})


def at_offset(record: MetadataRecord, image_offset: int) -> MetadataRecord:
    """Return the record of a change with the offset of the metadata image that the change creates."""
    return {**record, "offset": image_offset}


def image(changed: Iterable[tuple[Topic | None, Topic]], deleted: Sequence[str]) -> MetadataRecord:
    """Return the metadata record that persists changed, new and deleted topics.

    changed: (before, after) for each changed topic; before is None for a new one. Partitions that did not change are left out of the record.
    deleted: the names of deleted topics.
    """
    return {"kind": "image", "topics": [_topic(before, after) for before, after in changed], "deleted": list(deleted)}


def config(owner: ConfigOwner, layer: Mapping[str, str]) -> MetadataRecord:
    """Return the record of a change of the settings of `owner`.

    owner: a broker id, -1 (ALL_BROKERS), a group id (a str), or the `SubscriptionName` of a client metrics subscription. layer: all settings that
    are set on the owner after the change, not only the changed settings.
    """
    if isinstance(owner, SubscriptionName):
        return {"kind": "client_metrics", "name": owner.name, "layer": dict(layer)}
    if isinstance(owner, str):
        return {"kind": "group_config", "group": owner, "layer": dict(layer)}
    return {"kind": "config", "broker": owner, "layer": dict(layer)}


def quotas(changed: Iterable[tuple[Components, str, float | None]]) -> MetadataRecord:
    return {"kind": "quotas", "set": [[list(components), key, value] for components, key, value in changed]}


def features(levels: Mapping[str, int]) -> MetadataRecord:
    """Return the metadata record of the finalized levels of a cluster's features.

    levels: maps the names of features to their levels, for the features whose level differs from that of a new cluster.
    """
    return {"kind": "features", "levels": dict(levels)}


def scram(before: Credentials, after: Credentials) -> MetadataRecord:
    """Return the metadata record for a change of SCRAM credentials from `before` to `after`.

    The record contains the new and changed credentials, and the keys of the deleted credentials.
    """
    changed = {key: credential for key, credential in after.items() if before.get(key) != credential}
    rows = [[*key, c.salt.hex(), c.stored_key.hex(), c.server_key.hex(), c.iterations] for key, c in changed.items()]
    return {"kind": "scram", "set": rows, "deleted": [list(key) for key in before if key not in after]}


def commit(group_id: str, protocol_type: str | None, offsets: Mapping[PartitionKey, CommittedOffset]) -> MetadataRecord:
    """Return the record of a group's committed offsets, as earlier versions of this broker stored them, before it had an offsets topic.

    The offsets in such a record have no topic ids. protocol_type: the group's protocol type, such as "consumer"; None if it has none.
    """
    offset_entries = [
        [*key, offset, leader_epoch, metadata, committed_ms, expire_ms]
        for key, (offset, leader_epoch, metadata, committed_ms, expire_ms, _) in offsets.items()
    ]
    return {"kind": "commit", "group": group_id, "type": protocol_type, "offsets": offset_entries}


def group_gone(group_id: str) -> MetadataRecord:
    return {"kind": "group_gone", "group": group_id}


def producer_id(next_id: int) -> MetadataRecord:
    return {"kind": "producer_id", "next": next_id}


def log(topic_id: bytes, index: int, state: LogState) -> MetadataRecord:
    return {
        "kind": "log",
        "topic": topic_id.hex(),
        "partition": index,
        "at": state.at,
        "start": state.log_start_offset,
        "end": state.log_end_offset,
        "dirty": state.first_dirty_offset,
        "runs": state.runs,
        "epochs": state.epochs,
        "producers": _producer_facts(state.producers),
        "aborted": state.aborted,
    }


def log_start(topic_id: bytes, index: int, start: LogStart) -> MetadataRecord:
    return {
        "kind": "log_start",
        "topic": topic_id.hex(),
        "partition": index,
        "at": start.at,
        "start": start.log_start_offset,
        "producers": _producer_facts(start.producers),
    }


def _topic(before: Topic | None, after: Topic) -> dict[str, Any]:
    same = set(before.partitions) if before is not None and before.topic_id == after.topic_id else frozenset()
    return {
        "name": after.name,
        "id": after.topic_id.hex(),
        "configs": dict(after.configs),
        "partitions": [
            [
                *(p.index, p.replicas, p.isr, p.leader, p.leader_epoch, p.partition_epoch, p.adding, p.removing),
                *(p.eligible, p.last_known),
            ]
            for p in after.partitions
            if p not in same
        ],
    }


def _partition(fields: Sequence[Any]) -> PartitionState:
    """Return the partition that a metadata record describes.

    fields: the values of the fields of `PartitionState`, in the same order. Records that earlier versions of this broker wrote have no values for
    `eligible` and `last_known`, which are then empty.
    """
    index, replicas, isr, leader, leader_epoch, partition_epoch, *lists = fields
    return PartitionState(
        index, tuple(replicas), tuple(isr), leader, leader_epoch, partition_epoch, *(tuple(items) for items in lists)
    )


def _producer_facts(producers: Mapping[int, ProducerEntry]) -> list[Any]:
    return [
        [
            producer_id,
            entry.epoch,
            entry.batches,
            entry.coordinator_epoch,
            entry.marker_offset,
            entry.last_timestamp,
            entry.first_open_offset,
        ]
        for producer_id, entry in producers.items()
    ]


def _producers(entries: Sequence[Any]) -> dict[int, ProducerEntry]:
    """Return the states of producers in a metadata record, by producer id.

    entries: for each producer its id, epoch and batches, then the coordinator's epoch, the offset of the last marker, the last timestamp, and the
    offset at which the open transaction begins. Old records, from before the broker supported transactions, end after the batches.
    """
    producers = {}
    for producer_id, epoch, batches, *transactional in entries:
        entry = producers[producer_id] = ProducerEntry(epoch)
        entry.batches = [RememberedBatch(*batch) for batch in batches]
        if transactional:
            entry.coordinator_epoch, entry.marker_offset, entry.last_timestamp, entry.first_open_offset = transactional
        else:
            entry.last_timestamp = entry.batches[-1].max_timestamp
    return producers
