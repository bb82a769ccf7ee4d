"""Extraction of facts from the message definitions and error codes of two kafka-clients jars into ``schemas/``.

Facts are names, types, versions, defaults, flags and numbers. Kafka's prose (comments, ``about`` texts, licence headers) is not copied. The newer jar
lacks old versions, and the older jar lacks new versions; the result has both. Run this module by hand when the Kafka version changes:

    python -m kafkaproto.generator.refresh path/to/kafka-clients-3.9.1.jar path/to/kafka-clients-4.2.0.jar
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

from kafkaproto.generator import SCHEMAS
from kafkaproto.generator.merge import merge
from kafkaproto.versions import VersionRange

HEADERS = ("RequestHeader", "ResponseHeader")

DATA_JARS = {
    "kafka-clients": "",
    "kafka-group-coordinator": "__consumer_offsets",
    "kafka-transaction-coordinator": "__transaction_state",
    "kafka-share-coordinator": "__share_group_state",
}
"""The jars of Kafka that define keys and values of records, and contents of bytes fields in messages, such as ConsumerProtocolSubscription.

Maps the name of a jar to the topic whose records its definitions describe; "" for no topic. Of the two releases given to `refresh`, the jars of the
newer one are read.
"""

OLDER_DATA = {"OffsetCommitKey": "kafka-group-coordinator"}
"""The definitions that are taken from the older of the two Kafka releases given to `refresh`, such as 3.9.1 and 4.2.0.

Maps the name of a definition to the name of the jar that contains it. The older release has one definition for all versions of this key of a record;
the newer release has two, under different names.
"""

MESSAGE_FACTS = ("apiKey", "type", "name", "validVersions", "flexibleVersions")
FIELD_FACTS = (
    "name",
    "type",
    "versions",
    "nullableVersions",
    "taggedVersions",
    "tag",
    "default",
    "ignorable",
    "mapKey",
    "entityType",
    "flexibleVersions",
)
STRUCT_FACTS = ("name", "versions")

ERRORS_PROGRAM = """
import org.apache.kafka.common.errors.RetriableException;
import org.apache.kafka.common.protocol.Errors;

public class ListErrors {
    public static void main(String[] args) {
        for (Errors error : Errors.values())
            System.out.println(error.code() + " " + error + " " + (error.exception() instanceof RetriableException));
    }
}
"""

DEFINITION = re.compile(r"common/message/\w+\.json")
NO_DATA = re.compile("(Request|Response|Header)$|^Legacy")
"""Matches the names of definitions in a jar that are not written to ``schemas/data``: requests, responses, headers and `Legacy...`.

Some releases of Kafka, such as 4.2, define the first versions of a record's key separately, under a name that starts with "Legacy". The generator
takes the definition with all versions from an earlier release instead (`OLDER_DATA`).
"""
BROKER_REQUEST = re.compile(r'"listeners": \[[^]]*"broker"')
"""Matches the JSON text of a request's definition if "broker" is in its "listeners". A request only for ZooKeeper brokers has "zkBroker"."""

Json = dict[str, Any]


def facts(definition: str) -> Json | None:
    """Return the facts of a message definition: names, types, versions, defaults and flags, without Kafka's prose.

    definition: Kafka's JSON with comments. An unstable latest version is omitted, because brokers offer it only if a setting enables it. Returns None
    if no version is left.
    """
    source = json.loads(re.sub(r"^\s*//.*$", "", definition, flags=re.MULTILINE))
    versions = VersionRange.parse(source["validVersions"])
    if source.get("latestVersionUnstable"):
        versions = versions.intersect(VersionRange(0, versions.highest - 1))
    if not versions:
        return None
    message = {name: source[name] for name in MESSAGE_FACTS if name in source}
    if source["type"].startswith("coordinator-"):  # data too; `apiKey` is not the key of an API here
        message = {**{name: value for name, value in message.items() if name != "apiKey"}, "type": "data"}
    message["validVersions"] = str(versions)
    message["fields"] = [_field(field) for field in source["fields"]]
    if source["type"] == "coordinator-key":  # its version is the number before it, as in the older release
        number = message["validVersions"] = str(source["apiKey"])
        message["fields"] = [{**field, "versions": number} for field in message["fields"]]
    if source.get("commonStructs"):
        message["commonStructs"] = [_struct(struct) for struct in source["commonStructs"]]
    return message


def served(jar: Path) -> dict[str, Json]:
    """Return the definitions in a jar that a broker needs, by name, each reduced to its facts (see `facts`).

    A broker needs the definitions of headers, and those of the requests and responses of all APIs that a broker's listeners accept.
    """
    facts_of_messages = {}
    with zipfile.ZipFile(jar) as archive:
        texts = {Path(name).stem: archive.read(name).decode() for name in archive.namelist() if DEFINITION.match(name)}
    apis = [name.removesuffix("Request") for name, text in texts.items() if BROKER_REQUEST.search(text)]
    for name in [*HEADERS, *(f"{api}{kind}" for api in apis for kind in ("Request", "Response"))]:
        request = texts[re.sub("Response$", "Request", name)]
        message_facts = facts(texts[name])
        # only the request is marked if the latest version is unstable
        request_facts = facts(request)
        if message_facts and request_facts:
            versions = {} if name in HEADERS else {"validVersions": request_facts["validVersions"]}
            facts_of_messages[name] = {**message_facts, **versions}
    return facts_of_messages


