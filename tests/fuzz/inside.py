"""The fuzzing process: ``python -m tests.fuzz.inside TARGET ARGUMENTS``, the arguments being libFuzzer's.

A process of its own, because nothing of the codec may be imported before atheris watches the imports.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["kafkaproto"]):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    # libFuzzer starts itself again by its first argument when it merges
    itself = f"{sys.executable} -m tests.fuzz.inside {sys.argv[1]}"
    atheris.Setup([itself, *sys.argv[2:]], TARGETS[sys.argv[1]])
    atheris.Fuzz()
