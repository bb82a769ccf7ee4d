"""The settings of the transaction coordinator."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

DEFAULT_COMPLETION_MS = 1
"""Default number of ms between the response to EndTxn and the writing of the markers.

This is about the median in Kafka 3.9.1 and 4.2.0, measured by `python -m tests.oracle.transaction_completion` (TX-39 has the numbers).
"""


@dataclass(frozen=True, slots=True)
class TransactionSettings:
    """The settings of the transaction coordinator, with Kafka's defaults.

    - max_timeout_ms: `transaction.max.timeout.ms`.
    - timeout_check_ms: how often transactions are checked for their timeout.
    - expiration_ms: after how long an unused transactional id is removed.
    - expiration_check_ms: how often the broker checks for unused transactional ids.
    - server_version: a function that returns the finalized level of the feature `transaction.version`, 0 to 2 (KIP-890).
    - is_release_4: whether the broker behaves as Kafka 4.
    - completion_ms: a function that returns how many ms pass from the response to EndTxn until the markers are written.
    """

    max_timeout_ms: int = 900_000
    timeout_check_ms: int = 10_000
    expiration_ms: int = 7 * 24 * 3_600_000
    expiration_check_ms: int = 3_600_000
    server_version: Callable[[], int] = lambda: 0
    is_release_4: bool = False
    completion_ms: Callable[[], int] = lambda: DEFAULT_COMPLETION_MS
