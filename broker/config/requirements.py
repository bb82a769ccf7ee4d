"""Kafka's requirements on the settings of a broker that the range of a single setting cannot express.

Kafka checks these requirements when a broker starts and when a dynamic setting changes. Follows `KafkaConfig.validateValues` and `DynamicLogConfig`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkaproto.broker.config.values import connection_overrides

_MIB = 1024 * 1024
_AS_RETENTION = -2
"""The value of `log.local.retention.*` that means: use the value of `log.retention.*`."""

Get = Callable[[str], Any]
"""A function that returns the current value of the broker setting with the given name."""


def unmet_requirement(get: Get) -> str | None:
    """Return Kafka's message for the first requirement that the broker settings violate, None if they meet all requirements.

    get: returns the value of the broker setting with a given name.
    """
    if get("log.roll.ms") < 1:
        return "log.roll.ms must be greater than or equal to 1"
    if get("log.roll.jitter.ms") < 0:
        return "log.roll.jitter.ms must be greater than or equal to 0"
    if get("log.retention.ms") == 0:
        return "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    threads = get("log.cleaner.threads")
    if threads and get("log.cleaner.dedupe.buffer.size") // threads <= _MIB:
        return "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
    if get("max.connections.per.ip") == 0 and not connection_overrides(get("max.connections.per.ip.overrides")):
        return "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
    return None


def local_retention_rejection(get: Get) -> str | None:
    """Return Kafka's message if a `log.local.retention.*` setting, in ms or bytes, exceeds the corresponding `log.retention.*`; otherwise None.

    get: returns the value of the broker setting with a given name.
    """
    for unit in ("ms", "bytes"):
        name, local_name = f"log.retention.{unit}", f"log.local.retention.{unit}"
        limit, local = get(name), get(local_name)
        if limit < 0 or local == _AS_RETENTION or 0 <= local <= limit:
            continue
        above = f"Value must not be more than {name} property value: {limit}"
        reason = above if local > limit else f"Value must not be -1 as {name} value is set as {limit}."
        return f"Invalid value {local} for configuration {local_name}: {reason}"
    return None
