"""Code generator, used only at build time: reads ``schemas/`` and writes ``kafkaproto/messages/``, ``kafkaproto/data/`` and two tables.

``python -m kafkaproto.generator`` writes these files, and with ``--check`` only reports those that are out of date. `refresh` extracts the
definitions in ``schemas/`` from Kafka's jars. Nothing imports this package at run time.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
SCHEMAS = PACKAGE.parent / "schemas"
