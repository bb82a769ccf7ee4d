"""Steps of conversations whose requests a Kafka client never sends: odd ids, epochs and timeouts, duplicates, and empty lists.

`OddWriter` chooses a step as plain values, and `OddRequests` creates its request. Neither knows the expected responses.
"""

from __future__ import annotations

from collections.abc import Callable
from random import Random
from typing import TYPE_CHECKING, Any

from kafkaproto.conformance.client import Closed
from kafkaproto.conformance.groups import OFFSETS_TOPIC
from kafkaproto.conformance.transactions import Producer
from kafkaproto.conformance.wire import batch
from kafkaproto.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from kafkaproto.messages.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from kafkaproto.messages.describe_producers import DescribeProducersRequest, TopicRequest
from kafkaproto.messages.describe_transactions import DescribeTransactionsRequest
from kafkaproto.messages.end_txn import EndTxnRequest
from kafkaproto.messages.init_producer_id import InitProducerIdRequest
from kafkaproto.messages.list_transactions import ListTransactionsRequest
from kafkaproto.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from kafkaproto.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kafkaproto.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from kafkaproto.records.batch import TRANSACTIONAL

if TYPE_CHECKING:
    from tests.differential.transactions import TransactionPlayer

Step = tuple[str, dict[str, Any]]
PRODUCED_MS = 1_600_000_000_000
LARGEST = 2**31 - 1
BUSY = {14, 51}
"""Errors of a coordinator that is loading or that is ending a transaction; such a request is repeated."""
NOT_YET = {14, 15, 16, 19, 51}
PAUSE_MS, REPEATS = 20, 50

IDS = ("own",) * 8 + ("", "unknown", "other")
"""Transactional ids; `own` and `other` are those of the two producers."""
NUMBERS = ("own",) * 8 + ("none", "minus two", "wrong", "other", "zero epoch")
"""Producer ids and epochs; see `OddRequests._numbers`."""
EPOCHS = (None,) * 8 + (-1, -5, 0, 1, 32766, 32767)
"""Epochs that replace the one of the producer; None for none of these."""
TOPICS = ("topic",) * 6 + ("unknown", "", "__consumer_offsets", "__transaction_state", "bad/name")
INDEXES = ([0], [0], [0, 1], [0, 0], [], [-1], [1, 7], [LARGEST])


