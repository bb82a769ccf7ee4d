"""The parser of topic patterns: translates the syntax of RE2J 1.8, which Kafka 4.x uses, to a program for `TopicPattern`."""

from __future__ import annotations

import re
import string
from typing import Final

from kafkaproto.broker.group.regular_expression_classes import (
    PERL_CLASSES,
    POSIX_CLASSES,
    TOPIC_CHARACTERS,
    UNICODE_CLASSES,
    UNICODE_CLASSES_IGNORING_CASE,
    Characters,
    in_range,
)
from kafkaproto.broker.group.regular_expression_program import (
    Check,
    Edge,
    ExpressionError,
    Instruction,
    Program,
    Read,
    any_of,
    in_order,
    repeated,
)

MOST_REPETITIONS: Final = 1000
"""The maximum count of a repetition such as `{n}` that RE2J accepts."""

_LARGEST_CODE_POINT: Final = 0x10FFFF
_CONTROL_ESCAPES: Final = {"a": 7, "f": 12, "n": 10, "r": 13, "t": 9, "v": 11}

_COUNTS: Final = re.compile("(?P<least>0|[1-9][0-9]*)(?P<comma>,(?P<most>0|[1-9][0-9]*)?)?}")
_EDGES: Final = {"A": Edge.START, "z": Edge.END, "b": Edge.WORD_BOUNDARY, "B": Edge.NO_WORD_BOUNDARY}


def parse(text: str) -> Program:
    """Return the program of a pattern. Raises ExpressionError for a pattern that RE2J rejects, or that is too large."""
    return _Parser(text).parse()


class _Group:
    """An open parenthesis, or the whole pattern: its finished alternatives, and the items of the alternative that is being parsed."""

    def __init__(self, *, ignore_case_outside: bool) -> None:
        self.alternatives: list[Program] = []
        self.items: list[Program] = []
        self.ignore_case_outside = ignore_case_outside

    def end_alternative(self) -> None:
        self.alternatives.append(in_order(self.items))
        self.items = []


