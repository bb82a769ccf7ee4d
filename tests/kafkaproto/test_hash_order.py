"""The order of strings and topic ids in hash tables, compared with orders that Java 17, Scala 2.13.15 and Kafka 4.2.0 printed."""

from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kafkaproto.hash_order import (
    concurrent_order,
    grouped_order,
    partition_hash_bits,
    properties_order,
    scala_copy_order,
    scala_filtered_order,
    scala_map_order,
    scala_order,
    scala_table_order,
    timeline_order,
    topic_id_partition_hash_bits,
    uuid_hash_bits,
    uuid_order,
)
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


GROUPED_ORDERS = [
    "15 5 5 20 10 21 20 11 10 19 23 19 10 22 14 18 16 15 5 7 11 21: 15 16 14 11 10 23 21 22 19 20 18 7 5",
    "12 36 31 28 9 35 53 30 52 22 33 27 23 44 45: 45 44 12 9 23 53 22 52 31 30 27 28 35 36 33",
    "10 0 37 13 9 20 23 45 17 23 13 16 5 40 25: 16 0 45 13 25 9 10 23 40 5 37 20 17",
    "38 1 3 20 31 5 27 17 52 47 55 45 54 55: 47 45 55 54 52 20 17 31 27 5 38 3 1",
]
"""Partitions of `__consumer_offsets` for which `computeIfAbsent` was called, and their order in the Java `HashMap`."""


@pytest.mark.parametrize("order", GROUPED_ORDERS)
def test_partitions_are_sorted_as_in_a_java_hash_map_filled_by_compute_if_absent(order: str) -> None:
    called, printed = ([("__consumer_offsets", int(index)) for index in text.split()] for text in order.split(": "))
    assert grouped_order(called, partition_hash_bits) == printed


CONCURRENT_ORDERS = [
    (
        5,
        0,
        "856 703 550 397 0",
    ),
    (
        12,
        0,
        "856 703 947 550 397 91 244 794 641 488 335 0",
    ),
    (
        40,
        0,
        "732 699 579 976 856 517 914 273 670 550 397 91 794 211 455 335 852 182 58 0 149 87 546 426 823 1005 "
        "703 947 240 120 364 244 761 641 488 885 302 393 29 608",
    ),
    (
        12,
        24,
        "856 550 397 91 794 335 0 703 947 244 641 488",
    ),
]
"""(Number of strings in a `ConcurrentHashMap`, number that it once had or 0, their order). String number i was "group-" and i * 7919 % 1009."""


@pytest.mark.rule("GC-57")
@pytest.mark.parametrize(("count", "most", "printed"), CONCURRENT_ORDERS)
def test_strings_are_sorted_in_the_order_of_a_java_concurrent_hash_map(count: int, most: int, printed: str) -> None:
    added = [f"group-{number * 7919 % 1009}" for number in range(count)]
    assert concurrent_order(added, java_hash_bits, most) == [f"group-{number}" for number in printed.split()]


def one_by_one(numbers: list[int], most: int) -> list[int]:
    """Return `concurrent_order` of numbers below 2**16, which are their own hashes. The table grows at each step up to `most` numbers."""
    table, buckets = 16, dict[int, list[int]]()
    for size in range(1, max(len(numbers), most) + 1):
        for number in numbers[size - 1 : size]:
            buckets.setdefault(number % table, []).append(number)
        if size * 4 >= table * 3:
            table *= 2
            halves = dict[int, list[int]]()
            for bucket in buckets.values():
                last = len(bucket) - 1
                while last and bucket[last - 1] % table == bucket[-1] % table:
                    last -= 1
                halves[bucket[-1] % table] = bucket[last:]
                for number in bucket[:last]:
                    halves[number % table] = [number, *halves.get(number % table, [])]
            buckets = halves
    return [number for index in sorted(buckets) for number in buckets[index]]


@pytest.mark.rule("GC-57")
@given(st.lists(st.integers(0, 400), unique=True, max_size=120), st.integers(0, 3000))
def test_computed_concurrent_hash_map_order_equals_that_of_a_simulated_hash_map(numbers: list[int], most: int) -> None:
    assert concurrent_order(numbers, int, most) == one_by_one(numbers, most)


