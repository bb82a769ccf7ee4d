"""The errors of client libraries whose transactions another producer or the coordinator has ended."""

from __future__ import annotations

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
