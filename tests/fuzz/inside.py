"""The fuzzing process: ``python -m tests.fuzz.inside TARGET ARGUMENTS``, with arguments for libFuzzer.

Fuzzing needs a separate process, because atheris must be active before any module of the codec is imported.
"""

from __future__ import annotations

import sys

import atheris

with atheris.instrument_imports(include=["kafkaproto"]):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    # for a merge libFuzzer restarts itself with its first argument
    itself = f"{sys.executable} -m tests.fuzz.inside {sys.argv[1]}"
    atheris.Setup([itself, *sys.argv[2:]], TARGETS[sys.argv[1]])
    atheris.Fuzz()
