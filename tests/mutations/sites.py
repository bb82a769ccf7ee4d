"""The places of `broker/` where a mutation makes sense, each with its one mutation.

Excluded: annotations, decorators, docstrings, `__slots__` and `__all__`, `__repr__`, the text of errors and log lines, `assert`, `if
TYPE_CHECKING`, command-line options, `zip(strict=True)`, and the folders `testing/` and `proxy/`, which are not part of a broker.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from random import Random
from typing import NamedTuple

PACKAGE = "broker"
LEFT_OUT_FOLDERS = ("testing", "proxy")
COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
}
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {ast.Add: ("+", "-"), ast.Sub: ("-", "+")}
LOGIC: dict[type[ast.boolop], tuple[str, str]] = {ast.And: ("and", "or"), ast.Or: ("or", "and")}
EXTREMES = {"min": "max", "max": "min"}
NOT_NUMBERS = (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple)
"""Operands that `+` joins but `-` rejects: such a mutation would only raise TypeError."""
ATOMS = (ast.Attribute, ast.Call, ast.Constant, ast.Name, ast.Subscript)
"""Expressions that need no parentheses."""


class Site(NamedTuple):
    """One mutation: the bytes `start` to `end` of the file `path` (relative to the tree) become `replacement`. line: counted from 1."""

    path: str
    line: int
    start: int
    end: int
    replacement: str


def sites(root: Path) -> list[Site]:
    """Return all sites of the tree at `root`, by path and place."""
    all_sites: list[Site] = []
    for path in sorted((root / PACKAGE).rglob("*.py")):
        place = path.relative_to(root)
        if place.parts[1] not in LEFT_OUT_FOLDERS:
            all_sites += sites_of(place.as_posix(), path.read_bytes())
    return all_sites


def sites_of(path: str, source: bytes) -> list[Site]:
    """Return the sites of one file, by place."""
    finder = _Finder(path, source)
    finder.visit(ast.parse(source))
    return sorted(finder.sites)


def chosen(places: list[Site], seed: int) -> Site:
    """Return the site that a seed selects, each with the same probability."""
    return Random(seed).choice(places)


def mutated(source: bytes, site: Site) -> bytes:
    """Return the text of a file with one mutation. Raises SyntaxError if the mutated text does not compile."""
    text = source[: site.start] + site.replacement.encode() + source[site.end :]
    compile(text, site.path, "exec", dont_inherit=True)
    return text


class _Finder(ast.NodeVisitor):
    """Collects the sites of one file."""

    def __init__(self, path: str, source: bytes) -> None:
        self.sites: list[Site] = []
        self._path = path
        self._source = source
        self._line_starts = [0, *(newline.end() for newline in re.finditer(rb"\n", source))]
        self._function: ast.FunctionDef | ast.AsyncFunctionDef | None = None
        """The function whose body is visited; None in the body of a module or a class."""

    # ---- exclusions -----------------------------------------------------------------------------------------------------------

    def _visit_function(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        if node.name == "__repr__":
            return
        self._visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults)])
        outer, self._function = self._function, node
        self._visit_all(node.body)
        self._function = outer

    visit_FunctionDef = visit_AsyncFunctionDef = _visit_function

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        outer, self._function = self._function, None
        self._visit_all(node.body)
        self._function = outer

    def _ignore(self, node: ast.AST) -> None:
        """Ignore the node and its children. The positions of f-strings are wrong before Python 3.12, and f-strings produce texts."""

    visit_Raise = visit_Assert = visit_JoinedStr = _ignore

    # ---- statements ----------------------------------------------------------------------------------------------------------

    def visit_Assign(self, node: ast.Assign) -> None:
        if not {"__slots__", "__all__"} & {name.id for name in node.targets if isinstance(name, ast.Name)}:
            self._remove_if_state(node, *node.targets)
            self.generic_visit(node)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self._remove_if_state(node, node.target)
            self.visit(node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self._remove_if_state(node, node.target)
        self._swap_arithmetic(node.op, node.target, node.value)
        self.generic_visit(node)

    def visit_Delete(self, node: ast.Delete) -> None:
        self._remove_if_state(node, *node.targets)
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        call = node.value.value if isinstance(node.value, ast.Await) else node.value
        if self._function and isinstance(call, ast.Call) and not _is_text(call):
            self._add(node, "pass")
        self.generic_visit(node)

    def visit_Return(self, node: ast.Return) -> None:
        if self._function and node not in self._function.body:
            self._add(node, "pass")
        self.generic_visit(node)

    def visit_Continue(self, node: ast.Continue) -> None:
        self._add(node, "pass")

    def visit_If(self, node: ast.If) -> None:
        if ast.unparse(node.test).endswith("TYPE_CHECKING"):
            self._visit_all(node.orelse)
            return
        self._negate(node.test)
        self.generic_visit(node)

    # ---- expressions ---------------------------------------------------------------------------------------------------------

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        operands = [node.left, *node.comparators]
        for operator, left, right in zip(node.ops, operands, node.comparators, strict=False):
            self._swap(COMPARISONS[type(operator)], left, right)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        for left, right in zip(node.values, node.values[1:], strict=False):
            self._swap(LOGIC[type(node.op)], left, right)
        self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> None:
        self._swap_arithmetic(node.op, node.left, node.right)
        self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> None:
        if _is_text(node):
            return
        if isinstance(node.func, ast.Name) and node.func.id in EXTREMES:
            self._add(node.func, EXTREMES[node.func.id])
        self._visit_all([node.func, *node.args])
        self._visit_all([keyword.value for keyword in node.keywords if keyword.arg != "strict"])

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, bool):
            self._add(node, str(not node.value))
        elif isinstance(node.value, int):
            self._add(node, str(node.value + 1))

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._visit_all([*node.args.defaults, *filter(None, node.args.kw_defaults), node.body])

    # ---- adding sites --------------------------------------------------------------------------------------------------------

    def _visit_all(self, nodes: list[ast.AST] | list[ast.stmt] | list[ast.expr]) -> None:
        for node in nodes:
            self.visit(node)

    def _remove_if_state(self, statement: ast.stmt, *targets: ast.expr) -> None:
        """Remove a statement that changes an attribute or an item; removing a local variable would only raise NameError."""
        if self._function and any(isinstance(target, ast.Attribute | ast.Subscript) for target in targets):
            self._add(statement, "pass")

    def _negate(self, test: ast.expr) -> None:
        if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
            text = self._text(test.operand)
            self._add(test, text if isinstance(test.operand, ATOMS) else f"({text})")
        else:
            self._add(test, f"not ({self._text(test)})")

    def _swap_arithmetic(self, operator: ast.operator, left: ast.expr, right: ast.expr) -> None:
        if type(operator) in ARITHMETIC and not (_is_joined(left) or _is_joined(right)):
            self._swap(ARITHMETIC[type(operator)], left, right)

    def _swap(self, texts: tuple[str, str], left: ast.expr, right: ast.expr) -> None:
        """Replace the operator between two operands, which may also have parentheses and comments between them."""
        before, after = texts
        first = self._span(left)[1]
        between = re.sub(rb"#.*", lambda comment: b" " * len(comment[0]), self._source[first : self._span(right)[0]])
        operator = re.search(re.escape(before).replace(r"\ ", r"\s+").encode(), between)
        assert operator is not None, f"{self._path}:{left.lineno}: no {before} in {between!r}"
        start, end = first + operator.start(), first + operator.end()
        line = self._source.count(b"\n", 0, start) + 1
        self.sites.append(Site(self._path, line, start, end, after))

    def _add(self, node: ast.expr | ast.stmt, replacement: str) -> None:
        self.sites.append(Site(self._path, node.lineno, *self._span(node), replacement))

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return (
            self._line_starts[node.lineno - 1] + node.col_offset,
            self._line_starts[node.end_lineno - 1] + node.end_col_offset,
        )


def _is_text(call: ast.Call) -> bool:
    """Return whether a call writes a log line or adds an option to a command line."""
    function = call.func
    if not isinstance(function, ast.Attribute):
        return False
    return function.attr == "add_argument" or (isinstance(function.value, ast.Name) and function.value.id == "logger")


def _is_joined(operand: ast.expr) -> bool:
    """Return whether an operand is literally a text, bytes, a list or a tuple."""
    if isinstance(operand, ast.BinOp):
        return _is_joined(operand.left) or _is_joined(operand.right)
    return isinstance(operand, NOT_NUMBERS) or (
        isinstance(operand, ast.Constant) and isinstance(operand.value, str | bytes)
    )
