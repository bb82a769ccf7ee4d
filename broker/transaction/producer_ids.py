"""Producer ids. Each broker assigns them from blocks of ids that the controller reserves for this broker (TX-11)."""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

BLOCK_SIZE = 1000
_FETCHED_AHEAD_AT = BLOCK_SIZE * 9 // 10
"""How many ids of a block the broker has assigned when it requests the next block."""


class ProducerIds:
    """The producer ids that one broker assigns, from blocks of 1,000 ids that it requests from the controller.

    As in Kafka's `RPCProducerIdManager`, a broker requests its first block when the first producer needs an id. new_block: a function that reserves a
    block for this broker and returns its first id. delay_ms: a function that returns how many milliseconds the controller takes to respond.
    """

    def __init__(self, new_block: Callable[[], int], delay_ms: Callable[[], int]) -> None:
        self._new_block = new_block
        self._delay_ms = delay_ms
        self._next_id = 0
        self._end = 0
        """The first id after the current block."""
        self._arrival_ms: int | None = None
        """The time in ms at which the requested block arrives; None if no block is requested."""

    def next_id(self, now_ms: int) -> int:
        """Return an id that no producer of the cluster has.

        When the current block has no ids left, raises KafkaError COORDINATOR_LOAD_IN_PROGRESS (14) until the next block has arrived, and
        KAFKA_STORAGE_ERROR (56) if that block cannot be persisted.
        """
        ids_left = self._end - self._next_id
        if ids_left <= BLOCK_SIZE - _FETCHED_AHEAD_AT and self._arrival_ms is None:
            self._arrival_ms = now_ms + self._delay_ms()
        if ids_left == 0 and self._arrival_ms is not None and now_ms < self._arrival_ms:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return self.take()

    def take(self) -> int:
        """Return an id that no producer of the cluster has, without waiting for the controller: a new block of ids is reserved at once if necessary.

        Raises KafkaError KAFKA_STORAGE_ERROR (56) if the block cannot be persisted.
        """
        if self._next_id == self._end:
            self._next_id = self._new_block()
            self._end = self._next_id + BLOCK_SIZE
            self._arrival_ms = None
        producer_id = self._next_id
        self._next_id += 1
        return producer_id
