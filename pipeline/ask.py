"""One request to one broker over a plain socket, for what the client libraries cannot ask: client quotas.

Uses the codec and nothing else of this project.
"""

from __future__ import annotations

import socket
from typing import Any

from kafkaproto.api import APIS, codec
from kafkaproto.frame import LENGTH_BYTES, finish_frame, start_frame
from kafkaproto.header import RequestHeader, decode_response_header, encode_request_header
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)

TIMEOUT_SECONDS = 30.0
CLIENT_ID = "pipeline"


def ask(address: str, request: Any, version: int) -> Any:
    """Send one request object to the broker at "host:port" and return its answer. Raises OSError, EOFError."""
    name = type(request).__name__.removesuffix("Request")
    key = next(int(key) for key, info in APIS.items() if info.name == name)
    out = start_frame()
    encode_request_header(RequestHeader(key, version, 1, CLIENT_ID), out)
    codec(key, version).encode_request(request, out, None)
    finish_frame(out)
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_SECONDS) as sock:
        sock.sendall(out)
        length = int.from_bytes(_exactly(sock, LENGTH_BYTES), "big")
        body = memoryview(_exactly(sock, length))
    _, position = decode_response_header(key, version, body, 0, length)
    return codec(key, version).decode_response(body, position, length)[0]


def set_client_quota(address: str, client_id: str, **bytes_per_second: float) -> None:
    """producer_byte_rate, consumer_byte_rate of a client id, by AlterClientQuotas (KIP-546). Raises RuntimeError when refused."""
    entry = AlterClientQuotasRequestEntryData(
        [AlterClientQuotasRequestEntityData("client-id", client_id)],
        [OpData(key, float(value)) for key, value in bytes_per_second.items()],
    )
    answer = ask(address, AlterClientQuotasRequest([entry]), 1)
    for result in answer.entries:
        if result.error_code:
            raise RuntimeError(
                f"the quota of {client_id} was refused: error {result.error_code}, {result.error_message}"
            )


def _exactly(sock: socket.socket, count: int) -> bytes:
    data = bytearray()
    while len(data) < count:
        more = sock.recv(count - len(data))
        if not more:
            raise EOFError("the broker closed the connection")
        data += more
    return bytes(data)
