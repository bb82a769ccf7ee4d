"""Imports the request handlers and prepares the message layouts of consumer groups, before the first client needs them.

The pytest plugin, or the first start of a cluster in a thread, calls `load_now`. Without this call, the first consumer group of a process would take
more than ten times as long as the second.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

_VERSIONS = {
    "API_VERSIONS": (0, 3, 4),
    "METADATA": (5, 12),
    "FIND_COORDINATOR": (1, 2, 6),
    "JOIN_GROUP": (5, 7),
    "SYNC_GROUP": (3, 5),
    "HEARTBEAT": (3,),
    "LEAVE_GROUP": (1, 5),
    "OFFSET_FETCH": (3, 8, 9),
    "OFFSET_COMMIT": (3, 8, 9),
    "LIST_OFFSETS": (3, 7, 9),
    "FETCH": (11, 12, 16),
}
"""Maps the APIs that consumer groups use to the request versions that aiokafka, confluent-kafka and kafka-python use (end of 2025)."""

_steps: list[Callable[[], object]] = [lambda: _list_steps()]
"""The functions that `load_now` still has to run.

At first this is only `_list_steps`, which adds the functions that import modules and prepare message layouts.
"""


def load_now() -> None:
    """Import the request handlers and prepare the message layouts that consumer groups need, unless this was done before."""
    while True:
        try:
            step = _steps.pop()
        except IndexError:  # all is loaded, or another thread runs the last one
            return
        step()


def _list_steps() -> None:
    """Fill `_steps` with functions: they prepare message layouts and request headers, and import the request handlers and the group coordinator."""
    _steps.extend(partial(_load_layout, name, version) for name in _VERSIONS for version in _VERSIONS[name])
    _steps.extend((_load_headers, _load_groups))
    _steps.extend(partial(_load_handler, name) for name in ("PRODUCE", *_VERSIONS))


def _load_headers() -> None:
    from kafkaproto.header import REQUEST_HEADERS

    for header in REQUEST_HEADERS.values():
        _ = header.decode_flat


def _load_groups() -> None:
    """Import the module of the group coordinator, and prepare the layouts of the records that it writes for classic groups and their offsets."""
    import kafkaproto.broker.group.coordinator
    import kafkaproto.broker.replication.coordinator_log  # noqa: F401
    from kafkaproto.data.group_metadata_key import GroupMetadataKey
    from kafkaproto.data.group_metadata_value import GroupMetadataValue
    from kafkaproto.data.offset_commit_key import OffsetCommitKey
    from kafkaproto.data.offset_commit_value import OffsetCommitValue

    for kind, version in ((OffsetCommitKey, 1), (OffsetCommitValue, 3), (GroupMetadataKey, 2), (GroupMetadataValue, 3)):
        _ = kind.layout(version).encode_flat


def _load_handler(name: str) -> None:
    from kafkaproto.api import ApiKey
    from kafkaproto.broker.requests.registry import load_handler

    load_handler(ApiKey[name])


def _load_layout(name: str, version: int) -> None:
    from kafkaproto.api import ApiKey, codec

    layout = codec(ApiKey[name], version)
    _ = layout.decode_request, layout.encode_response