class OddWriter:
    """Chooses odd steps. is_newer: whether they go to release 4.2."""

    def __init__(self, chance: Random, is_newer: bool) -> None:
        self.chance = chance
        self.is_newer = is_newer

    def step(self) -> Step:
        kinds: list[Callable[[], Step]] = [self._init, self._add, self._add_many, self._add_offsets]
        kinds += [self._commit_offsets, self._end, self._produce, self._produce]
        kinds += [self._markers, self._describe, self._list]
        return self.chance.choice(kinds)()

    def _who(self) -> dict[str, Any]:
        choose = self.chance.choice
        return {"producer": choose([0, 0, 1]), "name": choose(IDS), "numbers": choose(NUMBERS), "epoch": choose(EPOCHS)}

    def _topics(self) -> list[tuple[str, list[int]]]:
        choose = self.chance.choice
        return [(choose(TOPICS), choose(INDEXES)) for _ in range(choose([0, 1, 1, 1, 1, 2, 3]))]

    def _topics_once(self) -> list[tuple[str, list[int]]]:
        """Choose topics and partitions, none of them twice: Kafka never answers a marker that names a partition twice (TX-47)."""
        return [(name, sorted(set(indexes))) for name, indexes in dict(self._topics()).items()]

    def _init(self) -> Step:
        choose = self.chance.choice
        arguments = self._who() | {"name": choose([*IDS, None, None])}
        timeout_ms = choose([60_000, 60_000, 60_000, -1, 0, 900_000, 900_001, LARGEST])
        return "odd_init", arguments | {"version": choose([0, 1, 2, 3, 4, 5]), "timeout_ms": timeout_ms}

    def _add(self) -> Step:
        return "odd_add", self._who() | {"version": self.chance.randrange(4), "topics": self._topics()}

    def _add_many(self) -> Step:
        chance = self.chance
        producer = chance.choice([0, 1])  # the subjects may place the producers at different coordinators
        several = [
            {**self._who(), "producer": producer, "name": name, "only": chance.random() < 0.6, "topics": self._topics()}
            for name in chance.choice([["own"], ["own"], [""], ["own", ""]])
        ]
        return "odd_add_many", {"version": chance.choice([4, 5]), "transactions": several}

    def _add_offsets(self) -> Step:
        choose = self.chance.choice
        return "odd_add_offsets", self._who() | {
            "version": choose(range(5)),
            "group": choose(["group", "group", ""]),
        }

    def _commit_offsets(self) -> Step:
        choose = self.chance.choice
        return "odd_commit_offsets", self._who() | {
            "version": choose([0, 1, 2, 3, 4] + [5, 5] * self.is_newer),
            "topics": self._topics(),
            "offset": choose([0, 5, 5, -1, -2]),
            "metadata": choose([0, 0, 10, 4096, 4097, None]),
            "member": choose(["", "", "", "unknown"]),
            "instance": choose([None, None, None, "", "unknown"]),
            "generation": choose([-1, -1, -1, 0, 1, -2]),
        }

    def _end(self) -> Step:
        versions = [0, 1, 2, 3, 4] + [5] * 4 * self.is_newer
        return "odd_end", self._who() | {
            "version": self.chance.choice(versions),
            "commit": self.chance.random() < 0.5,
        }

    def _produce(self) -> Step:
        choose = self.chance.choice
        batches = [
            {
                "partition": choose([0, 0, 1, 7]),
                "producer": choose([0, 0, 0, 1]),
                "numbers": choose(NUMBERS),
                "epoch": choose(EPOCHS),
                "sequence": choose([0, 0, 1, -1, LARGEST]),
                "transactional": self.chance.random() < 0.7,
            }
            for _ in range(choose([1, 1, 1, 2]))
        ]
        if len({b["partition"] for b in batches}) < len(batches):
            batches = batches[:1]
        return "odd_produce", {
            "version": choose([3, 9, 11] + [12] * 2 * self.is_newer),
            "name": choose([*IDS, None, None]),
            "acks": choose([-1, -1, 1, 2]),
            "batches": batches,
        }

    def _markers(self) -> Step:
        chance = self.chance
        markers = [
            self._who()
            | {
                "commit": chance.random() < 0.5,
                "coordinator_epoch": chance.choice([0, -1, -1]),
                "topics": self._topics_once(),
            }
            for _ in range(chance.choice([0, 1, 1, 2]))
        ]
        if len(markers) > 1:  # Kafka may leave others unanswered (TX-47)
            for marker in markers:
                marker["topics"] = [("topic", chance.choice([[0], [1], [0, 1]]))]
        return "odd_markers", {"version": chance.choice([1, 2]) if self.is_newer else 1, "markers": markers,
                               "transaction_version": chance.choice([0, 1, 2])}  # fmt: skip

    def _describe(self) -> Step:
        choose = self.chance.choice
        return "odd_describe", {"names": [choose(IDS) for _ in range(choose([0, 1, 2, 3]))], "topics": self._topics()}

    def _list(self) -> Step:
        choose = self.chance.choice
        return "odd_list", {
            "version": choose([0, 1] + [2, 2] * self.is_newer),
            "states": choose([[], [], ["ongoing"], ["Ongoing", "Ongoing"], ["", "Dead"], ["PrepareEpochFence"]]),
            "numbers": choose([[], [], [-1], [0, -5]]),
            "duration": choose([-1, -1, -2, -5, 10**8, 2**62]),
            "pattern": choose([None, "", ".*", "x", "(", "[^a]+", "\\p{L}.*"]),
        }


