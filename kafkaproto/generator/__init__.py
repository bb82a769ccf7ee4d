"""Code generator, used only at build time: writes modules of `kafkaproto` from the definitions in ``schemas/``.

``python -m kafkaproto.generator`` writes the folders ``messages/`` and ``data/``, the error codes in ``error_codes.py``, and the API versions of each
release of Kafka in ``release_table.py``. With ``--check`` it only reports files that are out of date. `refresh` extracts the definitions from Kafka's
jars. Nothing imports this package at run time.
"""

from pathlib import Path

PACKAGE = Path(__file__).resolve().parent.parent
SCHEMAS = PACKAGE.parent / "schemas"
