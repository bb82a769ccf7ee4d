"""The texts in Python modules that readers rate: docstrings, messages and names of tests.

`tests.documentation.samples` draws them. Each function takes the syntax tree of a module and yields its texts of one kind.
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

LOGGING = ("debug", "info", "warning", "error", "exception", "critical")
WITH_A_PLACE = {"EncodeError": "", "UnsupportedCompression": "", "OptionError": "option "}
"""Errors whose first argument, a field or an option, precedes the text even if it is not a text itself; and the word before it."""
SHOWN_AFTER = {
    "WrongProtocol": "option kafka.security.protocol: is {protocol}, but ",
    "ExpressionError": "SubscribedTopicRegex `{text}` is not a valid regular expression: ",
    "_unusable": "replica.selector.class={name}: ",
    "_invalid_update": "Invalid update version {update.level} for feature {update.feature}. ",
}
"""Errors that reach the user only inside another text, and the start of that text."""
TIMEOUT = "timed out waiting until "
"""The start of the error of `wait_until` in `kafkaproto.conformance.scene`. The third argument of the call follows it."""
_SHORTEST = 12
"""Characters of a message: shorter ones are names, not sentences."""
_DIRECTIVE = re.compile(r"%[sdr]")
_NAME_OF_PROGRAM = re.compile(r"^[a-z]+( [a-z]+)*: ")
"""Matches the start of a line on stderr that names the program. Its words do not make the line a sentence."""
_REFUSALS = re.compile(r"\b(parser(\(\))?|command)\.error$|^pytest\.(exit|fail)$")
"""Matches functions that end a program or a test with the text that is their first argument."""


def docstrings(module: ast.Module) -> Iterator[str]:
    """Yield the docstrings of a module, its classes and functions, and the strings that document attributes.

    A name or a signature precedes each, with the class that contains it, as an editor or the reference shows it.
    """
    yield from _documented(module, "")


def _documented(node: ast.AST, inside: str) -> Iterator[str]:
    """Yield the docstrings of a node and of everything in it. inside: the class that contains the node, with a dot at its end."""
    if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        text = ast.get_docstring(node)
        if text:
            yield f"{_signature(node, inside)}\n{text}"
    if isinstance(node, ast.ClassDef):
        inside = f"{inside}{node.name}."
    body = node.body if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) else []
    for before, after in pairwise(body):
        if isinstance(before, ast.Assign | ast.AnnAssign) and _is_text(after):
            assignment = ast.unparse(before).splitlines()[0][:120]
            in_class = inside if isinstance(node, ast.ClassDef) else ""
            yield f"{in_class}{assignment}\n{after.value.value}"  # type: ignore[attr-defined]
    for child in ast.iter_child_nodes(node):
        yield from _documented(child, inside)


def _signature(node: ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef, inside: str) -> str:
    if isinstance(node, ast.Module):
        return "module"
    if isinstance(node, ast.ClassDef):
        return f"class {inside}{node.name}"
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return f"def {inside}{node.name}({ast.unparse(node.args)}){returns}"


def _is_text(node: ast.stmt) -> Any:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def messages(module: ast.Module) -> Iterator[str]:
    """Yield the texts of errors, of log lines and of what is written to stderr as a user sees them, with `{...}` for the values in them.

    The errors include the timeouts of `wait_until` in the conformance suite.
    """
    assigned = _assigned_texts(module)
    for node in ast.walk(module):
        if isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
            yield from _error_texts(node.exc, assigned.get(node, {}))
        elif isinstance(node, ast.Call) and _is_logging(node.func):
            yield from _log_texts(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) == "wait_until":
            [event] = _resolved(node.args[2:3], assigned.get(node, {}))
            yield _joined([TIMEOUT, *(_parts_of(event) or [event])])
        elif isinstance(node, ast.Call):
            yield from _reported_texts(node, assigned.get(node, {}))


def _assigned_texts(module: ast.Module) -> dict[ast.AST, dict[str, ast.expr]]:
    """Map each `raise` and each call to the texts that its function assigns to local variables. A variable with several texts is left out."""
    by_node: dict[ast.AST, dict[str, ast.expr]] = {}
    for function in ast.walk(module):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            inside = list(ast.walk(function))
            values: dict[str, list[ast.expr]] = defaultdict(list)
            for node in inside:
                if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                    values[node.targets[0].id].append(node.value)
            texts = {
                name: texts_assigned[0]
                for name, texts_assigned in values.items()
                if len(texts_assigned) == 1 and _parts_of(texts_assigned[0])
            }
            by_node |= {node: texts for node in inside if isinstance(node, ast.Raise | ast.Call)}
    return by_node


def _is_logging(function: ast.expr) -> bool:
    """Return whether the function is a method of a logger, such as `logger.warning`."""
    is_method = isinstance(function, ast.Attribute) and function.attr in LOGGING
    return is_method and "log" in ast.unparse(function).rpartition(".")[0].lower()


def _reported_texts(call: ast.Call, assigned: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the text that a call writes to stderr, or passes to `self.fail` or to a function that `_REFUSALS` matches.

    assigned: the texts that the function with the call assigns to local variables.
    """
    name = ast.unparse(call.func)
    to_stderr = any(keyword.arg == "file" and ast.unparse(keyword.value) == "sys.stderr" for keyword in call.keywords)
    if name == "self.fail":  # (part of a definition, rule); the method puts the name of the message before them
        before, between, arguments = "{self.name}: ", ": ", call.args
    elif name == "print" and to_stderr:
        before, between, arguments = "", " ", call.args
    elif name == "sys.stderr.write" or _REFUSALS.search(name):
        before, between, arguments = "", "", call.args[:1]
    else:
        return
    arguments = _resolved(arguments, assigned)
    parts = [_parts_of(argument) for argument in arguments]
    whole: list[str | ast.expr] = [before]
    for at, argument in enumerate(arguments):
        whole += [between if at else "", *(parts[at] or [argument])]
    own = [part for of_argument in parts for part in of_argument]
    if own and isinstance(own[0], str) and name in ("print", "sys.stderr.write"):
        own[0] = _NAME_OF_PROGRAM.sub("", own[0])
    yield from _sentence(_joined(whole).strip(), own)


