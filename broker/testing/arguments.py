"""Checks of the arguments that tests pass: each error names the argument, the value and what to pass instead."""

from __future__ import annotations

import difflib
import functools
import inspect
import threading
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any, ParamSpec, TypeVar

from kafkaproto.broker.testing.tracebacks import is_hidden

__tracebackhide__ = is_hidden

P = ParamSpec("P")
R = TypeVar("R")
_NEAR = 0.7
"""The similarity, from 0 to 1, above which an unknown name counts as a misspelling of a known name."""


def check_int(name: str, value: object, lowest: int | None = None, example: object = 1) -> None:
    """Raise TypeError unless `value` is an int and not a bool, ValueError if it is below `lowest` (None: no limit).

    name: the argument that has the value. example: a valid value. The error message contains both.
    """
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name} must be an int (got {short_repr(value)}); for example {example}")
    if lowest is not None and value < lowest:
        raise ValueError(f"{name} must be at least {lowest} (got {value})")


def check_text(name: str, value: object, example: str) -> None:
    """Raise TypeError unless `value` is a str, ValueError if it is empty.

    name: the argument that has the value. example: a valid value. The error message contains both.
    """
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a str (got {short_repr(value)}); for example {example!r}")
    if not value:
        raise ValueError(f"{name} must not be empty; for example {example!r}")


def check_choice(name: str, value: object, allowed: Collection[str], example: str) -> None:
    """Raise ValueError, which names the most similar choice, unless `value` is one of `allowed`.

    name: the argument that has the value. example: the valid value that the error message shows if no choice is similar.
    """
    if not isinstance(value, str) or value not in allowed:
        *others, last = map(repr, allowed)
        raise ValueError(
            f"{name} must be {', '.join(others)} or {last} (got {short_repr(value)})"
            + (nearest(value, allowed) or f"; for example {name}={example!r}")
        )


def unknown(name: str, value: object, what: str, known: Collection[str], most: int = 10) -> ValueError:
    """Return the error for a name that does not exist. The message contains the most similar known name, or else the first `most` known names.

    name: the argument that has the value. value: the unknown name. what: what the argument must be, such as "the id of an existing group".
    """
    known_texts = ", ".join(map(repr, list(known)[:most])) + (", ..." if len(known) > most else "")
    hint = nearest(value, known) or (f"; known are {known_texts}" if known else "; there is none yet")
    return ValueError(f"{name} must be {what} (got {short_repr(value)}){hint}")


def check_mapping(name: str, value: object, example: str) -> None:
    """Raise TypeError unless `value` is a dict, or another mapping, with str keys.

    name: the argument that has the value. example: a valid value, as Python code. The error message contains both.
    """
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} must be a dict (got {short_repr(value)}); for example {example}")
    for key in value:
        if not isinstance(key, str):
            raise TypeError(f"the keys of {name} must be str (got {short_repr(key)}); for example {example}")


def check_function(name: str, value: object) -> None:
    """Raise TypeError unless `value` is callable. name: the argument that has the value, for the error message.

    TypeError is also raised for a coroutine function: a call returns a coroutine, which always counts as true, instead of a result.
    """
    if inspect.iscoroutinefunction(value):
        raise TypeError(f"{name} must be a plain function (got the coroutine function {value.__qualname__})")
    if not callable(value):
        raise TypeError(
            f"{name} must be a function of the journal (got {short_repr(value)}); for example lambda journal: True"
        )


def check_seconds(name: str, value: object) -> None:
    """Raise TypeError unless `value` is a number, ValueError unless it is from 0 to `threading.TIMEOUT_MAX`, the longest wait of a thread.

    name: the argument that has the value, for the error message.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number of seconds (got {short_repr(value)}); for example {name}=30")
    if not 0 <= value <= threading.TIMEOUT_MAX:
        raise ValueError(
            f"{name} must be 0 to {threading.TIMEOUT_MAX:.0f} seconds (got {value}); for example {name}=30"
        )


def with_hint(method: Callable[P, R]) -> Callable[P, R]:
    """Wrap a method so that its TypeError for an unknown keyword argument names the most similar parameter. Returns the wrapper."""
    parameters = tuple(inspect.signature(method).parameters)[1:]

    @functools.wraps(method)
    def checked(*args: P.args, **kwargs: P.kwargs) -> R:
        for argument in kwargs:
            if argument not in parameters:
                hint = nearest(argument, parameters) or f"; known are {', '.join(parameters)}"
                raise TypeError(f"{method.__name__}() has no argument {argument!r}{hint}")
        return method(*args, **kwargs)

    return checked


def nearest(value: object, allowed: Iterable[str]) -> str:
    """Return the text "; did you mean ...?" with the allowed name that is most similar to `value`; empty if none is similar."""
    if not isinstance(value, str):
        return ""
    by_lower = {name.lower(): name for name in allowed}
    close = difflib.get_close_matches(value.lower(), by_lower, 1, _NEAR)
    return f"; did you mean {by_lower[close[0]]!r}?" if close else ""


def short_repr(value: Any, longest: int = 100) -> str:
    """Return the repr of a value, shortened to `longest` characters."""
    text = repr(value)
    return text if len(text) <= longest else f"{text[:longest]}…"


def counted(count: int, noun: str) -> str:
    """Return `count` and the noun as text, the noun in the plural unless `count` is 1: "1 member", "2 members"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
