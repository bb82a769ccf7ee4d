"""Merging the definitions of two releases: the older release is used up to its highest version, the newer one above."""

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
    """Return the fields of a message with versions 0 to 3 in the older and 2 to 5 in the newer release."""
    return list(merge(message("0-3", *older), message("2-5", *newer))["fields"])


def test_merged_message_definition_has_all_versions_of_both_kafka_releases() -> None:
    assert merge(message("0-3"), message("2-5"))["validVersions"] == "0-5"
    assert merge(message("0-3"), message("4-5"))["validVersions"] == "0-5"


def test_merged_definition_equals_the_older_definition_if_no_version_was_added() -> None:
    older = message("0-3", field("A", "0-2"), field("B"))
    assert merge(older, message("2-3", field("A", "2"))) == older


def test_merged_schema_keeps_the_field_order_of_both_kafka_releases() -> None:
    older = [field("Gone", "0-1"), field("A"), field("B")]
    newer = [field("First", "4+"), field("A"), field("New", "5+"), field("B")]
    assert merged_fields(older, newer) == [
        field("First", "4+"),
        field("Gone", "0-1"),
        field("A"),
        field("New", "5+"),
        field("B"),
    ]


def test_field_removed_in_the_newer_release_keeps_its_old_versions_after_merging() -> None:
    assert merged_fields([field("A")], [field("A", "2-3")]) == [field("A", "0-3")]
    assert merged_fields([field("A")], [field("A", "2-4")]) == [field("A", "0-4")]
    assert merged_fields([field("A")], []) == [field("A", "0-3")]


def test_field_made_nullable_by_the_newer_release_stays_non_nullable_in_old_versions() -> None:
    [merged_field] = merged_fields([field("A", type_="string")], [field("A", type_="string", nullableVersions="0+")])
    assert merged_field["nullableVersions"] == "4+"
    [merged_field] = merged_fields([field("A", nullableVersions="1+")], [field("A", "2+", nullableVersions="2+")])
    assert merged_field == field("A", nullableVersions="1+")


def test_merge_ignores_a_field_that_a_newer_release_adds_to_an_existing_version() -> None:
    assert merged_fields([], [field("A", "2-3")]) == []


def test_nested_fields_of_definitions_in_two_kafka_releases_are_merged() -> None:
    older = field("S", type_="[]S", fields=[field("X", "0-3")])
    newer = field("S", type_="[]S", fields=[field("X", "2-3"), field("Y", "4+")])
    assert merged_fields([older], [newer])[0]["fields"] == [field("X", "0-3"), field("Y", "4+")]


def test_common_structs_of_definitions_in_two_kafka_releases_are_merged() -> None:
    older = message("0-3", commonStructs=[{"name": "C", "versions": "1+", "fields": [field("X", "1-3")]}])
    more = [{"name": "D", "versions": "5+", "fields": [field("Z", "5+")]}]
    newer = message("2-5", commonStructs=[{"name": "C", "versions": "2+", "fields": [field("Y", "4+")]}, *more])
    fields = [field("Y", "4+"), field("X", "1-3")]
    assert merge(older, newer)["commonStructs"] == [{"name": "C", "versions": "1+", "fields": fields}, *more]


def test_merged_field_is_ignorable_if_the_newer_release_marks_the_field_ignorable() -> None:
    """The mark matters only in versions without the field, and the older release does not have these versions."""
    [merged_field] = merged_fields([field("A", ignorable=False)], [field("A", "2-3", ignorable=True)])
    assert merged_field == field("A", "0-3", ignorable=True)


@pytest.mark.parametrize(
    ("older", "newer", "text"),
    [
        (
            message("0-3"),
            message("5-6"),
            "the older Kafka release defines the versions 0-3, the newer one 5-6.* up to 4",
        ),
        (
            message("2-3"),
            message("0-3"),
            "the lowest version in the newer release must be at least 2, that of the older one",
        ),
        (
            message("0-3", field("A")),
            message("2-5", field("A", type_="string")),
            "M.A: the type must be the same in both releases, but it is int32 in the older and string in the newer one",
        ),
        (
            message("0-3", field("A", "0-1")),
            message("2-5", field("A", "4+")),
            "M.A: versions covers the versions 0-1 in the older Kafka release and 4.* in the newer one.* must begin at version 2",
        ),
        (message("0-3", commonStructs=[{"name": "C"}]), message("2-5"), "M.C is missing from the common structs"),
    ],
)
def test_merging_contradictory_message_definitions_raises_an_error_with_the_reason(
    older: Json, newer: Json, text: str
) -> None:
    with pytest.raises(MergeError, match=text):
        merge(older, newer)
