"""Connections of kafka_py: version negotiation, TLS, SASL PLAIN and errors, with a scripted broker."""

from __future__ import annotations

import socket
import ssl
import time
from dataclasses import replace
from pathlib import Path

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.pipeline.kafka_py import connection
from kafkaproto.pipeline.kafka_py.client import Client, check_reachable
from kafkaproto.pipeline.kafka_py.connection import Connection
from kafkaproto.pipeline.kafka_py.errors import KafkaError, OptionError
from kafkaproto.pipeline.kafka_py.options import ClientSettings
from kafkaproto.pipeline.kafka_py.security import secured
from kafkaproto.testing import cluster
from tests.support.answering import answering
from tests.support.pipeline.hand_made_broker import CERTIFICATE, PEM, Broker, running, settings

JAAS = 'x.PlainLoginModule required username="me" password="secret";'


def cluster_id(broker: Broker, client_settings: ClientSettings, host: str = "localhost") -> str:
    connection = Connection(host, broker.port, client_settings)
    try:
        id_of_cluster: str = connection.ask(ApiKey.METADATA, MetadataRequest()).cluster_id
        return id_of_cluster
    finally:
        connection.close()


def test_spark_kafka_py_sends_the_highest_metadata_version_that_both_sides_support() -> None:
    for versions, used in [((0, 8), 8), ((5, 99), 12), ((4, 4), 4)]:
        with running(versions={ApiKey.METADATA: versions}) as broker:
            assert cluster_id(broker, settings()) == "here"
            assert [(key, version) for key, version, _ in broker.seen] == [
                (ApiKey.API_VERSIONS, 3),
                (ApiKey.METADATA, used),
            ]


def test_spark_kafka_py_retries_api_versions_in_version_0_with_an_old_broker() -> None:
    with running(oldest_only=True) as broker:
        assert cluster_id(broker, settings()) == "here"
        assert [version for _, version, _ in broker.seen] == [3, 0, 12]


@pytest.mark.parametrize("versions", [{}, {ApiKey.METADATA: (0, 3)}, {ApiKey.METADATA: (13, 14)}], ids=str)
def test_spark_kafka_py_raises_an_error_if_the_broker_lacks_metadata_v4_to_v12(
    versions: dict[int, tuple[int, int]],
) -> None:
    with (
        running(versions=versions) as broker,
        pytest.raises(KafkaError, match="needs one of the versions 4-12 of the API METADATA, but the broker at"),
    ):
        cluster_id(broker, settings())


def trusting(**more: str) -> ClientSettings:
    return settings(security__protocol="SSL", ssl__truststore__certificates="".join(CERTIFICATE[1:]), **more)


def test_spark_kafka_py_accepts_tls_certificates_as_text_or_as_a_file(tmp_path: Path) -> None:
    certificate_file = tmp_path / "ca.pem"
    certificate_file.write_text("".join(CERTIFICATE[1:]))
    from_file = settings(
        security__protocol="SSL", ssl__truststore__location=str(certificate_file), ssl__truststore__type="PEM"
    )
    with running(tls=True) as broker:
        for client_settings in (trusting(), from_file):
            assert cluster_id(broker, client_settings) == "here"


def test_spark_kafka_py_rejects_an_untrusted_certificate_or_a_wrong_host_name() -> None:
    with running(tls=True) as broker:
        with pytest.raises(ssl.SSLCertVerificationError):
            cluster_id(broker, settings(security__protocol="SSL"))
        with pytest.raises(ssl.SSLCertVerificationError, match=r"(?i)not valid for"):
            cluster_id(broker, trusting(), "127.0.0.1")
        assert cluster_id(broker, trusting(ssl__endpoint__identification__algorithm=""), "127.0.0.1") == "here"


def test_spark_kafka_py_raises_a_certificate_error_for_an_untrusted_certificate() -> None:
    with running(tls=True) as broker:
        client = Client(replace(settings(security__protocol="SSL"), servers=(f"localhost:{broker.port}",)))
        with pytest.raises(ssl.SSLCertVerificationError):
            client.partitions_of(["t"])


