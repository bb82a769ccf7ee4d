"""Clients that require SASL send SaslHandshake to a broker without SASL: the log says what to change in the client."""

from __future__ import annotations

import asyncio
import logging
from contextlib import closing, suppress
from typing import Any

import pytest

from kafkaproto.testing import cluster as running_cluster

ADVICE = "SASL is not served; set security.protocol=PLAINTEXT in the client"
SASL = {"mechanism": "PLAIN", "user": "me", "password": "secret"}


def with_confluent_kafka(bootstrap: str, secure: bool) -> None:
    confluent = pytest.importorskip("confluent_kafka")
    settings = {"bootstrap.servers": bootstrap, "client.id": "confluent", "log_level": 0}
    if secure:
        settings |= {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": SASL["mechanism"]}
        settings |= {"sasl.username": SASL["user"], "sasl.password": SASL["password"]}
    producer = confluent.Producer(settings)
    producer.produce("orders", b"value")
    producer.flush(2)


def with_kafka_python(bootstrap: str, secure: bool) -> None:
    kafka = pytest.importorskip("kafka")
    options: dict[str, Any] = {}
    if secure:
        options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": SASL["mechanism"]}
        options |= {"sasl_plain_username": SASL["user"], "sasl_plain_password": SASL["password"]}
    options |= {"bootstrap_servers": bootstrap, "client_id": "kafka-python"}
    with suppress(kafka.errors.KafkaError), closing(kafka.KafkaProducer(**options)) as producer:
        producer.send("orders", b"value").get(5)


def with_aiokafka(bootstrap: str, secure: bool) -> None:
    aiokafka = pytest.importorskip("aiokafka")
    options: dict[str, Any] = {}
    if secure:
        options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": SASL["mechanism"]}
        options |= {"sasl_plain_username": SASL["user"], "sasl_plain_password": SASL["password"]}

    async def produce() -> None:
        producer = aiokafka.AIOKafkaProducer(bootstrap_servers=bootstrap, client_id="aiokafka", **options)
        try:
            await producer.start()
            await producer.send_and_wait("orders", b"value")
        except aiokafka.errors.KafkaError:
            assert secure
        finally:
            await producer.stop()

    asyncio.run(produce())


REAL = {"confluent": with_confluent_kafka, "kafka-python": with_kafka_python, "aiokafka": with_aiokafka}


@pytest.mark.parametrize("client_id", REAL)
def test_log_advises_each_real_sasl_client_to_set_security_protocol_to_plaintext(
    caplog: pytest.LogCaptureFixture, client_id: str
) -> None:
    caplog.set_level(logging.INFO, "kafkaproto")
    with running_cluster(topics={"orders": 1}) as c:
        REAL[client_id](c.bootstrap, True)
    lines = [record.getMessage() for record in caplog.records if "SaslHandshake" in record.getMessage()]
    assert any(f"client-id '{client_id}'" in line and ADVICE in line for line in lines)


@pytest.mark.parametrize("client_id", REAL)
def test_real_client_without_sasl_causes_no_log_line_about_sasl(
    caplog: pytest.LogCaptureFixture, client_id: str
) -> None:
    caplog.set_level(logging.INFO, "kafkaproto")
    with running_cluster(topics={"orders": 1}) as c:
        REAL[client_id](c.bootstrap, False)
        c.wait_for_records("orders", 1)
    assert [record for record in caplog.records if "SASL" in record.getMessage()] == []
