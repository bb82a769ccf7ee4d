"""The way of every request: `begin` decodes and dispatches, `finish` charges quotas and encodes (`KafkaApis`, `RequestHandlerHelper`).

Order of charges is Kafka's: produce bytes then request time, fetch request time then bytes, everything else request time; the larger
throttle is answered at once and the connection muted for it (KIP-219). Must never know what an API does, nor asyncio.
"""

from __future__ import annotations

import functools
import importlib
import logging
import pkgutil
from collections.abc import Callable, Sequence
from struct import Struct
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from kafkaproto.api import ApiKey, Codec, codec, request_header_version
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.charges import (
    NOT_THROTTLED,
    Charged,
    charge_exempt,
    charge_mutations,
    charge_produce,
    charge_request,
)
from kafkaproto.broker.requests.delayed_response import DelayedResponse
from kafkaproto.broker.requests.registry import (
    REGISTRY,
    Build,
    Charge,
    DelayedOperation,
    NoAnswer,
    Peer,
    Registration,
    RequestContext,
    Response,
    Result,
)
from kafkaproto.broker.requests.throttled_fetch import charge_fetch
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError
from kafkaproto.frame import LENGTH_BYTES, LeftOut, finish_frame, spliced_parts
from kafkaproto.header import REQUEST_HEADERS, start_response

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node

logger = logging.getLogger("kafkaproto.requests")

T = TypeVar("T")
_KEY_AND_VERSION = Struct(">hh")

NANOS_PER_MS = 1_000_000
PERCENT_PER_NANO = 100.0 / 1_000_000_000
"""One thread for one second is 100 percent (Q-15). By nanoseconds, as Kafka counts, for equal doubles."""


class Waiting(Protocol):
    """What goes on for a connection that may go first."""

    def abandon(self) -> None: ...


class Asker(Peer, Protocol):
    """The connection as the pipeline needs it."""

    parked: Waiting | None

    def answer(self, buffers: Sequence[object] | None, throttle_ms: int, close: bool, now_ms: int) -> None: ...

    def refuse(self, why: str) -> None: ...


@functools.cache
def load_handlers() -> None:
    """Import every handler: each registers itself. A new API is a new file, nothing else (house §5).

    Costs some 50 ms once per process, so it waits for the first request, or for the idle moment after a start.
    """
    package = importlib.import_module("kafkaproto.broker.handlers")
    for module in pkgutil.iter_modules(package.__path__, "kafkaproto.broker.handlers."):
        importlib.import_module(module.name)


class Parked:
    """A request whose handler waits. Its connection may go first."""

    __slots__ = ("_asker", "_codec", "_context", "_operation")

    def __init__(self, context: RequestContext, api: Codec, asker: Asker, operation: DelayedOperation) -> None:
        self._context = context
        self._codec = api
        self._asker = asker
        self._operation = operation

    def finish(self, build: Build, now_ms: int) -> None:
        """An answer that cannot be built ends its own connection, as it would have at once (W-8)."""
        context = self._context
        context.now_ms = now_ms
        completed = context.node.events.request_completed
        if completed is not None:
            completed(context)
        try:
            result = _timed(context, build) if context.node.quotas.request.enabled else build()
            finish(context, self._codec, self._asker, result)
        except Exception:
            logger.exception("the answer to %s v%d cannot be sent", self._codec.name, self._codec.version)
            self._asker.refuse("its answer cannot be sent")

    def abandon(self) -> None:
        self._operation.abandon()


def begin(node: Node, asker: Asker, frame: memoryview, now_ms: int) -> None:
    """Take one whole frame. Ends in `asker.answer`, now or later, or in `asker.refuse`."""
    size = len(frame)
    if size < _KEY_AND_VERSION.size:
        _refuse(node, asker, frame, now_ms, f"a frame of {size} bytes holds no request header")
        return
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    registration = node.apis.get(key)
    if registration is None or not registration.min_version <= version <= registration.max_version:
        _unsupported(node, asker, frame, key, version, now_ms)
        return
    api = codec(key, version)
    try:
        header, position = REQUEST_HEADERS[api.request_header_version].decode_flat(frame, 0, size)
        request, end = api.decode_request(frame, position, size)
    except DecodeError as error:
        _refuse(node, asker, frame, now_ms, f"{api.name} request v{version} cannot be read: {error}")
        return
    context = RequestContext(node, asker, key, version, header.correlation_id, header.client_id, size, now_ms)
    asker.exchange = context
    if node.events.request_begun is not None:
        node.events.request_begun(context, api, frame, position, end, request)
    result = _handle(registration, context, request)
    if isinstance(result, DelayedOperation):
        parked = Parked(context, api, asker, result)
        asker.parked = parked
        if not result.done and node.events.request_parked is not None:
            node.events.request_parked(context)
        result.attach(parked.finish)
    else:
        finish(context, api, asker, result)


