"""The APIs of the broker: the versions that its handlers support, and the handlers. The first request of an API imports its handler.

`register` adds a handler. `advertised` limits the APIs to the versions of a Kafka release.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from kafkaproto.api import ApiKey
from kafkaproto.broker.requests.delayed import Delayed
from kafkaproto.broker.requests.outcomes import Outcome
from kafkaproto.releases import Ranges

Handler = Callable[[Any, Any], Outcome | Delayed]
"""A function of (exchange, request message) that returns the outcome, or a `Delayed` that completes later. An exchange is a request in progress."""
Failed = Callable[[Any, Any, int], Outcome]
"""A function of (exchange, request message, error code) that returns an error response of the API. An exchange is a request in progress."""
H = TypeVar("H", bound=Callable[..., Any])

VERSIONS: Mapping[int, tuple[int, int]] = {
    ApiKey.PRODUCE: (0, 13),
    ApiKey.FETCH: (0, 18),
    ApiKey.LIST_OFFSETS: (0, 11),
    ApiKey.METADATA: (0, 13),
    ApiKey.OFFSET_COMMIT: (0, 10),
    ApiKey.OFFSET_FETCH: (0, 10),
    ApiKey.FIND_COORDINATOR: (0, 6),
    ApiKey.JOIN_GROUP: (0, 9),
    ApiKey.HEARTBEAT: (0, 4),
    ApiKey.LEAVE_GROUP: (0, 5),
    ApiKey.SYNC_GROUP: (0, 5),
    ApiKey.DESCRIBE_GROUPS: (0, 6),
    ApiKey.LIST_GROUPS: (0, 5),
    ApiKey.SASL_HANDSHAKE: (0, 1),
    ApiKey.API_VERSIONS: (0, 4),
    ApiKey.CREATE_TOPICS: (0, 7),
    ApiKey.DELETE_TOPICS: (0, 6),
    ApiKey.DELETE_RECORDS: (0, 2),
    ApiKey.INIT_PRODUCER_ID: (0, 5),
    ApiKey.OFFSET_FOR_LEADER_EPOCH: (0, 4),
    ApiKey.ADD_PARTITIONS_TO_TXN: (0, 5),
    ApiKey.ADD_OFFSETS_TO_TXN: (0, 4),
    ApiKey.END_TXN: (0, 5),
    ApiKey.WRITE_TXN_MARKERS: (0, 2),
    ApiKey.TXN_OFFSET_COMMIT: (0, 5),
    ApiKey.DESCRIBE_ACLS: (0, 3),
    ApiKey.CREATE_ACLS: (0, 3),
    ApiKey.DELETE_ACLS: (0, 3),
    ApiKey.DESCRIBE_CONFIGS: (0, 4),
    ApiKey.ALTER_CONFIGS: (0, 2),
    ApiKey.ALTER_REPLICA_LOG_DIRS: (0, 2),
    ApiKey.DESCRIBE_LOG_DIRS: (0, 4),
    ApiKey.SASL_AUTHENTICATE: (0, 2),
    ApiKey.CREATE_PARTITIONS: (0, 3),
    ApiKey.CREATE_DELEGATION_TOKEN: (0, 3),
    ApiKey.RENEW_DELEGATION_TOKEN: (0, 2),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (0, 2),
    ApiKey.DESCRIBE_DELEGATION_TOKEN: (0, 3),
    ApiKey.DELETE_GROUPS: (0, 2),
    ApiKey.ELECT_LEADERS: (0, 2),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (0, 1),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (0, 1),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (0, 0),
    ApiKey.OFFSET_DELETE: (0, 0),
    ApiKey.DESCRIBE_CLIENT_QUOTAS: (0, 1),
    ApiKey.ALTER_CLIENT_QUOTAS: (0, 1),
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (0, 0),
    ApiKey.DESCRIBE_QUORUM: (0, 2),
    ApiKey.UPDATE_FEATURES: (0, 2),
    ApiKey.DESCRIBE_CLUSTER: (0, 2),
    ApiKey.DESCRIBE_PRODUCERS: (0, 0),
    ApiKey.UNREGISTER_BROKER: (0, 0),
    ApiKey.DESCRIBE_TRANSACTIONS: (0, 0),
    ApiKey.LIST_TRANSACTIONS: (0, 2),
    ApiKey.CONSUMER_GROUP_HEARTBEAT: (0, 1),
    ApiKey.CONSUMER_GROUP_DESCRIBE: (0, 1),
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS: (0, 0),
    ApiKey.PUSH_TELEMETRY: (0, 0),
    ApiKey.LIST_CONFIG_RESOURCES: (0, 1),
    ApiKey.DESCRIBE_TOPIC_PARTITIONS: (0, 0),
    ApiKey.ADD_RAFT_VOTER: (0, 1),
    ApiKey.REMOVE_RAFT_VOTER: (0, 0),
}
"""Maps each API to the first and the last version that its handler supports.