def test_spark_kafka_py_connects_to_a_mutual_tls_broker_only_with_client_certificate() -> None:
    keys = {"ssl__keystore__key": CERTIFICATE[0], "ssl__keystore__certificate__chain": "".join(CERTIFICATE[1:])}
    with running(tls=True, needs_client_key=True) as broker:
        assert cluster_id(broker, trusting(**keys)) == "here"
        assert cluster_id(broker, trusting(ssl__keystore__location=str(PEM), ssl__keystore__type="PEM")) == "here"
        with pytest.raises(OSError, match=r"(?i)certificate|closed|reset|eof"):
            cluster_id(broker, trusting())


def test_spark_kafka_py_error_for_an_unreadable_pem_file_names_its_option(tmp_path: Path) -> None:
    missing = {"ssl__truststore__location": str(tmp_path / "none.pem"), "ssl__truststore__type": "PEM"}
    with running(tls=True) as broker:
        with pytest.raises(OptionError, match=r"option kafka\.ssl\.truststore\.location: cannot be read"):
            cluster_id(broker, settings(security__protocol="SSL", **missing))
        with pytest.raises(OptionError, match=r"option kafka\.ssl\.keystore\.key: cannot be read"):
            cluster_id(broker, trusting(ssl__keystore__key="no", ssl__keystore__certificate__chain="pem"))


@pytest.mark.parametrize("tls", [False, True], ids=["SASL_PLAINTEXT", "SASL_SSL"])
def test_spark_kafka_py_authenticates_a_user_by_sasl_plain(tls: bool) -> None:
    client_settings = settings(
        security__protocol="SASL_SSL" if tls else "SASL_PLAINTEXT",
        sasl__mechanism="PLAIN",
        sasl__jaas__config=JAAS,
        **({"ssl__truststore__certificates": "".join(CERTIFICATE[1:])} if tls else {}),
    )
    with running(tls=tls) as broker:
        assert cluster_id(broker, client_settings) == "here"
        keys = [key for key, _, _ in broker.seen]
        assert keys == [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA]


def test_spark_kafka_py_closes_its_tls_connection_if_authentication_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    client_settings = settings(
        security__protocol="SASL_SSL",
        sasl__mechanism="PLAIN",
        sasl__jaas__config=JAAS.replace("secret", "guess"),
        ssl__truststore__type="PEM",
        ssl__truststore__certificates="".join(CERTIFICATE[1:]),
    )
    inside: list[socket.socket] = []
    monkeypatch.setattr(connection, "secured", lambda *how: inside.append(secured(*how)) or inside[0])
    with running(tls=True) as broker:
        with pytest.raises(KafkaError, match="refused user me"):
            cluster_id(broker, client_settings)
        left_open = [open_socket for open_socket in inside if open_socket.fileno() >= 0]
        for open_socket in left_open:
            open_socket.close()  # or the broker would wait for it
    assert inside and not left_open


def test_spark_kafka_py_error_for_a_wrong_password_has_the_message_of_the_broker() -> None:
    wrong = JAAS.replace("secret", "guess")
    client_settings = settings(security__protocol="SASL_PLAINTEXT", sasl__mechanism="PLAIN", sasl__jaas__config=wrong)
    with (
        running() as broker,
        pytest.raises(KafkaError, match=r"refused user me: go away \(check .*: SASL_AUTHENTICATION_FAILED"),
    ):
        cluster_id(broker, client_settings)


# ---- the first contact of a driver -------------------------------------------------------------------------------------------


AT_ONCE_S = 10
"""Seconds: far below the timeout of a call (a minute), and far above the time of a refused connection."""


def refusal(servers: str, **options: str) -> str:
    """Return the error of the first connection. Fails if it has several lines or takes as long as a retry."""
    start_s = time.monotonic()
    with pytest.raises(OptionError) as caught:
        check_reachable(replace(settings(**options), servers=tuple(servers.split(","))))
    assert time.monotonic() - start_s < AT_ONCE_S
    text = str(caught.value)
    assert "\n" not in text
    return text


def test_spark_kafka_py_error_for_unreachable_bootstrap_servers_lists_each_address() -> None:
    assert refusal("127.0.0.1:1,localhost:2") == (
        "option kafka.bootstrap.servers: no broker can be reached: 127.0.0.1:1: Connection refused; localhost:2: Connection refused"
    )


