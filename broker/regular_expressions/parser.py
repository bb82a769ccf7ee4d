"""The parser of regular expressions: translates the syntax of RE2J 1.8, which Kafka 4.x uses, to instructions.

The class `Pattern` of this package executes the instructions.
"""

from __future__ import annotations

import re
import string
from typing import Final, NamedTuple

from kafkaproto.broker.regular_expressions.classes import (
    ANY,
    NOT_NEWLINE,
    PERL_CLASSES,
    POSIX_CLASSES,
    UNICODE_CLASS_NAMES,
    Characters,
    folded,
    in_range,
    literal,
    unicode_class,
)
from kafkaproto.broker.regular_expressions.program import (
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


def parse(text: str, longest: int) -> Program:
    """Return the program that matches a regular expression.

    longest: the maximum length in characters of the texts to match; a longer text may get a wrong result. Counts of repetitions above `longest` + 1
    are lowered to this number, which keeps the program small (see the function `repeated`). Raises ExpressionError for an expression that RE2J
    rejects, or that is too large.
    """
    return _Parser(text, longest).parse()


class _Flags(NamedTuple):
    """The flags of an expression: i (ignore case), m (^ and $ match at each line) and s (a dot matches a newline, too).

    The flag U (prefer short matches) is not stored, because it makes no difference when a whole text must match.
    """

    ignore_case: bool = False
    multiple_lines: bool = False
    dot_is_newline: bool = False


class _Group:
    """A group in an expression that is being parsed, or the whole expression.

    It has the finished alternatives, and the items of the alternative that is being parsed.
    """

    def __init__(self, flags_outside: _Flags) -> None:
        self.alternatives: list[Program] = []
        self.items: list[Program] = []
        self.flags_outside = flags_outside

    def end_alternative(self) -> None:
        self.alternatives.append(in_order(self.items))
        self.items = []


class _Parser:
    """Parses a regular expression from left to right. Its checks have the same order as RE2J's, so that both parsers report the same error first."""

    def __init__(self, text: str, longest: int) -> None:
        self._text = text
        self._longest = longest
        self._position = 0
        self._flags = _Flags()
        self._groups = [_Group(self._flags)]
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
                self._add(Check(Edge.LINE_START if self._flags.multiple_lines else Edge.START))
            case "$":
                self._add(Check(Edge.LINE_END if self._flags.multiple_lines else Edge.END))
            case ".":
                self._add(Read(ANY if self._flags.dot_is_newline else NOT_NEWLINE))
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
        self._add(Read(literal(ord(character), ignore_case=self._flags.ignore_case)))

    # Groups

    def _open_group(self) -> None:
        outside = self._flags
        if self._looking_at("?P<") or self._looking_at("?<"):
            self._read_name()
        elif self._looking_at("?") and not self._read_flags():
            return
        self._groups.append(_Group(outside))

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
        """Parse and apply flags, from their question mark on. Returns True if they open a group, as in `(?i:...)`, and False for `(?i)`."""
        self._position += 1
        flags, negative, complete = self._flags, False, True
        while self._more():
            match self._next():
                case "i":
                    flags, complete = flags._replace(ignore_case=not negative), True
                case "m":
                    flags, complete = flags._replace(multiple_lines=not negative), True
                case "s":
                    flags, complete = flags._replace(dot_is_newline=not negative), True
                case "U":
                    complete = True
                case "-" if not negative:
                    negative, complete = True, False
                case (":" | ")") as end if complete:
                    self._flags = flags
                    return end == ":"
                case _:
                    break
        raise ExpressionError("invalid or unsupported Perl syntax")

    def _close_group(self) -> None:
        if len(self._groups) == 1:
            raise ExpressionError("regexp/syntax: internal error")
        group = self._groups.pop()
        group.end_alternative()
        self._flags = group.flags_outside
        self._groups[-1].items.append(any_of(group.alternatives))

    # Repetitions

    def _read_counts(self) -> tuple[int, int | None] | None:
        """Return (minimum, maximum) of a repetition `{n}`, `{n,}` or `{n,m}`, after its opening brace. A missing maximum is None.

        Returns None and consumes nothing if the brace is a literal.
        """
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
        """Make the last parsed item a repetition of `least` to `most` times; `most` is None if there is no maximum."""
        if self._looking_at("?"):
            self._position += 1
        if self._after_repetition:
            raise ExpressionError("invalid nested repetition operator")
        items = self._groups[-1].items
        if not items:
            raise ExpressionError("missing argument to repetition operator")
        items[-1] = repeated(items[-1], least, most, self._longest)

    # Escapes

    def _read_escape(self) -> None:
        """Parse an escape sequence outside of a character class, after its backslash, and add its instructions to the current group."""
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
            characters = literal(self._read_code_point(), ignore_case=self._flags.ignore_case)
        self._add(Read(characters))

    def _read_class_escape(self) -> Characters | None:
        r"""Return the characters of a class such as `\d` or `\p{Greek}`, after its backslash. For other escapes, returns None and reads nothing."""
        if not self._more():
            return None
        letter = self._text[self._position]
        if letter in "pP":
            self._position += 1
            return self._read_unicode_class(negative=letter == "P")
        characters = PERL_CLASSES.get(letter.lower())
        if characters is None:
            return None
        self._position += 1
        return self._class(characters, negative=letter.isupper())

    def _class(self, characters: Characters, *, negative: bool) -> Characters:
        """Return the characters of a Perl or POSIX class, with case variants if the flags ignore case. If `negative`, return all other characters."""
        if self._flags.ignore_case:
            characters = folded(characters)
        return ~characters if negative else characters

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
        if name not in UNICODE_CLASS_NAMES:
            raise ExpressionError("invalid character class range")
        characters = unicode_class(name, ignore_case=self._flags.ignore_case)
        return ~characters if negative else characters

    def _read_code_point(self) -> int:
        r"""Return the code point for which an escape sequence such as `\n` or `\x7F` stands. The backslash has been read."""
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
        r"""Return the code point of an escape sequence such as `\x7F` or `\x{10FFFF}`. The characters up to the x have been read."""
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
        """Return the characters of a class in brackets, such as `[a-z]`. The opening bracket has been read."""
        negative = self._looking_at("^")
        self._position += negative
        characters = Characters()
        first = True
        # A closing bracket is a literal if it comes first.
        while first or not self._looking_at("]"):
            first = False
            characters |= self._read_class_part()
        self._position += 1
        return ~characters if negative else characters

    def _read_class_part(self) -> Characters:
        """Return the characters of the next part of a class in brackets: a named class, an escaped class, a range, or a single character."""
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
        return in_range(low, high, ignore_case=self._flags.ignore_case)

    def _named_class(self, name: str) -> Characters:
        """Return the characters of the POSIX class `name`, such as "alpha" for `[:alpha:]`.

        With "^" before the name, as in `[:^alpha:]`, these are all other characters. Raises ExpressionError for an unknown name.
        """
        characters = POSIX_CLASSES.get(name.removeprefix("^"))
        if characters is None:
            raise ExpressionError("invalid character class range")
        return self._class(characters, negative=name.startswith("^"))

    def _read_class_character(self) -> int:
        if not self._more():
            raise ExpressionError("missing closing ]")
        character = self._next()
        return self._read_code_point() if character == "\\" else ord(character)
