"""Verification of the partitions of a transaction, before their first batch is appended (KIP-890; TX-27 to TX-31).

Corresponds to Kafka's `AddPartitionsToTxnManager`. This module does not look up coordinators itself: it gets a function that returns them.
"""

from __future__ import annotations

from collections.abc import Callable

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.transaction.coordinator import TransactionCoordinator
from kafkaproto.broker.transaction.operations import VerificationRequest, Verified
from kafkaproto.error_codes import ErrorCode


class Verifier:
    """Verifies or adds the partitions of transactions for the producers of one broker, with the help of the transaction coordinators.

    If a request adds partitions and its `retries` is true, the verifier repeats it while the coordinator is completing the producer's previous
    transaction (TX-31). coordinator_of: returns the coordinator of a transactional id, or raises KafkaError if there is none. retry_ms: returns the
    pause in ms before a repetition. retry_max_ms: returns the maximum time in ms for which a request is repeated.
    """

    def __init__(
        self,
        coordinator_of: Callable[[str], TransactionCoordinator],
        timers: Timers,
        retry_ms: Callable[[], int],
        retry_max_ms: Callable[[], int],
    ) -> None:
        self._coordinator_of = coordinator_of
        self._timers = timers
        self._retry_ms = retry_ms
        self._retry_max_ms = retry_max_ms

    def verify(self, request: VerificationRequest, now_ms: int, done: Verified) -> None:
        """Ask the transaction coordinator whether the producer's transaction contains the partitions in the request, or to add them (`adds`).

        `done` is called with an error code for each partition, possibly before this method returns.
        """
        self._try(request, now_ms, now_ms + self._retry_max_ms(), done)

    def _try(self, request: VerificationRequest, now_ms: int, deadline_ms: int, done: Verified) -> None:
        try:
            coordinator = self._coordinator_of(request.transactional_id)
        except KafkaError as error:
            done(dict.fromkeys(request.partitions, error.error_code), now_ms)
            return
        producer = request.transactional_id, request.producer_id, request.epoch
        if not request.adds:
            done(coordinator.verify_partitions(*producer, request.partitions), now_ms)
            return

        def added(error_code: int, at_ms: int) -> None:
            again_ms = at_ms + self._retry_ms()
            is_completing = error_code == ErrorCode.CONCURRENT_TRANSACTIONS
            if request.retries and is_completing and again_ms <= deadline_ms:
                self._timers.at(again_ms, lambda later_ms: self._try(request, later_ms, deadline_ms, done))
            else:
                done(dict.fromkeys(request.partitions, error_code), at_ms)

        coordinator.add_partitions(*producer, request.partitions, now_ms, added, client_version=2)
