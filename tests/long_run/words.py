"""Removes the words from the syntax tree of a Python file: docstrings, and names of tests and of variables that no other file can see."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator

Function = ast.FunctionDef | ast.AsyncFunctionDef
_READERS_OF_NAMES = frozenset({"locals", "vars", "eval", "exec", "dir"})


def without_words(module: ast.Module) -> ast.Module:
    """Change a module so that two modules are equal if they differ only in words, and return it.

    Removed are strings that stand alone as statements (docstrings, and those that document attributes). Tests, private variables of the module and
    local variables of functions get names that say only in which order they come.
    """
    private = _private_variables(module)
    module_names = _names_of_module(module)
    for function in _outermost_functions(module):
        _number_local_variables(function, module_names)
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
            node.name = "test_"
        if isinstance(node, ast.Name):
            node.id = private.get(node.id, node.id)
        body = getattr(node, "body", None)
        if isinstance(body, list):
            body[:] = [statement for statement in body if not _is_string(statement)]
    return module


def _private_variables(module: ast.Module) -> dict[str, str]:
    """Return a number for each private variable of a module, in the order of their first assignments.

    Variables whose names are also those of parameters keep their names.
    """
    parameters = {node.arg for node in ast.walk(module) if isinstance(node, ast.arg)}
    names = (
        target.id
        for statement in module.body
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name) and target.id.startswith("_") and not target.id.startswith("__")
        if target.id not in parameters
    )
    return {name: f"_{number}" for number, name in enumerate(dict.fromkeys(names))}


def _is_string(statement: ast.AST) -> bool:
    return (
        isinstance(statement, ast.Expr)
        and isinstance(statement.value, ast.Constant)
        and isinstance(statement.value.value, str)
    )


def _outermost_functions(node: ast.AST) -> Iterator[Function]:
    """Yield the functions below a node that are in no other function."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield child
        else:
            yield from _outermost_functions(child)


def _names_of_module(module: ast.Module) -> frozenset[str]:
    """Return the names that code in functions can mean without assigning them: builtin names, and all that the module binds outside functions."""
    names = set(dir(builtins))
    unvisited: list[ast.AST] = [module]
    while unvisited:
        node = unvisited.pop()
        names.update(_bound_names(node))
        if not isinstance(node, Function):
            unvisited.extend(ast.iter_child_nodes(node))
    return frozenset(names)


def _bound_names(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node binds itself, without the nodes below it."""
    if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del):
        yield node.id
    elif isinstance(node, Function | ast.ClassDef):
        yield node.name
    elif isinstance(node, ast.alias):
        yield (node.asname or node.name).partition(".")[0]
    elif isinstance(node, ast.arg):
        yield node.arg
    elif isinstance(node, ast.Global | ast.Nonlocal):
        yield from node.names
    elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
        yield node.name
    elif isinstance(node, ast.MatchMapping) and node.rest:
        yield node.rest


def _number_local_variables(function: Function, kept: frozenset[str]) -> None:
    """Give the local variables of a function and of all functions in it numbers, in the order of the nodes that name them.

    A variable keeps its name if `kept` has it, or if something else in the function that is not a variable has this name, such as a parameter. All
    variables keep their names if the module imports all names of another one, if the function has a class in it, whose variables are attributes, or
    if it calls a function that can look names up.
    """
    nodes = list(ast.walk(function))
    if "*" in kept or any(
        isinstance(node, ast.ClassDef) or (isinstance(node, ast.Name) and node.id in _READERS_OF_NAMES)
        for node in nodes
    ):
        return
    variables = {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    others = {name for node in nodes if not isinstance(node, ast.Name) for name in _bound_names(node)}
    numbered = variables - others - kept
    numbers: dict[str, int] = {}
    for node in nodes:
        if isinstance(node, ast.Name) and node.id in numbered:
            # A colon cannot be in a name of Python, so that no other name is equal to the new one.
            node.id = f"local:{numbers.setdefault(node.id, len(numbers))}"
