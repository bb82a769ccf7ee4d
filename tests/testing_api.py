"""The public test API as text: one line for each name that a test can reach, with its declared signature.

python -m tests.testing_api --write    rewrite tests/testing_api.txt
"""

from __future__ import annotations

import ast
import asyncio
import dataclasses
import inspect
import re
import sys
import textwrap
from collections.abc import Iterator
from enum import Enum
from itertools import pairwise
from pathlib import Path
from typing import Any

from kafkaproto import testing as exported
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.metadata.image import PartitionState
from kafkaproto.broker.observe.details import Details, Result
from kafkaproto.broker.observe.journal import EventSeen, RequestSeen, ThrottleSeen
from kafkaproto.broker.observe.metrics import MetricName, Metrics
from kafkaproto.broker.quota.forced import ForcedThrottle
from kafkaproto.broker.quota.sensors import ThrottleReason
from kafkaproto.broker.testing.handle import Condition
from kafkaproto.broker.testing.options import Options, Topics
from kafkaproto.broker.testing.producing import Given
from kafkaproto.records.batch import NewRecord
from kafkaproto.records.compression import Compression

LIST = Path(__file__).with_name("testing_api.txt")
RETURNED = (
    Compression,
    Details,
    EventSeen,
    ForcedThrottle,
    KafkaError,
    MetricName,
    NewRecord,
    Options,
    PartitionState,
    RequestSeen,
    Result,
    ThrottleReason,
    ThrottleSeen,
)
"""Classes of the values that the functions and methods accept, return or raise."""
ALIASES = {"Condition": Condition, "Given": Given, "Metrics": Metrics, "Topics": Topics}
SPECIAL = ("__enter__", "__exit__", "__aenter__", "__aexit__", "__iter__", "__len__", "__getitem__", "__call__")


def lines() -> list[str]:
    """Return the lines of the list, sorted."""
    return sorted(set(_lines()))


def _lines() -> Iterator[str]:
    for name in exported.__all__:
        value = getattr(exported, name)
        yield f"exported: {name}"
        if inspect.isclass(value):
            yield from class_lines(value)
        elif callable(value):
            yield name + signature(value)
        else:
            yield f"{name} = {shown(value)}"
            yield from class_lines(type(value))
    for returned in RETURNED:
        yield from class_lines(returned)
    for name, alias in ALIASES.items():
        yield f"{name} = {without_modules(repr(alias))}"
    for instance in [KafkaError(42, "why"), *live_objects()]:
        yield from class_lines(type(instance))
        yield from attribute_lines(instance)


def live_objects() -> list[Any]:
    """Return the objects that a test has while a cluster runs: the cluster, its clock and journal, and their handles."""

    def reached(handle: Any) -> list[Any]:
        return [handle, handle.clock, handle.journal, handle.broker(0), handle.follower("t", 0, 0)]

    async def reached_in_loop() -> list[Any]:
        async with exported.async_cluster(1, {"t": 1}) as handle:
            return reached(handle)

    with exported.cluster(1, {"t": 1}) as handle:
        return [*reached(handle), *asyncio.run(reached_in_loop())]


def undocumented() -> Iterator[str]:
    """Yield the public classes, methods, properties, fields and attributes that have no docstring of their own.

    A field may instead be named in the docstring of its class.
    """
    exported_classes = [value for name in exported.__all__ if inspect.isclass(value := getattr(exported, name))]
    for kind in dict.fromkeys([*exported_classes, *RETURNED, *map(type, live_objects())]):
        for base in kind.__mro__:
            if base.__module__.startswith("kafkaproto."):
                yield from undocumented_in(base)


def undocumented_in(kind: type) -> Iterator[str]:
    """Yield the parts of one class without a docstring."""
    [tree] = ast.parse(textwrap.dedent(inspect.getsource(kind))).body
    assert isinstance(tree, ast.ClassDef)
    docstring = ast.get_docstring(tree)
    if docstring is None:
        yield kind.__name__
    statements = list(tree.body)
    for function in tree.body:
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            if function.name == "__init__":
                statements += function.body
            elif not function.name.startswith("_") and ast.get_docstring(function) is None:
                yield f"{kind.__name__}.{function.name}"
    for statement, following in pairwise([*statements, None]):
        name = _assigned(statement)
        if name is None or name.startswith("_") or _is_text(following):
            continue
        if re.search(rf"\b{name}\b", docstring or "") is None:
            yield f"{kind.__name__}.{name}"


