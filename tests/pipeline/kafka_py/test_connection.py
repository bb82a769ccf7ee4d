"""Connections agree on versions, speak TLS and SASL PLAIN, and say what is wrong. The broker at the other end is made by hand."""

from __future__ import annotations

import socket
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from kafkaproto.api import ApiKey
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.pipeline.kafka_py import connection
from kafkaproto.pipeline.kafka_py.client import Client
from kafkaproto.pipeline.kafka_py.connection import Connection
from kafkaproto.pipeline.kafka_py.errors import KafkaError, OptionError
from kafkaproto.pipeline.kafka_py.options import ClientSettings
from kafkaproto.pipeline.kafka_py.security import secured
from tests.support.pipeline.hand_made_broker import CERTIFICATE, PEM, Broker, running, settings

JAAS = 'x.PlainLoginModule required username="me" password="secret";'


def cluster_id(broker: Broker, made: ClientSettings, host: str = "localhost") -> str:
    connection = Connection(host, broker.port, made)
    try:
        found: str = connection.ask(ApiKey.METADATA, MetadataRequest()).cluster_id
        return found
    finally:
        connection.close()


def test_the_highest_version_that_both_speak_is_used() -> None:
    for versions, used in [((0, 8), 8), ((5, 99), 12), ((4, 4), 4)]:
        with running(versions={ApiKey.METADATA: versions}) as broker:
            assert cluster_id(broker, settings()) == "here"
            assert [(key, version) for key, version, _ in broker.seen] == [
                (ApiKey.API_VERSIONS, 3),
                (ApiKey.METADATA, used),
            ]


def test_a_broker_that_knows_only_the_oldest_way_to_tell_versions_is_asked_that_way() -> None:
    with running(oldest_only=True) as broker:
        assert cluster_id(broker, settings()) == "here"
        assert [version for _, version, _ in broker.seen] == [3, 0, 12]


@pytest.mark.parametrize("versions", [{}, {ApiKey.METADATA: (0, 3)}, {ApiKey.METADATA: (13, 14)}], ids=str)
def test_a_broker_without_a_version_in_common_is_told_of(versions: dict[int, tuple[int, int]]) -> None:
    with running(versions=versions) as broker, pytest.raises(KafkaError, match="does not speak METADATA 4-12"):
        cluster_id(broker, settings())


def trusting(**more: str) -> ClientSettings:
    return settings(security__protocol="SSL", ssl__truststore__certificates="".join(CERTIFICATE[1:]), **more)


def test_tls_is_spoken_with_a_certificate_from_a_text_or_a_file(tmp_path: Path) -> None:
    kept = tmp_path / "ca.pem"
    kept.write_text("".join(CERTIFICATE[1:]))
    from_file = settings(security__protocol="SSL", ssl__truststore__location=str(kept), ssl__truststore__type="PEM")
    with running(tls=True) as broker:
        for made in (trusting(), from_file):
            assert cluster_id(broker, made) == "here"


def test_a_certificate_that_is_not_trusted_or_of_another_name_is_refused() -> None:
    with running(tls=True) as broker:
        with pytest.raises(ssl.SSLCertVerificationError):
            cluster_id(broker, settings(security__protocol="SSL"))
        with pytest.raises(ssl.SSLCertVerificationError, match=r"(?i)not valid for"):
            cluster_id(broker, trusting(), "127.0.0.1")
        assert cluster_id(broker, trusting(ssl__endpoint__identification__algorithm=""), "127.0.0.1") == "here"


def test_a_certificate_that_is_not_trusted_is_told_at_once_and_not_tried_again() -> None:
    with running(tls=True) as broker:
        client = Client(replace(settings(security__protocol="SSL"), servers=(f"localhost:{broker.port}",)))
        with pytest.raises(ssl.SSLCertVerificationError):
            client.partitions_of(["t"])


def test_a_broker_that_wants_a_certificate_gets_one() -> None:
    keys = {"ssl__keystore__key": CERTIFICATE[0], "ssl__keystore__certificate__chain": "".join(CERTIFICATE[1:])}
    with running(tls=True, keys_wanted=True) as broker:
        assert cluster_id(broker, trusting(**keys)) == "here"
        assert cluster_id(broker, trusting(ssl__keystore__location=str(PEM), ssl__keystore__type="PEM")) == "here"
        with pytest.raises(OSError, match=r"(?i)certificate|closed|reset|eof"):
            cluster_id(broker, trusting())


def test_pem_that_cannot_be_read_is_told_with_its_option(tmp_path: Path) -> None:
    missing = {"ssl__truststore__location": str(tmp_path / "none.pem"), "ssl__truststore__type": "PEM"}
    with running(tls=True) as broker:
        with pytest.raises(OptionError, match=r"option kafka\.ssl\.truststore\.location: cannot be read"):
            cluster_id(broker, settings(security__protocol="SSL", **missing))
        with pytest.raises(OptionError, match=r"option kafka\.ssl\.keystore\.key: cannot be read"):
            cluster_id(broker, trusting(ssl__keystore__key="no", ssl__keystore__certificate__chain="pem"))


@pytest.mark.parametrize("tls", [False, True], ids=["SASL_PLAINTEXT", "SASL_SSL"])
def test_a_user_is_known_by_sasl_plain(tls: bool) -> None:
    made = settings(
        security__protocol="SASL_SSL" if tls else "SASL_PLAINTEXT",
        sasl__mechanism="PLAIN",
        sasl__jaas__config=JAAS,
        **({"ssl__truststore__certificates": "".join(CERTIFICATE[1:])} if tls else {}),
    )
    with running(tls=tls) as broker:
        assert cluster_id(broker, made) == "here"
        keys = [key for key, _, _ in broker.seen]
        assert keys == [ApiKey.API_VERSIONS, ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE, ApiKey.METADATA]


def test_a_connection_inside_tls_that_may_not_log_in_is_closed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = settings(
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
            cluster_id(broker, made)
        left_open = [one for one in inside if one.fileno() >= 0]
        for one in left_open:
            one.close()  # or the broker would wait for it
    assert inside and not left_open


def test_a_wrong_password_is_told_in_the_words_of_the_broker() -> None:
    wrong = JAAS.replace("secret", "guess")
    made = settings(security__protocol="SASL_PLAINTEXT", sasl__mechanism="PLAIN", sasl__jaas__config=wrong)
    with running() as broker, pytest.raises(KafkaError, match="refused user me: go away: SASL_AUTHENTICATION_FAILED"):
        cluster_id(broker, made)
