"""SCRAM: the example of RFC 7677, servers without a valid signature, and a real Kafka."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from benchmarks.rivals.jars import kafka_jars
from benchmarks.rivals.real_kafka import CLUSTER_ID, JVM, READY_SECONDS, STOP_SECONDS, free_ports
from kafkaproto.api import ApiKey
from kafkaproto.error_codes import ErrorCode
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.messages.sasl_authenticate import SaslAuthenticateResponse
from kafkaproto.messages.sasl_handshake import SaslHandshakeResponse
from kafkaproto.pipeline.kafka_py.connection import Connection
from kafkaproto.pipeline.kafka_py.errors import KafkaError, OptionError
from kafkaproto.pipeline.kafka_py.options import ClientSettings
from kafkaproto.pipeline.kafka_py.scram import HASHES, LEAST_ITERATIONS, MOST_ITERATIONS, Scram, ScramError
from tests.support.pipeline.hand_made_broker import Broker, running, settings

NONCE = "rOprNGfwEbeRWgbNEkqO"
CHALLENGE = b"r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096"
PROOF = b"c=biws,r=rOprNGfwEbeRWgbNEkqO%hvYDpWUa2RaTCAfuxFIlj)hNlF$k0,p=dHzbZapWIk4jUhN+Ute9ytag9zjfMHgsqmmiz7AndVQ="
SIGNATURE = b"v=6rriTRBi23WpRR/wtup+mMhUZUn/dB5nLTJRsjl95G4="
"""Section 3 of RFC 7677."""


def rfc_login() -> Scram:
    return Scram("SCRAM-SHA-256", "user", "pencil", NONCE)


def test_scram_exchange_equals_the_example_of_rfc_7677() -> None:
    login = rfc_login()
    assert login.first() == b"n,,n=user,r=" + NONCE.encode()
    assert login.final(CHALLENGE) == PROOF
    login.check(SIGNATURE)


@pytest.mark.parametrize("server_final", [b"v=" + b"A" * 43 + b"=", b"v=", b"", b"v=*", b"\xff", SIGNATURE[:-4]])
def test_scram_client_raises_an_error_if_the_server_signature_is_wrong_or_missing(server_final: bytes) -> None:
    login = rfc_login()
    login.first()
    login.final(CHALLENGE)
    with pytest.raises(ScramError):
        login.check(server_final)


def test_scram_client_rejects_a_server_signature_that_arrives_before_a_challenge() -> None:
    with pytest.raises(ScramError, match="did not prove"):
        rfc_login().check(b"v=")


def test_scram_client_raises_an_error_with_the_error_text_that_the_server_sends() -> None:
    login = rfc_login()
    login.final(CHALLENGE)
    with pytest.raises(ScramError, match="the broker rejected the login: other-error"):
        login.check(b"e=other-error")


@pytest.mark.parametrize(
    ("challenge", "why"),
    [
        (CHALLENGE.replace(NONCE.encode(), b"somebodyElses"), "does not belong to this login"),
        (b"r=" + NONCE.encode() + b",s=W22ZaJ0SNY7soEsUEjb6gQ==,i=4096", "does not belong to this login"),
        (b"m=ext," + CHALLENGE, "not a SCRAM challenge"),
        (CHALLENGE.replace(b"s=W22ZaJ0SNY7soEsUEjb6gQ==", b"s=*"), "not a SCRAM challenge"),
        (CHALLENGE.replace(b"i=4096", b"i=-4096"), "not a SCRAM challenge"),
        (CHALLENGE.replace(b"4096", b"9" * 5000), "not a SCRAM challenge"),
        (CHALLENGE.replace(b"4096", "٤٠٩٦".encode()), "not a SCRAM challenge"),
        (CHALLENGE.replace(b"r=", b"r=\xc3\xa9,r="), "not a SCRAM challenge"),
        (b",".join(reversed(CHALLENGE.split(b","))), "not a SCRAM challenge"),
        (CHALLENGE.replace(b"4096", b"%d" % (LEAST_ITERATIONS - 1)), "4095 iterations, but 4096 to 1000000 are supported"),
        (CHALLENGE.replace(b"4096", b"%d" % (MOST_ITERATIONS + 1)), "1000001 iterations"),
        (b"", "not a SCRAM challenge"),
        (b"\xff\xfe", "must be UTF-8 text"),
    ],
)  # fmt: skip
def test_scram_client_rejects_an_invalid_challenge_of_the_server(challenge: bytes, why: str) -> None:
    with pytest.raises(ScramError, match=why):
        rfc_login().final(challenge)


def test_scram_client_accepts_challenge_extensions_and_includes_them_in_signatures() -> None:
    login = rfc_login()
    assert login.final(CHALLENGE + b",x=ext").rpartition(b",p=")[0] == PROOF.rpartition(b",p=")[0]
    with pytest.raises(ScramError, match="did not prove"):
        login.check(SIGNATURE)  # computed without the challenge


def test_scram_client_escapes_user_names_and_creates_a_new_nonce_for_each_login() -> None:
    assert Scram("SCRAM-SHA-512", "a=b,c", "x", "N").first() == b"n,,n=a=3Db=2Cc,r=N"
    assert Scram("SCRAM-SHA-512", "a", "x").first() != Scram("SCRAM-SHA-512", "a", "x").first()


def security(
    mechanism: str = "SCRAM-SHA-256", user: str = "me", password: str = "secret", more: str = ""
) -> ClientSettings:
    jaas = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="{user}" password="{password}"{more};'
    return settings(security__protocol="SASL_PLAINTEXT", sasl__mechanism=mechanism, sasl__jaas__config=jaas)


@pytest.mark.parametrize(
    "options", [{"user": "mé"}, {"password": "sécret"}, {"password": "a\tb"}, {"password": ""}, {"more": " tokenauth=true"}], ids=str
)  # fmt: skip
def test_scram_rejects_unsupported_characters_in_user_and_password(options: dict[str, str]) -> None:
    with pytest.raises(OptionError) as caught:
        security(**options)
    assert caught.value.name == "kafka.sasl.jaas.config"


def test_spark_kafka_py_sends_no_request_after_an_invalid_scram_server_signature() -> None:
    class Impostor(Broker):
        """A server that accepts any login."""

        def _answer(self, key: int, request: Any, refused: bool) -> Any:
            if key == ApiKey.SASL_HANDSHAKE:
                return SaslHandshakeResponse(0, ["SCRAM-SHA-256"])
            if key == ApiKey.SASL_AUTHENTICATE and request.auth_bytes.startswith(b"n,,"):
                nonce = request.auth_bytes.partition(b"r=")[2]
                return SaslAuthenticateResponse(0, None, b"r=" + nonce + b"more,s=c2FsdA==,i=4096")
            if key == ApiKey.SASL_AUTHENTICATE:
                return SaslAuthenticateResponse(0, None, b"v=" + b"A" * 43 + b"=")
            return super()._answer(key, request, refused)

    with (
        running(Impostor) as broker,
        pytest.raises(KafkaError, match="as me: the broker did not prove that it knows the password"),
    ):
        Connection("127.0.0.1", broker.port, security())
    assert [key for key, _, _ in broker.seen][-2:] == [ApiKey.SASL_AUTHENTICATE] * 2


# ---- the real Kafka ----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def kafka() -> Iterator[int]:
    """Run one Kafka node with user "me" in both mechanisms, one mechanism with more iterations than the minimum, and yield its port."""
    folder = Path(tempfile.mkdtemp(prefix="kafka-scram-"))
    plain, port, controller = free_ports(3)
    mechanisms = ",".join(HASHES)
    listeners = f"PLAINTEXT://127.0.0.1:{plain},SASL_PLAINTEXT://127.0.0.1:{port}"
    users = {
        "process.roles": "broker,controller",
        "node.id": "1",
        "controller.quorum.voters": f"1@127.0.0.1:{controller}",
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,SASL_PLAINTEXT:SASL_PLAINTEXT,CONTROLLER:PLAINTEXT",
        "listeners": f"{listeners},CONTROLLER://127.0.0.1:{controller}",
        "advertised.listeners": listeners,
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": mechanisms,
        "log.dirs": str(folder / "data"),
        "offsets.topic.replication.factor": "1",
    } | {
        f"listener.name.sasl_plaintext.{name.lower()}.sasl.jaas.config": "org.apache.kafka.common.security.scram.ScramLoginModule required;"
        for name in HASHES
    }
    path = folder / "node.properties"
    path.write_text("".join(f"{name}={value}\n" for name, value in users.items()))
    java = ["java", *JVM, "-cp", f"{kafka_jars()}/*"]
    credentials = ["SCRAM-SHA-256=[name=me,password=secret]", "SCRAM-SHA-512=[name=me,password=secret,iterations=8192]"]
    format_ = [*java, "kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(path)]
    try:
        completed = subprocess.run(
            [*format_, *(part for user in credentials for part in ("-S", user))],
            capture_output=True,
            text=True,
            check=False,
        )
        assert completed.returncode == 0, completed.stdout + completed.stderr
        with (
            (folder / "out").open("wb") as out,
            subprocess.Popen([*java, "kafka.Kafka", str(path)], stdout=out, stderr=out, cwd=folder) as node,
        ):
            try:
                _wait_until_it_answers(port, node, folder / "out")
                yield port
            finally:
                node.kill()
                node.wait(STOP_SECONDS)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _wait_until_it_answers(port: int, node: subprocess.Popen[bytes], out: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        assert node.poll() is None and time.monotonic() < deadline, out.read_text()[-3000:]
        try:
            Connection("127.0.0.1", port, security()).close()
        except (OSError, KafkaError):  # not listening yet, or the users are not loaded
            time.sleep(0.1)
        else:
            return


@pytest.mark.java
@pytest.mark.parametrize("mechanism", HASHES)
def test_spark_kafka_py_logs_in_to_a_real_kafka_by_scram(kafka: int, mechanism: str) -> None:
    connection = Connection("127.0.0.1", kafka, security(mechanism))
    assert connection.ask(ApiKey.METADATA, MetadataRequest([])).cluster_id == CLUSTER_ID
    connection.close()


@pytest.mark.java
@pytest.mark.parametrize("mechanism", HASHES)
@pytest.mark.parametrize("who", [{"password": "guess"}, {"user": "nobody"}], ids=str)
def test_real_kafka_rejects_spark_kafka_py_with_a_wrong_scram_password_or_user(
    kafka: int, mechanism: str, who: dict[str, str]
) -> None:
    with pytest.raises(KafkaError, match=f"refused user {who.get('user', 'me')}: .*invalid credentials") as caught:
        Connection("127.0.0.1", kafka, security(mechanism, **who))
    assert caught.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED


@pytest.mark.java
def test_error_for_a_sasl_mechanism_disabled_in_kafka_lists_the_enabled_mechanisms(kafka: int) -> None:
    jaas = 'x.PlainLoginModule required username="me" password="secret";'
    plain = settings(security__protocol="SASL_PLAINTEXT", sasl__mechanism="PLAIN", sasl__jaas__config=jaas)
    with pytest.raises(KafkaError, match=r"offers the SASL mechanisms .*SCRAM-SHA-512.*, but not PLAIN"):
        Connection("127.0.0.1", kafka, plain)
