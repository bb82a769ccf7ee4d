"""The folders `broker/` and `pipeline/` of a checkout, met under their own names instead of `kafkaproto.broker` and `kafkaproto.pipeline`.

With a checkout on the path, Python finds them as top-level packages too. A module loaded under both names would exist twice, so
their `__init__` calls `redirect`, which never returns: `python -m broker` continues as `python -m kafkaproto.broker`, an import fails.
"""

from __future__ import annotations

import runpy
import sys
from typing import NoReturn


def redirect(package: str) -> NoReturn:
    """Run the module that `python -m` asks for under its installed name, or refuse to import `package`.

    Raises ImportError, naming the module to import instead, unless the interpreter is looking for the module of `-m`.
    """
    if sys.argv[:1] == ["-m"]:  # runpy puts the path of the module there once it has found it
        module = _module_of_command_line()
        if module == package or module.startswith(f"{package}."):
            runpy.run_module(f"kafkaproto.{module}", run_name="__main__", alter_sys=True)
            sys.exit()
    also = "; for broker.testing, import kafkaproto.testing" if package == "broker" else ""
    raise ImportError(f"{package} is not a package of its own: import kafkaproto.{package} instead{also}", name=package)


def _module_of_command_line() -> str:
    """Return the module that `-m` names: the word before the program's own arguments, as in `-m broker`, `-mbroker` or `-Im broker`."""
    word = sys.orig_argv[-len(sys.argv)]
    return word.partition("m")[2] if word.startswith("-") else word
