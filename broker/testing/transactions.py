"""Transactions for tests: views of transactions, ways to end them that rarely occur in practice, and conditions that a test can wait for."""

from __future__ import annotations

import logging

from kafkaproto.broker.cluster import Cluster
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.log.errors import InvalidBatch, StorageError
from kafkaproto.broker.metadata.image import TRANSACTION_TOPIC
from kafkaproto.broker.observe.past_transaction import PastTransaction
from kafkaproto.broker.testing.arguments import check_choice, check_int, check_text
from kafkaproto.broker.testing.base import Base
from kafkaproto.broker.testing.group_views import PartitionKey, check_coordinator
from kafkaproto.broker.testing.groups import Wait
from kafkaproto.broker.testing.producing import Value, as_bytes
from kafkaproto.broker.testing.records import leader_of
from kafkaproto.broker.testing.tracebacks import is_hidden, without_frames_of_the_broker
from kafkaproto.broker.testing.transaction_views import (
    ProducerSeen,
    TransactionSeen,
    all_transactions,
    find_open_transaction,
    find_transaction,
    loading_broker,
    missing_transaction_coordinator,
    transaction_seen,
)
from kafkaproto.broker.transaction.changes import Cause
from kafkaproto.broker.transaction.fencing import shut_out
from kafkaproto.broker.transaction.operations import EndRequest, ProducerResult
from kafkaproto.broker.transaction.transaction import ENDING, Transaction, TransactionState
from kafkaproto.error_codes import ErrorCode
from kafkaproto.records.batch import TRANSACTIONAL, NewRecord, build_batch

__tracebackhide__ = is_hidden

logger = logging.getLogger("kafkaproto.testing")

_STATES = tuple(state.label for state in TransactionState if state <= TransactionState.COMPLETE_ABORT)


