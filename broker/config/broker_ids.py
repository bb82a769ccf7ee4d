"""Reads the broker ids in requests about settings, where the name of a broker's config resource is the broker's id as text."""

from __future__ import annotations

import re

from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

_NUMBER = re.compile(r"[+-]?[0-9]{1,10}")


def broker_id_of(resource_name: str, node_or_broker: str) -> int:
    """Return the broker id in `resource_name`, the name of a config resource. Raises KafkaError INVALID_REQUEST (42) if the name is not a number.

    node_or_broker: the first word of the error message. As in Kafka, it is "Node" in requests that change settings and "Broker" in DescribeConfigs.
    """
    if _NUMBER.fullmatch(resource_name) is None:
        raise KafkaError(
            ErrorCode.INVALID_REQUEST, f"{node_or_broker} id must be an integer, but it is: {resource_name}"
        )
    return int(resource_name)
