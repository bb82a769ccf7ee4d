"""Options of Spark's Kafka source and sink; an invalid, missing or unknown option is reported by name."""

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


def test_spark_kafka_py_source_options_have_the_defaults_of_the_spark_connector() -> None:
    batch, stream = source(), source(streaming=True)
    assert (batch.start.everywhere, batch.end.everywhere) == (EARLIEST, LATEST)
    assert stream.start.everywhere == LATEST
    assert batch.topics == ("t",) and batch.client.servers == ("a:9092", "b:9093")
    assert batch.fail_on_data_loss and not batch.include_headers and not batch.read_committed and batch.check_crcs
    assert (batch.min_partitions, batch.max_offsets_per_trigger) == (None, None)
    assert (batch.fetch_max_bytes, batch.partition_max_bytes) == (50 << 20, 1 << 20)


def test_spark_source_options_are_case_insensitive() -> None:
    parsed = source(
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
    assert parsed.start.offsets == {("t", 0): 3, ("t", 1): EARLIEST}
    assert parsed.end.offsets == {("t", 0): 9, ("t", 1): LATEST}
    assert (parsed.fail_on_data_loss, parsed.include_headers, parsed.read_committed) == (False, True, True)
    assert (parsed.min_partitions, parsed.max_records_per_partition) == (7, 100)
    assert (parsed.rack, parsed.client.client_id, parsed.fetch_max_bytes, parsed.partition_max_bytes) == (
        "b",
        "etl",
        1000,
        500,
    )
    assert wants_headers({"includeheaders": "true"}) and not wants_headers({})
    assert pickle.loads(pickle.dumps(parsed)) == parsed


def test_spark_source_topics_can_be_set_by_subscribe_or_subscribepattern_or_assign() -> None:
    assert source(subscribe="a, b,a").topics == ("a", "b")
    assert source_settings({**SERVERS, "subscribePattern": "t.*"}, streaming=False).pattern == "t.*"
    assigned = source_settings({**SERVERS, "assign": '{"t": [2, 0], "a": [1]}'}, streaming=False).assigned
    assert assigned == (("a", 1), ("t", 0), ("t", 2))


def test_spark_offset_options_are_ignored_if_timestamp_options_are_also_set() -> None:
    each = '{"t": {"0": 5}}'
    parsed = source(startingTimestamp="1000", startingOffsetsByTimestamp=each, startingOffsets=each)
    assert (parsed.start.name, parsed.start.timestamp) == ("startingTimestamp", 1000)
    parsed = source(endingOffsetsByTimestamp=each, endingOffsets=each)
    assert (parsed.end.name, parsed.end.timestamps) == ("endingOffsetsByTimestamp", {("t", 0): 5})


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
def test_spark_kafka_py_error_for_an_invalid_source_option_contains_the_option_name(
    options: dict[str, str], name: str
) -> None:
    with pytest.raises(OptionError) as caught:
        source(**options)
    assert caught.value.name == name
    assert str(caught.value).startswith(f"option {name}: ")


@pytest.mark.parametrize(
    ("option", "suggested"),
    [
        ("startingoffset", "startingOffsets"),
        ("maxoffsetpertrigger", "maxOffsetsPerTrigger"),
        ("bootstrap.servers", "kafka.bootstrap.servers"),
        ("kafka.sasl.mechanisms", "kafka.sasl.mechanism"),
        ("groupidprefixes", "groupIdPrefix"),
    ],
)
def test_spark_kafka_py_error_for_an_unknown_option_suggests_the_nearest_option(option: str, suggested: str) -> None:
    with pytest.raises(OptionError) as caught:
        source(**{option: "x"})
    assert str(caught.value) == f'option {option}: is not known; did you mean "{suggested}"?'


@pytest.mark.parametrize("option", ["kafka.session.timeout.ms", "kafka.auto.offset.reset", "path"])
def test_error_for_an_unknown_spark_option_lists_all_options_if_none_is_similar(option: str) -> None:
    with pytest.raises(OptionError, match=r"is not known; known are assign, endingOffsets, .*, subscribePattern$"):
        source(**{option: "x"})


def test_spark_kafka_py_rejects_write_options_on_reads_and_read_options_on_writes() -> None:
    with pytest.raises(OptionError, match=r"^option kafka\.acks: is an option of writes only$"):
        source(kafka__acks="all")
    with pytest.raises(OptionError, match=r"^option startingoffsets: is an option of reads only$"):
        sink_settings({**SERVERS, "topic": "t", "startingOffsets": "earliest"})


@pytest.mark.parametrize("protocol", [None, "PLAINTEXT", "SASL_PLAINTEXT", "SSL", "SASL_SSL"])
@pytest.mark.parametrize("store", ["truststore", "keystore"])
@pytest.mark.parametrize(
    ("setting", "value", "named"),
    [
        ("location", "/x.jks", "type"),
        ("location", "/x.p12", "type"),
        ("type", "JKS", "type"),
        ("type", "PKCS12", "type"),
        ("password", "secret", "password"),
    ],
)
def test_spark_kafka_py_rejects_java_key_store_options_with_every_security_protocol(
    protocol: str | None, store: str, setting: str, value: str, named: str
) -> None:
    login = {"kafka__sasl__mechanism": "PLAIN", "kafka__sasl__jaas__config": JAAS}
    options = login if protocol is None else {**login, "kafka__security__protocol": protocol}
    with pytest.raises(OptionError, match=r"Java key stores.* cannot be read; give PEM files") as caught:
        source(**options, **{f"kafka__ssl__{store}__{setting}": value})
    assert caught.value.name == f"kafka.ssl.{store}.{named}"
    assert "secret" not in str(caught.value)


def test_spark_source_without_subscribe_subscribepattern_or_assign_is_rejected() -> None:
    with pytest.raises(
        OptionError,
        match=r"subscribe, subscribePattern, assign: exactly one of these options must be given \(got none\)",
    ):
        source_settings(SERVERS, streaming=False)


@pytest.mark.parametrize("name", ["endingOffsets", "endingTimestamp", "endingOffsetsByTimestamp"])
def test_options_for_ending_offsets_are_rejected_in_a_streaming_query(name: str) -> None:
    with pytest.raises(OptionError, match=f"option {name}: cannot be used with a streaming query"):
        source(streaming=True, **{name: '{"t": {"0": 5}}' if "Offsets" in name else "5"})


def test_spark_sink_is_idempotent_by_default_but_not_with_acks_1() -> None:
    parsed = sink_settings({**SERVERS, "topic": "out"})
    assert (parsed.topic, parsed.acks, parsed.idempotent, parsed.compression) == ("out", -1, True, Compression.NONE)
    parsed = sink_settings({**SERVERS, "kafka.acks": "1", "kafka.compression.type": "lz4"})
    assert (parsed.topic, parsed.acks, parsed.idempotent, parsed.compression) == (None, 1, False, Compression.LZ4)


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
def test_spark_kafka_py_error_for_an_invalid_sink_option_contains_the_option_name(
    options: dict[str, str], name: str
) -> None:
    with pytest.raises(OptionError) as caught:
        sink_settings({**SERVERS, **options})
    assert caught.value.name == name


def test_spark_kafka_py_accepts_spark_connector_options_that_have_no_effect() -> None:
    source(kafka__group__id="g", groupIdPrefix="p", kafka__max__poll__records="5000")
    sink_settings({**SERVERS, "kafka.linger.ms": "5", "checkpointLocation": "/c"})


def security(**options: str) -> Security:
    return source(**options).client.security


def test_jaas_password_is_parsed_but_is_not_shown_in_the_repr_of_the_settings() -> None:
    parsed = security(
        kafka__security__protocol="SASL_SSL", kafka__sasl__mechanism="PLAIN", kafka__sasl__jaas__config=JAAS
    )
    assert (parsed.tls, parsed.user, parsed.password) == (True, "me", 'a"b;c')
    assert "a\\" not in repr(parsed) and 'a"b' not in repr(parsed)


def test_spark_kafka_py_verifies_the_tls_host_name_unless_an_option_disables_this() -> None:
    assert security(kafka__security__protocol="SSL").checks_name
    assert not security(kafka__security__protocol="SSL", kafka__ssl__endpoint__identification__algorithm="").checks_name
    pem: dict[str, Any] = {"kafka__ssl__truststore__type": "PEM", "kafka__ssl__truststore__location": "/ca.pem"}
    assert security(kafka__security__protocol="ssl", **pem).trusted == "/ca.pem"


@pytest.mark.parametrize("name", ["kafka__sasl__username", "kafka__sasl__password"])
def test_error_for_option_sasl_username_or_password_says_to_set_sasl_jaas_config(name: str) -> None:
    with pytest.raises(OptionError, match=r"is not known; set kafka\.sasl\.jaas\.config, .* username=\"me\" password="):
        source(**{name: "x"})
