"""Merge of a message's definitions in two Kafka releases, such as 3.9.1 and 4.2.0, so that one definition has the versions of both.

The newer release lacks old versions of messages, and the older release lacks new versions. The highest version in the older release and all versions
below it are taken from the older release, later versions from the newer release. This module does not depend on files.
"""

from __future__ import annotations

from typing import Any

from kafkaproto.versions import OPEN_ENDED, VersionRange

Json = dict[str, Any]

RANGES = ("versions", "nullableVersions", "taggedVersions", "flexibleVersions")
"""The keys of a field's definition that hold version ranges.

If two Kafka releases define the same field, the definitions may have different values for these keys. The values of all other keys must be equal.
"""


class MergeError(ValueError):
    """Raised if two Kafka releases define the same message in ways that contradict each other. The text of the error names the field."""


def merge(older: Json, newer: Json) -> Json:
    """Return one definition of a message, which has the versions of its definitions in two Kafka releases.

    older, newer: the definitions in the older and in the newer release. Raises MergeError if they contradict each other, or if there is a gap between
    the versions of the two releases.
    """
    old, new = (VersionRange.parse(definition["validVersions"]) for definition in (older, newer))
    if new.highest <= old.highest:
        if new.lowest < old.lowest:
            raise MergeError(
                f"{older['name']}: the lowest version in the newer release must be at least {old.lowest}, that of the older one (got {new.lowest})"
            )
        return older
    if new.lowest > old.highest + 1:
        raise MergeError(
            f"{older['name']}: the older Kafka release defines the versions {old}, the newer one {new}, so the versions between them are not "
            f"defined; merge with an older release that defines the versions up to {new.lowest - 1}"
        )
    merged = {**older, **newer, "validVersions": str(VersionRange(min(old.lowest, new.lowest), new.highest))}
    if older["flexibleVersions"] != newer["flexibleVersions"]:
        merged["flexibleVersions"] = _range(older["name"], "flexibleVersions", older, newer, old.highest)
    merged["fields"] = _fields(older["name"], older["fields"], newer["fields"], old.highest)
    structs = _structs(older, newer, old.highest)
    return {**merged, "commonStructs": structs} if structs else merged


def _structs(older: Json, newer: Json, last: int) -> list[Json]:
    """Merge the common structs (Kafka's `commonStructs`) in two definitions of a message, from an older and a newer Kafka release.

    older, newer: the two definitions. last: the highest version of the message that is taken from the older release.
    """
    newer_structs = {struct["name"]: struct for struct in newer.get("commonStructs", [])}
    merged = []
    for struct in older.get("commonStructs", []):
        twin = newer_structs.pop(struct["name"], None)
        if twin is None:
            raise MergeError(
                f"{older['name']}.{struct['name']} is missing from the common structs of the newer release; both releases must have it"
            )
        versions = _range(struct["name"], "versions", struct, twin, last)
        fields = _fields(struct["name"], struct["fields"], twin["fields"], last)
        merged.append({**struct, "versions": versions, "fields": fields})
    return merged + list(newer_structs.values())


def _fields(where: str, older: list[Json], newer: list[Json], last: int) -> list[Json]:
    """Merge the fields that a struct has in an older and in a newer Kafka release, and return them in wire order.

    A field that only one release has is placed after the field that precedes it in that release. where: the path of the struct, for errors. older,
    newer: the definitions of the fields in the two releases. last: the highest version of the message that is taken from the older release.
    """
    older_fields = {field["name"]: field for field in older}
    newer_fields = {field["name"]: field for field in newer}
    order = list(older_fields)
    previous_name = None
    for name in newer_fields:
        if name not in older_fields:
            order.insert(order.index(previous_name) + 1 if previous_name else 0, name)
        previous_name = name
    merged = (_field(f"{where}.{name}", older_fields.get(name), newer_fields.get(name), last) for name in order)
    return [field for field in merged if field is not None]


def _field(where: str, older: Json | None, newer: Json | None, last: int) -> Json | None:
    """Merge the definitions of one field in an older and in a newer Kafka release.

    older, newer: the two definitions, None if a release lacks the field. last: the highest version of the message that is taken from the older
    release. where: the path of the field, for errors. Returns None if no version of the merged message has the field. An example is a field that only
    the older release defines, for an unstable version above ``last``.
    """
    if older and newer and older["type"] != newer["type"]:
        raise MergeError(
            f"{where}: the type must be the same in both releases, but it is {older['type']} in the older and {newer['type']} in the newer one"
        )
    definition = {**(older or {}), **(newer or {})}
    merged: Json = {}
    for key, value in definition.items():
        if key in RANGES:
            merged[key] = _range(where, key, older or {}, newer or {}, last)
        elif key == "fields" and older and newer:
            merged[key] = _fields(where, older[key], newer[key], last)
        else:
            merged[key] = value
    merged = {key: value for key, value in merged.items() if not (key in RANGES and value == "none")}
    return merged if "versions" in merged else None


def _range(where: str, key: str, older: Json, newer: Json, last: int) -> str:
    """Merge the version ranges of a field or message in two Kafka releases.

    In the result, versions up to ``last`` are from the range of the older release, and higher versions are from the range of the newer release.
    where: the path of the field or message, for errors. key: the key of the range, one of `RANGES`. older, newer: the definitions of the field or
    message in the two releases. Raises MergeError if versions between the two ranges are missing.
    """
    low = VersionRange.parse(older.get(key, "none")).intersect(VersionRange(0, last))
    high = VersionRange.parse(newer.get(key, "none")).intersect(VersionRange(last + 1, OPEN_ENDED))
    if low and high and low.highest + 1 != high.lowest:
        raise MergeError(
            f"{where}: {key} covers the versions {low} in the older Kafka release and {high} in the newer one; these ranges must not leave a "
            f"gap, so the newer one must begin at version {low.highest + 1}"
        )
    return str(VersionRange(low.lowest, high.highest) if low and high else low or high)