def data(older: Path, newer: Path) -> dict[str, Json]:
    """Return the definitions for ``schemas/data``, by name, each reduced to its facts (see `facts`).

    They describe keys and values of records, and contents of bytes fields in messages. older, newer: the folders with the jars of two Kafka releases.
    A definition of the key of a coordinator's record gets two additional facts: the name of the topic with these records, and the name of the
    definition of the record's value.
    """
    texts = {name: (text, topic) for jar, topic in DATA_JARS.items() for name, text in _data_of(newer, jar).items()}
    texts |= {name: (_data_of(older, jar)[name], DATA_JARS[jar]) for name, jar in OLDER_DATA.items()}
    definitions = {}
    for name, (text, topic) in sorted(texts.items()):
        definition = facts(text)
        if not definition:
            continue
        if topic and name.endswith("Key"):
            about = {"topic": topic, "value": f"{name.removesuffix('Key')}Value"}
            definition = {**about, **definition}
        definitions[name] = definition
    return definitions


def _data_of(folder: Path, jar: str) -> dict[str, str]:
    """Return the texts of a jar's definitions that are neither headers nor messages of an API, by name.

    folder: the folder with the jars of one release. jar: the name of the jar without version, such as "kafka-clients".
    """
    [path] = folder.glob(f"{jar}-[0-9]*.jar")
    with zipfile.ZipFile(path) as archive:
        texts = {Path(name).stem: archive.read(name).decode() for name in archive.namelist() if DEFINITION.match(name)}
    return {name: text for name, text in texts.items() if not NO_DATA.search(name)}


def merged(older: dict[str, Json], newer: dict[str, Json]) -> dict[str, Json]:
    """Merge the message definitions of two Kafka releases. A message in both releases gets one definition, with the versions of both.

    If the newer release has renamed an API, its messages are only taken from that release, under the new name. older, newer: map the names of
    messages to their definitions.
    """
    renamed = {(definition.get("apiKey"), definition["type"]) for definition in newer.values()}
    definitions = dict(newer)
    for name, definition in older.items():
        if name in newer:
            definitions[name] = merge(definition, newer[name])
        elif (definition.get("apiKey"), definition["type"]) not in renamed:
            definitions[name] = definition
    return definitions


def _field(source: Json) -> Json:
    field = {name: source[name] for name in FIELD_FACTS if name in source}
    if "fields" in source:
        field["fields"] = [_field(inner) for inner in source["fields"]]
    return field


def _struct(source: Json) -> Json:
    struct: Json = {name: source[name] for name in STRUCT_FACTS if name in source}
    struct["fields"] = [_field(inner) for inner in source["fields"]]
    return struct


def to_text(definition: Json) -> str:
    """Return the text of a message definition as stored in ``schemas/``: one line per field, so that a change is one line of a diff."""
    return _format(definition, 0) + "\n"


def _format(source: Json, depth: int) -> str:
    pad = "  " * (depth + 1)
    parts = []
    for key, value in source.items():
        if key not in ("fields", "commonStructs"):
            parts.append(f"{json.dumps(key)}: {json.dumps(value)}")
            continue
        items = ",\n".join(f"{pad}  {_format(item, depth + 2)}" for item in value)
        parts.append(f"{json.dumps(key)}: [\n{items}\n{pad}]" if items else f"{json.dumps(key)}: []")
    if depth:
        return "{" + ", ".join(parts) + "}"
    return "{\n" + ",\n".join(pad + part for part in parts) + "\n}"


def read_errors(jar: Path) -> list[Json]:
    """Return number, name and retriability of every error code as JSON objects, read from Kafka's ``Errors`` in a Java process.

    jar: the kafka-clients jar; all jars in its folder are on the class path.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "ListErrors.java"
        program.write_text(ERRORS_PROGRAM)
        class_path = f"{jar.parent}/*"
        command = ["java", "-cp", class_path, str(program)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    errors = [line.split() for line in output.splitlines()]
    return [{"number": int(code), "name": name, "retriable": flag == "true"} for code, name, flag in errors]


def refresh(older: Path, newer: Path, schemas: Path = SCHEMAS) -> None:
    """Rewrite ``schemas/messages``, ``schemas/data`` and ``schemas/errors.json`` from the jars of two Kafka releases.

    older, newer: the kafka-clients jars; the other jars of each release are in the same folder. schemas: the folder to write to.
    """
    (schemas / "messages").mkdir(parents=True, exist_ok=True)
    for name, definition in merged(served(older), served(newer)).items():
        (schemas / "messages" / f"{name}.json").write_text(to_text(definition))
    (schemas / "data").mkdir(exist_ok=True)
    for name, definition in data(older.parent, newer.parent).items():
        (schemas / "data" / f"{name}.json").write_text(to_text(definition))
    lines = ",\n".join("  " + json.dumps(error) for error in read_errors(newer))
    (schemas / "errors.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    refresh(*map(Path, sys.argv[1:3]))
