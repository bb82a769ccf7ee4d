"""A minimal broker built by hand that supports TLS and SASL PLAIN and serves one connection at a time."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kafkaproto.api import ApiKey, codec
from kafkaproto.error_codes import ErrorCode
from kafkaproto.frame import finish_frame, start_frame
from kafkaproto.header import decode_request_header, encode_response_header
from kafkaproto.messages.api_versions import ApiVersion, ApiVersionsResponse
from kafkaproto.messages.metadata import MetadataResponse
from kafkaproto.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkaproto.messages.sasl_handshake import SaslHandshakeResponse
from kafkaproto.pipeline.kafka_py.options import ClientSettings, source_settings

PEM = Path(__file__).with_name("localhost.pem")
"""The key and certificate of localhost for these tests only."""
CERTIFICATE = PEM.read_text().partition("-----BEGIN CERTIFICATE")


SASL: dict[int, tuple[int, int]] = {ApiKey.SASL_HANDSHAKE: (0, 1), ApiKey.SASL_AUTHENTICATE: (0, 2)}


@dataclass
class Broker:
    """A server that answers one connection at a time. versions: the version of each API that it supports."""

    tls: bool = False
    needs_client_key: bool = False
    versions: dict[int, tuple[int, int]] = field(default_factory=lambda: {ApiKey.METADATA: (0, 12), **SASL})
    oldest_only: bool = False
    port: int = 0
    seen: list[tuple[int, int, Any]] = field(default_factory=list)
    """Key, version and message of every request received."""

    def serve(self, listener: socket.socket) -> None:
        while True:
            try:
                accepted, _ = listener.accept()
            except OSError:
                return
            with accepted:
                try:
                    self._serve_connection(
                        self._context().wrap_socket(accepted, server_side=True) if self.tls else accepted
                    )
                except OSError:  # the client closed the connection
                    continue

    def _context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(PEM)
        if self.needs_client_key:
            context.verify_mode = ssl.CERT_REQUIRED
            context.load_verify_locations(cadata="".join(CERTIFICATE[1:]))
        return context

    def _serve_connection(self, sock: socket.socket) -> None:
        with sock, sock.makefile("rb") as stream:
            while length := stream.read(4):
                data = memoryview(stream.read(int.from_bytes(length, "big")))
                header, at = decode_request_header(data, 0, len(data))
                key, version = header.api_key, header.api_version
                request, _ = codec(key, version).decode_request(data, at, len(data))
                self.seen.append((key, version, request))
                out = start_frame()
                refused = key == ApiKey.API_VERSIONS and self.oldest_only and version
                encode_response_header(key, version, header.correlation_id, out)
                codec(key, 0 if refused else version).encode_response(
                    self._answer(key, request, bool(refused)), out, None
                )
                finish_frame(out)
                sock.sendall(out)

    def _answer(self, key: int, request: Any, refused: bool) -> Any:
        if key == ApiKey.API_VERSIONS:
            api_versions = [ApiVersion(api, *versions) for api, versions in self.versions.items()]
            return ApiVersionsResponse(ErrorCode.UNSUPPORTED_VERSION if refused else 0, api_versions)
        if key == ApiKey.SASL_HANDSHAKE:
            offered = request.mechanism == "PLAIN"
            return SaslHandshakeResponse(0 if offered else ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])
        if key == ApiKey.SASL_AUTHENTICATE:
            right = request.auth_bytes == b"\0me\0secret"
            code = 0 if right else ErrorCode.SASL_AUTHENTICATION_FAILED
            return SaslAuthenticateResponse(code, None if right else "go away")
        return MetadataResponse(cluster_id="here")


@contextmanager
def running(kind: type[Broker] = Broker, **how: Any) -> Iterator[Broker]:
    broker = kind(**how)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        broker.port = listener.getsockname()[1]
        thread = threading.Thread(target=broker.serve, args=(listener,))
        thread.start()
        try:
            yield broker
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join(10)


def settings(**options: str) -> ClientSettings:
    kafka_options = {f"kafka.{name.replace('__', '.')}": value for name, value in options.items()}
    return source_settings(
        {"kafka.bootstrap.servers": "x:1", "subscribe": "t", **kafka_options}, streaming=False
    ).client
