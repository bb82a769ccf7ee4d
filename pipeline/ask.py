"""Single requests to a broker over a plain socket, for requests that the client libraries lack, such as those for client quotas.

Of this project, this module imports only the codec and its client without a socket (`kafkaproto.client`).
"""

from __future__ import annotations

import socket
from typing import Any

from kafkaproto.client import Client
from kafkaproto.frame import read_frame
from kafkaproto.messages.alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasRequestEntityData,
    AlterClientQuotasRequestEntryData,
    OpData,
)

TIMEOUT_SECONDS = 30.0
CLIENT_ID = "pipeline"


def ask(address: str, request: Any, version: int) -> Any:
    """Send one request to the broker at "host:port" and return the response. version: API version of the request and the response.

    Raises OSError if the connection fails, EOFError if the broker closes the connection, ProtocolError if the response cannot be decoded.
    """
    client = Client(CLIENT_ID)
    host, port = address.rsplit(":", 1)
    with socket.create_connection((host.strip("[]"), int(port)), TIMEOUT_SECONDS) as sock:
        sock.sendall(client.send(request, version))
        return client.read(read_frame(sock.recv_into)).message


def set_client_quota(address: str, client_id: str, **bytes_per_second: float) -> None:
    """Set quotas of a client id with AlterClientQuotas (KIP-546). Raises RuntimeError if the broker rejects the request.

    address: host:port of the broker. bytes_per_second: `producer_byte_rate`, `consumer_byte_rate` or both, in bytes per second.
    """
    entry = AlterClientQuotasRequestEntryData(
        [AlterClientQuotasRequestEntityData("client-id", client_id)],
        [OpData(key, float(value)) for key, value in bytes_per_second.items()],
    )
    response = ask(address, AlterClientQuotasRequest([entry]), 1)
    for result in response.entries:
        if result.error_code:
            raise RuntimeError(
                f"the broker at {address} rejected the quota of client id {client_id}: "
                f"error {result.error_code}, {result.error_message}"
            )
