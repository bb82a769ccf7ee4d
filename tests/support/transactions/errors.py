"""The errors of client libraries whose transactions another producer or the coordinator has ended."""

from __future__ import annotations

import re
from typing import NamedTuple

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION


class Errors(NamedTuple):
    """The names of a client's errors: `fenced` by a newer instance when it commits, and `late` when it sends after its transaction timed out."""

    fenced: str
    late: str


ERRORS = {
    f"java-{KAFKA_VERSION}": Errors("ProducerFencedException", "InvalidProducerEpochException"),
    f"java-{NEWER_VERSION}": Errors("ProducerFencedException", "InvalidProducerEpochException"),
    "confluent-kafka": Errors("_FENCED", "INVALID_PRODUCER_EPOCH"),
    "kafka-python": Errors("ProducerFencedError", "InvalidProducerEpochError"),
    "aiokafka": Errors("ProducerFenced", "ProducerFenced"),
    "franz-go": Errors("PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH"),
    "kafkajs": Errors("INVALID_PRODUCER_EPOCH", "INVALID_PRODUCER_EPOCH"),
}

_FROM_KILLED_BROKER = {
    "franz-go": re.compile(
        r"COORDINATOR_(LOAD_IN_PROGRESS|NOT_AVAILABLE)|NOT_COORDINATOR|REQUEST_TIMED_OUT"
        r"|(.*: )?(unexpected )?EOF|.*: (connection refused|connection reset by peer|broken pipe)"
        r"|broker closed the connection immediately after .*|the broker connection has died .*"
        # The session lost its group coordinator, or could not send its heartbeat.
        r"|the session aborted the transaction|context deadline exceeded"
    ),
    "kafkajs": re.compile(
        r"GROUP_LOAD_IN_PROGRESS|GROUP_COORDINATOR_NOT_AVAILABLE|NOT_COORDINATOR_FOR_GROUP|REQUEST_TIMED_OUT"
        # The last two: KafkaJS found no broker that it can reach. It repeats only the search for a coordinator.
        r"|KafkaJS(ConnectionError|ConnectionClosedError|RequestTimeoutError|GroupCoordinatorNotFound|NumberOfRetriesExceeded)"
    ),
}
"""The names of the errors that a client library reports because its broker is killed and starts again.

They are lost connections, timeouts, and errors of a coordinator that is not there or loads. Other libraries send their requests again.
"""


def is_from_killed_broker(library: str, name: str) -> bool:
    """Return whether the library reports an error of this name when its broker is killed and starts again."""
    return library in _FROM_KILLED_BROKER and bool(_FROM_KILLED_BROKER[library].fullmatch(name))
