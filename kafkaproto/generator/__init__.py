"""Code generator, used only at build time: reads ``schemas/`` and writes ``kafkaproto/messages/``, ``kafkaproto/data/`` and two tables.

``python -m kafkaproto.generator`` writes, ``--check`` compares; `refresh` extracts new facts from a Kafka jar. Nothing
imports this package at run time.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
SCHEMAS = PACKAGE.parent / "schemas"
