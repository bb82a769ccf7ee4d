"""A client of ``RegularExpressions.java``, which validates and matches, as Kafka does, the regular expressions of consumer groups."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tests.support.oracle.oracle import Process


class RegularExpressionOracle(Process):
    """The validation of regular expressions in Kafka's group coordinator, and RE2J, the library that the coordinator uses."""

    program = "RegularExpressions.java"

    def match(self, pattern: str, names: Sequence[str]) -> list[bool] | str:
        """Return for each name whether the whole name matches, or Kafka's error message if it refuses the pattern.

        Raises Refused for a pattern at which RE2J fails with another exception.
        """
        result = json.loads(self.ask("match", json.dumps([pattern, list(names)], separators=(",", ":"))))
        error: str | None = result.get("error")
        return list(result["matches"]) if error is None else error

    def tables(self) -> dict[str, Any]:
        """Return the tables of RE2J: the ranges of each Unicode class, and which code points equal each other if case is ignored."""
        tables: dict[str, Any] = json.loads(self.ask("tables", ""))
        return tables
