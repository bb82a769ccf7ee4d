"""Wrong arguments of the test API: each error names the argument, the value and what to pass instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from kafkaproto.broker.errors import KafkaError
from kafkaproto.records.batch import NewRecord
from kafkaproto.testing import TestCluster, cluster, cluster_fixture

CLUSTER: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"brokers": 0}, ValueError, "brokers must be at least 1 (got 0)"),
    ({"brokers": True}, TypeError, "brokers must be an int (got True); for example 3"),
    ({"brokers": "3"}, TypeError, "brokers must be an int (got '3'); for example 3"),
    ({"port": "x"}, TypeError, "port must be an int (got 'x'); for example 9092"),
    ({"host": 3}, TypeError, "host must be a str (got 3); for example '127.0.0.1'"),
    ({"host": ""}, ValueError, "host must not be empty; for example '127.0.0.1'"),
    ({"topics": {3: 3}}, TypeError, "the names of topics must be str (got 3); for example {'orders': 3}"),
    ({"topics": {"t": True}}, TypeError, "topics['t'] must be a number of partitions or a dict (got True); "),
    (
        {"topics": {"t": {"partitions": "3"}}},
        TypeError,
        "topics['t']: partitions must be an int (got '3'); for example 3",
    ),
    ({"topics": {"t": {3: 3}}}, TypeError, "topics['t'] has an unknown argument 3; known are partitions, "),
    ({"topics": {"t": {"configs": "x=1"}}}, TypeError, "topics['t']: configs must be a dict (got 'x=1'); for example "),
    (
        {"topics": {"t": {"assignment": {0: 1}}}},
        TypeError,
        "topics['t']: assignment[0] must be a list of broker ids (got 1); for example [1, 2]",
    ),
    ({"topics": {"": 1}}, ValueError, "topics['']: name must not be empty; for example 'orders'"),
    ({"data_dir": ""}, TypeError, "data_dir must be a str or a Path (got ''); for example data_dir=tmp_path"),
    ({"config": ["a"]}, TypeError, "config must be a dict (got ['a']); for example {'num.partitions': 3}"),
    ({"config": {3: 3}}, TypeError, "the keys of config must be str (got 3); for example {'num.partitions': 3}"),
    (
        {"clock": "Manual"},
        ValueError,
        "clock must be 'jump', 'manual' or 'system' (got 'Manual'); did you mean 'manual'?",
    ),
    ({"clock": None}, ValueError, "clock must be 'jump', 'manual' or 'system' (got None); for example clock='jump'"),
    ({"semantics": "KIP"}, ValueError, "semantics must be 'kip' or 'kafka' (got 'KIP'); did you mean 'kip'?"),
    ({"release": 3.9}, ValueError, "release must be '0.9', "),
    ({"profile": "tests"}, ValueError, "profile must be 'test' or 'kafka' (got 'tests'); did you mean 'test'?"),
    ({"memory_bytes": -1}, ValueError, "memory_bytes must be at least 0 (got -1)"),
    ({"memory_bytes": "1M"}, TypeError, "memory_bytes must be an int (got '1M'); for example "),
    ({"seed": "x"}, TypeError, "seed must be an int (got 'x'); for example 7"),
    ({"data_dir": 3}, TypeError, "data_dir must be a str or a Path (got 3); for example data_dir=tmp_path"),
    ({"trace": b"x"}, TypeError, "trace must be a str or a Path (got b'x'); for example trace=tmp_path"),
    ({"journal_topic": 3}, TypeError, "journal_topic must be a str (got 3); for example '__journal'"),
]


@pytest.mark.parametrize(("options", "error", "text"), CLUSTER, ids=lambda value: str(value)[:40])
def test_error_for_an_invalid_cluster_argument_names_argument_value_and_fix(
    options: dict[str, Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        cluster(**options)
    assert str(raised.value)[: len(text)] == text


@pytest.fixture(scope="module")
def shared() -> Iterator[TestCluster]:
    with cluster(topics={"t": 2}) as c:
        yield c


METHODS: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda c: c.create_topic("n", partitions="3"), TypeError, "partitions must be an int (got '3'); for example 3"),
    (lambda c: c.create_topic(3), TypeError, "name must be a str (got 3); for example 'orders'"),
    (lambda c: c.create_topic("n", configs=["a"]), TypeError, "configs must be a dict (got ['a']); for example "),
    (
        lambda c: c.create_topic("n", assignment=[0]),
        TypeError,
        "assignment must be a dict (got [0]); for example {0: [1, 2]}",
    ),
    (lambda c: c.delete_topic(None), TypeError, "name must be a str (got None); for example 'orders'"),
    (lambda c: c.partition("t", "0"), TypeError, "index must be an int (got '0'); for example 0"),
    (lambda c: c.records("t", "0"), TypeError, "partition must be an int (got '0'); for example 0"),
    (lambda c: c.produce("t", ["a"], partition="0"), TypeError, "partition must be an int (got '0'); for example 0"),
    (lambda c: c.produce(3, ["a"]), TypeError, "topic must be a str (got 3); for example 'orders'"),
    (lambda c: c.produce("t", 3), TypeError, "values must be a list of records (got 3); for example ['3']"),
    (lambda c: c.produce("t", b"a"), TypeError, "values must be a list of records (got b'a'); for example [b'a']"),
    (
        lambda c: c.produce("t", {"k": "v"}),
        TypeError,
        "values must be a list of records (got a dict); for example list(",
    ),
    (lambda c: c.produce("t", NewRecord(b"a")), TypeError, "values must be a list of records (got NewRecord("),
    (
        lambda c: c.produce("t", [NewRecord({"a": 1})]),
        TypeError,
        "the value of values[0] must be bytes, str or None (got dict); encode it, for example json.dumps(...)",
    ),
    (
        lambda c: c.produce("t", [NewRecord(b"a", key=3)]),
        TypeError,
        "the key of values[0] must be bytes, str or None (got int)",
    ),
    (
        lambda c: c.produce("t", [NewRecord(b"a", timestamp=1.5)]),
        TypeError,
        "the timestamp of values[0] must be an int (got 1.5); for example int(time.time() * 1000)",
    ),
    (
        lambda c: c.produce("t", ["a", NewRecord(b"a", headers={"h": b"1"})]),
        TypeError,
        "the headers of values[1] must be a list of pairs (got {'h': b'1'}); for example [('trace', b'1')]",
    ),
    (
        lambda c: c.produce("t", [NewRecord(b"a", headers=[(b"h", b"1")])]),
        TypeError,
        "a header of values[0] must be a name and a value (got (b'h', b'1')); for example ('trace', b'1')",
    ),
    (
        lambda c: c.produce("t", [NewRecord(b"a", headers=[("h", 1)])]),
        TypeError,
        "header 'h' of values[0] must be bytes, str or None (got int)",
    ),
    (
        lambda c: c.produce("t", ["a"], compression="gzip"),
        TypeError,
        "compression must be a kafkaproto.records.compression.Compression (got 'gzip'); did you mean Compression.GZIP?",
    ),
    (
        lambda c: c.produce("t", ["a"], compression="zip2000"),
        TypeError,
        "compression must be a kafkaproto.records.compression.Compression (got 'zip2000'); its members are NONE, GZIP, ",
    ),
    (
        lambda c: c.produce("t", {"a"}),
        TypeError,
        "values must be a list of records (got {'a'}, which has no order); use ",
    ),
    (lambda c: c.produce("t", None), TypeError, "values must be a list of records (got None); for example [None]"),
    (lambda c: c.records("t", -1), KafkaError, "Topic t has no partition -1: it has 2 partitions."),
    (lambda c: c.records("x"), KafkaError, "There is no topic x. Existing topics: t."),
    (
        lambda c: c.set_quota(client_id=3, producer_byte_rate=1),
        TypeError,
        "client_id must be a str or DEFAULT (got 3); for example client_id='X'",
    ),
    (lambda c: c.set_quota(client_id="a"), TypeError, "set_quota needs a quota; for example producer_byte_rate=1000"),
    (lambda c: c.cancel_throttle(None), TypeError, "rule must be the object that force_throttle returned (got None)"),
    (lambda c: cluster_fixture("modul"), ValueError, "scope must be 'session', "),
    (lambda c: cluster_fixture(3), ValueError, "scope must be 'session', "),
    (
        lambda c: cluster(topics={"u": 0}).start(),
        KafkaError,
        "topics['u']: Number of partitions was set to an invalid non-positive value.",
    ),
    (lambda c: c.explain(-1), ValueError, "count must be at least 0 (got -1)"),
    (lambda c: c.conversations("3"), TypeError, "count must be an int (got '3'); for example 10"),
    (lambda c: c.broker("0"), TypeError, "broker_id must be an int (got '0'); for example 0"),
    (lambda c: c.follower("t", 0, 0).slow("1"), TypeError, "delay_ms must be an int (got '1'); for example 500"),
    (lambda c: c.clock.advance("1"), TypeError, "delta_ms must be an int (got '1'); for example 30000"),
    (lambda c: c.clock.advance(-1), ValueError, "delta_ms must be at least 0 (got -1)"),
    (lambda c: c.committed(3), TypeError, "group_id must be a str (got 3); for example 'readers'"),
    (lambda c: c.lag(""), ValueError, "group_id must not be empty; for example 'readers'"),
    (lambda c: c.journal.requests("Prodce"), ValueError, "unknown API 'Prodce'; did you mean 'Produce'?"),
    (lambda c: c.force_throttle(0), ValueError, "throttle_ms must be 1 to 2147483647 (got 0); for example 700"),
    (
        lambda c: c.force_throttle(1, times=0),
        ValueError,
        "times must be at least 1, or None for always (got 0); for example 3",
    ),
    (lambda c: c.force_throttle(1, client_id=3), ValueError, "client_id must be a str, or None for any (got 3)"),
]


@pytest.mark.parametrize(("call", "error", "text"), METHODS, ids=[text[:50] for _, _, text in METHODS])
def test_error_for_an_invalid_argument_of_a_method_says_how_to_correct_the_argument(
    shared: TestCluster, call: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        call(shared)
    assert str(raised.value)[: len(text)] == text
    assert shared.topics() == {"t": 2}
    assert shared.records("t") == []


def test_record_key_and_value_strings_are_encoded_as_utf_8() -> None:
    with cluster(topics={"t": 1}) as c:
        c.produce("t", [NewRecord("ä", "k", headers=[("h", "ö"), ("n", None)])])  # type: ignore[arg-type, list-item]
        [record] = c.records("t")
        assert (record.value, record.key) == ("ä".encode(), b"k")
        assert record.headers == (("h", "ö".encode()), ("n", None))
