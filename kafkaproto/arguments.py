"""Command-line parsing: a parser whose help ends with examples and whose errors are one line, and suggestions for misspelt names."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NoReturn

USAGE_STATUS = 2


class Parser(argparse.ArgumentParser):
    """The parser of one command's options. It reports an invalid command line in one line on stderr and exits with `error_status`.

    examples: (description, command) pairs to print at the end of the help. Other arguments are those of `argparse.ArgumentParser`.
    """

    def __init__(
        self, *, examples: Sequence[tuple[str, str]] = (), error_status: int = USAGE_STATUS, **options: Any
    ) -> None:
        epilog = (
            "\n".join(["Examples:", *(f"  # {text}\n  {command}" for text, command in examples)]) if examples else ""
        )
        options["epilog"] = "\n\n".join(part for part in (options.get("epilog"), epilog) if part) or None
        options.setdefault("formatter_class", argparse.RawDescriptionHelpFormatter)
        super().__init__(**options)
        self.error_status = error_status

    def error(self, message: str) -> NoReturn:
        sys.stderr.write(f"{self.prog}: {message}; --help shows all options\n")
        sys.exit(self.error_status)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return the known name that is most similar to `name`, ignoring case; None if none is similar."""
    import difflib  # only after a mistake

    names = {choice.lower(): choice for choice in known}
    matches = difflib.get_close_matches(name.lower(), names, n=1)
    return names[matches[0]] if matches else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """Return `; did you mean "x"?` with the nearest known name, or an empty string if none is similar."""
    close = nearest(name, known)
    return "" if close is None else f'; did you mean "{close}"?'
