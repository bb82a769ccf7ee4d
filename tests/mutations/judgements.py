"""What a person says of each mutation that survived, kept by hand. The key is `results.key_of` of its result."""

from __future__ import annotations

JUDGEMENTS: dict[str, str] = {}