def _resolved(arguments: Sequence[ast.expr], assigned: dict[str, ast.expr]) -> list[ast.expr]:
    """Return the arguments of a call, with the text of a local variable in place of its name."""
    return [
        assigned.get(argument.id, argument) if isinstance(argument, ast.Name) else argument for argument in arguments
    ]


def _error_texts(call: ast.Call, assigned: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the text of an error: its arguments in the order in which the class shows them. Error codes are not part of the text."""
    arguments = _resolved(call.args, assigned)
    parts = [_parts_of(argument) for argument in arguments]
    if not any(parts):
        return
    name = ast.unparse(call.func).rpartition(".")[2]
    fewest_words = (
        2 if name[0].isupper() else 3
    )  # the arguments of an error may be names that the class inserts into its text
    if name == "DecodeError":
        shape = [("", 0), (" at byte ", 1), (": ", 2)]
    elif name == "UnsupportedVersion" and len(arguments) == 3:
        shape = [("API key ", 0), (" has no v", 1), (", only ", 2)]
    elif name == "unknown" and len(arguments) >= 3:  # of broker.testing.arguments
        shape = [("", 0), (" must be ", 2), (" (got ", 1)]
    elif name in WITH_A_PLACE:
        shape = [(WITH_A_PLACE[name], 0), (": ", 1)]
    else:
        shape = [(": ", at) for at, part in enumerate(parts) if part]
        shape[0] = "argument --OPTION: " if name == "ArgumentTypeError" else "", shape[0][1]
    whole: list[str | ast.expr] = [SHOWN_AFTER.get(name, "")]
    for before, at in shape:
        whole += [before, *(parts[at] or [arguments[at]])]
    if name == "unknown":
        whole.append(")")
    yield from _sentence(_joined(whole), [part for _, at in shape for part in parts[at]], fewest_words)


def _log_texts(call: ast.Call) -> Iterator[str]:
    """Yield the text of a log line, with the expressions of its arguments in place of `%s` and `%d`."""
    format_, *values = call.args[1:] if call.func.attr == "log" else call.args  # type: ignore[attr-defined]
    parts = _parts_of(format_)
    if parts and isinstance(parts[0], str) and not any(isinstance(value, ast.Starred) for value in values):
        between = _DIRECTIVE.split(parts[0])
        pairs: Iterator[tuple[str, ast.expr | str]] = zip(between, [*values, ""], strict=False)
        parts = [part for pair in pairs for part in pair if part]
    yield from _sentence(_joined(parts), parts)


def _sentence(text: str, parts: Sequence[str | ast.expr], fewest_words: int = 2) -> Iterator[str]:
    """Yield a text if it is a sentence: it has several words of its own, apart from the values in it."""
    words = [word for part in parts if isinstance(part, str) for word in re.findall(r"[A-Za-z]{2,}", part)]
    if len(words) >= fewest_words and len(text) >= _SHORTEST:
        yield text


def _parts_of(argument: ast.expr) -> list[str | ast.expr]:
    """Return the parts of a text, strings and the expressions between them; nothing if the argument is not a text."""
    match argument:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr():
            return [_value(part) for part in argument.values]
        case ast.IfExp():
            return _parts_of(argument.body)
        case ast.BinOp(op=ast.Add()):
            left = _parts_of(argument.left)
            return left and [*left, *(_parts_of(argument.right) or [argument.right])]
    return []


def _value(part: ast.expr) -> str | ast.expr:
    return str(part.value) if isinstance(part, ast.Constant) else part.value  # type: ignore[attr-defined]


def _joined(parts: Sequence[str | ast.expr]) -> str:
    return "".join(map(_shown, parts)).replace(
        "{self.name}: {self.name}: ", "{self.name}: "
    )  # as the generator's `fail` does


def _shown(part: str | ast.expr) -> str:
    if isinstance(part, str):
        return part
    return repr(part.value) if isinstance(part, ast.Constant) else "{" + ast.unparse(part) + "}"


def names_of_tests(module: ast.Module) -> Iterator[str]:
    """Yield the names of test functions."""
    for node in ast.walk(module):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield node.name
