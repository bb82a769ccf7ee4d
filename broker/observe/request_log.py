"""Logs requests and connections at DEBUG, for `kafkaproto broker --log-level debug`."""

from __future__ import annotations

import logging
from typing import Any

from kafkaproto.broker.observe.journal import Journal
from kafkaproto.broker.runtime.events import Observer

logger = logging.getLogger("kafkaproto.requests")


class RequestLog(Observer):
    """An observer that logs each new connection and each completed request. It gets the requests from `journal`, the cluster's list of requests.

    Attach this observer after the journal, so that the journal already contains the request.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def connection_opened(self, broker_id: int, connection: Any, now_ms: int) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(
                "%s broker %d connection %d opened from %s on listener %s",
                self._journal.elapsed(now_ms),
                broker_id,
                connection.connection_id,
                connection.client_address,
                connection.listener_name,
            )

    def response_ready(self, *_: Any) -> None:
        self._log()

    def request_unanswered(self, *_: Any) -> None:
        self._log()

    def _log(self) -> None:
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug("%s", next(self._journal.latest(1)))
