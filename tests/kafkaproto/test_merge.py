"""One definition out of two releases: the older one is right up to its highest version, the newer one above."""

from __future__ import annotations

from typing import Any

import pytest

from kafkaproto.generator.merge import MergeError, merge

Json = dict[str, Any]


def message(versions: str, *fields: Json, **more: Any) -> Json:
    return {"name": "M", "validVersions": versions, "flexibleVersions": "2+", "fields": list(fields), **more}


def field(name: str, versions: str = "0+", type_: str = "int32", **more: Any) -> Json:
    return {"name": name, "type": type_, "versions": versions, **more}


def merged_fields(older: list[Json], newer: list[Json]) -> list[Json]:
    """The fields of a message with versions 0 to 3 in the older, 2 to 5 in the newer release."""
    return list(merge(message("0-3", *older), message("2-5", *newer))["fields"])


def test_all_versions_of_both_are_there() -> None:
    assert merge(message("0-3"), message("2-5"))["validVersions"] == "0-5"
    assert merge(message("0-3"), message("4-5"))["validVersions"] == "0-5"


def test_without_new_versions_nothing_changes() -> None:
    older = message("0-3", field("A", "0-2"), field("B"))
    assert merge(older, message("2-3", field("A", "2"))) == older


def test_a_new_field_stands_behind_the_one_before_it_and_an_old_one_stays() -> None:
    older = [field("Gone", "0-1"), field("A"), field("B")]
    newer = [field("First", "4+"), field("A"), field("New", "5+"), field("B")]
    assert merged_fields(older, newer) == [
        field("First", "4+"),
        field("Gone", "0-1"),
        field("A"),
        field("New", "5+"),
        field("B"),
    ]


def test_a_field_that_the_newer_release_ends_ends_there() -> None:
    assert merged_fields([field("A")], [field("A", "2-3")]) == [field("A", "0-3")]
    assert merged_fields([field("A")], [field("A", "2-4")]) == [field("A", "0-4")]
    assert merged_fields([field("A")], []) == [field("A", "0-3")]


def test_a_range_is_each_releases_own_in_its_versions() -> None:
    [one] = merged_fields([field("A", type_="string")], [field("A", type_="string", nullableVersions="0+")])
    assert one["nullableVersions"] == "4+"
    [one] = merged_fields([field("A", nullableVersions="1+")], [field("A", "2+", nullableVersions="2+")])
    assert one == field("A", nullableVersions="1+")


def test_a_field_that_only_came_to_old_versions_later_is_left_out() -> None:
    assert merged_fields([], [field("A", "2-3")]) == []


def test_fields_below_are_merged_too() -> None:
    older = field("S", type_="[]S", fields=[field("X", "0-3")])
    newer = field("S", type_="[]S", fields=[field("X", "2-3"), field("Y", "4+")])
    assert merged_fields([older], [newer])[0]["fields"] == [field("X", "0-3"), field("Y", "4+")]


def test_common_structs_are_merged_too() -> None:
    older = message("0-3", commonStructs=[{"name": "C", "versions": "1+", "fields": [field("X", "1-3")]}])
    more = [{"name": "D", "versions": "5+", "fields": [field("Z", "5+")]}]
    newer = message("2-5", commonStructs=[{"name": "C", "versions": "2+", "fields": [field("Y", "4+")]}, *more])
    fields = [field("Y", "4+"), field("X", "1-3")]
    assert merge(older, newer)["commonStructs"] == [{"name": "C", "versions": "1+", "fields": fields}, *more]


def test_what_may_be_lost_is_what_the_newer_release_says() -> None:
    """It matters in versions without the field only, and the older release had none."""
    [one] = merged_fields([field("A", ignorable=False)], [field("A", "2-3", ignorable=True)])
    assert one == field("A", "0-3", ignorable=True)


@pytest.mark.parametrize(
    ("older", "newer", "text"),
    [
        (message("0-3"), message("5-6"), "between 0-3 and 5-6"),
        (message("2-3"), message("0-3"), "older versions, 0-3"),
        (message("0-3", field("A")), message("2-5", field("A", type_="string")), "M.A: int32 became string"),
        (message("0-3", field("A", "0-1")), message("2-5", field("A", "4+")), "M.A: versions 0-1 and 4. leave a gap"),
        (message("0-3", commonStructs=[{"name": "C"}]), message("2-5"), "M.C: is no common struct"),
    ],
)
def test_what_cannot_both_be_right_is_refused(older: Json, newer: Json, text: str) -> None:
    with pytest.raises(MergeError, match=text):
        merge(older, newer)
