"""One blocking connection to one broker: TLS, SASL, versions, requests, and responses in order.

This module does not depend on leaders, offsets or retries.
"""

from __future__ import annotations

import socket
import time
from typing import Any

from kafkaproto.api import ApiKey
from kafkaproto.client import Client, UnexpectedResponse
from kafkaproto.error_codes import ErrorCode
from kafkaproto.errors import DecodeError, UnsupportedVersion
from kafkaproto.frame import LENGTH_BYTES, read_frame
from kafkaproto.messages.sasl_authenticate import SaslAuthenticateRequest
from kafkaproto.messages.sasl_handshake import SaslHandshakeRequest
from kafkaproto.pipeline.kafka_py.errors import KafkaError
from kafkaproto.pipeline.kafka_py.options import ClientSettings
from kafkaproto.pipeline.kafka_py.scram import Scram, ScramError
from kafkaproto.pipeline.kafka_py.security import PLAIN, Security, WrongProtocol, secured
from kafkaproto.versions import VersionRange

SPOKEN: dict[int, VersionRange] = {
    # lower versions of Metadata always allow topic creation, lower versions of Produce and Fetch have no batches of magic 2
    # higher versions identify topics by id
    ApiKey.PRODUCE: VersionRange(3, 12),
    ApiKey.FETCH: VersionRange(4, 12),
    ApiKey.LIST_OFFSETS: VersionRange(1, 9),
    ApiKey.METADATA: VersionRange(4, 12),
    ApiKey.INIT_PRODUCER_ID: VersionRange(0, 4),
    ApiKey.SASL_HANDSHAKE: VersionRange(1, 1),
    ApiKey.SASL_AUTHENTICATE: VersionRange(0, 1),
}
FIRST_RESPONSE_BYTES = 1 << 20
"""Upper bound in bytes of an ApiVersions response. A larger length means that the peer does not speak Kafka's protocol."""
TLS_ALERT = b"\x15\x03"
"""The first two bytes that a TLS port sends in response to plain text."""