def _assigned(statement: ast.stmt | None) -> str | None:
    """Return the field or attribute that a statement of a class or of its `__init__` assigns or declares."""
    if isinstance(statement, ast.AnnAssign):
        target: ast.expr = statement.target
    elif isinstance(statement, ast.Assign):
        target = statement.targets[0]
    else:
        return None
    if isinstance(target, ast.Attribute):
        return target.attr
    return target.id if isinstance(target, ast.Name) and isinstance(statement, ast.AnnAssign) else None


def _is_text(statement: ast.stmt | None) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def class_lines(kind: type) -> Iterator[str]:
    """Yield fields, properties and methods of a class, including inherited ones, and its constructor, unless only functions create it."""
    own = [base for base in kind.__mro__ if base.__module__ not in ("abc", "builtins", "enum", "typing")]
    if issubclass(kind, Enum):
        yield from (f"{kind.__name__}.{member.name} = {member.value!r}" for member in kind)
        return
    if dataclasses.is_dataclass(kind) or hasattr(kind, "_fields") or issubclass(kind, Exception):
        yield kind.__name__ + signature(kind)
    for base in own:
        for name, annotation in inspect.get_annotations(base).items():
            if not name.startswith("_"):
                yield f"{kind.__name__}.{name}: {without_modules(str(annotation))}"
        for name, value in base.__dict__.items():
            if (not name.startswith("_") or name in SPECIAL) and resolved(kind, name) is value:
                yield from member_lines(f"{kind.__name__}.{name}", value)


def member_lines(name: str, value: Any) -> Iterator[str]:
    if isinstance(value, property):
        assert value.fget is not None
        yield f"{name}: {value.fget.__annotations__.get('return', '?')}  (property{', settable' if value.fset else ''})"
    elif isinstance(value, classmethod | staticmethod):
        yield f"{name}{signature(value.__func__)}  ({type(value).__name__})"
    elif inspect.iscoroutinefunction(value):
        yield f"async {name}{signature(value)}"
    elif inspect.isfunction(value):
        yield name + signature(value)


def attribute_lines(instance: Any) -> Iterator[str]:
    """Yield the attributes set by the constructor."""
    for name, value in getattr(instance, "__dict__", {}).items():
        if not name.startswith("_"):
            yield f"{type(instance).__name__}.{name}: {type(value).__name__}  (attribute)"


def signature(function: Any) -> str:
    """Return parameters, defaults and return type as declared."""
    function_signature = inspect.signature(function)
    parts = []
    star_seen = False
    for parameter in function_signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            star_seen = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not star_seen:
            parts.append("*")
            star_seen = True
        prefix = {parameter.VAR_POSITIONAL: "*", parameter.VAR_KEYWORD: "**"}.get(parameter.kind, "")
        text = prefix + parameter.name
        if parameter.annotation is not parameter.empty:
            text += f": {without_modules(annotation_text(parameter.annotation))}"
        if parameter.default is not parameter.empty:
            text += f" = {shown(parameter.default)}"
        parts.append(text)
    returned = (
        ""
        if function_signature.return_annotation in (function_signature.empty, None)
        else annotation_text(function_signature.return_annotation)
    )
    if isinstance(function, type):
        returned = ""
    return f"({', '.join(parts)})" + (f" -> {without_modules(returned)}" if returned else "")


def annotation_text(annotation: Any) -> str:
    if isinstance(annotation, str):
        return annotation
    return annotation.__name__ if isinstance(annotation, type) else str(annotation)


def resolved(kind: type, name: str) -> Any:
    """Return the class attribute of a name without calling it."""
    return next(base.__dict__[name] for base in kind.__mro__ if name in base.__dict__)


def shown(value: Any) -> str:
    if isinstance(value, Enum):
        return f"{type(value).__name__}.{value.name}"
    return "<factory>" if "factory" in repr(value) else repr(value)


def without_modules(text: str) -> str:
    """Shorten `collections.abc.Mapping[str, broker.x.Y]` to `Mapping[str, Y]`."""
    text = re.sub(r"ForwardRef\('([^']*)'[^)]*\)", r"\1", text)
    text = re.sub(r"<class '([^']*)'>", r"\1", text)
    return re.sub(r"\b(?:[A-Za-z_]\w*\.)+([A-Za-z_]\w*)", r"\1", text)


if __name__ == "__main__":
    text = "\n".join(lines()) + "\n"
    if "--write" in sys.argv:
        LIST.write_text(text)
    else:
        sys.stdout.write(text)
