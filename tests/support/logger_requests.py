"""A sequence of requests about the levels of a broker's loggers (KIP-412), for this broker and a real Kafka."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from kafkaproto.messages.alter_configs import AlterableConfig as ReplacedConfig
from kafkaproto.messages.alter_configs import AlterConfigsRequest
from kafkaproto.messages.alter_configs import AlterConfigsResource as ReplacedResource
from kafkaproto.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from kafkaproto.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)

LOGGERS = 8
SET, DELETE, APPEND, SUBTRACT, UNKNOWN = 0, 1, 2, 3, 9
Ask = Callable[[Any, int], Any]
"""A function of (request, API version) that sends the request to broker 0 and returns the response."""
Operations = Sequence[tuple[str, int, str | None]]


def describe(ask: Ask, broker: str, *names: str, version: int = 4) -> list[Any]:
    """Return error code, message, and the fields of each described logger."""
    resource = DescribeConfigsResource(LOGGERS, broker, list(names) or None)
    result = ask(DescribeConfigsRequest([resource], version >= 1, version >= 3), version).results[0]
    configs = [
        (c.name, c.value, c.read_only, c.config_source, c.is_sensitive, c.config_type, c.documentation, c.synonyms)
        for c in result.configs
    ]
    return [result.error_code, result.error_message, configs]


def alter(ask: Ask, broker: str, *operations: tuple[str, int, str | None], validate_only: bool = False) -> list[Any]:
    """Return error code and message of an IncrementalAlterConfigs response."""
    changes = [AlterableConfig(*operation) for operation in operations]
    request = IncrementalAlterConfigsRequest([AlterConfigsResource(LOGGERS, broker, changes)], validate_only)
    result = ask(request, 1).responses[0]
    return [result.error_code, result.error_message]


def conversation(ask: Ask, logger: str) -> list[Any]:
    """Return the results of all kinds of requests about one logger. In the results, the logger's name is replaced by `<logger>`."""
    alterations: list[tuple[str, Operations]] = [
        ("0", [(logger, SET, "DEBUG")]),
        *(("0", [(logger, SET, level)]) for level in ("debug", "LOUD", "OFF", "", None, "FATAL", "TRACE", "ERROR")),
        *(("0", [(logger, operation, "INFO")]) for operation in (APPEND, SUBTRACT, UNKNOWN)),
        *(("0", [("no.such.logger", operation, "INFO")]) for operation in (SET, DELETE)),
        *(("0", [("", operation, "INFO")]) for operation in (SET, DELETE)),
        ("0", [(logger, SET, "INFO"), (logger, SET, "WARN")]),
        ("0", [(logger, SET, "INFO"), ("no.such.logger", SET, "INFO")]),
        ("0", [("no.such.logger", SET, "LOUD")]),
        ("0", [("no.such.logger", APPEND, "INFO")]),
        *((broker, [(logger, SET, "INFO")]) for broker in ("1", "-1", "", "x", "00", "+0")),
        ("0", [("root", SET, "WARN"), (logger, DELETE, None)]),
        ("0", [("root", DELETE, None)]),
        ("0", [("root", SET, "INFO")]),
        ("0", []),
    ]
    results: list[Any] = [describe(ask, broker) for broker in ("", "1", "-1", "x")]
    for broker, operations in alterations:
        results += [alter(ask, broker, *operations), describe(ask, "0", logger)]
    results += [alter(ask, "0", (logger, SET, "TRACE"), validate_only=True), describe(ask, "0", logger, "root")]
    results += [describe(ask, broker, logger) for broker in ("00", "+0")]
    results += [describe(ask, "0", "no.such.logger"), describe(ask, "0", logger, version=1)]
    replaced = AlterConfigsRequest([ReplacedResource(LOGGERS, "0", [ReplacedConfig(logger, "INFO")])])
    result = ask(replaced, 2).responses[0]
    results.append([result.error_code, result.error_message])
    return [repr(result).replace(logger, "<logger>") for result in results]
