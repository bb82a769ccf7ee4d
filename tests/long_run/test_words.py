"""Two versions of a file count as the same code if they differ only in words."""

from __future__ import annotations

import ast

import pytest

from tests.long_run.words import without_words


def dumped(text: str) -> str:
    return ast.dump(without_words(ast.parse(text)))


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ('def f():\n    """A."""\n    return 1', 'def f():\n    """B."""\n    return 1'),
        ("def f(a):\n    b = a\n    return b", "def f(a):\n    c = a\n    return c"),
        ("def f(a):\n    for b, c in a:\n        yield c, b", "def f(a):\n    for x, b in a:\n        yield b, x"),
        ("def f(a):\n    return [b for b in a]", "def f(a):\n    return [c for c in a]"),
        ("def f(a):\n    with a as b:\n        b()", "def f(a):\n    with a as c:\n        c()"),
        ("def f():\n    b = 1\n    return lambda: b", "def f():\n    c = 1\n    return lambda: c"),
        (
            "class A:\n    def f(self):\n        b = 1\n        return b",
            "class A:\n    def f(self):\n        c = 1\n        return c",
        ),
        ("def f(a):\n    if b := a:\n        return b", "def f(a):\n    if c := a:\n        return c"),
        ("def test_a(): ...", "def test_b(): ..."),
        ("_A = 1\n\ndef f():\n    return _A", "_B = 1\n\ndef f():\n    return _B"),
    ],
)
def test_python_files_that_differ_only_in_docstrings_or_private_names_count_as_equal(before: str, after: str) -> None:
    assert dumped(before) == dumped(after)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("def f(a):\n    return a", "def f(b):\n    return b"),
        ("A = 1", "B = 1"),
        ("def f():\n    b = 1\n    c = 2\n    return b", "def f():\n    b = 1\n    c = 2\n    return c"),
        ("def f(a):\n    b = a\n    return b", "def f(a):\n    a = a\n    return a"),
        ("B = 1\n\ndef f(a):\n    return [b for b in a], B", "B = 1\n\ndef f(a):\n    return [B for B in a], B"),
        ("def f(a):\n    return [b for b in a], len", "def f(a):\n    return [len for len in a], len"),
        (
            "from x import *\n\ndef f(a):\n    return [b for b in a], b",
            "from x import *\n\ndef f(a):\n    return [c for c in a], c",
        ),
        ("def f():\n    import b\n    b.c()", "def f():\n    import d\n    d.c()"),
        ("def f():\n    class A:\n        b = 1\n    return A", "def f():\n    class A:\n        c = 1\n    return A"),
        ("def f():\n    b = 1\n    return locals()", "def f():\n    c = 1\n    return locals()"),
        ("def f():\n    global b\n    b = 1", "def f():\n    global c\n    c = 1"),
        ("def f(a):\n    return a.b", "def f(a):\n    return a.c"),
        ('def f():\n    b = 1\n    return f"{b=}"', 'def f():\n    c = 1\n    return f"{c=}"'),
    ],
)
def test_python_files_that_differ_in_behaviour_or_public_names_count_as_different(before: str, after: str) -> None:
    assert dumped(before) != dumped(after)