class TransactionMethods(Base):
    """A base class of test clusters, with the methods that read and change transactions."""

    def transactions(self, state: str | None = None) -> dict[str, TransactionSeen]:
        """Return the transactions by transactional id. state: return only those in this state, such as "Ongoing"; None for all.

        Ids whose coordinator is stopped or still loads them are left out.
        """
        if state is not None:
            check_choice("state", state, _STATES, "Ongoing")
        transactions = self._run(lambda: all_transactions(self.state))
        return {name: view for name, view in transactions.items() if state in (None, view.state)}

    def transaction(self, transactional_id: str) -> TransactionSeen:
        """Return the transaction of a transactional id.

        Raises ValueError, which names the existing ids, if there is no such id, and KafkaError COORDINATOR_LOAD_IN_PROGRESS (14) while its
        coordinator is loading it, or COORDINATOR_NOT_AVAILABLE (15) if no running broker coordinates the id.
        """
        with without_frames_of_the_broker(ValueError):
            return self._run(lambda: transaction_seen(*find_transaction(self.state, transactional_id)))

    def past_transactions(self, transactional_id: str) -> list[PastTransaction]:
        """Return the last 100 transactions of a transactional id, oldest first, each with its partitions, how it ended, and why.

        The transactions of an expired id are still returned. They are kept for the 1,000 ids that were the last to begin a transaction; for any other
        existing id the list is empty. Raises ValueError, which names the existing ids, for an id that never existed, and
        KafkaError COORDINATOR_LOAD_IN_PROGRESS (14) for an id without transactions while its coordinator is loading.
        """
        check_text("transactional_id", transactional_id, "orders-tx")

        def find() -> list[PastTransaction]:
            if transactional_id not in self.state.transaction_history:
                find_transaction(self.state, transactional_id)
            return self.state.transaction_history.of_id(transactional_id)

        with without_frames_of_the_broker(ValueError):
            return self._read(find)

    def producers(self, topic: str, partition: int = 0) -> list[ProducerSeen]:
        """Return the idempotent and transactional producers that wrote to a partition. Raises KafkaError for a missing or leaderless partition."""

        def find() -> list[ProducerSeen]:
            producers = leader_of(self.state, topic, partition).log.producers.producers
            return [ProducerSeen(i, e.epoch, e.last_sequence, e.first_open_offset) for i, e in producers.items()]

        return self._run(find)

    def last_stable_offset(self, topic: str, partition: int = 0) -> int:
        """Return the offset up to which `read_committed` consumers can read. Raises KafkaError if the partition does not exist or has no leader."""
        return self._run(lambda: leader_of(self.state, topic, partition).log.last_stable_offset)

    def pending_offsets(self, group_id: str) -> dict[PartitionKey, int]:
        """Return the offsets that producers committed for a group in transactions that are still open, by (topic, partition).

        Several producers may have committed an offset of the same partition. The result then contains the offset of one of them: the producer whose
        first commit for the group in its open transaction came last. The dict is empty for an unknown group.

        Raises KafkaError COORDINATOR_LOAD_IN_PROGRESS (14) while the coordinator of the group is loading it, and COORDINATOR_NOT_AVAILABLE (15) if no
        running broker coordinates it.
        """
        check_text("group_id", group_id, "readers")

        def find() -> dict[PartitionKey, int]:
            for node in self.state.nodes:
                group = node.groups.groups.get_any(group_id) if node.has_groups else None
                if group is not None:
                    pending = group.pending_offsets.items()
                    return {key: committed.offset for _, offsets in pending for key, committed in offsets.items()}
            check_coordinator(self.state, group_id)
            return {}

        return self._run(find)

    def abort_transaction(self, transactional_id: str) -> None:
        """Abort the open transaction of a producer, as though the producer had aborted it. The producer's next commit fails.

        Raises ValueError, which names the ids with open transactions, if this id has no open transaction. Raises KafkaError CONCURRENT_TRANSACTIONS
        (51) while the transaction's last change is not replicated, COORDINATOR_LOAD_IN_PROGRESS (14) while its coordinator is loading the id, and
        COORDINATOR_NOT_AVAILABLE (15) if `__transaction_state` has too few in-sync replicas, or if no running broker coordinates the id.
        """

        def act() -> None:
            transaction, coordinator, _ = find_open_transaction(self.state, transactional_id)
            data = transaction.data
            # The client's version, not the server's: an EndTxn before v5 leaves the epoch as it is, because its response cannot contain a new one.
            version = data.client_version
            request = EndRequest(transactional_id, data.producer_id, data.epoch, commits=False, client_version=version)
            with _Result(transaction, "abort_transaction") as result:
                coordinator.end(request, self.state.actions.now_ms, result, Cause.ABORTED_BY_TEST)

        with without_frames_of_the_broker(ValueError):
            self._run(act)

    def expire_transaction(self, transactional_id: str) -> None:
        """Abort the open transaction of a producer, as though its timeout had passed (TX-59).

        Raises ValueError, which names the ids with open transactions, if this id has no open transaction. Raises KafkaError CONCURRENT_TRANSACTIONS
        (51) while the transaction's last change is not replicated, COORDINATOR_LOAD_IN_PROGRESS (14) while its coordinator is loading the id, and
        COORDINATOR_NOT_AVAILABLE (15) if `__transaction_state` has too few in-sync replicas, or if no running broker coordinates the id.
        """

        def act() -> None:
            transaction, coordinator, _ = find_open_transaction(self.state, transactional_id)
            with _Result(transaction, "expire_transaction") as result:
                coordinator.fence(transaction, self.state.actions.now_ms, Cause.TIMED_OUT, result)

        with without_frames_of_the_broker(ValueError):
            self._run(act)

    def fence_producer(self, transactional_id: str) -> None:
        """Raise the epoch of a transactional id, as a second process with this id does. An open transaction is aborted, and its producer is fenced.

        Raises ValueError, which names the existing ids, if there is no such id. Raises KafkaError CONCURRENT_TRANSACTIONS (51) while the last
        transaction of the id is being completed or its last change is not replicated, COORDINATOR_LOAD_IN_PROGRESS (14) while its coordinator is
        loading the id, and COORDINATOR_NOT_AVAILABLE (15) if `__transaction_state` has too few in-sync replicas, or if no running broker coordinates
        the id.
        """

        def act() -> None:
            transaction, coordinator, _ = find_transaction(self.state, transactional_id)
            now_ms = self.state.actions.now_ms
            with _Result(transaction, "fence_producer") as result:
                if transaction.data.state is TransactionState.ONGOING:
                    shut_out(coordinator, transaction, now_ms, result)
                else:
                    coordinator.init_producer_id(transactional_id, transaction.data.timeout_ms, None, now_ms, result)

        with without_frames_of_the_broker(ValueError):
            self._run(act)

    def hang_transaction(self, topic: str, partition: int = 0, value: Value = b"hanging") -> ProducerSeen:
        """Append a record in a transaction that no coordinator knows, so that no timeout ends it. The last stable offset stays at this record.

        value: the value of the record (bytes, text or None). Returns the producer of the record. Kafka's `kafka-transactions.sh abort` ends the
        transaction. Raises KafkaError if the partition does not exist or has no leader, or if it rejects the record: the record has no key, so the
        topic must not be compacted.
        """
        check_text("topic", topic, "orders")
        check_int("partition", partition, 0, example=0)
        value_bytes = as_bytes(value, "value")
        with without_frames_of_the_broker():
            return self._run(lambda: _hang(self.state, topic, partition, value_bytes))


