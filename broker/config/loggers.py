"""The loggers of the broker as a config resource of type 8: their names, their levels, and changes of levels (KIP-412).

The loggers are Python's logger `kafkaproto`, which clients address as `root`, and all loggers below `kafkaproto`. All brokers of a process share the
loggers. `change_levels` raises KafkaError INVALID_CONFIG (40) for an unknown logger or level, UNKNOWN_SERVER_ERROR (-1) for an unknown operation, and
INVALID_REQUEST (42) for any other invalid change (AD-42).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence

from kafkaproto.broker.config.broker_ids import broker_id_of
from kafkaproto.broker.config.dynamic import Change, Operation
from kafkaproto.broker.config.release import is_release_4
from kafkaproto.broker.errors import KafkaError
from kafkaproto.error_codes import ErrorCode

RESOURCE = "BROKER_LOGGER"
"""Kafka's name of the config resource type for loggers."""
ROOT = "root"
TOP = "kafkaproto"
TRACE = 5
"""The number that stands for Kafka's log level TRACE, which Python lacks. A logger at this level logs everything."""
LEVELS = {
    "DEBUG": logging.DEBUG,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
    "INFO": logging.INFO,
    "TRACE": TRACE,
    "WARN": logging.WARNING,
}
"""Maps Kafka's names of log levels to Python's numbers, in the order in which Kafka's error message lists the levels."""


def levels() -> Iterator[tuple[str, str]]:
    """Yield (name, level) of each logger: `root`, then the others by name. A logger without a level of its own has that of its parent."""
    names = [name for name in logging.root.manager.loggerDict if _existing(name)]
    for name in (ROOT, *sorted(names)):
        yield name, _name_of(_logger(name).getEffectiveLevel())


def check_broker_id(name: str, own_id: int, node_or_broker: str, message: str) -> None:
    """Raise KafkaError unless `name`, the name of a resource, is `own_id`, the id of the broker that received the request.

    node_or_broker: "Node" or "Broker", the word for the broker in the message about a name that is not a number. message: the message about
    another id, such as "expected 2 but received {}". The received id replaces the braces.
    """
    received_id = broker_id_of(name, node_or_broker)
    if received_id != own_id:
        raise KafkaError(ErrorCode.INVALID_REQUEST, message.format(received_id))


def change_levels(own_id: int, broker: str, changes: Sequence[Change], validate_only: bool, release: str) -> None:
    """Set or delete the levels of loggers. If one change is invalid, none is made. A logger whose level is deleted inherits the level of its parent.

    own_id: the id of the broker that received the request. broker: the name of the resource in the request, which must be `own_id` as text.
    validate_only: whether to check the changes without making them. release: the emulated release of Kafka. Raises KafkaError for the first
    invalid change, and for the id of another broker; before 4.0, the message of this error wrongly names `own_id` as the received id, too.
    """
    received_id = "{}" if is_release_4(release) else own_id
    check_broker_id(broker, own_id, "Node", f"Unexpected node id. Expected {own_id}, but received {received_id}")
    for change in changes:
        _check(change)
    if not validate_only:
        for change in changes:
            level = logging.NOTSET if change.operation == Operation.DELETE else LEVELS[change.value or ""]
            _logger(change.name).setLevel(level)


def _check(change: Change) -> None:
    if change.operation in (Operation.APPEND, Operation.SUBTRACT):
        operation = Operation(change.operation).name
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{operation} operation is not allowed for the {RESOURCE} resource")
    if change.operation not in list(Operation):
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
    if change.name != ROOT and not _existing(change.name):
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"Logger {change.name} does not exist!")
    if change.operation == Operation.DELETE and change.name == ROOT:
        raise KafkaError(ErrorCode.INVALID_REQUEST, "Removing the log level of the root logger is not allowed")
    if change.operation == Operation.SET and change.value not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            f"Cannot set the log level of {change.name} to {change.value} as it is not a supported log level. "
            f"Valid log levels are {', '.join(LEVELS)}",
        )


def _existing(name: str) -> bool:
    """Return whether a logger of this broker with this name exists."""
    return name.startswith(f"{TOP}.") and isinstance(logging.root.manager.loggerDict.get(name), logging.Logger)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(TOP if name == ROOT else name)


def _name_of(level: int) -> str:
    """Return the name of the Kafka log level that corresponds to the Python log level `level`.

    It is the lowest Kafka level whose number is `level` or higher; FATAL if `level` is above all of them.
    """
    return next((name for name in sorted(LEVELS, key=LEVELS.__getitem__) if LEVELS[name] >= level), "FATAL")