def test_spark_kafka_py_error_for_an_unknown_host_names_the_bootstrap_servers_option() -> None:
    assert refusal("no.such.host.invalid:9092").startswith(
        "option kafka.bootstrap.servers: no broker can be reached: no.such.host.invalid:9092: "
    )


def test_spark_kafka_py_error_for_tls_to_a_plaintext_port_says_to_try_plaintext() -> None:
    with cluster() as c:
        text = refusal(c.bootstrap, security__protocol="SSL")
        assert text == (
            f"option kafka.security.protocol: is SSL, but {c.bootstrap}: the broker closed the connection during the TLS "
            "handshake; it probably uses no TLS (PLAINTEXT or SASL_PLAINTEXT); try PLAINTEXT"
        )
        login = {"sasl__mechanism": "PLAIN", "sasl__jaas__config": JAAS}
        assert refusal(c.bootstrap, security__protocol="SASL_SSL", **login).endswith("; try SASL_PLAINTEXT")


def test_spark_kafka_py_reports_a_failed_tls_handshake_if_the_server_sends_http() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        text = refusal(address := f"127.0.0.1:{port}", security__protocol="SSL")
    assert text.startswith(
        f"option kafka.security.protocol: is SSL, but {address}: the TLS handshake with the broker failed ("
    )


def test_error_for_a_refused_tls_handshake_does_not_suggest_plaintext() -> None:
    with answering(b"\x15\x03\x03\x00\x02\x02\x28") as port:
        text = refusal(address := f"127.0.0.1:{port}", security__protocol="SSL")
    assert text.startswith(
        f"option kafka.bootstrap.servers: no broker can be reached: {address}: the TLS handshake with the broker failed ("
    )
    assert "HANDSHAKE_FAILURE" in text


def test_spark_kafka_py_error_for_plaintext_to_a_tls_port_says_to_try_ssl() -> None:
    with running(tls=True) as broker:
        text = refusal(f"localhost:{broker.port}")
        assert text.startswith(f"option kafka.security.protocol: is PLAINTEXT, but localhost:{broker.port} ")
        assert text.endswith("; try SSL")
    with answering(b"\x15\x03\x03\x00\x02\x02\x46") as port:
        text = refusal(address := f"127.0.0.1:{port}")
    assert (
        text
        == f"option kafka.security.protocol: is PLAINTEXT, but {address} accepts only TLS (SSL or SASL_SSL); try SSL"
    )


def test_spark_kafka_py_error_for_an_http_server_says_that_it_is_not_a_kafka_broker() -> None:
    with answering(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port:
        text = refusal(address := f"127.0.0.1:{port}")
    assert text.endswith(
        f"no broker can be reached: {address} is not a Kafka broker, because its first bytes are b'HTTP'; check the host and the port"
    )


def test_spark_kafka_py_connects_if_only_one_bootstrap_server_is_reachable() -> None:
    with cluster() as c:
        check_reachable(replace(settings(), servers=("127.0.0.1:1", c.bootstrap)))


def test_spark_kafka_py_retries_a_silent_server_and_then_raises_a_timeout_error() -> None:
    """A timeout does not mean that an option is wrong."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client_settings = settings(request__timeout__ms="100", default__api__timeout__ms="250", retry__backoff__ms="10")
        client_settings = replace(client_settings, servers=(f"127.0.0.1:{silent.getsockname()[1]}",))
        with pytest.raises(TimeoutError, match="can be reached"):
            check_reachable(client_settings)
        silent.settimeout(0)
        connections = [silent.accept()[0] for _ in range(2)]
        for accepted in connections:
            accepted.close()


def test_spark_kafka_py_connects_again_after_the_only_broker_stops_and_restarts() -> None:
    with cluster() as c:
        client_settings = settings(default__api__timeout__ms="300", retry__backoff__ms="10")
        client_settings = replace(client_settings, servers=(c.bootstrap,))
        with Client(client_settings, fail_fast=True) as client:
            client.until_done("cannot connect", client.any_connection)
            c.broker(0).stop()
            client.close()
            with pytest.raises(TimeoutError, match="can be reached"):
                client.until_done("cannot connect", client.any_connection)
            c.broker(0).start()
            client.until_done("cannot connect", client.any_connection)