class OddRequests:
    """Sends the requests of odd steps for a player of a conversation."""

    def __init__(self, player: TransactionPlayer) -> None:
        self.player = player
        self.subject = player.subject
        self.new_names = {"unknown": self.subject.new_name("unknown"), "group": player.group.id}

    def answered(self, kind: str, arguments: dict[str, Any]) -> Any:
        for _ in range(REPEATS):
            try:
                response = getattr(self, f"_{kind}")(**arguments)
            except Closed:
                return "closed"
            if not self._is_busy(response):
                break
            self.subject.pass_ms(PAUSE_MS)
        return _in_order(self.player.plain(response))

    @staticmethod
    def _is_busy(answer: Any) -> bool:
        return getattr(answer, "error_code", 0) in BUSY

    def _name(self, producer: int, name: str | None) -> str | None:
        own, other = self.player.producers[producer], self.player.producers[1 - producer]
        if name == "unknown":
            return self.player.known_as("unknown", self.new_names["unknown"])
        return {"own": own.id, "other": other.id}.get(name or "", name)

    def _numbers(self, producer: int, numbers: str, epoch: int | None) -> tuple[int, int]:
        own, other = self.player.producers[producer], self.player.producers[1 - producer]
        producer_id, own_epoch = {
            "own": (own.producer_id, own.epoch),
            "none": (-1, -1),
            "minus two": (-2, own.epoch),
            "wrong": (own.producer_id + 100_000, own.epoch),
            "other": (other.producer_id, other.epoch),
            "zero epoch": (own.producer_id, 0),
        }[numbers]
        return producer_id, own_epoch if epoch is None else epoch

    def _topic(self, name: str) -> str:
        if name == "topic":
            return self.player.topic.name
        return self.player.known_as("unknown", self.new_names["unknown"]) if name == "unknown" else name

    def _ask_coordinator(self, producer: int, request: Any, version: int) -> Any:
        """Send a request to the coordinator of a producer, also if it is about another transactional id: two producers may have two coordinators."""
        return self.player.producers[producer].ask(request, version)

    # ---- steps ---------------------------------------------------------------------------------------------------------------

    def _odd_init(
        self, producer: int, name: str | None, numbers: str, epoch: int | None, version: int, timeout_ms: int
    ) -> Any:
        if name == "unknown":
            return "left out"  # it would create an id that later steps know
        id_and_epoch = self._numbers(producer, numbers, epoch) if version >= 3 else (-1, -1)
        request = InitProducerIdRequest(self._name(producer, name), timeout_ms, *id_and_epoch)
        response = self._ask_owner(producer, name, request, version)
        if name in ("own", "other"):
            self.player.learn(producer if name == "own" else 1 - producer, response)
        elif response.error_code == 0:
            assert response.producer_id >= 0
            response.producer_id = 0
        return response

    def _ask_owner(self, producer: int, name: str | None, request: Any, version: int) -> Any:
        if name == "unknown":
            return Producer(self.subject, self.new_names[name]).ask(request, version)
        return self._ask_coordinator(1 - producer if name == "other" else producer, request, version)

    def _odd_add(
        self,
        producer: int,
        name: str,
        numbers: str,
        epoch: int | None,
        version: int,
        topics: list[tuple[str, list[int]]],
    ) -> Any:
        listed = [AddPartitionsToTxnTopic(self._topic(topic), indexes) for topic, indexes in topics]
        ids = self._name(producer, name), *self._numbers(producer, numbers, epoch)
        for _ in range(REPEATS):
            response = self._ask_owner(producer, name, AddPartitionsToTxnRequest([], *ids, listed), version)
            errors = {
                p.partition_error_code for t in response.results_by_topic_v3_and_below for p in t.results_by_partition
            }
            if not errors & BUSY:
                break
            self.subject.pass_ms(PAUSE_MS)
        return response

    def _odd_add_many(self, version: int, transactions: list[dict[str, Any]]) -> Any:
        listed = [
            AddPartitionsToTxnTransaction(
                self._name(t["producer"], t["name"]),
                *self._numbers(t["producer"], t["numbers"], t["epoch"]),
                t["only"],
                [AddPartitionsToTxnTopic(self._topic(topic), indexes) for topic, indexes in t["topics"]],
            )
            for t in transactions
        ]
        return self._ask_coordinator(transactions[0]["producer"], AddPartitionsToTxnRequest(listed), version)

    def _odd_add_offsets(
        self, producer: int, name: str, numbers: str, epoch: int | None, version: int, group: str
    ) -> Any:
        ids = self._name(producer, name), *self._numbers(producer, numbers, epoch)
        request = AddOffsetsToTxnRequest(*ids, self.new_names.get(group, group))
        return self._ask_owner(producer, name, request, version)

    def _odd_commit_offsets(self, producer: int, name: str, numbers: str, epoch: int | None, **fields: Any) -> Any:
        version = fields["version"]
        metadata = None if fields["metadata"] is None else "m" * fields["metadata"]
        topics = [
            TxnOffsetCommitRequestTopic(
                self._topic(topic),
                [
                    TxnOffsetCommitRequestPartition(index, fields["offset"], committed_metadata=metadata)
                    for index in indexes
                ],
            )
            for topic, indexes in fields["topics"]
        ]
        ids = self._numbers(producer, numbers, epoch)
        request = TxnOffsetCommitRequest(self._name(producer, name), self.player.group.id, *ids, topics=topics)
        if version >= 3:
            request.generation_id, request.member_id = fields["generation"], fields["member"]
            request.group_instance_id = fields["instance"]
        for _ in range(REPEATS):
            response = self.player.group.ask(request, version)
            if not {p.error_code for t in response.topics for p in t.partitions} & NOT_YET:
                break
            self.subject.pass_ms(PAUSE_MS)
        return response

    def _odd_end(self, producer: int, name: str, numbers: str, epoch: int | None, version: int, commit: bool) -> Any:
        request = EndTxnRequest(self._name(producer, name), *self._numbers(producer, numbers, epoch), commit)
        response = self._ask_owner(producer, name, request, version)
        if name in ("own", "other"):
            self.player.learn(producer if name == "own" else 1 - producer, response)
        return response

    def _odd_produce(self, version: int, name: str | None, acks: int, batches: list[dict[str, Any]]) -> Any:
        listed = []
        for described in batches:
            number, own_epoch = self._numbers(described["producer"], described["numbers"], described["epoch"])
            data = batch(
                b"v",
                timestamp=PRODUCED_MS,
                producer_id=number,
                producer_epoch=own_epoch,
                base_sequence=described["sequence"],
                attributes=TRANSACTIONAL if described["transactional"] else 0,
            )
            listed.append(PartitionProduceData(described["partition"], data))
        topic = TopicProduceData(self.player.topic.name, partition_data=listed)
        request = ProduceRequest(self._name(0, name), acks, 5000, [topic])
        for _ in range(REPEATS):
            response = self.subject.ask_once(request, version, self.player.topic.leader())
            errors = {p.error_code for t in response.responses for p in t.partition_responses}
            if not errors & NOT_YET:
                break
            self.subject.pass_ms(PAUSE_MS)
        return [
            (p.index, p.log_start_offset, *self.player.partition_result(p))
            for t in response.responses
            for p in t.partition_responses
        ]

    def _odd_markers(self, version: int, markers: list[dict[str, Any]], transaction_version: int) -> Any:
        listed = [
            WritableTxnMarker(
                *self._numbers(m["producer"], m["numbers"], m["epoch"]),
                m["commit"],
                [
                    WritableTxnMarkerTopic(self._topic(topic), indexes)
                    for topic, indexes in m["topics"]
                    if not topic.startswith("__")  # internal topics are shared by all conversations
                ],
                m["coordinator_epoch"],
                transaction_version,
            )
            for m in markers
        ]
        for marker in listed:
            self.player.number(marker.producer_id)  # responses list markers in any order
        return self.subject.ask_once(WriteTxnMarkersRequest(listed), version, self.player.topic.leader())

    def _odd_describe(self, names: list[str], topics: list[tuple[str, list[int]]]) -> Any:
        states = self._ask_coordinator(
            0, DescribeTransactionsRequest([self._name(0, name) for name in names if name in ("own", "")]), 0
        )
        for state in states.transaction_states:
            for topic in state.topics:
                if topic.topic == OFFSETS_TOPIC:  # the subjects' groups have other names
                    topic.partitions = [0] * len(topic.partitions)
        listed = [TopicRequest(self._topic(topic), indexes) for topic, indexes in topics if not topic.startswith("__")]
        return [states, self.subject.ask_once(DescribeProducersRequest(listed), 0, self.player.topic.leader())]

    def _odd_list(self, version: int, states: list[str], numbers: list[int], duration: int, pattern: str | None) -> Any:
        request = ListTransactionsRequest(states, numbers)
        if version >= 1:
            request.duration_filter = duration
        if version >= 2:
            request.transactional_id_pattern = pattern
        response = self._ask_coordinator(0, request, version)
        ids = {producer.id for producer in self.player.producers}
        own = self.player.producers[0].id
        listed = [state for state in response.transaction_states if state.transactional_id in ids & {own}]
        return [response.error_code, response.unknown_state_filters, listed]


def _in_order(value: Any) -> Any:
    """Return a response with its lists sorted, because brokers list results in any order."""
    if isinstance(value, dict):
        return {name: _in_order(part) for name, part in value.items()}
    if isinstance(value, list):
        return sorted(map(_in_order, value), key=repr)
    return value
