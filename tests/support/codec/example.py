"""A made-up API that uses every feature of the schema language once, generated when the tests run.

It follows Kafka's ``SimpleExampleMessage`` and covers features that no real message uses.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

from kafkaproto.generator import emit
from kafkaproto.generator.spec import load, parse
from tests.support.codec.catalogue import Entry

SCHEMAS = Path(__file__).with_name("schemas")


def compile_module(text: str, name: str) -> ModuleType:
    """Return generated source text as an imported module."""
    module = ModuleType(name)
    sys.modules[name] = module  # dataclasses look up their module by name
    exec(compile(text, name, "exec"), module.__dict__)
    return module


def module_of(*definitions: dict[str, Any]) -> ModuleType:
    """Return the generated module of definitions given as Python values."""
    return compile_module(
        emit.module([parse(definition) for definition in definitions], "a test"), "generated_in_a_test"
    )


def example_text() -> str:
    return emit.module([load(SCHEMAS / f"Example{kind}.json") for kind in ("Request", "Response")], "tests")


def source(kind: str) -> dict[str, Any]:
    """Return one of the two definitions as JSON."""
    return dict(json.loads((SCHEMAS / f"Example{kind}.json").read_text()))


EXAMPLE: Any = compile_module(example_text(), "generated_example")
EXAMPLE_ENTRIES = [
    Entry(f"Example{kind}", version, layout)
    for kind, layouts in (("Request", EXAMPLE.REQUESTS), ("Response", EXAMPLE.RESPONSES))
    for version, layout in layouts.items()
]