SCALA_TABLE_ORDERS = [
    "Aa Aa u xuguk hgdvye iprww qvr kjcw a ipx Aa utpwq dkzks ttkcm v bshitf naipiv trxfom rrxbaa cyfa Aa "
    "BB nq lf v mo: "
    "Aa BB a kjcw mo nq bshitf dkzks rrxbaa qvr utpwq ttkcm hgdvye ipx xuguk u v iprww naipiv trxfom lf "
    "cyfa",
    "si xtnmpo aicexy BB BB s xzaq BB rcu dnzpj tqj x m i q i xc rj BB ukxb uvsu BB Aa rpysyq ehmbyt BB "
    "BB hgd w BB Aa e ouj: "
    "BB Aa hgd ouj xzaq tqj ehmbyt si rpysyq dnzpj xtnmpo e rcu i xc m q s uvsu ukxb aicexy w x rj",
    "s noefam jxmuyn BB Aa Aa BB gpz fsosl xy shu vmm BB vrh z duvzfe dyjogv Aa Aa Aa Aa b hz ewzp g BB "
    "sexm owal Aa butrk epthmw u g Aa tsov kzhy mkoqh l: "
    "BB Aa xy shu ewzp fsosl noefam tsov hz vmm duvzfe mkoqh butrk b g owal l vrh gpz kzhy sexm epthmw s "
    "u dyjogv z jxmuyn",
]


@pytest.mark.parametrize("order", SCALA_TABLE_ORDERS)
def test_strings_are_sorted_in_the_order_of_a_mutable_scala_hash_map(order: str) -> None:
    added, printed = (names.split() for names in order.split(": "))
    assert scala_table_order(added, java_hash_bits) == printed


COMMIT_ORDERS = [
    "wod-5 wod-10: wod-10 wod-5",
    "tzi-8 tzi-11: tzi-11 tzi-8",
    "yfc-8 ftwoo-2 ftwoo-10 x-7: yfc-8 ftwoo-10 x-7 ftwoo-2",
    "w-0 w-2 spt-3 tu-9 spt-8 w-0: spt-3 tu-9 w-2 spt-8 w-0",
]
"""Partitions, as `TopicIdPartition` objects with topic id 0, in a mutable `HashMap`, and their order in an immutable `Map` copied from it."""


def partitions(text: str) -> list[tuple[str, int]]:
    return [(name, int(index)) for name, index in (item.split("-") for item in text.split())]


@pytest.mark.parametrize("order", COMMIT_ORDERS)
def test_partitions_have_the_order_of_an_immutable_scala_map_made_from_a_mutable_one(order: str) -> None:
    added, printed = (partitions(text) for text in order.split(": "))
    assert scala_copy_order(added, topic_id_partition_hash_bits) == printed


def test_filtered_scala_map_has_hash_order_if_more_than_4_items_were_added_before() -> None:
    """The order is that of a real 3.9.1 in `test_partly_rejected_commit_is_written_in_hash_order_by_scala_else_as_requested`."""
    added = partitions("w-0 w-2 spt-3 tu-9 spt-8")
    kept = partitions("w-0 w-2 tu-9")
    assert scala_filtered_order(added[:4], kept, topic_id_partition_hash_bits) == kept
    assert scala_filtered_order(added, kept, topic_id_partition_hash_bits) == partitions("tu-9 w-2 w-0")
    # Without its neighbour in the same slot, an item comes before the child nodes.
    names = [f"n{number}" for number in range(40)]
    order = scala_filtered_order(names, names, java_hash_bits)
    assert order == scala_map_order(names, java_hash_bits)
    assert scala_filtered_order(names, names[:20], java_hash_bits) == scala_map_order(names[:20], java_hash_bits)
    assert scala_filtered_order(names, names[:20], java_hash_bits) != [name for name in order if name in names[:20]]


def test_order_of_a_mutable_scala_hash_map_depends_on_its_size_before_removals() -> None:
    """The order depends on the earlier size, as the test of GO-9 finds on a real 3.9.1."""
    names = [f"n{number}" for number in range(40)]
    table = scala_table_order(names, java_hash_bits)
    left = names[::9]
    assert scala_table_order(left, java_hash_bits, len(names)) == [name for name in table if name in left]
    assert scala_table_order(left, java_hash_bits, 11) == scala_table_order(left, java_hash_bits)
    assert scala_table_order(left, java_hash_bits, 12) != scala_table_order(left, java_hash_bits)
