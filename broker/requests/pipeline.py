"""The path of every request: decode it, dispatch it to its handler, charge it and send the response (`KafkaApis`).

A. `decode` reads header and body, or refuses the connection (W-3, W-5);
B. `dispatch` calls the handler, which returns its outcome, or a `Delayed` if the request must wait for its outcome;
C. `settle` lets the broker's throttling strategy charge the quotas, throttle the client, and encode and send the response (`requests.throttling`).

This module does not depend on asyncio, or on the meaning of an API.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from struct import Struct
from typing import TYPE_CHECKING, Any, TypeVar

from kafkaproto.api import ApiKey, codec, request_header_version
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.requests.acls import ACL_APIS, unknown_element
from kafkaproto.broker.requests.delayed import Build, Delayed
from kafkaproto.broker.requests.exchange import Exchange, Peer
from kafkaproto.broker.requests.outcomes import Charge, Outcome
from kafkaproto.broker.requests.registry import Registration
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, EncodeError
from kafkaproto.header import REQUEST_HEADERS

if TYPE_CHECKING:
    from kafkaproto.broker.node import Node

logger = logging.getLogger("kafkaproto.requests")

T = TypeVar("T")
_KEY_AND_VERSION = Struct(">hh")
_NOT_KEPT = frozenset({ApiKey.PRODUCE, ApiKey.FETCH})
"""The APIs whose requests are not kept in memory while they wait in purgatory. See `_park` for the reason."""

Decoded = tuple[Exchange, Registration, Any]
"""A decoded request: (exchange, which is the request in progress; registration of its API; request message).

