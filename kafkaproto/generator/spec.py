"""Message definitions, parsed from JSON and checked.

Every rule that Kafka's own generator enforces (``MessageSpec``, ``StructSpec``, ``FieldSpec``) is enforced by this module, so that the rest of the
generator need not check anything. This module does not depend on the generated code.
"""

from __future__ import annotations

import json
import keyword
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from kafkaproto.generator.forms import Json, SpecError, check_form
from kafkaproto.versions import VersionRange

INTEGERS = {"int8": 8, "int16": 16, "uint16": 17, "int32": 32, "uint32": 33, "int64": 64}
SCALARS = {*INTEGERS, "bool", "float64", "uuid", "string", "bytes", "records"}
KINDS = ("request", "response", "header", "data")
NULLABLE_SCALARS = {"string", "bytes", "records"}

# Fields with clearer names than in the definition: (message, field) to Python name.
FIELD_NAMES = {("RequestHeader", "RequestApiKey"): "api_key", ("RequestHeader", "RequestApiVersion"): "api_version"}


@dataclass(frozen=True, slots=True)
class Type:
    """The type of a message field: a scalar, a struct, or an array of scalars or structs."""

    name: str
    is_array: bool

    @property
    def is_struct(self) -> bool:
        """Return True if this type is a struct or an array of structs."""
        return self.name not in SCALARS


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a struct. ``default`` is the Python value that the field has by default.

    For an array or struct, ``default`` is None for null, or ``()`` for an empty list or a struct in which each field has its own default. ``name`` is
    the Python name, ``wire_name`` is Kafka's name. ``tag`` is the number of the field's tag, None if it is never tagged. ``flexible``: the flexible
    versions that the definition gives to this field alone; None if those of the message apply.
    """

    name: str
    wire_name: str
    type: Type
    versions: VersionRange
    nullable: VersionRange
    tagged: VersionRange
    tag: int | None
    flexible: VersionRange | None
    default: Any
    ignorable: bool


@dataclass(frozen=True, slots=True)
class Struct:
    """A struct, or a message as a whole: its ``name`` in Kafka's definition, the ``versions`` that have it, and its fields."""

    name: str
    versions: VersionRange
    fields: tuple[Field, ...]


@dataclass(frozen=True, slots=True)
class Message:
    """A parsed message definition. ``structs`` contains every nested struct, inner ones first, and as the last item the message itself.

    If the definition describes the key of a coordinator's record, ``topic`` is the topic of the record, and ``value`` is the name of the definition
    of the record's value.
    """

    name: str
    kind: str
    api_key: int | None
    versions: VersionRange
    flexible: VersionRange
    structs: tuple[Struct, ...]
    topic: str | None
    value: str | None


def snake_case(name: str) -> str:
    """Return ``throttle_time_ms`` for ``ThrottleTimeMs``. An underscore is appended to Python keywords."""
    name = re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name)
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name).lower()
    return name + "_" if keyword.iskeyword(name) else name


def load(path: Path) -> Message:
    """Parse and check the message definition in a file. Raises SpecError if it is not JSON or breaks a rule for definitions."""
    try:
        return parse(json.loads(path.read_text()))
    except ValueError as error:  # also for invalid JSON
        raise SpecError(f"{path.name}: {error}") from None


def parse(source: Json) -> Message:
    """Check a message definition, given as parsed JSON, and return it as a `Message`. Raises SpecError if it breaks a rule."""
    check_form(source, "message", "")
    return _Parser(source).message()


