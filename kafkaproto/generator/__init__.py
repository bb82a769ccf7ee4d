"""Build time only: reads ``schemas/`` and writes ``kafkaproto/messages/`` and ``kafkaproto/error_codes.py``.

``python -m kafkaproto.generator`` writes, ``--check`` compares; `refresh` takes new facts out of a Kafka jar. Nothing
imports this package at run time.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
SCHEMAS = PACKAGE.parent / "schemas"
