"""Takes the facts out of the message definitions and error codes of a kafka-clients jar and writes ``schemas/``.

Facts are names, types, versions, defaults, flags and numbers. Kafka's sentences (comments, ``about`` texts, licence
headers) stay in the jar. Run by hand when the Kafka version moves:
``python -m kafkaproto.generator.refresh path/to/kafka-clients-3.9.1.jar``
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

# The messages that we have, each with the highest version that we want of it.
WANTED = {
    "Produce": 11,
    "Fetch": 17,
    "ListOffsets": 9,
    "Metadata": 12,
    "ApiVersions": 4,
    "OffsetForLeaderEpoch": 4,
    "InitProducerId": 5,
    "FindCoordinator": 6,
    "JoinGroup": 9,
    "SyncGroup": 5,
    "Heartbeat": 4,
    "LeaveGroup": 5,
    "OffsetCommit": 9,
    "OffsetFetch": 9,
    "ListGroups": 5,
    "DescribeGroups": 5,
    "CreateTopics": 7,
    "DeleteTopics": 6,
    "DescribeConfigs": 4,
    "IncrementalAlterConfigs": 1,
    "DescribeCluster": 1,
    "DescribeClientQuotas": 1,
    "AlterClientQuotas": 1,
}
HEADERS = {"RequestHeader": 2, "ResponseHeader": 1}

MESSAGE_FACTS = ("apiKey", "type", "name", "validVersions", "flexibleVersions", "latestVersionUnstable", "listeners")
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

Json = dict[str, Any]


def facts(definition: str, highest: int | None = None) -> Json:
    """The facts of one definition, given as Kafka's JSON with comments; versions above ``highest`` are cut off."""
    source = json.loads(re.sub(r"^\s*//.*$", "", definition, flags=re.MULTILINE))
    result = {name: source[name] for name in MESSAGE_FACTS if name in source}
    if highest is not None:
        lowest, _, last = source["validVersions"].partition("-")
        last = min(int(last or lowest), highest)
        result["validVersions"] = lowest if last == int(lowest) else f"{lowest}-{last}"
    result["fields"] = [_field(field) for field in source["fields"]]
    if source.get("commonStructs"):
        result["commonStructs"] = [_struct(struct) for struct in source["commonStructs"]]
    return result


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
    """A definition as we keep it: one line per field, so that a change is one line of a diff."""
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


def wanted_files() -> dict[str, int]:
    """Definition name to highest version, for everything that ``schemas/messages`` holds."""
    messages = {f"{api}{kind}": highest for api, highest in WANTED.items() for kind in ("Request", "Response")}
    return {**messages, **HEADERS}


def read_errors(jar: Path) -> list[Json]:
    """Number, name and retriability of every error code, asked of Kafka's ``Errors`` in a Java process."""
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "ListErrors.java"
        program.write_text(ERRORS_PROGRAM)
        class_path = f"{jar.parent}/*"
        command = ["java", "-cp", class_path, str(program)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    errors = [line.split() for line in output.splitlines()]
    return [{"number": int(code), "name": name, "retriable": flag == "true"} for code, name, flag in errors]


def refresh(jar: Path, schemas: Path = SCHEMAS) -> None:
    """Write ``schemas/messages/*.json`` and ``schemas/errors.json`` anew."""
    (schemas / "messages").mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(jar) as archive:
        for name, highest in wanted_files().items():
            definition = archive.read(f"common/message/{name}.json").decode()
            (schemas / "messages" / f"{name}.json").write_text(to_text(facts(definition, highest)))
    lines = ",\n".join("  " + json.dumps(error) for error in read_errors(jar))
    (schemas / "errors.json").write_text(f"[\n{lines}\n]\n")


if __name__ == "__main__":
    refresh(Path(sys.argv[1]))
