"""Kafka's requirements on the settings of a broker that the range of a single setting cannot express.

Kafka checks these requirements when a broker starts and when a dynamic setting changes. Follows `DynamicLogConfig` and `KafkaConfig.validateValues`,
except for what that method requires of controllers, roles of the process, SASL and old protocol versions.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from kafkaproto.broker.config.java_text import java_items
from kafkaproto.broker.config.release import is_release_4
from kafkaproto.broker.config.values import connection_overrides

_MIB = 1024 * 1024
_AS_RETENTION = -2
"""The value of `log.local.retention.*` that means: use the value of `log.retention.*`."""
BY_ZERO = "/ by zero"
"""Kafka's message if `log.cleaner.threads` is 0: Kafka divides the buffer of the cleaner by this number before it checks the number."""

Get = Callable[[str], Any]
"""A function that returns the current value of the broker setting with the given name."""


def unmet_requirement(get: Get, release: str) -> str | None:
    """Return Kafka's message for the first requirement that the broker settings violate, None if they meet all requirements.

    get: returns the value of the broker setting with a given name. release: the emulated release of Kafka.
    """
    node_id, broker_id = get("node.id"), get("broker.id")
    if node_id not in (None, -1, broker_id) and broker_id != -1:
        return "You must set `node.id` to the same value as `broker.id`."
    if not is_release_4(release) and get("zookeeper.metadata.migration.enable") and not get("zookeeper.connect"):
        return "If using `zookeeper.metadata.migration.enable` in KRaft mode, `zookeeper.connect` must also be set."
    return _unmet_by_logs(get) or _unmet_by_followers(get) or _unmet_by_network(get, release)


def _unmet_by_logs(get: Get) -> str | None:
    if get("log.roll.ms") < 1:
        return "log.roll.ms must be greater than or equal to 1"
    if get("log.roll.jitter.ms") < 0:
        return "log.roll.jitter.ms must be greater than or equal to 0"
    if get("log.retention.ms") == 0:
        return "log.retention.ms must be unlimited (-1) or, greater than or equal to 1"
    directories = get("log.dirs")
    if not any(java_items(get("log.dir") if directories is None else directories)):
        return "At least one log directory must be defined via log.dirs or log.dir."
    threads = get("log.cleaner.threads")
    if threads == 0:
        return BY_ZERO
    if get("log.cleaner.dedupe.buffer.size") // threads <= _MIB:
        return "log.cleaner.dedupe.buffer.size must be at least 1MB per cleaner thread."
    return None


def _unmet_by_followers(get: Get) -> str | None:
    wait, timeout, lag = "replica.fetch.wait.max.ms", "replica.socket.timeout.ms", "replica.lag.time.max.ms"
    if get(wait) > get(timeout):
        return f"{timeout} should always be at least {wait} to prevent unnecessary socket timeouts"
    if get(wait) > get(lag):
        return f"{wait} should always be less than or equal to {lag} to prevent frequent changes in ISR"
    return None


def _unmet_by_network(get: Get, release: str) -> str | None:
    protocols, control_plane = "listener.security.protocol.map", "control.plane.listener.name"
    control_plane_listener = None if is_release_4(release) else get(control_plane)
    if control_plane_listener is not None:
        if control_plane_listener.upper() not in {
            part.partition(":")[0].strip().upper() for part in get(protocols).split(",")
        }:
            return (
                f"Listener with {control_plane_listener.upper()} defined in {control_plane} not found in {protocols}."
            )
        if get("process.roles"):
            return f"{control_plane} is not supported in KRaft mode."
    advertised = get("advertised.listeners") or ""
    if any(part.partition("://")[2].rpartition(":")[0] == "0.0.0.0" for part in advertised.split(",")):
        return "advertised.listeners cannot use the nonroutable meta-address 0.0.0.0. Use a routable IP address."
    if 0 < get("queued.max.request.bytes") < get("socket.request.max.bytes"):
        return "queued.max.request.bytes must be larger or equal to socket.request.max.bytes"
    if get("max.connections.per.ip") == 0 and not connection_overrides(get("max.connections.per.ip.overrides")):
        return "max.connections.per.ip can be set to zero only if max.connections.per.ip.overrides property is set."
    idle_ms, delay_ms = get("connections.max.idle.ms"), get("connection.failed.authentication.delay.ms")
    if 0 <= idle_ms <= delay_ms:
        return (
            f"connection.failed.authentication.delay.ms={delay_ms} should always be less than "
            f"connections.max.idle.ms={idle_ms} to prevent failed authentication responses from timing out"
        )
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
