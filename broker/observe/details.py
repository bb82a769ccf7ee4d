"""The details of a request and its response: group, transactional id, topics, partitions, error names and offsets.

The messages of all APIs use the same few field names, so one traversal of a message finds the details. This module contains nothing
that is specific to one API.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, NamedTuple, cast, get_args, get_origin

from kafkaproto.error_codes import ErrorCode

MAX_RESULTS = 50
"""The maximum number of results that the details of one response contain."""

_NAMES = ("name", "topic", "resource_name", "group_id", "key", "transactional_id", "member_id", "log_dir")
_INDEXES = ("partition_index", "index", "partition", "partition_id")
_RESPONSE_OFFSETS = ("base_offset", "offset", "committed_offset", "end_offset", "low_watermark")
_REQUEST_OFFSETS = ("fetch_offset", "committed_offset")
_GROUPS = ("group_id", "coordinator_keys", "key", "groups")
_TRANSACTIONS = ("transactional_id", "v3_and_below_transactional_id", "transactional_ids", "transactions")
_COORDINATED = ("coordinator_keys", "key")
_TRANSACTION_KEY_TYPE = 1
"""The key type of a FindCoordinator request whose keys are transactional ids."""
_NO_OFFSET = -1
NO_RESPONSE = "no response"
"""The text used as the error of each partition if the request gets no response."""

TopicName = Callable[[bytes], str]


class Result(NamedTuple):
    """The result for one item of a request. partition: the partition number; None if the item is a topic, resource, group or key.

    error: the name of the error code, "NONE" without an error, or "no response". offset: the offset in the request for Fetch (fetch offset) and
    for commits; for other APIs the offset in the response, such as the base offset for Produce. None if there is none, or if it is negative.
    """

    name: str
    partition: int | None
    error: str
    offset: int | None

    def __str__(self) -> str:
        name = printable(self.name)
        text = name if self.partition is None else f"{name}-{self.partition}"
        if self.error != ErrorCode.NONE.name:
            text += f" {self.error}"
        elif self.offset is not None:
            text += f" offset {self.offset}"
        return text


class Details(NamedTuple):
    """The details of one request and its response: the group, transactional id and error, and the results for partitions or other items.

    group_id: the group ids in the request, or the keys of a FindCoordinator request for groups, joined by commas; None if there are none.
    error: the name of the error of the whole response, "NONE" without an error.
    """

    group_id: str | None = None
    error: str = ErrorCode.NONE.name
    results: tuple[Result, ...] = ()
    """One result for each partition, topic, resource or group in the response, at most 50."""
    left_out: int = 0
    """The number of results of the response that are missing in `results`, because `results` contains at most 50."""
    transactional_id: str | None = None
    """The transactional ids in the request, also in a FindCoordinator request, joined by commas; None if there are none."""

    @property
    def errors(self) -> tuple[str, ...]:
        """Return the names of the errors, each once, in the order of the response. "NONE" is left out."""
        names = (self.error, *(result.error for result in self.results))
        return tuple(dict.fromkeys(name for name in names if name != ErrorCode.NONE.name))

    def __str__(self) -> str:
        transaction = [] if self.transactional_id is None else [f"transactional id {printable(self.transactional_id)}"]
        group = [] if self.group_id is None else [f"group {printable(self.group_id)}"]
        error = [] if self.error == ErrorCode.NONE.name else [self.error]
        return " ".join([*transaction, *group, *error, ", ".join(_shortened(self.results, self.left_out))]).strip()


def _shortened(results: tuple[Result, ...], left_out: int, most: int = 4) -> Iterator[str]:
    yield from map(str, results[:most])
    if left_out_count := left_out + len(results[most:]):
        yield f"and {left_out_count} more"


def printable(text: str) -> str:
    """Return a name from a client unchanged, or quoted with escapes if it has control characters such as line breaks."""
    return text if text.isprintable() else repr(text)


def error_name(error_code: int) -> str:
    """Return the name of an error code, or the number as text if the code is unknown."""
    try:
        return ErrorCode(error_code).name
    except ValueError:
        return f"error {error_code}"


class RequestDetails(NamedTuple):
    """The details taken from a request: its group and transactional id, and its partitions with their offsets.

    group_id, transactional_id: the group ids and the transactional ids in the request, joined by commas; None if there are none. The keys of a
    FindCoordinator request are in the one that matches the key type. offsets: maps (topic, partition) to the offset in the request, or to None if
    the API sends no offset.
    """

    group_id: str | None = None
    offsets: Mapping[tuple[str, int], int | None] = {}
    transactional_id: str | None = None

    def unanswered(self) -> Details:
        """Return the details of a request that gets no response (acks=0)."""
        results = tuple(Result(name, index, NO_RESPONSE, None) for name, index in self.offsets)
        left_out = len(results[MAX_RESULTS:])
        return Details(self.group_id, ErrorCode.NONE.name, results[:MAX_RESULTS], left_out, self.transactional_id)


def request_details(request: Any, topic_name: TopicName) -> RequestDetails:
    """Return the group and transactional id of a request, and its partitions with their offsets. `response_details` combines them with the response.

    topic_name: a function that returns the name of a topic id, for requests that name topics by id.
    """
    items = _items(request, "", topic_name)
    offsets = {(name, index): _first(item, _REQUEST_OFFSETS) for name, item, index in items if index is not None}
    if _first(request, ("key_type",)) == _TRANSACTION_KEY_TYPE:
        return RequestDetails(None, offsets, _ids(request, _COORDINATED, "transactional_id"))
    group_id, transactional_id = _ids(request, _GROUPS, "group_id"), _ids(request, _TRANSACTIONS, "transactional_id")
    return RequestDetails(group_id, offsets, transactional_id)


def response_details(response: Any, request: RequestDetails, topic_name: TopicName) -> Details:
    """Return the details of a response, combined with those of its request.

    topic_name: a function that returns the name of a topic id, for responses that name topics by id.
    """
    results: list[Result] = []
    left_out = 0
    for name, item, index in _items(response, "", topic_name):
        if len(results) == MAX_RESULTS:
            left_out += 1
            continue
        offset = None if index is None else request.offsets.get((name, index))
        if offset is None:
            offset = _first(item, _RESPONSE_OFFSETS)
        result_offset = None if offset is None or offset <= _NO_OFFSET else offset
        results.append(Result(name, index, error_name(_error_code(item)), result_offset))
    error = error_name(_error_code(response))
    return Details(request.group_id, error, tuple(results), left_out, request.transactional_id)


def _ids(request: Any, names: tuple[str, ...], name_in_item: str) -> str | None:
    """Return the ids in a request as text, joined by commas; None if the request has no id.

    names: the fields that may contain an id or a list of ids. The first field that is not empty is used. name_in_item: the field that contains the
    id in each item of a list, if the items are structures.
    """
    for name in _existing_fields(cast(Any, type(request)), names):
        value = getattr(request, name)
        if isinstance(value, list):
            value = ", ".join(str(getattr(item, name_in_item, item)) for item in value)
        if value:
            return str(value)
    return None


def _items(message: Any, parent: str, topic_name: TopicName) -> Iterator[tuple[str, Any, int | None]]:
    """Yield (name, item, partition number) of each partition in a message, and (name, item, None) of other list items with an error code field.

    Some of these other items contain items themselves, as a topic in a Metadata response contains partitions. Such an outer item is yielded only if
    it has an error, or if none of its inner items is yielded. Its inner items are yielded only if they have an error or an offset.

    The yielded name is that of the topic, resource or group, or `parent` if the item has no name. message: a whole message, or an item that contains
    the items to yield. parent: the name of the item `message`; "" for a whole message. topic_name: a function that returns the name of a topic id.
    """
    for attribute in _list_fields(cast(Any, type(message))):
        for item in getattr(message, attribute) or ():
            name = _name_of(item, topic_name) or parent
            index = _first(item, _INDEXES)
            if index is not None:
                yield name, item, index
                continue
            inside = _items(item, name, topic_name)
            if not _error_fields(cast(Any, type(item))):
                yield from inside
                continue
            special_items = [
                pair for pair in inside if _error_code(pair[1]) or _first(pair[1], _RESPONSE_OFFSETS) is not None
            ]
            if _error_code(item) or not special_items:
                yield name, item, None
            yield from special_items


def _name_of(item: Any, topic_name: TopicName) -> str:
    name = _first(item, _NAMES)
    if name:
        return str(name)
    topic_id = getattr(item, "topic_id", None)
    return topic_name(topic_id) if topic_id and any(topic_id) else ""


def _first(item: Any, names: tuple[str, ...]) -> Any:
    """Return the value of the first attribute in `names` that `item` has, None if it has none of them."""
    for name in _existing_fields(cast(Any, type(item)), names):
        return getattr(item, name)
    return None


def _error_code(item: Any) -> int:
    """Return the first error code other than 0 in the fields of `item`: a response, or a part of one such as a partition. 0 if there is none."""
    for name in _error_fields(cast(Any, type(item))):
        if code := getattr(item, name):
            return int(code)
    return 0


@cache
def _error_fields(kind: Any) -> tuple[str, ...]:
    return tuple(field.name for field in fields(kind) if field.name.endswith("error_code"))


@cache
def _existing_fields(kind: Any, names: tuple[str, ...]) -> tuple[str, ...]:
    own = {field.name for field in fields(kind)}
    return tuple(name for name in names if name in own)


@cache
def _list_fields(kind: Any) -> tuple[str, ...]:
    """Return the names of the fields of the message class `kind` that are lists of structures."""
    return tuple(field.name for field in fields(kind) if any(map(_is_list_of_structures, _alternatives(field.type))))


def _alternatives(annotation: Any) -> tuple[Any, ...]:
    return get_args(annotation) if isinstance(annotation, UnionType) else (annotation,)


def _is_list_of_structures(annotation: Any) -> bool:
    return get_origin(annotation) is list and is_dataclass(get_args(annotation)[0])
