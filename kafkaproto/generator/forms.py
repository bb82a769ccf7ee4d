"""The form of message definitions: which keys each part of the JSON may have, and the JSON types of their values."""

from __future__ import annotations

from typing import Any

Json = dict[str, Any]


class SpecError(ValueError):
    """Raised for a message definition that is invalid. The text of the error names the file, the field and the rule that is broken."""


FIELD_FORM = {
    "name": str,
    "type": str,
    "versions": str,
    "nullableVersions": str,
    "taggedVersions": str,
    "flexibleVersions": str,
    "tag": int,
    "default": (str, int, float, bool, type(None)),
    "ignorable": (bool, str),  # Kafka has both true and "true"
    "mapKey": bool,
    "zeroCopy": bool,
    "entityType": str,
    "about": str,
    "fields": list,
}
FORMS: dict[str, tuple[dict[str, Any], set[str]]] = {
    "message": (
        {
            "name": str,
            "type": str,
            "apiKey": int,
            "validVersions": str,
            "flexibleVersions": str,
            "latestVersionUnstable": bool,
            "listeners": list,
            "topic": str,
            "value": str,
            "about": str,
            "commonStructs": list,
            "fields": list,
        },
        {"name", "type", "validVersions", "fields"},
    ),
    "struct": ({"name": str, "versions": str, "about": str, "fields": list}, {"name", "versions", "fields"}),
    "field": (FIELD_FORM, {"name", "type"}),
}
"""Maps a kind of JSON object ("message", "struct" or "field") to (allowed keys with the types of their values, required keys)."""


def check_form(source: Any, form: str, where: str) -> None:
    """Check a message, struct or field in a JSON definition, and the objects inside it: their keys, and the JSON types of the values.

    source: the object, as parsed JSON. form: the kind of the object, a key of `FORMS`. where: the path of the object around it, for the error
    message. Raises SpecError for a missing or unknown key and for a value of another type.
    """
    types_of_keys, required_keys = FORMS[form]
    if not isinstance(source, dict):
        raise SpecError(f"{where}: a {form} must be a JSON object (got {source!r})")
    where = f"{where}.{source.get('name', '(no name)')}".lstrip(".")
    for key in sorted(required_keys - source.keys()):
        raise SpecError(f"{where}: the key {key!r} is missing")
    for key, value in source.items():
        if key not in types_of_keys:
            raise SpecError(f"{where}: {key!r} is not a key of a {form}; known keys are {', '.join(types_of_keys)}")
        if not isinstance(value, types_of_keys[key]) or (isinstance(value, bool) and types_of_keys[key] in (int, str)):
            expected_type = types_of_keys[key]
            raise SpecError(f"{where}: the value of the key {key!r} must be of type {expected_type} (got {value!r})")
    for struct in source.get("commonStructs", []):
        check_form(struct, "struct", where)
    for field in source.get("fields", []):
        check_form(field, "field", where)
