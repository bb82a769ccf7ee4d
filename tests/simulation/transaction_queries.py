"""Requests of a transactional process about its own transactions, and the expected responses (TX-43, TX-69 to TX-73)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kafkaproto.broker.group.placement import OFFSETS_TOPIC
from kafkaproto.messages.describe_transactions import DescribeTransactionsRequest
from kafkaproto.messages.list_transactions import ListTransactionsRequest
from kafkaproto.messages.offset_fetch import OffsetFetchRequest, OffsetFetchRequestGroup, OffsetFetchRequestTopics
from tests.simulation.client import E

if TYPE_CHECKING:
    from tests.simulation.transactional_process import TransactionalProcess

ENDED = {"Empty", "PrepareCommit", "PrepareAbort", "CompleteCommit", "CompleteAbort"}
COMPLETE = {"CompleteCommit", "CompleteAbort"}


class TransactionQueries:
    """The requests of one process. is_complete: whether its last transaction was seen to be complete, with its offset."""

    def __init__(self, process: TransactionalProcess) -> None:
        self._process = process
        self._described = ""
        self._fetched = -1

    @property
    def is_complete(self) -> bool:
        transactional_id = self._process.known
        return self._described in COMPLETE and {self._fetched} == transactional_id.stable_offsets()

    def act(self) -> None:
        """Send one request."""
        self._process.world.chance.choice([self._describe, self._list, self._fetch])()

    def _describe(self) -> None:
        process = self._process
        expected, producer = self._expected_states(), process.producer
        transactional_id = process.known.name

        def on_response(answer: Any) -> None:
            [state] = answer.transaction_states
            if process.looks_elsewhere(state.error_code):
                return
            assert state.error_code == 0, f"{process.name}: error {state.error_code} of DescribeTransactions"
            assert (state.producer_id, state.producer_epoch) >= producer, f"{process.name}: {state}, not {producer}"
            self._described = state.transaction_state
            if process.is_doubtful:
                return
            assert state.transaction_state in expected, f"{process.name}: {state}, not {expected}"
            assert (state.producer_id, state.producer_epoch) == producer, f"{process.name}: {state}, not {producer}"
            if process.transaction is not None:
                self._check_partitions({(t.topic, index) for t in state.topics for index in t.partitions})

        process.send(transactional_id, DescribeTransactionsRequest([transactional_id]), 0, on_response)

    def _expected_states(self) -> set[str]:
        """Return the states in which the transaction may be. Before its first acknowledgement it may not have begun."""
        if self._process.transaction is None:
            return ENDED
        return {"Ongoing"} if self._process.added else {"Ongoing", *ENDED}

    def _check_partitions(self, listed: set[tuple[str, int]]) -> None:
        process = self._process
        surely = {place for place in process.added if isinstance(place, tuple)}
        maybe = {place for place in process.tried if isinstance(place, tuple)}
        ours = {place for place in listed if place[0] != OFFSETS_TOPIC}
        assert surely <= ours <= maybe or not surely, f"{process.name}: {listed}, not {surely} to {maybe}"
        has_offsets = process.known.group_id in process.added
        assert not has_offsets or listed - ours, f"{process.name}: {listed} lacks the offsets"

    def _list(self) -> None:
        process = self._process
        expected, producer = self._expected_states(), process.producer
        transactional_id = process.known.name

        def on_response(answer: Any) -> None:
            if process.looks_elsewhere(answer.error_code) or process.is_doubtful:
                return
            assert answer.error_code == 0, f"{process.name}: error {answer.error_code} of ListTransactions"
            states = {
                (state.transactional_id, state.transaction_state)
                for state in answer.transaction_states
                if state.producer_id == producer[0]
            }
            assert len(states) <= 1, f"{process.name}: producer {producer[0]} has several transactional ids: {states}"
            right = all(entry in {(transactional_id, state) for state in expected} for entry in states)
            assert right, f"{process.name}: {states}, not {expected}"

        process.send(transactional_id, ListTransactionsRequest([], [producer[0]]), 0, on_response)

    def _fetch(self) -> None:
        """Fetch the committed offset, which waits for open transactions."""
        process, transactional_id = self._process, self._process.known
        name, index = transactional_id.place
        before = transactional_id.stable_offsets()

        def on_response(answer: Any) -> None:
            [group] = answer.groups
            if group.error_code:
                is_timeout = group.error_code == E.REQUEST_TIMED_OUT and process.world.release == "3.9"  # GO-29
                assert is_timeout or process.looks_elsewhere(group.error_code), (
                    f"{process.name}: error {group.error_code}"
                )
                return
            [partition] = group.topics[0].partitions
            if partition.error_code == E.UNSTABLE_OFFSET_COMMIT:
                return
            assert partition.error_code == 0, f"{process.name}: error {partition.error_code}"
            allowed = before | transactional_id.stable_offsets()
            assert partition.committed_offset in allowed, (
                f"{process.name}: the committed offset is {partition.committed_offset}, not one of {sorted(allowed)}"
            )
            self._fetched = partition.committed_offset

        listed = [OffsetFetchRequestTopics(name, partition_indexes=[index])]
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(transactional_id.group_id, None, -1, listed)], require_stable=True
        )
        process.send(transactional_id.group_id, request, 9, on_response)