class Connection:
    """A blocking connection to a broker; the constructor opens it, agrees on API versions and logs in.

    The constructor raises OSError if the connection fails or takes too long (WrongProtocol if only one side speaks TLS), KafkaError if the broker
    rejects the login or has no common version, and OptionError for invalid PEM.
    """

    def __init__(self, host: str, port: int, settings: ClientSettings) -> None:
        self.address = f"{host}:{port}"
        self._settings = settings
        self._timeout_seconds = settings.request_timeout_ms / 1000
        self._muted_until = 0.0
        self._client = Client(settings.client_id, SPOKEN)
        self._socket = socket.create_connection((host, port), self._timeout_seconds)
        try:
            self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket = self._secured(host, settings.security)
            self._agree()
            if settings.security.user is not None:
                self._authenticate(settings.security, settings.security.user)
        except BaseException:
            self._socket.close()  # inside TLS the plain socket is detached
            raise

    def close(self) -> None:
        self._socket.close()

    def ask(self, key: ApiKey, request: Any) -> Any:
        """Send a request in the highest version that both sides support, and return its response."""
        self.send(key, request)
        return self.receive()

    def send(self, key: ApiKey, request: Any) -> None:
        """Send a request. Responses come in the order of requests. Raises KafkaError if no version is supported by both sides."""
        self.version(key)
        self._send(self._client.send(request))

    def version(self, key: ApiKey) -> int:
        """Return the version in which requests of this API are sent. Raises KafkaError if client and broker support no common version."""
        try:
            return self._client.version(key)
        except UnsupportedVersion:
            doing = (
                f"kafka_py needs one of the versions {SPOKEN[key]} of the API {key.name}, but the broker at {self.address} supports none of "
                "them; use a broker of a Kafka release that does"
            )
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, doing) from None

    def receive(self) -> Any:
        """Wait for the next response of the broker, and return the decoded message.

        If an earlier response had a throttle time that is not over, the timeout is extended by the time left (KIP-219).
        """
        muted = max(0.0, self._muted_until - time.monotonic())
        self._socket.settimeout(self._timeout_seconds + muted)
        try:
            response = self._client.read(read_frame(self._socket.recv_into)).message
        except EOFError:
            raise ConnectionError(
                f"the broker at {self.address} closed the connection before sending a response; "
                "look for the reason in the broker's log"
            ) from None
        except (DecodeError, UnexpectedResponse) as error:
            raise ConnectionError(
                f"{self.address} sent an invalid response: {error}; check that it is a Kafka broker"
            ) from None
        throttle_ms = getattr(response, "throttle_time_ms", 0)
        if throttle_ms:
            self._muted_until = time.monotonic() + throttle_ms / 1000
        return response

    def _send(self, data: bytes) -> None:
        self._socket.settimeout(self._timeout_seconds)
        self._socket.sendall(data)

    def _secured(self, host: str, security: Security) -> socket.socket:
        try:
            return secured(self._socket, host, security)
        except ConnectionError as error:
            raise type(error)(f"{self.address}: {error}") from None

    def _agree(self) -> None:
        request_bytes: bytes | None = self._client.ask_versions()
        while request_bytes is not None:
            self._send(request_bytes)
            if not self._settings.security.tls:
                self._check_peer()
            response = self.receive()
            request_bytes = self._client.agree(response)
        if response.error_code:
            raise KafkaError(
                response.error_code,
                f"the broker at {self.address} rejected the ApiVersions request that kafka_py sends first on each connection; look for "
                "the reason in the broker's log",
            )

    def _check_peer(self) -> None:
        """Check that the first bytes from the server can be a Kafka response. The bytes stay in the socket's buffer.

        Raises WrongProtocol if the server speaks TLS or has closed the connection, and ConnectionError if it is not a Kafka broker.
        """
        try:
            head = self._socket.recv(LENGTH_BYTES, socket.MSG_PEEK)
        except ConnectionError:
            head = b""
        if not head:
            raise WrongProtocol(
                f"{self.address} closed the connection without a response; it probably accepts only TLS (SSL or SASL_SSL)"
            )
        if head.startswith(TLS_ALERT):
            raise WrongProtocol(f"{self.address} accepts only TLS (SSL or SASL_SSL)")
        if len(head) == LENGTH_BYTES and int.from_bytes(head, "big") > FIRST_RESPONSE_BYTES:
            raise ConnectionError(
                f"{self.address} is not a Kafka broker, because its first bytes are {head!r}; check the host and the port"
            )

    def _authenticate(self, security: Security, user: str) -> None:
        """Authenticate as `user` with SASL in Kafka's own frames (KIP-152). security: has the SASL mechanism and the password."""
        response = self.ask(ApiKey.SASL_HANDSHAKE, SaslHandshakeRequest(security.mechanism))
        if response.error_code:
            offered = ", ".join(response.mechanisms)
            raise KafkaError(
                response.error_code,
                f"{self.address} offers the SASL mechanisms {offered}, but not {security.mechanism} (change kafka.sasl.mechanism)",
            )
        if security.mechanism == PLAIN:
            self._token(user, b"\0".join((b"", user.encode(), security.password.encode())))  # RFC 4616
            return
        login = Scram(security.mechanism, user, security.password)
        try:
            challenge = self._token(user, login.first())
            login.check(self._token(user, login.final(challenge)))
        except ScramError as error:
            doing = f"cannot log in at {self.address} as {user}: {error}"
            raise KafkaError(ErrorCode.SASL_AUTHENTICATION_FAILED, doing) from None

    def _token(self, user: str, token: bytes) -> bytes:
        response = self.ask(ApiKey.SASL_AUTHENTICATE, SaslAuthenticateRequest(token))
        if response.error_code:
            raise KafkaError(
                response.error_code,
                f"{self.address} refused user {user}: {response.error_message} (check kafka.sasl.jaas.config)",
            )
        return bytes(response.auth_bytes)
