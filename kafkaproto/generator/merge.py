"""One definition out of those of two Kafka releases: the newer release drops old versions, the older knows no new ones.

Up to its highest version the older release says what is true, above it the newer one does. This module must never know
files.
"""

from __future__ import annotations

from typing import Any

from kafkaproto.versions import OPEN_ENDED, VersionRange

Json = dict[str, Any]

RANGES = ("versions", "nullableVersions", "taggedVersions", "flexibleVersions")
"""The facts of a field that are about versions; all others are true for all versions of it."""


class MergeError(ValueError):
    """Two releases that cannot both be right; the message names the field."""


def merge(older: Json, newer: Json) -> Json:
    """The definition with the versions of both. ``validVersions`` of each is what is wanted of it. Raises MergeError."""
    old, new = (VersionRange.parse(one["validVersions"]) for one in (older, newer))
    if new.highest <= old.highest:
        if new.lowest < old.lowest:
            raise MergeError(f"{older['name']}: the newer release has older versions, {new}")
        return older
    if new.lowest > old.highest + 1:
        raise MergeError(f"{older['name']}: no release has the versions between {old} and {new}")
    result = {**older, **newer, "validVersions": str(VersionRange(min(old.lowest, new.lowest), new.highest))}
    if older["flexibleVersions"] != newer["flexibleVersions"]:
        result["flexibleVersions"] = _range(older["name"], "flexibleVersions", older, newer, old.highest)
    result["fields"] = _fields(older["name"], older["fields"], newer["fields"], old.highest)
    structs = _structs(older, newer, old.highest)
    return {**result, "commonStructs": structs} if structs else result


def _structs(older: Json, newer: Json, last: int) -> list[Json]:
    """The common structs of both."""
    new = {struct["name"]: struct for struct in newer.get("commonStructs", [])}
    result = []
    for struct in older.get("commonStructs", []):
        twin = new.pop(struct["name"], None)
        if twin is None:
            raise MergeError(f"{older['name']}.{struct['name']}: is no common struct of the newer release")
        versions = _range(struct["name"], "versions", struct, twin, last)
        fields = _fields(struct["name"], struct["fields"], twin["fields"], last)
        result.append({**struct, "versions": versions, "fields": fields})
    return result + list(new.values())


def _fields(where: str, older: list[Json], newer: list[Json], last: int) -> list[Json]:
    """The fields of both in wire order: one that only one side has keeps its place behind the one before it."""
    old = {field["name"]: field for field in older}
    new = {field["name"]: field for field in newer}
    order = list(old)
    before = None
    for name in new:
        if name not in old:
            order.insert(order.index(before) + 1 if before else 0, name)
        before = name
    merged = (_field(f"{where}.{name}", old.get(name), new.get(name), last) for name in order)
    return [field for field in merged if field is not None]


def _field(where: str, older: Json | None, newer: Json | None, last: int) -> Json | None:
    """One field, None if neither release has it where it says what is true."""
    if older and newer and older["type"] != newer["type"]:
        raise MergeError(f"{where}: {older['type']} became {newer['type']}")
    both = {**(older or {}), **(newer or {})}
    result: Json = {}
    for key, value in both.items():
        if key in RANGES:
            result[key] = _range(where, key, older or {}, newer or {}, last)
        elif key == "fields" and older and newer:
            result[key] = _fields(where, older[key], newer[key], last)
        else:
            result[key] = value
    result = {key: value for key, value in result.items() if not (key in RANGES and value == "none")}
    return result if "versions" in result else None


def _range(where: str, key: str, older: Json, newer: Json, last: int) -> str:
    """A range that is the older release's up to version ``last``, and the newer one's from there on."""
    low = VersionRange.parse(older.get(key, "none")).intersect(VersionRange(0, last))
    high = VersionRange.parse(newer.get(key, "none")).intersect(VersionRange(last + 1, OPEN_ENDED))
    if low and high and low.highest + 1 != high.lowest:
        raise MergeError(f"{where}: {key} {low} and {high} leave a gap")
    return str(VersionRange(low.lowest, high.highest) if low and high else low or high)