class _Parser:
    def __init__(self, source: Json) -> None:
        self.source = source
        self.name: str = source["name"]
        self.structs: dict[str, Struct] = {}
        self.common = {struct["name"]: struct for struct in source.get("commonStructs", [])}

    def message(self) -> Message:
        versions = self.range(self.name, self.source["validVersions"])
        if not versions or versions.open_ended:
            self.fail(self.name, f"validVersions must be a closed range such as 0-3 (got {versions})")
        if "flexibleVersions" not in self.source:
            self.fail(
                self.name, "the key 'flexibleVersions' is missing; give it the value none if no version is flexible"
            )
        self.flexible = self.range(self.name, self.source["flexibleVersions"])
        if not self.flexible.open_ended:
            self.fail(self.name, f"flexibleVersions must be none or open-ended, such as 2+ (got {self.flexible})")
        kind = self.source["type"]
        if kind not in KINDS:
            self.fail(self.name, f"type must be one of {', '.join(KINDS)} (got {kind!r})")
        if kind in ("request", "response") and self.source.get("apiKey", -1) < 0:
            self.fail(self.name, "a request or response must have an apiKey of at least 0")
        self.struct(self.name, self.source["fields"], versions)
        unused = self.common.keys() - self.structs.keys()
        if unused:
            self.fail(
                self.name, f"commonStructs has structs that no field uses: {', '.join(sorted(unused))}; remove them"
            )
        structs = tuple(self.structs.values())
        key, topic, value = (self.source.get(name) for name in ("apiKey", "topic", "value"))
        return Message(self.name, kind, key, versions, self.flexible, structs, topic, value)

    def struct(self, name: str, fields: list[Json], versions: VersionRange) -> None:
        """Parse a struct and add it to `structs`, after the structs nested in it. versions: the message's versions that contain the struct.

        fields: the definitions of its fields, as parsed JSON.
        """
        parsed_fields = tuple(self.field(name, field, versions) for field in fields)
        self.check_names_and_tags(name, parsed_fields)
        if name in self.structs:
            self.fail(
                name,
                "two structs of the message have this name; rename one, or move the struct to commonStructs if both are the same",
            )
        self.structs[name] = Struct(name, versions, parsed_fields)

    def field(self, struct: str, source: Json, parent: VersionRange) -> Field:
        wire_name = source["name"]
        path = f"{struct}.{wire_name}"
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9]*", wire_name):
            self.fail(path, "a field name must start with a letter and contain only ASCII letters and digits")
        tagged = self.range(path, source.get("taggedVersions", "none"))
        versions = self.range(path, source.get("versions", str(tagged)))
        field_type = self.type(path, source["type"])
        field = Field(
            name=FIELD_NAMES.get((self.name, wire_name)) or snake_case(wire_name),
            wire_name=wire_name,
            type=field_type,
            versions=versions,
            nullable=self.range(path, source.get("nullableVersions", "none")),
            tagged=tagged,
            tag=source.get("tag"),
            flexible=self.range(path, source["flexibleVersions"]) if "flexibleVersions" in source else None,
            default=self.default(path, field_type, source.get("default"), source.get("nullableVersions"), versions),
            ignorable=self.truth(path, source.get("ignorable", False)),
        )
        self.check_field(path, field, source)
        if field_type.is_struct:
            self.nested(path, field, source, versions.intersect(parent))
        return field

    def nested(self, where: str, field: Field, source: Json, versions: VersionRange) -> None:
        """Parse the struct that is the type of a field. A common struct that was already parsed for an earlier field is not parsed again.

        where: the path of the field, for errors. source: the definition of the field. versions: the versions of the field.
        """
        name = field.type.name
        if name in self.common:
            if "fields" in source:
                self.fail(where, f"the type {name} is a common struct, so the field must not have the key 'fields'")
            if name not in self.structs:
                self.struct(name, self.common[name]["fields"], self.range(name, self.common[name]["versions"]))
        elif "fields" in source:
            self.struct(name, source["fields"], versions)
        else:
            self.fail(
                where, f"unknown struct {name}: give the field the key 'fields', or add the struct to commonStructs"
            )

    def type(self, where: str, text: str) -> Type:
        is_array = text.startswith("[]")
        name = text.removeprefix("[]")
        if name.startswith("[]"):
            self.fail(where, f"the type must not be an array of arrays (got {text})")
        if name not in SCALARS and not re.fullmatch(r"[A-Z][A-Za-z0-9]*", name):
            self.fail(
                where,
                f"unknown type {text}; known are {', '.join(sorted(SCALARS))}, and names of structs, which start with a capital letter",
            )
        if is_array and name == "records":
            self.fail(where, f"the type must not be an array of records (got {text})")
        return Type(name, is_array)

    def default(self, where: str, field_type: Type, text: Any, nullable: str | None, versions: VersionRange) -> Any:
        """Return the default of a field as a Python value. Raises SpecError if the default is invalid.

        where: path of the field for the error message. text: the default as the definition has it: text, number or boolean; None if the definition
        has no default. nullable: the versions in which the field may be null, as text. versions: the versions of the field.
        """
        if text == "null":
            if not versions.within(VersionRange.parse(nullable or "none")):
                self.fail(
                    where,
                    f"the default is null, so nullableVersions must include all versions of the field (got {nullable or 'none'})",
                )
            return None
        if field_type.is_array or field_type.is_struct:
            if text not in (None, ""):
                self.fail(where, f"the default of an array or struct must be null or an empty string (got {text!r})")
            return ()
        text = str(text).lower() if isinstance(text, bool) else text
        try:
            return self.scalar_default(where, field_type.name, "" if text is None else str(text))
        except SpecError:
            raise
        except ValueError:
            self.fail(where, f"the default {text!r} is not a valid {field_type.name}")

    def scalar_default(self, where: str, name: str, text: str) -> Any:
        if name in INTEGERS:
            return self.integer_default(where, name, text)
        match name:
            case "bool":
                if text not in ("", "true", "false"):
                    self.fail(where, f"the default of a bool must be true or false (got {text!r})")
                return text == "true"
            case "float64":
                return float(text or 0)
            case "string":
                return text
            case "uuid":
                if text:
                    self.fail(
                        where,
                        f"the default of a uuid is always zero, so the key 'default' must be left out (got {text!r})",
                    )
                return bytes(16)
            case "bytes":
                if text:
                    self.fail(where, f"the default of bytes must be null or an empty string (got {text!r})")
                return b""
        return None  # records

    def integer_default(self, where: str, name: str, text: str) -> int:
        value = int(text or "0", 0)
        bits = int(name.removeprefix("u").removeprefix("int"))
        low, high = (0, 2**bits - 1) if name.startswith("u") else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
        if not low <= value <= high:
            self.fail(where, f"the default must be {low} to {high}, the range of {name} (got {value})")
        return value

    def check_field(self, where: str, field: Field, source: Json) -> None:
        """Check the rules for the type, the versions and the tag of one field. Raises SpecError if one is broken.

        where: the path of the field, for errors. source: the definition of the field.
        """
        if not field.versions:
            self.fail(where, "versions must contain at least one version (got none)")
        self.check_nullable(where, field)
        self.check_tag(where, field, source)
        if field.flexible is not None and (field.type.is_array or field.type.name not in ("string", "bytes")):
            self.fail(
                where,
                f"only a field of type string or bytes may have the key 'flexibleVersions' (its type is {source['type']})",
            )
        if "fields" in source and not field.type.is_struct:
            self.fail(
                where, f"only a field whose type is a struct may have the key 'fields' (its type is {source['type']})"
            )
        if source.get("zeroCopy") and field.type != Type("bytes", False):
            self.fail(where, f"only a field of type bytes may have the key 'zeroCopy' (its type is {source['type']})")

    def check_nullable(self, where: str, field: Field) -> None:
        can_be_null = field.type.is_array or field.type.is_struct or field.type.name in NULLABLE_SCALARS
        if field.nullable and not can_be_null:
            self.fail(
                where, f"nullableVersions must be none for a field of type {field.type.name} (got {field.nullable})"
            )
        nullable_and_tagged = field.nullable.intersect(field.tagged)
        if nullable_and_tagged and not field.tagged.within(field.nullable):
            self.fail(
                where,
                f"nullableVersions must contain all of taggedVersions={field.tagged} or none of it (got {field.nullable})",
            )

    def check_tag(self, where: str, field: Field, source: Json) -> None:
        if not field.tagged:
            if field.tag is not None:
                self.fail(where, f"the field has tag {field.tag}, so it must also have taggedVersions")
            return
        if field.tag is None or field.tag < 0:
            self.fail(
                where, f"the field has taggedVersions, so it must also have a tag of at least 0 (got {field.tag})"
            )
        if not field.tagged.open_ended or not field.tagged.within(field.versions):
            self.fail(
                where,
                f"taggedVersions must be open-ended, such as 2+, and within versions={field.versions} (got {field.tagged})",
            )
        if not field.tagged.within(self.flexible):
            self.fail(
                where,
                f"taggedVersions must be within the message's flexibleVersions={self.flexible} (got {field.tagged})",
            )
        if source.get("mapKey"):
            self.fail(where, "a field with taggedVersions must not have the key 'mapKey'")

    def check_names_and_tags(self, struct: str, fields: tuple[Field, ...]) -> None:
        names = [field.name for field in fields]
        if len(set(names)) != len(names):
            self.fail(
                struct, f"two fields of the struct have the Python name {next(n for n in names if names.count(n) > 1)}"
            )
        tags = sorted(field.tag for field in fields if field.tag is not None)
        if tags != list(range(len(tags))):
            self.fail(struct, f"the tags of the struct's fields must be 0, 1, 2, … without gaps (got {tags})")

    def truth(self, where: str, value: bool | str) -> bool:
        if value not in (True, False, "true", "false"):
            self.fail(where, f"ignorable must be true or false (got {value!r})")
        return value in (True, "true")

    def range(self, where: str, text: str) -> VersionRange:
        try:
            return VersionRange.parse(text)
        except ValueError as error:
            self.fail(where, f"{text!r} is not a range of versions: {error}")

    def fail(self, where: str, rule: str) -> NoReturn:
        place = self.name if where == self.name else f"{self.name}: {where}"
        raise SpecError(f"{place}: {rule}")


def children(struct: Struct) -> Iterator[str]:
    """Return the names of the structs that are types of a struct's fields."""
    return (field.type.name for field in struct.fields if field.type.is_struct)