def for_transaction(transactional_id: str, state: str) -> Wait:
    """Return a condition that is true when a transactional id has the state `state`, such as "CompleteCommit".

    Raises TypeError unless `transactional_id` is a str, and ValueError if it is empty or the state is unknown.
    """
    check_text("transactional_id", transactional_id, "orders-tx")
    check_choice("state", state, _STATES, "CompleteCommit")

    def reached(cluster: Cluster) -> TransactionSeen | None:
        view = all_transactions(cluster).get(transactional_id)
        return view if view is not None and view.state == state else None

    def describe(cluster: Cluster) -> str:
        if loading_broker(cluster, transactional_id) is not None:
            return f"the coordinator of the transactional id {transactional_id} is still loading it, and it did not become {state}"
        if (reason := missing_transaction_coordinator(cluster, transactional_id)) is not None:
            return f"the transactional id {transactional_id} has no coordinator, because {reason}, and it did not become {state}"
        view = all_transactions(cluster).get(transactional_id)
        now = "does not exist" if view is None else f"is {view.state}"
        return f"the transactional id {transactional_id} {now}, and did not become {state}"

    return Wait(reached, describe)


def _hang(cluster: Cluster, topic: str, partition: int, value: bytes | None) -> ProducerSeen:
    """Append a transactional record of a new producer that no transaction coordinator knows, and report the event "transaction"."""
    leader = leader_of(cluster, topic, partition)
    node, now_ms = cluster.nodes[leader.broker_id], cluster.actions.now_ms
    producer_id = node.transactions.producer_ids.take()
    batch = build_batch(
        [NewRecord(value, None, now_ms)],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        attributes=TRANSACTIONAL,
    )
    try:
        append_result = node.replicas.append(leader, memoryview(bytearray(batch)), now_ms)
    except InvalidBatch as error:
        text = error.message
        if error.error_code == ErrorCode.INVALID_RECORD:
            text = f"{topic}-{partition} rejects a record without a key; call hang_transaction for a topic that is not compacted"
        raise KafkaError(error.error_code, text) from None
    except StorageError as error:
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from None
    if cluster.events.noted is not None:
        facts = {
            "transactional_id": None,
            "state": TransactionState.ONGOING.label,
            "before": None,
            "producer_id": producer_id,
            "epoch": 0,
            "partitions": 1,
            "cause": "a test wrote it without a coordinator",
            "added": [f"{topic}-{partition}"],
        }
        cluster.events.noted(now_ms, leader.broker_id, "transaction", facts)
    return ProducerSeen(producer_id, 0, 0, append_result.base_offset)


class _Result:
    """A context manager for a change that a test makes to a transactional id, such as an abort. It raises the error if the change fails.

    A method of the test cluster makes the change in the block of `with _Result(...) as result`, and passes `result` to the coordinator as the
    function `reply`. The coordinator calls it with the result of the change.

    - At the start of the block, KafkaError CONCURRENT_TRANSACTIONS (51) is raised if the markers of the last transaction are being written, or if an
      earlier change of the id's state is not replicated yet.
    - At the end of the block, KafkaError is raised if the coordinator has called `result` with an error.
    - If the coordinator calls `result` with an error only after the block, the error is logged as a warning.

    method: the name of the method, for messages.
    """

    def __init__(self, transaction: Transaction, method: str) -> None:
        self._id = transaction.transactional_id
        self._method = method
        self._state = transaction.data.state
        self._is_pending = transaction.pending is not None
        self._has_returned = False
        self._error_code = 0

    def __enter__(self) -> _Result:
        if self._state in ENDING:
            complete = self._state.label.replace("Prepare", "Complete")
            raise KafkaError(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"the last transaction of transactional id {self._id!r} is not complete yet (state {self._state.label}); call "
                f"wait_for_transaction({self._id!r}, {complete!r}) before {self._method}({self._id!r})",
            )
        if self._is_pending:
            raise KafkaError(
                ErrorCode.CONCURRENT_TRANSACTIONS,
                f"the new state of transactional id {self._id!r} is not replicated yet; try again, or start the brokers that replicate "
                f"{TRANSACTION_TOPIC}",
            )
        return self

    def __call__(self, result: ProducerResult, now_ms: int) -> None:
        self._error_code = result.error_code
        if self._has_returned and result.error_code:
            logger.warning(
                "the test's call %s(%r) had no effect: after it had returned, the transaction coordinator failed with %s; start the brokers "
                "that replicate %s, then call it again",
                self._method,
                self._id,
                ErrorCode(result.error_code).name,
                TRANSACTION_TOPIC,
            )

    def __exit__(self, *error: object) -> None:
        self._has_returned = True
        if self._error_code:
            error_name = ErrorCode(self._error_code).name
            raise KafkaError(
                self._error_code,
                f"{self._method}({self._id!r}) failed, because the transaction coordinator returned {error_name}; start the brokers that "
                f"replicate {TRANSACTION_TOPIC}, or try again",
            )
