"""Broker ids in requests about settings, where the name of a broker's config resource is the broker's id as text."""

from __future__ import annotations

import re

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


def broker_id_of(name: str, kind: str) -> int:
    """Return the broker id that a config resource has as its name. Raises KafkaError INVALID_REQUEST (42), in Kafka's words, if it is not a number.

    kind: what Kafka's error calls the broker: "Node" where settings are changed, "Broker" where they are described.
    """
    if _NUMBER.fullmatch(name) is None:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{kind} id must be an integer, but it is: {name}")
    return int(name)