def _handle(registration: Registration, context: RequestContext, request: Any) -> Result | DelayedOperation:
    """Request time is measured while somebody's is limited, and only then (Q-1, Q-15)."""
    node = context.node
    if not node.quotas.request.enabled:
        return _call(registration, context, request)
    if not node.clock.is_wall:
        context.handling_ms = node.scripted_cost_ms(context.api_key)
        return _call(registration, context, request)
    counted_ms, started_ms = node.counted_ms, node.clock.precise_ms()
    result = _call(registration, context, request)
    _count_time(context, counted_ms, started_ms)
    return result


def _timed(context: RequestContext, work: Callable[[], T]) -> T:
    """Do what is left of a request that has waited, and count how long it took."""
    node = context.node
    if not node.clock.is_wall:
        return work()
    counted_ms, started_ms = node.counted_ms, node.clock.precise_ms()
    result = work()
    _count_time(context, counted_ms, started_ms)
    return result


def _count_time(context: RequestContext, counted_ms: float, started_ms: float) -> None:
    """Count handler time since `started_ms`, without what was counted meanwhile for others (it may let parked requests answer)."""
    node = context.node
    elapsed_ms = node.clock.precise_ms() - started_ms
    context.handling_ms += elapsed_ms - (node.counted_ms - counted_ms)
    node.counted_ms = counted_ms + elapsed_ms


def _call(registration: Registration, context: RequestContext, request: Any) -> Result | DelayedOperation:
    """A handler that raises answers with its API's own error form and the connection stays (W-7)."""
    try:
        return registration.handler(context, request)
    except KafkaError as error:
        return registration.failed(context, request, error.error_code)
    except Exception:
        logger.exception("%s v%d failed", ApiKey(context.api_key).name, context.api_version)
        return registration.failed(context, request, ErrorCode.UNKNOWN_SERVER_ERROR)


def _unsupported(node: Node, asker: Asker, frame: memoryview, key: int, version: int, now_ms: int) -> None:
    """W-3: closed without a word, but for ApiVersions, which answers 35 in its version 0 so that a client can step down.

    Its header must be whole all the same; the body is anybody's.
    """
    registration = node.apis.get(ApiKey.API_VERSIONS)
    if key != ApiKey.API_VERSIONS or registration is None:
        _refuse(node, asker, frame, now_ms, f"api key {key} version {version} is not offered")
        return
    try:
        header, _ = REQUEST_HEADERS[request_header_version(key, version)].decode_flat(frame, 0, len(frame))
    except DecodeError as error:
        _refuse(node, asker, frame, now_ms, f"the header of ApiVersions v{version} cannot be read: {error}")
        return
    context = RequestContext(node, asker, key, 0, header.correlation_id, header.client_id, len(frame), now_ms)
    asker.exchange = context
    if node.events.request_begun is not None:
        node.events.request_begun(context, None, frame, 0, 0, None)
    failed = registration.failed(context, None, ErrorCode.UNSUPPORTED_VERSION)
    finish(context, codec(key, 0), asker, failed)


def _refuse(node: Node, asker: Asker, frame: memoryview, now_ms: int, why: str) -> None:
    """Closed without an answer (W-3, W-5)."""
    if node.events.request_refused is not None:
        node.events.request_refused(node.broker_id, asker, frame, why, now_ms)
    asker.refuse(why)


def finish(context: RequestContext, api: Codec, asker: Asker, result: Result) -> None:
    """Charge, throttle, encode, hand over."""
    if context.node.delays_responses and result.charge is not Charge.EXEMPT:
        _finish_held(context, api, asker, result)
        return
    if isinstance(result, NoAnswer):
        charged = _charge(context, asker, result.charge, acks=0)
        _send_nothing(context, asker, result.close, charged.throttle_ms, charged.throttle_ms)
        return
    if result.charge is Charge.FETCH:
        _finish_fetch(context, api, asker, result)
        return
    charged = _charge(context, asker, result.charge, acks=1)
    if charged.throttle_ms:
        result.message.throttle_time_ms = charged.throttle_ms
    if result.accepted is not None:
        result.accepted()
    _send(context, asker, api, _encode(context, api, result.message), charged.throttle_ms)


def _finish_held(context: RequestContext, api: Codec, asker: Asker, result: Result) -> None:
    """Before release 2.0: charge, keep the answer back, send it, data and all (KIP-219, "before"; D9b)."""
    size = context.size_bytes
    if isinstance(result, Response) and result.charge is Charge.FETCH:
        size = _charged_bytes(api, _encode(context, api, result.message))

    def send(throttle_ms: int) -> None:
        if isinstance(result, NoAnswer):
            _send_nothing(context, asker, result.close, throttle_ms, 0)
            return
        if throttle_ms:
            result.message.throttle_time_ms = throttle_ms
        if result.accepted is not None:
            result.accepted()
        _send(context, asker, api, _encode(context, api, result.message), throttle_ms, muted=False)

    DelayedResponse(context, asker, result, size, context.handling_ms * NANOS_PER_MS * PERCENT_PER_NANO, send).begin()


