"""Redirection of the packages `broker` and `pipeline` to `kafkaproto.broker` and `kafkaproto.pipeline`.

In a checkout, Python also finds these two packages under the short names `broker` and `pipeline`. A module that is imported under its short and its
full name would exist twice. So the `__init__` of each package calls `redirect` if it is imported under the short name: `python -m broker` then runs
`python -m kafkaproto.broker`, and `import broker` raises ImportError.
"""

from __future__ import annotations

import runpy
import sys
from typing import NoReturn


def redirect(package: str) -> NoReturn:
    """Run a module of the package under its full name and exit, if Python was started with `-m` and the module's short name.

    For example, `python -m broker` runs `python -m kafkaproto.broker`. package: `broker` or `pipeline`. Raises ImportError if the package is imported
    in another way; the message names the package to import instead.
    """
    if sys.argv[:1] == ["-m"]:  # once runpy has found the module, it replaces "-m" by the module's path
        module = _module_of_command_line()
        if module == package or module.startswith(f"{package}."):
            runpy.run_module(f"kafkaproto.{module}", run_name="__main__", alter_sys=True)
            sys.exit()
    testing_hint = "; for broker.testing, import kafkaproto.testing" if package == "broker" else ""
    raise ImportError(
        f"there is no top-level package {package}; import kafkaproto.{package} instead{testing_hint}", name=package
    )


def _module_of_command_line() -> str:
    """Return the module that `-m` names on Python's command line, as in `-m broker`, `-mbroker` or `-Im broker`.

    The last word before the program's own arguments is either the module or, as in `-mbroker`, an option that ends with the module.
    """
    word = sys.orig_argv[-len(sys.argv)]
    return word.partition("m")[2] if word.startswith("-") else word