class _Parser:
    """Parses a pattern from left to right. Every error is raised at the position where RE2J raises it, because only the first one is reported."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._position = 0
        self._ignore_case = False
        self._groups = [_Group(ignore_case_outside=False)]
        self._names: set[str] = set()
        self._after_repetition = False

    def parse(self) -> Program:
        while self._more():
            begin = self._position
            self._read_item()
            # RE2J takes any "{" for a repetition here, also one that it has just read as a literal: it refuses "a{*".
            self._after_repetition = self._text[begin] in "*+?{"
        group = self._groups[-1]
        group.end_alternative()
        if len(self._groups) > 1:
            raise ExpressionError("missing closing )")
        return any_of(group.alternatives)

    def _more(self) -> bool:
        return self._position < len(self._text)

    def _looking_at(self, text: str) -> bool:
        return self._text.startswith(text, self._position)

    def _next(self) -> str:
        character = self._text[self._position]
        self._position += 1
        return character

    def _add(self, *steps: Instruction) -> None:
        self._groups[-1].items.append(list(steps))

    def _read_item(self) -> None:
        match character := self._next():
            case "(":
                self._open_group()
            case ")":
                self._close_group()
            case "|":
                self._groups[-1].end_alternative()
            case "^":
                # Topic names have no line breaks: the flag m, which lets "^" and "$" match there, changes nothing.
                self._add(Check(Edge.START))
            case "$":
                self._add(Check(Edge.END))
            case ".":
                self._add(Read(TOPIC_CHARACTERS))
            case "[":
                self._add(Read(self._read_class()))
            case "*" | "+" | "?":
                self._repeat(int(character == "+"), 1 if character == "?" else None)
            case "{":
                counts = self._read_counts()
                if counts is None:
                    self._add_literal("{")
                else:
                    self._repeat(*counts)
            case "\\":
                self._read_escape()
            case _:
                self._add_literal(character)

    def _add_literal(self, character: str) -> None:
        code_point = ord(character)
        self._add(Read(in_range(code_point, code_point, ignore_case=self._ignore_case)))

    # Groups

    def _open_group(self) -> None:
        outside = self._ignore_case
        if self._looking_at("?P<") or self._looking_at("?<"):
            self._read_name()
        elif self._looking_at("?") and not self._read_flags():
            return
        self._groups.append(_Group(ignore_case_outside=outside))

    def _read_name(self) -> None:
        """Parse the name of a group such as `(?<name>...)`, from the question mark to the closing angle bracket."""
        begin = self._text.index("<", self._position) + 1
        end = self._text.find(">", begin)
        name = self._text[begin:end]
        if end < 0 or not name or not all(c.isascii() and (c.isalnum() or c == "_") for c in name):
            raise ExpressionError("invalid named capture")
        if name in self._names:
            raise ExpressionError("duplicate capture group name")
        self._names.add(name)
        self._position = end + 1

    def _read_flags(self) -> bool:
        """Parse and apply flags, from their question mark on. Returns whether they open a group: true for `(?i:`, false for `(?i)`.

        Only the flag i changes which topics match. The flags s and m concern line breaks, and U chooses between several matches.
        """
        self._position += 1
        ignore_case, negative, complete = self._ignore_case, False, True
        while self._more():
            match self._next():
                case "i":
                    ignore_case, complete = not negative, True
                case "m" | "s" | "U":
                    complete = True
                case "-" if not negative:
                    negative, complete = True, False
                case (":" | ")") as end if complete:
                    self._ignore_case = ignore_case
                    return end == ":"
                case _:
                    break
        raise ExpressionError("invalid or unsupported Perl syntax")

    def _close_group(self) -> None:
        if len(self._groups) == 1:
            raise ExpressionError("regexp/syntax: internal error")
        group = self._groups.pop()
        group.end_alternative()
        self._ignore_case = group.ignore_case_outside
        self._groups[-1].items.append(any_of(group.alternatives))

    # Repetitions

    def _read_counts(self) -> tuple[int, int | None] | None:
        """Return the counts of `{n}`, `{n,}` or `{n,m}` after its opening brace; None, consuming nothing, if the brace is a literal."""
        counts = _COUNTS.match(self._text, self._position)
        if counts is None:
            return None
        self._position = counts.end()
        # Longer numbers are too large in any case, and int() limits their length.
        least = int(counts["least"][:9])
        most = least if counts["comma"] is None else int(counts["most"][:9]) if counts["most"] else None
        if least > MOST_REPETITIONS or (most is not None and not least <= most <= MOST_REPETITIONS):
            raise ExpressionError("invalid repeat count")
        return least, most

    def _repeat(self, least: int, most: int | None) -> None:
        """Repeat the last item between `least` and `most` times; `most` is None if there is no maximum."""
        if self._looking_at("?"):
            self._position += 1
        if self._after_repetition:
            raise ExpressionError("invalid nested repetition operator")
        items = self._groups[-1].items
        if not items:
            raise ExpressionError("missing argument to repetition operator")
        items[-1] = repeated(items[-1], least, most)

    # Escapes

    def _read_escape(self) -> None:
        """Parse the characters after a backslash outside of a character class."""
        if self._looking_at("C"):
            raise ExpressionError("invalid escape sequence")
        for letter, edge in _EDGES.items():
            if self._looking_at(letter):
                self._position += 1
                self._add(Check(edge))
                return
        if self._looking_at("Q"):
            end = self._text.find("\\E", self._position)
            quoted = self._text[self._position + 1 : end if end >= 0 else None]
            for character in quoted:
                self._add_literal(character)
            self._position = end + 2 if end >= 0 else len(self._text)
            return
        characters = self._read_class_escape()
        if characters is None:
            code_point = self._read_code_point()
            characters = in_range(code_point, code_point, ignore_case=self._ignore_case)
        self._add(Read(characters))

    def _read_class_escape(self) -> Characters | None:
        r"""Return the characters of a class such as `\d` or `\p{Greek}`, after its backslash; None, consuming nothing, for another escape."""
        if not self._more():
            return None
        letter = self._text[self._position]
        if letter in "pP":
            self._position += 1
            return self._read_unicode_class(negative=letter == "P")
        found = PERL_CLASSES.get(letter.lower())
        if found is None:
            return None
        self._position += 1
        return TOPIC_CHARACTERS - found if letter.isupper() else found

    def _read_unicode_class(self, *, negative: bool) -> Characters:
        name = self._next() if self._more() else ""
        if name == "{":
            end = self._text.find("}", self._position)
            if end < 0:
                raise ExpressionError("invalid character class range")
            name = self._text[self._position : end]
            self._position = end + 1
        if name.startswith("^"):
            name, negative = name[1:], not negative
        found = (UNICODE_CLASSES_IGNORING_CASE if self._ignore_case else UNICODE_CLASSES).get(name)
        if found is None:
            raise ExpressionError("invalid character class range")
        return TOPIC_CHARACTERS - found if negative else found

    def _read_code_point(self) -> int:
        """Return the single character of an escape sequence, after its backslash."""
        if not self._more():
            raise ExpressionError("trailing backslash at end of expression")
        character = self._next()
        if character in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[character]
        if character == "x":
            return self._read_hexadecimal()
        if character in "01234567":
            begin = self._position - 1
            while self._position < begin + 3 and self._more() and self._text[self._position] in string.octdigits:
                self._position += 1
            # One digit other than 0 is a reference to a group, which RE2J does not support.
            if character == "0" or self._position > begin + 1:
                return int(self._text[begin : self._position], 8)
        elif not (character.isascii() and character.isalnum()):
            return ord(character)
        raise ExpressionError("invalid escape sequence")

    def _read_hexadecimal(self) -> int:
        """Return the code point of `\\x7F` or `\\x{10FFFF}`, after the x."""
        if self._looking_at("{"):
            end = self._text.find("}", self._position)
            digits = self._text[self._position + 1 : end] if end >= 0 else ""
            self._position = end + 1
        else:
            digits = self._text[self._position : self._position + 2]
            self._position += 2
            if len(digits) < 2:
                digits = ""
        if digits and all(digit in string.hexdigits for digit in digits):
            code_point = int(digits, 16)
            if code_point <= _LARGEST_CODE_POINT:
                return code_point
        raise ExpressionError("invalid escape sequence")

    # Classes

    def _read_class(self) -> Characters:
        """Return the characters of a class in brackets, after its opening bracket."""
        negative = self._looking_at("^")
        self._position += negative
        found: set[str] = set()
        first = True
        # A closing bracket is a literal if it comes first.
        while first or not self._looking_at("]"):
            first = False
            found |= self._read_class_part()
        self._position += 1
        return TOPIC_CHARACTERS - found if negative else frozenset(found)

    def _read_class_part(self) -> Characters:
        """Return the characters of the next part of a class in brackets: a named class, an escaped class, or a range of one or more characters."""
        named_end = self._text.find(":]", self._position) if self._looking_at("[:") else -1
        if named_end >= 0:
            name = self._text[self._position + 2 : named_end]
            self._position = named_end + 2
            return self._named_class(name)
        if self._looking_at("\\"):
            self._position += 1
            characters = self._read_class_escape()
            if characters is not None:
                return characters
            self._position -= 1
        low = high = self._read_class_character()
        if self._looking_at("-") and not self._looking_at("-]"):
            self._position += 1
            high = self._read_class_character()
            if high < low:
                raise ExpressionError("invalid character class range")
        return in_range(low, high, ignore_case=self._ignore_case)

    def _named_class(self, name: str) -> Characters:
        """Return the characters of the class that `[:name:]` stands for; `[:^name:]` stands for all others."""
        found = POSIX_CLASSES.get(name.removeprefix("^"))
        if found is None:
            raise ExpressionError("invalid character class range")
        if self._ignore_case:
            found |= {c.swapcase() for c in found}
        return TOPIC_CHARACTERS - found if name.startswith("^") else found

    def _read_class_character(self) -> int:
        if not self._more():
            raise ExpressionError("missing closing ]")
        character = self._next()
        return self._read_code_point() if character == "\\" else ord(character)
