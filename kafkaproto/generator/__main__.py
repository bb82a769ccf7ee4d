"""Write the code that is generated from schemas/, or report the generated files that are out of date."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from kafkaproto.generator import PACKAGE, SCHEMAS, emit
from kafkaproto.generator.forms import SpecError
from kafkaproto.generator.spec import Message, load, snake_case

FOLDERS = ("messages", "data")
"""The subfolders of the package `kafkaproto` that contain only generated code."""


def generate(schemas: Path = SCHEMAS) -> dict[str, str]:
    """Return the texts of all generated files, keyed by their paths relative to the package.

    schemas: the folder with the JSON definitions.
    """
    definitions = {path.stem: load(path) for path in sorted((schemas / "messages").glob("*.json"))}
    files = {"error_codes.py": emit.error_codes(json.loads((schemas / "errors.json").read_text()))}
    files["release_table.py"] = emit.release_table(json.loads((schemas / "releases.json").read_text()))
    apis = []
    for name, message in definitions.items():
        if message.kind == "header":
            files[f"messages/{snake_case(name)}.py"] = emit.module([message], f"schemas/messages/{name}.json")
        if message.kind == "request":
            api, response = api_of(name, message, definitions)
            apis.append((api, message))
            sources = f"schemas/messages/{api}Request.json and {api}Response.json"
            files[f"messages/{snake_case(api)}.py"] = emit.module([message, response], sources)
    data = [load(path) for path in sorted((schemas / "data").glob("*.json"))]
    for message in data:
        files[f"data/{snake_case(message.name)}.py"] = emit.module([message], f"schemas/data/{message.name}.json")
    files["data/__init__.py"] = emit.data_index(data)
    apis.sort(key=lambda api: api[1].api_key or 0)
    files["messages/__init__.py"] = emit.index(apis)
    return files


def api_of(name: str, request: Message, definitions: dict[str, Message]) -> tuple[str, Message]:
    """Return the name of an API and the definition of its response.

    name: the name of the request's definition, such as "FetchRequest". definitions: all definitions by name. Raises SpecError unless the response
    exists and has the same key and versions as the request.
    """
    api = name.removesuffix("Request")
    response = definitions.get(f"{api}Response")
    if response is None:
        raise SpecError(f"{name}: the schema of {api}Response is missing; add {api}Response.json")
    shared = [(m.api_key, m.versions, m.flexible) for m in (request, response)]
    if shared[0] != shared[1]:
        raise SpecError(
            f"the schemas of {name} and {api}Response must have the same API key, versions and flexible versions"
        )
    return api, response


def stale_files(files: dict[str, str], package: Path = PACKAGE) -> list[str]:
    """Return the names of generated files that are out of date or missing, and of files in `FOLDERS` that are no longer generated.

    files: text of every generated file, by its path relative to `package`.
    """
    stale = [name for name, text in files.items() if not (package / name).is_file()]
    stale += [name for name, text in files.items() if name not in stale and (package / name).read_text() != text]
    present = {f"{folder}/{path.name}" for folder in FOLDERS for path in (package / folder).glob("*.py")}
    return sorted(stale) + sorted(present - files.keys())


def main(arguments: list[str] | None = None) -> int:
    """Run the generator. Returns exit status 1 if ``--check`` finds a stale file, else 0."""
    parser = argparse.ArgumentParser(prog=emit.COMMAND, description=__doc__)
    parser.add_argument(
        "--check", action="store_true", help="write nothing; exit with status 1 if a file is out of date"
    )
    options = parser.parse_args(arguments)
    files = generate()
    if options.check:
        stale = stale_files(files)
        if stale:
            sys.stderr.write(
                f"write the generated files again with `{emit.COMMAND}`, because these are out of date: {', '.join(stale)}\n"
            )
        return 1 if stale else 0
    for name in stale_files(files):
        if name not in files:
            (PACKAGE / name).unlink()
    for name, text in files.items():
        (PACKAGE / name).parent.mkdir(exist_ok=True)
        (PACKAGE / name).write_text(text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
