"""The partition of a key equals that of Kafka's clients, as implemented in kafka-python."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import cache

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.partitioner import java_hash, murmur2, partition_of_key
from tests.support.clients import KAFKA_PYTHON_WARNINGS

pytestmark = pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS)


@cache
def theirs() -> Callable[[bytes], int]:
    from kafka.partitioner.default import murmur2

    return murmur2


@given(st.binary(max_size=70))
def test_hash_of_a_record_key_equals_that_of_kafka_python(data: bytes) -> None:
    assert murmur2(data) == theirs()(data) & 0xFFFFFFFF


@given(st.binary(max_size=20), st.integers(1, 300))
def test_partition_of_a_key_equals_that_of_kafka_python(key: bytes, partitions: int) -> None:
    assert partition_of_key(key, partitions) == (theirs()(key) & 0x7FFFFFFF) % partitions


def test_partitioner_spreads_300_random_keys_over_all_7_partitions() -> None:
    chance = random.Random(1)
    assert {partition_of_key(chance.randbytes(8), 7) for _ in range(300)} == set(range(7))


def test_group_id_hash_is_the_absolute_value_of_the_java_string_hash() -> None:
    """The numbers are `Utils.abs("...".hashCode())` of the kafka-clients jar 3.9.1."""
    hashes = {"g": 103, "größe": 98762257, "consumers": 421004483, "orders-group": 403968617, "polygenelubricants": 0}
    assert {text: java_hash(text) for text in hashes} == hashes
