"""Options are those of Spark's Kafka source and sink; one that is wrong, missing or unknown is named."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from kafkaproto.pipeline.kafka_py.errors import OptionError
from kafkaproto.pipeline.kafka_py.offsets import EARLIEST, LATEST
from kafkaproto.pipeline.kafka_py.options import SourceSettings, sink_settings, source_settings, wants_headers
from kafkaproto.pipeline.kafka_py.security import Security
from kafkaproto.records.compression import Compression

SERVERS = {"kafka.bootstrap.servers": "a:9092, b:9093"}
BASE = {**SERVERS, "subscribe": "t"}
JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="a\\"b;c";'


def source(streaming: bool = False, **options: str) -> SourceSettings:
    return source_settings({**BASE, **named(options)}, streaming=streaming)


def named(options: dict[str, str]) -> dict[str, str]:
    return {name.replace("__", "."): value for name, value in options.items()}


def test_what_is_not_given_is_as_in_spark() -> None:
    batch, stream = source(), source(streaming=True)
    assert (batch.start.everywhere, batch.end.everywhere) == (EARLIEST, LATEST)
    assert stream.start.everywhere == LATEST
    assert batch.topics == ("t",) and batch.client.servers == ("a:9092", "b:9093")
    assert batch.fail_on_data_loss and not batch.include_headers and not batch.read_committed and batch.check_crcs
    assert (batch.min_partitions, batch.max_offsets_per_trigger) == (None, None)
    assert (batch.fetch_max_bytes, batch.partition_max_bytes) == (50 << 20, 1 << 20)


def test_every_option_arrives_whatever_its_case() -> None:
    made = source(
        STARTINGOFFSETS='{"t": {"0": 3, "1": -2}}',
        endingOffsets='{"t": {"0": 9, "1": -1}}',
        failOnDataLoss="FALSE",
        includeheaders="true",
        minPartitions="7",
        maxRecordsPerPartition="100",
        kafka__isolation__level="read_committed",
        kafka__client__rack="b",
        kafka__client__id="etl",
        kafka__fetch__max__bytes="1000",
        kafka__max__partition__fetch__bytes="500",
    )
    assert made.start.offsets == {("t", 0): 3, ("t", 1): EARLIEST}
    assert made.end.offsets == {("t", 0): 9, ("t", 1): LATEST}
    assert (made.fail_on_data_loss, made.include_headers, made.read_committed) == (False, True, True)
    assert (made.min_partitions, made.max_records_per_partition) == (7, 100)
    assert (made.rack, made.client.client_id, made.fetch_max_bytes, made.partition_max_bytes) == ("b", "etl", 1000, 500)
    assert wants_headers({"includeheaders": "true"}) and not wants_headers({})
    assert pickle.loads(pickle.dumps(made)) == made


def test_topics_are_chosen_in_one_of_three_ways() -> None:
    assert source(subscribe="a, b,a").topics == ("a", "b")
    assert source_settings({**SERVERS, "subscribePattern": "t.*"}, streaming=False).pattern == "t.*"
    assigned = source_settings({**SERVERS, "assign": '{"t": [2, 0], "a": [1]}'}, streaming=False).assigned
    assert assigned == (("a", 1), ("t", 0), ("t", 2))


def test_a_time_counts_before_an_offset_and_one_time_for_all_before_one_for_each() -> None:
    each = '{"t": {"0": 5}}'
    made = source(startingTimestamp="1000", startingOffsetsByTimestamp=each, startingOffsets=each)
    assert (made.start.name, made.start.timestamp) == ("startingTimestamp", 1000)
    made = source(endingOffsetsByTimestamp=each, endingOffsets=each)
    assert (made.end.name, made.end.timestamps) == ("endingOffsetsByTimestamp", {("t", 0): 5})


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"assign": '{"t": [0]}'}, "subscribe, subscribePattern, assign"),
        ({"startingOffsets": "latest"}, "startingOffsets"),
        ({"startingOffsets": '{"t": {"0": -1}}'}, "startingOffsets"),
        ({"startingOffsets": '{"t": {"0": -3}}'}, "startingOffsets"),
        ({"startingOffsets": '{"t": [0]}'}, "startingOffsets"),
        ({"startingOffsets": '{"t": {"0": 1.5}}'}, "startingOffsets"),
        ({"startingOffsets": "first"}, "startingOffsets"),
        ({"endingOffsets": "earliest"}, "endingOffsets"),
        ({"endingOffsets": '{"t": {"0": -2}}'}, "endingOffsets"),
        ({"startingTimestamp": "-5"}, "startingTimestamp"),
        ({"startingOffsetsByTimestamp": '{"t": {"0": -1}}'}, "startingOffsetsByTimestamp"),
        ({"startingOffsetsByTimestampStrategy": "first"}, "startingOffsetsByTimestampStrategy"),
        ({"subscribe": " , "}, "subscribe"),
        ({"minPartitions": "0"}, "minPartitions"),
        ({"maxOffsetsPerTrigger": "many"}, "maxOffsetsPerTrigger"),
        ({"failOnDataLoss": "perhaps"}, "failOnDataLoss"),
        ({"kafka__isolation__level": "read_all"}, "kafka.isolation.level"),
        ({"kafka__bootstrap__servers": "nowhere"}, "kafka.bootstrap.servers"),
        ({"kafka__bootstrap__servers": ""}, "kafka.bootstrap.servers"),
        ({"kafka__auto__offset__reset": "latest"}, "kafka.auto.offset.reset"),
        ({"startingOffset": "earliest"}, "startingoffset"),
        ({"kafka__security__protocol": "TELNET"}, "kafka.security.protocol"),
        ({"kafka__security__protocol": "SASL_PLAINTEXT"}, "kafka.sasl.mechanism"),
        ({"kafka__security__protocol": "SASL_SSL", "kafka__sasl__mechanism": "OAUTHBEARER"}, "kafka.sasl.mechanism"),
        (
            {"kafka__security__protocol": "SASL_SSL", "kafka__sasl__mechanism": "SCRAM-SHA-256", "kafka__sasl__jaas__config": JAAS},
            "kafka.sasl.jaas.config",
        ),
        ({"kafka__security__protocol": "SASL_SSL", "kafka__sasl__mechanism": "PLAIN"}, "kafka.sasl.jaas.config"),
        ({"kafka__security__protocol": "SSL", "kafka__ssl__truststore__location": "/a.jks"}, "kafka.ssl.truststore.type"),
        ({"kafka__security__protocol": "SSL", "kafka__ssl__keystore__key": "PEM"}, "kafka.ssl.keystore.key"),
    ],
    ids=str,
)  # fmt: skip
def test_an_option_that_is_wrong_is_named(options: dict[str, str], name: str) -> None:
    with pytest.raises(OptionError) as caught:
        source(**options)
    assert caught.value.name == name
    assert str(caught.value).startswith(f"option {name}: ")


def test_nothing_to_read_is_named() -> None:
    with pytest.raises(OptionError, match="subscribe, subscribePattern, assign: one of them must be given, none is"):
        source_settings(SERVERS, streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_a_stream_has_no_end(name: str) -> None:
    with pytest.raises(OptionError, match=f"option {name}: a streaming query has no end"):
        source(streaming=True, **{name: '{"t": {"0": 5}}' if "Offsets" in name else "5"})


def test_a_sink_is_idempotent_unless_told_otherwise() -> None:
    made = sink_settings({**SERVERS, "topic": "out"})
    assert (made.topic, made.acks, made.idempotent, made.compression) == ("out", -1, True, Compression.NONE)
    made = sink_settings({**SERVERS, "kafka.acks": "1", "kafka.compression.type": "lz4"})
    assert (made.topic, made.acks, made.idempotent, made.compression) == (None, 1, False, Compression.LZ4)


@pytest.mark.parametrize(
    ("options", "name"),
    [
        ({"kafka.acks": "0"}, "kafka.acks"),
        ({"kafka.acks": "1", "kafka.enable.idempotence": "true"}, "kafka.enable.idempotence"),
        ({"kafka.compression.type": "zip"}, "kafka.compression.type"),
        ({"kafka.transactional.id": "x"}, "kafka.transactional.id"),
        ({"topic": " "}, "topic"),
        ({"subscribe": "t"}, "subscribe"),
    ],
    ids=str,
)
def test_an_option_of_a_sink_that_is_wrong_is_named(options: dict[str, str], name: str) -> None:
    with pytest.raises(OptionError) as caught:
        sink_settings({**SERVERS, **options})
    assert caught.value.name == name


def test_options_without_effect_are_taken() -> None:
    source(kafka__group__id="g", groupIdPrefix="p", kafka__max__poll__records="5000")
    sink_settings({**SERVERS, "kafka.linger.ms": "5", "checkpointLocation": "/c"})


def security(**options: str) -> Security:
    return source(**options).client.security


def test_user_and_password_come_from_the_jaas_line_and_stay_out_of_texts() -> None:
    made = security(
        kafka__security__protocol="SASL_SSL", kafka__sasl__mechanism="PLAIN", kafka__sasl__jaas__config=JAAS
    )
    assert (made.tls, made.user, made.password) == (True, "me", 'a"b;c')
    assert "a\\" not in repr(made) and 'a"b' not in repr(made)


def test_tls_checks_names_unless_told_otherwise() -> None:
    assert security(kafka__security__protocol="SSL").checks_name
    assert not security(kafka__security__protocol="SSL", kafka__ssl__endpoint__identification__algorithm="").checks_name
    pem: dict[str, Any] = {"kafka__ssl__truststore__type": "PEM", "kafka__ssl__truststore__location": "/ca.pem"}
    assert security(kafka__security__protocol="ssl", **pem).trusted == "/ca.pem"