The message is None if the version is unsupported.
"""


class Refused(Exception):
    """Raised for a request that gets no response, because it cannot be decoded or is not supported: its connection is closed (W-3, W-5).

    The message of the exception is the reason.
    """


def begin(node: Node, peer: Peer, frame: memoryview, now_ms: int) -> None:
    """Handle one request: send its response with `peer.respond`, now or later, or close the connection with `peer.refuse`.

    frame: header and body of the request, without the 4-byte length. `peer.refuse` is called if the frame cannot be decoded, or if the broker does
    not support the API or version.
    """
    try:
        exchange, registration, request = decode(node, peer, frame, now_ms)
    except Refused as refused:
        if node.events.request_refused is not None:
            node.events.request_refused(node.broker_id, peer, frame, str(refused), now_ms)
        peer.refuse(str(refused))
        return
    outcome = dispatch(exchange, registration, request)
    if isinstance(outcome, Delayed):
        if outcome.outcome is None:
            _park(exchange, outcome, registration, request)
            return
        outcome = outcome.outcome
    try:
        settle(exchange, outcome)
    except EncodeError as error:
        settle(exchange, _error_response(exchange, registration, request, error))


# ---- decode ------------------------------------------------------------------------------------------------------------------------


def decode(node: Node, peer: Peer, frame: memoryview, now_ms: int) -> Decoded:
    """Decode header and body of a request, and make it the request in progress of `peer`.

    frame: header and body, without the 4-byte length. Raises Refused if the frame cannot be decoded, or if the broker does not support the API or
    version. An unsupported version of ApiVersions is no error (KIP-511).
    """
    size = len(frame)
    if size < _KEY_AND_VERSION.size:
        raise Refused(
            f"a frame of {size} bytes is too short for a request header; at least {_KEY_AND_VERSION.size} bytes are needed"
        )
    key, version = _KEY_AND_VERSION.unpack_from(frame)
    registration = node.apis.get(key)
    if registration is None or not registration.first_accepted <= version <= registration.max_version:
        return _decode_unsupported(node, peer, frame, key, version, now_ms)
    api = codec(key, version)
    try:
        header, position = REQUEST_HEADERS[api.request_header_version].decode_flat(frame, 0, size)
        request, end = api.decode_request(frame, position, size)
    except DecodeError as error:
        raise Refused(f"{api.name} request v{version} cannot be read: {error}") from None
    if key in ACL_APIS and (element := unknown_element(key, request)):
        raise Refused(f"{api.name} request v{version} cannot be read: the {element} of an ACL must not be 0 (unknown)")
    exchange = Exchange(node, peer, api, key, version, header.correlation_id, header.client_id, size, now_ms)
    peer.exchange = exchange
    if node.events.request_begun is not None:
        node.events.request_begun(exchange, api, frame, position, end, request)
    return exchange, registration, request


def _decode_unsupported(node: Node, peer: Peer, frame: memoryview, key: int, version: int, now_ms: int) -> Decoded:
    """Decode the header of an ApiVersions request in an unsupported version, and treat the request as version 0 (W-3, KIP-511).

    key, version: the API key and the version in the frame. The body is not decoded. The response tells the client which versions it can use. Raises
    Refused for any other API, and if the header cannot be decoded.
    """
    registration = node.apis.get(ApiKey.API_VERSIONS)
    if key != ApiKey.API_VERSIONS or registration is None:
        raise Refused(
            f"this broker does not serve version {version} of API key {key}; `kafkaproto apis` lists the keys and versions"
        )
    try:
        header, _ = REQUEST_HEADERS[request_header_version(key, version)].decode_flat(frame, 0, len(frame))
    except DecodeError as error:
        raise Refused(f"the header of ApiVersions v{version} cannot be read: {error}") from None
    api = codec(key, 0)
    exchange = Exchange(node, peer, api, key, 0, header.correlation_id, header.client_id, len(frame), now_ms)
    peer.exchange = exchange
    if node.events.request_begun is not None:
        node.events.request_begun(exchange, None, frame, 0, 0, None)
    return exchange, registration, None


# ---- dispatch ----------------------------------------------------------------------------------------------------------------------


def dispatch(exchange: Exchange, registration: Registration, request: Any) -> Outcome | Delayed:
    """Call the handler of a request, and return the outcome, or a Delayed if the request must wait.

    The handler's time is measured only while some client has a request-time quota (Q-1, Q-15). registration: the API with its handler. request: the
    decoded request; None for an unsupported version of ApiVersions, which gets UNSUPPORTED_VERSION.
    """
    node = exchange.node
    if request is None:
        return registration.failed(exchange, None, ErrorCode.UNSUPPORTED_VERSION)
    if not node.quotas.request.enabled:
        return _call(registration, exchange, request)
    if not node.clock.is_wall:
        exchange.handling_ms = node.scripted_cost_ms(exchange.api_key)
        return _call(registration, exchange, request)
    return _timed(exchange, partial(_call, registration, exchange, request))


def _call(registration: Registration, exchange: Exchange, request: Any) -> Outcome | Delayed:
    """Call the handler of a request. If it raises, return the error response of its API; the connection stays open (W-7).

    registration: the API with its handler. Returns the outcome, or a Delayed if the request must wait.
    """
    try:
        return registration.handler(exchange, request)
    except KafkaError as error:
        return registration.failed(exchange, request, error.error_code)
    except Exception:
        logger.exception(
            "a %s v%d request failed because of a bug in the broker (please report this traceback); the client gets UNKNOWN_SERVER_ERROR",
            ApiKey(exchange.api_key).name,
            exchange.api_version,
        )
        return registration.failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)


def _error_response(exchange: Exchange, registration: Registration, request: Any, error: EncodeError) -> Outcome:
    """Return the error response of the API for a request whose response cannot be encoded; the connection stays open (W-7).

    The request is charged and throttled once, and the error response has the throttle time of the response that it replaces. Kafka charges the
    handler time for both responses (`RequestHandlerHelper.handleError`). A Fetch is encoded before it is charged. Its error response is therefore
    counted like another request by a rule that forces throttles, and observers may get the event `response_built` twice. In releases before 2.0, if
    the response was already delayed by a throttle, the connection is closed and no error response is sent.
    """
    logger.error(
        "the response to a %s v%d request cannot be encoded, so the client gets UNKNOWN_SERVER_ERROR: %s",
        exchange.codec.name,
        exchange.codec.version,
        error,
    )
    return registration.failed(exchange, request, ErrorCode.UNKNOWN_SERVER_ERROR)


def _timed(exchange: Exchange, work: Callable[[], T]) -> T:
    """Call `work` and return its result. The duration of the call is added to the request's handler time.

    If `work` also completes requests that were waiting, the time to build their responses is charged to those requests instead.
    """
    node = exchange.node
    if not node.clock.is_wall:
        return work()
    counted_ms, started_ms = node.counted_ms, node.clock.precise_ms()
    result = work()
    elapsed_ms = node.clock.precise_ms() - started_ms
    exchange.handling_ms += elapsed_ms - (node.counted_ms - counted_ms)
    node.counted_ms = counted_ms + elapsed_ms
    return result


def _park(exchange: Exchange, delayed: Delayed, registration: Registration, request: Any) -> None:
    """Let a request wait until `delayed` completes. Until then, no other request of its connection is handled.

    registration: the API with its handler. request: the decoded request. Both are kept in memory, to build an error response if the response cannot
    be encoded. Produce and Fetch requests are not kept: they may be large, and contain no value that their responses could not encode.
    """
    exchange.peer.parked = delayed
    if exchange.node.events.request_parked is not None:
        exchange.node.events.request_parked(exchange)
    fail = None if exchange.api_key in _NOT_KEPT else partial(_error_response, exchange, registration, request)
    delayed.attach(partial(_resume, exchange, fail))


def _resume(exchange: Exchange, fail: Callable[[EncodeError], Outcome] | None, build: Build, now_ms: int) -> None:
    """Complete a parked request: call `build`, which returns its outcome, and send the response.

    If `build` or the sending raises an exception, the connection of the request is closed; the broker continues to serve all others (W-8). fail:
    returns the error response if the response cannot be encoded; None to close the connection in this case, too.
    """
    exchange.now_ms = now_ms
    node = exchange.node
    if node.events.request_completed is not None:
        node.events.request_completed(exchange)
    try:
        try:
            settle(exchange, _timed(exchange, build) if node.quotas.request.enabled else build())
        except EncodeError as error:
            if fail is None:
                raise
            settle(exchange, fail(error))
    except Exception:
        logger.exception(
            "the response to a %s v%d request cannot be sent, so its connection is closed; please report this traceback",
            exchange.codec.name,
            exchange.codec.version,
        )
        exchange.peer.refuse("the response cannot be sent")


# ---- settle ------------------------------------------------------------------------------------------------------------------------


def settle(exchange: Exchange, outcome: Outcome) -> None:
    """Charge a request to its client's quotas after its handler has run, throttle the client if necessary, and send the response.

    outcome: the handler's result: a response and the quotas to charge. If a test forces a throttle of this request, the forced throttle time applies
    instead of the time that the quotas demand.
    """
    node = exchange.node
    forced = None
    if node.forced.active and exchange.charged is None and outcome.charge is not Charge.EXEMPT:
        forced = node.forced.apply(exchange.api_key, exchange.client_id, exchange.peer.principal, node.broker_id)
    node.throttling.settle(exchange, outcome, forced)
