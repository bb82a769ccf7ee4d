"""A test cluster as a decorator: it runs while the decorated function runs."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from inspect import Parameter, Signature
from typing import Any, ParamSpec, TypeVar

from kafkaproto.broker.testing.tracebacks import is_hidden

__tracebackhide__ = is_hidden

P = ParamSpec("P")
R = TypeVar("R")
S = TypeVar("S")
"""The type of the first parameter, usually `self`, of a function whose second parameter is the cluster."""
PARAMETER = "kafka"

Runs = Callable[[], AbstractContextManager[Any]]
RunsAsync = Callable[[], AbstractAsyncContextManager[Any]]


def decorated(function: Callable[..., R], run: Runs | None, run_async: RunsAsync) -> Callable[..., R]:
    """Return a function that runs `function` with a new cluster at each call.

    If `function` has a parameter `kafka`, the cluster is passed to it. The returned function does not have this parameter. run: a function that
    returns a context manager, which starts and stops the cluster of a plain function; None if only coroutine functions are allowed. run_async: a
    function that returns the asynchronous context manager, which does the same for a coroutine function.

    Raises TypeError for classes and generators, and for plain functions if `run` is None.
    """
    name = _checked_name(function)
    signature = inspect.signature(function)
    takes = PARAMETER in signature.parameters
    outer = signature.replace(parameters=[own for own in signature.parameters.values() if own.name != PARAMETER])

    def check(named: dict[str, Any]) -> None:
        if takes and PARAMETER in named:
            raise TypeError(f"{name}() gets its cluster from the decorator; call it without {PARAMETER}=")

    def call(cluster: Any, arguments: tuple[Any, ...], named: dict[str, Any]) -> R:
        if takes:
            arguments, named = _with_cluster(signature, outer, cluster, arguments, named)
        return function(*arguments, **named)

    wrapper: Any
    if _is(inspect.iscoroutinefunction, function):

        @functools.wraps(function)
        async def wrapper(*arguments: Any, **named: Any) -> Any:
            check(named)
            async with run_async() as cluster:
                coroutine: Any = call(cluster, arguments, named)
                return await coroutine

    elif run is None:
        raise TypeError(f"async_cluster() decorates coroutine functions (got {name}); use cluster()")
    else:

        @functools.wraps(function)
        def wrapper(*arguments: Any, **named: Any) -> Any:
            check(named)
            with run() as cluster:
                result = call(cluster, arguments, named)
            if inspect.iscoroutine(result):
                result.close()
                raise TypeError(
                    f"{name}() returned a coroutine, which would run without the cluster; define {name}() with `async def`"
                )
            return result

    if takes:  # pytest would look for a fixture of that name
        wrapper.__signature__ = outer
    result: Callable[..., R] = wrapper
    return result


def _checked_name(function: Callable[..., Any]) -> str:
    """Return the name of the function to decorate. Raises TypeError for classes and generators."""
    if inspect.isclass(function) or not callable(function):
        raise TypeError(
            f"a cluster can only decorate functions and methods (got {function!r}); in a class, decorate each test method"
        )
    name: str = getattr(function, "__qualname__", repr(function))
    if _is(inspect.isgeneratorfunction, function) or _is(inspect.isasyncgenfunction, function):
        raise TypeError(f"a cluster cannot decorate a generator ({name}); use `with cluster() as c` inside it")
    return name


def _is(test: Callable[[Any], bool], function: Any) -> bool:
    """Return whether the predicate `test` is true for a function, or for the method `__call__` of a callable object.

    test: for example `inspect.iscoroutinefunction`. function: the function or the callable object.
    """
    return test(function) or test(getattr(function, "__call__", None))  # noqa: B004 - the method itself is looked at


def _with_cluster(
    signature: Signature, outer: Signature, cluster: Any, arguments: tuple[Any, ...], named: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the (positional, keyword) arguments of a call, with the cluster added as the parameter `kafka`.

    signature: the signature of the decorated function. outer: the same signature without `kafka`. cluster: the argument for `kafka`.
    arguments, named: the positional and keyword arguments without the cluster.

    If `kafka` is positional-only, raises TypeError for arguments that do not match `outer`: otherwise Python could bind the cluster to a parameter
    whose argument is missing. If `kafka` is another kind of parameter, this function checks nothing, because Python raises the TypeError at the call.
    """
    parameter = signature.parameters[PARAMETER]
    place = list(signature.parameters).index(PARAMETER)
    if parameter.kind is Parameter.POSITIONAL_ONLY:
        outer.bind(*arguments, **named)
        return (*arguments[:place], cluster, *arguments[place:]), named
    if parameter.kind is Parameter.POSITIONAL_OR_KEYWORD and len(arguments) > place:
        return (*arguments[:place], cluster, *arguments[place:]), named
    return arguments, {**named, PARAMETER: cluster}