The handler of an API is in the module of the same name in `broker.handlers`.
"""


@dataclass(slots=True)
class Registration:
    """One API: its versions, its handler, and the function that makes its error response if the handler raises (W-7).

    min_version, max_version: the range in the ApiVersions response. first_accepted: the lowest version that is handled; it is above `min_version`
    only for Produce in Kafka 4 (W-3).
    """

    api_key: int
    min_version: int
    max_version: int
    handler: Handler
    failed: Failed
    first_accepted: int


_handlers: dict[int, tuple[Handler, Failed]] = {}
"""Maps API keys to (handler, function that makes the error response), for the handlers whose modules are imported."""


def register(api_key: int, failed: Failed) -> Callable[[H], H]:
    """Return a decorator for the handler of `api_key`. failed: a function that makes the API's error response, sent if the handler raises."""

    def note(handler: H) -> H:
        if api_key in _handlers:
            raise ValueError(f"API key {api_key} already has a handler; register only one handler for each API key")
        _handlers[api_key] = handler, failed
        return handler

    return note


def load_handler(api_key: int) -> tuple[Handler, Failed]:
    """Return an API's handler, and the function that makes its error response. The first call for an API imports its module (some milliseconds)."""
    if api_key not in _handlers:
        importlib.import_module(f"kafkaproto.broker.handlers.{ApiKey(api_key).name.lower()}")
    return _handlers[api_key]


def load_handlers() -> None:
    """Import all handlers, so that processes that are forked from this one need not import them."""
    for api_key in VERSIONS:
        load_handler(api_key)


def registration_of(
    api_key: int, min_version: int, max_version: int, first_accepted: int | None = None
) -> Registration:
    """Return the registration of an API. The first request of the API imports its handler.

    min_version, max_version: the inclusive range that ApiVersions lists. first_accepted: the lowest version that the broker handles, if it is above
    `min_version`; None if the broker handles the whole range.
    """

    def load() -> None:
        registration.handler, registration.failed = load_handler(api_key)

    def handle(exchange: Any, request: Any) -> Outcome | Delayed:
        load()
        return registration.handler(exchange, request)

    def fail(exchange: Any, request: Any, error_code: int) -> Outcome:
        load()
        return registration.failed(exchange, request, error_code)

    lowest = min_version if first_accepted is None else first_accepted
    registration = Registration(api_key, min_version, max_version, handle, fail, lowest)
    return registration


REGISTRY: Mapping[int, Registration] = {key: registration_of(key, *versions) for key, versions in VERSIONS.items()}
"""Maps each API key to the registration of its API, in all versions that the handler supports."""


def advertised(release_ranges: Ranges, accepted_ranges: Ranges | None = None) -> dict[int, Registration]:
    """Return the APIs that a broker of a release offers, by API key.

    release_ranges: the versions in the release's ApiVersions response. An API is offered in the versions that the release and the handler have in
    common. An API without a common version is left out. accepted_ranges: the versions of each API that the release handles; None if it handles
    all versions in `release_ranges`. For example, Kafka 4 lists low versions of Produce in ApiVersions, but rejects requests of these versions.
    """
    registrations = {}
    for key, (first, last) in VERSIONS.items():
        low, high = release_ranges.get(key, (0, -1))
        low, high = max(low, first), min(high, last)
        if low <= high:
            registrations[key] = registration_of(key, low, high, max(low, (accepted_ranges or release_ranges)[key][0]))
    return registrations
