"""Broker ids: those that settings give to the brokers, and those in requests, where a config resource has the id of its broker as its name."""

from __future__ import annotations

import re
from collections.abc import Mapping

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

ID_SETTINGS = ("node.id", "broker.id")
HIGHEST_ID = 2**31 - 1
_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


def first_broker_id(given: Mapping[str, object]) -> int:
    """Return the lowest id of a cluster's brokers: `node.id` or else `broker.id`; 0 if neither has a value of at least 0 (CF-26).

    given: the settings given at start for all brokers, parsed or as text. Other checks reject values that are no numbers; here they are ignored.
    """
    texts = (str(given.get(name, "")).strip() for name in ID_SETTINGS)
    numbers = (int(text) for text in texts if _NUMBER.fullmatch(text))
    return next((number for number in numbers if 0 <= number <= HIGHEST_ID), 0)


def broker_id_of(resource_name: str, node_or_broker: str) -> int:
    """Return the broker id in `resource_name`, the name of a config resource. Raises KafkaError INVALID_REQUEST (42) if the name is not a number.

    node_or_broker: the first word of the error message. As in Kafka, it is "Node" in requests that change settings and "Broker" in DescribeConfigs.
    """
    if _NUMBER.fullmatch(resource_name) is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{node_or_broker} id must be an integer, but it is: {resource_name}"
        )
    return int(resource_name)
