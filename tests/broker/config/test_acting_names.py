"""Each setting that the reference calls acting is named by code that can read it.

Settings that begin with `group.` always pass, because the code builds their names.
"""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from kafkaproto.broker.config.definitions import definitions_of

ROOT = Path(__file__).resolve().parents[3]
LISTS = {
    "effects.py",
    "without_effect.py",
    "definitions.py",
    "requirements.py",
    "rejections.py",
    "description.py",
    "group_bounds.py",
}
"""Modules that list or check settings by name, and do not act on them."""


@cache
def name_patterns() -> list[re.Pattern[str]]:
    """Return an expression for each string of the broker's code that may be the name of a setting; an f-string matches any text in its holes."""
    patterns = []
    for path in (ROOT / "broker").rglob("*.py"):
        if path.name in LISTS:
            continue
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                patterns.append(re.escape(node.value))
            elif isinstance(node, ast.JoinedStr):
                texts = [part.value if isinstance(part, ast.Constant) else None for part in node.values]
                if any(isinstance(text, str) and re.search(r"[a-z]\.", text) for text in texts):
                    patterns.append("".join("[a-z0-9.]+" if text is None else re.escape(str(text)) for text in texts))
    return [re.compile(pattern) for pattern in patterns if " " not in pattern]


@pytest.mark.parametrize("release", ["3.9", "4.2"])
def test_code_of_the_broker_names_each_setting_that_acts(release: str) -> None:
    definitions = definitions_of(release)
    settings = [
        setting for table in (definitions.broker, definitions.topic, definitions.group) for setting in table.values()
    ]
    named = {s.name for s in settings if any(pattern.fullmatch(s.name) for pattern in name_patterns())}
    for table in (
        definitions.group,
        definitions.topic,
        definitions.broker,
    ):  # a default of a named setting is read with it
        named |= {fallback for setting in table.values() if setting.name in named for fallback in setting.fallbacks}
    assert [setting.name for setting in settings if setting.acts and setting.name not in named] == []