def _charge(context: RequestContext, asker: Asker, charge: Charge, acks: int) -> Charged:
    node = context.node
    quotas = node.quotas
    charged = NOT_THROTTLED
    if quotas.request.enabled or (charge is Charge.PRODUCE and quotas.produce.enabled) or context.mutations is not None:
        charged = _charge_quotas(context, asker, charge, acks)
    if node.forced.active and charge is not Charge.EXEMPT:
        rule = node.forced.strike(context)
        if rule is not None:
            charged = Charged(rule.throttle_ms, rule)
    if charged.reason is not None and node.events.throttled is not None:
        node.events.throttled(context, charged.throttle_ms, charged.reason, False)
    return charged


def _charge_quotas(context: RequestContext, asker: Asker, charge: Charge, acks: int) -> Charged:
    quotas = context.node.quotas
    percent = context.handling_ms * NANOS_PER_MS * PERCENT_PER_NANO
    if charge is Charge.PRODUCE:
        size = context.size_bytes
        return charge_produce(quotas, asker.principal, context.client_id, size, percent, acks, context.now_ms)
    if charge is Charge.EXEMPT:
        return charge_exempt(quotas, percent, context.now_ms)
    if context.mutations is not None:
        return charge_mutations(quotas, asker.principal, context.client_id, context.mutations, percent, context.now_ms)
    return charge_request(quotas, asker.principal, context.client_id, percent, context.now_ms)


def _finish_fetch(context: RequestContext, api: Codec, asker: Asker, result: Response) -> None:
    """A throttled fetch is sent empty and its bytes are taken back: the rule stands in `kafkaproto.broker.requests.throttled_fetch`."""
    node = context.node
    quotas = node.quotas
    rule = node.forced.strike(context) if node.forced.active else None
    if quotas.fetch.enabled or quotas.request.enabled or rule is not None:
        response_bytes = _charged_bytes(api, _encode(context, api, result.message))
        percent = context.handling_ms * NANOS_PER_MS * PERCENT_PER_NANO
        forced = None if rule is None else Charged(rule.throttle_ms, rule)
        charged = charge_fetch(
            quotas, asker.principal, context.client_id, response_bytes, percent, context.now_ms, forced
        )
        if charged.reason is not None:
            if node.events.throttled is not None:
                node.events.throttled(context, charged.throttle_ms, charged.reason, False)
            assert result.emptied is not None
            message = result.emptied()
            message.throttle_time_ms = charged.throttle_ms
            _send(context, asker, api, _encode(context, api, message), charged.throttle_ms)
            return
    if result.accepted is not None:
        result.accepted()
    _send(context, asker, api, _encode(context, api, result.message), 0)


Frame = tuple[bytearray, list[tuple[int, Any]], int]
"""(bytes with the length in front, records to splice in as (position, range), length of the frame without its own 4 bytes)"""


def _encode(context: RequestContext, api: Codec, message: Any) -> Frame:
    out = start_response(context.correlation_id, api.response_header_version)
    splices: list[tuple[int, Any]] = []
    if context.api_key == ApiKey.FETCH and context.node.events.wants_records_apart:
        _leave_records_out(message)
        api.encode_response(message, out, splices)
        splices = [(at, value.records if type(value) is LeftOut else value) for at, value in splices]
    else:
        api.encode_response(message, out, splices)
    return out, splices, finish_frame(out, splices)


def _leave_records_out(message: Any) -> None:
    """Let the encoder report the place of all records of a fetch response, also of those that it would write itself."""
    for topic in message.responses:
        for partition in topic.partitions:
            if type(partition.records) is bytes:
                partition.records = LeftOut(partition.records)


def _charged_bytes(api: Codec, frame: Frame) -> int:
    """What a consumer pays for an answer: its body and 4 bytes (Q-12)."""
    header_bytes = 4 + api.response_header_version  # version 1 has one more byte: no tags
    return LENGTH_BYTES + frame[2] - header_bytes


def _send(
    context: RequestContext, asker: Asker, api: Codec, frame: Frame, throttle_ms: int, muted: bool = True
) -> None:
    out, splices, size = frame
    buffers = tuple(spliced_parts(out, splices)) if splices else (out,)
    if context.node.events.response_ready is not None:
        context.node.events.response_ready(context, out, splices, size, throttle_ms, not muted)
    asker.answer(buffers, throttle_ms if muted else 0, False, context.now_ms)


def _send_nothing(context: RequestContext, asker: Asker, close: bool, throttle_ms: int, mute_ms: int) -> None:
    """acks=0."""
    if context.node.events.request_unanswered is not None:
        context.node.events.request_unanswered(context, throttle_ms, close, mute_ms != throttle_ms)
    asker.answer(None, mute_ms, close, context.now_ms)


def advertised(release_ranges: dict[int, tuple[int, int]]) -> dict[int, Registration]:
    """What a broker offers: what is registered, cut to the versions of the release that it plays."""
    load_handlers()
    offered = {}
    for key, registration in sorted(REGISTRY.items()):
        low, high = release_ranges.get(key, (0, -1))
        low, high = max(low, registration.min_version), min(high, registration.max_version)
        if low <= high:
            offered[key] = Registration(key, low, high, registration.handler, registration.failed)
    return offered
