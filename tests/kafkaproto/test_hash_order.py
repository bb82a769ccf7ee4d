"""The order of strings and topic ids in hash tables, compared with orders that Java 17, Scala 2.13.15 and Kafka 4.2.0 printed."""

from __future__ import annotations

import base64

import pytest

from kafkaproto.hash_order import properties_order, scala_order, timeline_order, uuid_hash_bits, uuid_order
from kafkaproto.partitioner import java_hash_bits

ORDERS = [
    "range roundrobin sticky cooperative-sticky: cooperative-sticky roundrobin range sticky",
    "qkh range sticky stream v0: qkh range v0 stream sticky",
    "roundrobin compatible fxhvjgc gxdp: fxhvjgc roundrobin gxdp compatible",
    "zu uniform range cooperative-sticky compatible d n clqftvblx eager yznjoagjn v0 a swiexuqs sticky: "
    "n zu a compatible yznjoagjn swiexuqs d cooperative-sticky eager clqftvblx uniform range v0 sticky",
    "Aa BB: Aa BB",
]


@pytest.mark.parametrize("order", ORDERS)
def test_strings_are_sorted_in_the_iteration_order_of_an_immutable_scala_hash_map(order: str) -> None:
    added, printed = (names.split() for names in order.split(":"))
    assert scala_order(added) == printed


def test_strings_with_equal_scala_hashes_are_sorted_in_the_order_of_the_input() -> None:
    assert scala_order(["Aa", "BB"]) == ["Aa", "BB"]
    assert scala_order(["BB", "Aa", "BB"]) == ["BB", "Aa"]


PROPERTIES_ORDERS = [
    "nyjtjwozq kmj aqmjmxii: aqmjmxii kmj nyjtjwozq",
    "wpbcetoumv bs ccffajaj dpxru nwjsyhburvc gnv: nwjsyhburvc ccffajaj gnv bs wpbcetoumv dpxru",
    "ovqniduhcgrg dhzpqsbw ruqbrew swlt dnebrqkzgbg zuqbk nxmkzmevxrey zce uqscyblfh wxkodjqyctc la nfy: "
    "nfy ruqbrew wxkodjqyctc uqscyblfh ovqniduhcgrg swlt zce zuqbk nxmkzmevxrey la dnebrqkzgbg dhzpqsbw",
]


@pytest.mark.parametrize("order", PROPERTIES_ORDERS)
def test_strings_are_sorted_in_the_key_order_of_java_properties_filled_by_put_all(order: str) -> None:
    added, printed = (names.split() for names in order.split(": "))
    assert properties_order(added) == printed


TIMELINE_ORDERS = [
    "GLlGOYgtfZSc-9PNkaHdmp HO AJ7fqWGbKggsebRn7dyTAK t pg: pg HO GLlGOYgtfZSc-9PNkaHdmp t AJ7fqWGbKggsebRn7dyTAK: "
    "HO pg GLlGOYgtfZSc-9PNkaHdmp t AJ7fqWGbKggsebRn7dyTAK",
    "V AL3KCuWudJH1CRxFfDnzqT z b R: AL3KCuWudJH1CRxFfDnzqT V z R b: AL3KCuWudJH1CRxFfDnzqT V z b R",
    "uniform range: uniform range: uniform range",
    "a b c d e f g h i j k: f k c h e j b g d i a: f k c h e j b g d i a",
]
"""Added strings, their order in a `TimelineHashMap`, and their order if each string was added twice."""


@pytest.mark.parametrize("order", TIMELINE_ORDERS)
def test_strings_are_sorted_in_the_iteration_order_of_a_timeline_hash_map_of_kafka(order: str) -> None:
    added, once, twice = (names.split() for names in order.split(": "))
    assert timeline_order(added, java_hash_bits) == once
    assert timeline_order(added, java_hash_bits, len(added) + 1) == twice


def uuid(text: str) -> bytes:
    return base64.urlsafe_b64decode(f"{text}==")


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("4L6g3nShT-eMCtK--X86sw", 3781822260),
        ("vfdIjMJSR7e9XlW1nZ7pfg", 1600500720),
        ("-_-_-_-_-_-_-_-_-_-_-A", 1078199363),
    ],
)
def test_hash_of_a_topic_id_equals_the_hash_code_of_kafkas_uuid(text: str, bits: int) -> None:
    assert uuid_hash_bits(uuid(text)) == bits


def test_topic_ids_are_sorted_in_the_order_of_kafkas_class_uuid() -> None:
    printed = [
        "vfdIjMJSR7e9XlW1nZ7pfg",
        "4L6g3nShT-eMCtK--X86sw",
        "-_-_-_-_-_-_-_-_-_-_-A",
        "AAAAAAAAAAD__________w",
        "AAAAAAAAAAAAAAAAAAAAAQ",
    ]
    assert sorted(set(printed), key=lambda text: uuid_order(uuid(text))) == printed
