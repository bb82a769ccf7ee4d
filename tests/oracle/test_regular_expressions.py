"""Regular expressions compared with Kafka 4.2.0 and RE2J 1.8: which are refused, with which message, and which topics and texts they match."""

from __future__ import annotations

import string
from collections.abc import Iterator, Sequence
from random import Random

import pytest

from benchmarks.rivals.jars import NEWER_VERSION, kafka_jars
from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.topic_patterns import compile_topic_pattern
from kafkaproto.broker.regular_expressions.classes import POSIX_CLASSES, UNICODE_CLASS_NAMES, unicode_class
from kafkaproto.broker.regular_expressions.pattern import compile_pattern
from tests.support.oracle import unicode_tables
from tests.support.oracle.regular_expressions import RegularExpressionOracle

pytestmark = [pytest.mark.java, pytest.mark.timeout(300), pytest.mark.rule("GN-50")]

PATTERNS_PER_SEED = 1500
TOPIC_CHARACTERS = string.ascii_letters + string.digits + "._-"
FIXED_NAMES = ("a", "b", "ab", "aab", "A", "K", "s", "0", "a.b", "a-b", "_", "__", "orders", "orders.eu-1", "a" * 249)

UNUSUAL_LITERALS = [" ", "\u00e9", "\\\u00e9", "\u017f", "\u212a", "\u00b5", "\U0001f600"]
TEXT_LITERALS = [
    *UNUSUAL_LITERALS,
    *("\n", "\r\n", "\0", "\u00c9", "\u03c3", "\u03c2", "\u0345", "\u1e9e", "\ua64a", "\U00010400", "\U0001e900"),
    *("(?m)", "(?s)", "(?-s)", "(?m)$", "(?m)^", "\n$", "^\n", "[^a\n]", "[\\s\\d]", "\\x{1f600}"),
    *("\\p{Greek}", "\\p{Lu}", "[\u0100-\u0200]"),
]
TEXT_CHARACTERS = (
    "aAkK\u212as\u017f0_. -\n\r\t\v\0\u00e9\u00c9\u00df\u1e9e\u03c3\u03c2\u03a3\u0345\u03b9\u1fbe\u01c5\u1c80\ua64b"
    "\u4e2d\u0301\u2028\U0001f600\U00010428\U0001e922"
)
FREQUENT_TEXT = "aK\n\u00e9.s"
LONGEST_ID = 32767
ENDLESS_IN_KAFKA = set(range(0x1C80, 0x1C89))
"""Letters whose upper case letter has another lower case letter, which RE2J does not know and looks for forever."""

ATOMS = r"""
    a b ab K s 0 7 - _ . ] } , \d \D \w \W \s \S \b \B \A \z \Z \C \E \G \h ^ $ \. \- \_ \\ \n \a \q \1 \12 \141 \0
    \07 \777 \8 \x61 \x{61} \x{017F} \x{10FFFF} \x{110000} \x{} \x6 \x \xg1 \x{0000000061} \pL \PL \pN \PN \p{Lu}
    \P{Lu} \p{^Lu} \P{^Ll} \p{Greek} \p{Latin} \pZ \P{Han} \p{Any} \p{Common} \p{Cn} \p{Wancho} \p \p{ \p{} \p^
    \p{^} \p{L \Qa.b\E \Q\E \Q( \Q*\E [ab] [^ab] [a-c] [c-a] []a] [^]a] [] [ [a [^ [a-] [-a] [a-\d] [\d-z] [--a]
    [\x61-\x63] [\]a] [[:alpha:]] [[:^digit:]] [[:]] [[:word:]_] [[:foo:]] [[:alpha:] [[:alpha] [\pN.] [^\W] [\b]
    [\Q] [a\ \ [[a] [\x{100}-\x{200}] [^\x{17F}] [\x{0}-\x{10FFFF}] [^\x{0}-\x{10FFFF}] [[:upper:]] [^[:lower:]]
"""
REPETITIONS = r"""
    * + ? *? +? ?? ** ++ *+ {2} {0} {1,2} {0,} {2,} {2}? {,2} {2 { {2,1} {1001} {1000} {0,1001} {01} {1,02}
    {999999999999} {-1} {} {a} {1,}? {300}
"""
OPENINGS = r"""
    ( ( ( (?: (?: (?i: (?i) (?-i) (?-i: (?s) (?m) (?U) (?U: (?is-mU: (?) (?P<n> (?<n> (?P<m> (?<m_1> (?P<> (?P<n
    (?<a-b> (?P=n) (?P>n) (?= (?! (?<= (?<! (?> (?#c) (?-) (?i-) (?i--s) (?ix) (? (?i (?'n'
"""


@pytest.fixture(scope="module")
def kafka() -> Iterator[RegularExpressionOracle]:
    with RegularExpressionOracle(kafka_jars(NEWER_VERSION)) as process:
        yield process


class Generator:
    """Makes random patterns. rare: the probability that an element is any of the syntax, also an invalid one, instead of a frequent one.

    A pattern has either alternatives or flags for parts of it, not both, because of the bug of RE2J that
    `test_topic_pattern_matches_a_small_letter_that_kafka_misses_due_to_a_re2j_bug` shows.
    """

    def __init__(self, rng: Random, literals: Sequence[str] = UNUSUAL_LITERALS, frequent: str = "abKs0.") -> None:
        self.rng = rng
        self.frequent = frequent
        self.rare = rng.choice((0.05, 0.2, 0.6))
        self.alternatives = rng.random() < 0.5
        self.atoms = [*literals, *ATOMS.split()]
        self.openings = [o for o in OPENINGS.split() if not self.alternatives or "i" not in o]

    def pattern(self) -> str:
        return ("(?i)" if self.rng.random() < 0.2 else "") + self.part(depth=0)

    def part(self, depth: int) -> str:
        return "".join(self.repeatable(depth) + self.repetition() for _ in range(self.rng.randint(depth == 0, 4)))

    def repeatable(self, depth: int) -> str:
        kind = self.rng.random()
        if kind < 0.25 and depth < 3:
            opening = self.rng.choice(self.openings if self.rng.random() < self.rare else ("(", "(?:"))
            closing = "" if opening.endswith(")") or self.rng.random() < self.rare / 20 else ")"
            return opening + self.part(depth + 1) + closing
        if kind < 0.35 and self.alternatives:
            return "|"
        if self.rng.random() < self.rare / 50:
            return ")"
        return self.rng.choice(self.atoms if self.rng.random() < self.rare else list(self.frequent))

    def repetition(self) -> str:
        if self.rng.random() < 0.7:
            return ""
        return self.rng.choice(
            REPETITIONS.split() if self.rng.random() < self.rare else ["*", "+", "?", "{2}", "{1,3}"]
        )


def names(rng: Random) -> list[str]:
    """Return topic names: some fixed ones, and random ones of the characters that generated patterns often contain."""
    few = ["".join(rng.choices("abKkSs0.-_", k=rng.randint(0, 6))) for _ in range(25)]
    return [*FIXED_NAMES, *few, "".join(rng.choices(TOPIC_CHARACTERS, k=rng.randint(1, 249)))]


def ours(pattern: str, topics: list[str]) -> list[bool] | str:
    try:
        compiled = compile_topic_pattern(pattern)
    except KafkaError as error:
        return str(error)
    return [compiled.matches(topic) for topic in topics]


@pytest.mark.parametrize("seed", range(6))
def test_generated_topic_patterns_match_or_are_rejected_as_in_kafka(kafka: RegularExpressionOracle, seed: int) -> None:
    rng = Random(seed)
    refused = matching = 0
    for _ in range(PATTERNS_PER_SEED):
        pattern, topics = Generator(rng).pattern(), names(rng)
        expected = kafka.match(pattern, topics)
        assert ours(pattern, topics) == expected, pattern
        refused += isinstance(expected, str)
        matching += not isinstance(expected, str) and any(expected)
    assert refused > 0.2 * PATTERNS_PER_SEED
    assert matching > 0.2 * PATTERNS_PER_SEED


def ours_for_texts(pattern: str, texts: list[str]) -> list[bool] | str:
    """Return as `ours` what matches texts of any characters, as the pattern of ListTransactions does."""
    rejected = ours(pattern, [])
    if isinstance(rejected, str):
        return rejected
    compiled = compile_pattern(pattern, LONGEST_ID)
    return [compiled.matches(text) for text in texts]


@pytest.mark.rule("TX-72")
@pytest.mark.parametrize("seed", range(6))
def test_generated_topic_patterns_match_the_same_random_texts_as_in_kafka(
    kafka: RegularExpressionOracle, seed: int
) -> None:
    rng = Random(1000 + seed)
    rejected = matching = 0
    for _ in range(PATTERNS_PER_SEED):
        pattern = Generator(rng, TEXT_LITERALS, FREQUENT_TEXT).pattern()
        alphabets = [TEXT_CHARACTERS, FREQUENT_TEXT] * 20
        texts = ["", *FREQUENT_TEXT, *("".join(rng.choices(a, k=rng.randint(0, 5))) for a in alphabets)]
        expected = kafka.match(pattern, texts)
        assert ours_for_texts(pattern, texts) == expected, pattern
        rejected += isinstance(expected, str)
        matching += not isinstance(expected, str) and any(expected)
    assert rejected > 0.2 * PATTERNS_PER_SEED
    assert matching > 0.2 * PATTERNS_PER_SEED


@pytest.mark.rule("TX-72")
def test_regex_character_classes_match_the_same_unicode_characters_as_in_kafka(kafka: RegularExpressionOracle) -> None:
    """Each class at the ends of its ranges and of its folded ranges, and at random code points; also negated and with case ignored."""
    rng = Random(3)
    named = [(f"[[:{sign}{name}:]]", POSIX_CLASSES[name]) for name in POSIX_CLASSES for sign in ("", "^")]
    for name in sorted(UNICODE_CLASS_NAMES):
        characters = unicode_class(name, ignore_case=True)
        named += [(f"\\p{{{name}}}", characters), (f"[^\\p{{{name}}}]", characters)]
    for text, characters in named:
        ends = [code_point for low, high in characters.ranges() for code_point in (low - 1, low, high, high + 1)]
        chosen = {*ends, *range(0x250), *(rng.randrange(0x110000) for _ in range(300))}
        texts = [chr(c) for c in sorted(chosen) if 0 <= c < 0x110000 and not 0xD800 <= c < 0xE000]
        for pattern in (text, f"(?i){text}"):
            assert ours_for_texts(pattern, texts) == kafka.match(pattern, texts), pattern


@pytest.mark.rule("TX-72")
def test_case_insensitive_topic_patterns_match_the_same_letters_as_in_kafka(kafka: RegularExpressionOracle) -> None:
    """Literals and ranges of every code point that has case. RE2J never returns for some of these code points, `ENDLESS_IN_KAFKA`."""
    folds = {code_point for code_point, _ in kafka.tables()["folds"]} - ENDLESS_IN_KAFKA
    letters = [chr(code_point) for code_point in sorted(folds)]
    for letter in letters:
        near = [c for c in letters if abs(ord(c) - ord(letter)) < 40] + [letter.upper()[0], letter.lower()[0]]
        for pattern in (f"(?i){letter}", f"(?i)[{letter}]", f"(?i)[^{letter}]"):
            assert ours_for_texts(pattern, near) == kafka.match(pattern, near), pattern


@pytest.mark.rule("TX-72")
def test_unicode_tables_for_topic_patterns_equal_those_of_kafka() -> None:
    assert unicode_tables.PATH.read_text() == unicode_tables.current()


@pytest.mark.parametrize("prefix", ["", "a", "(?i)", "x|", "[a"])
def test_each_syntax_element_of_topic_patterns_matches_the_same_names_as_in_kafka(
    kafka: RegularExpressionOracle, prefix: str
) -> None:
    groups = [opening + "b)" for opening in OPENINGS.split()]
    for element in [*UNUSUAL_LITERALS, *ATOMS.split(), *REPETITIONS.split(), *OPENINGS.split(), *groups]:
        for suffix in ("", "b", "*", "]", "*]"):
            pattern = prefix + element + suffix
            assert ours(pattern, [*FIXED_NAMES, *TOPIC_CHARACTERS]) == kafka.match(
                pattern, [*FIXED_NAMES, *TOPIC_CHARACTERS]
            ), pattern


def test_regex_character_classes_match_the_same_topic_name_characters_as_in_kafka(
    kafka: RegularExpressionOracle,
) -> None:
    """Every category, script and POSIX class, in and outside of brackets, also negated and with case ignored."""
    named = [f"[[:{sign}{name}:]]" for name in POSIX_CLASSES for sign in ("", "^")]
    for name in sorted(UNICODE_CLASS_NAMES):
        named += [f"\\p{{{name}}}", f"\\P{{{name}}}", f"[\\p{{{name}}}]", f"[^\\p{{^{name}}}]"]
    for text in named:
        for pattern in (text, f"(?i){text}"):
            assert ours(pattern, [*TOPIC_CHARACTERS]) == kafka.match(pattern, [*TOPIC_CHARACTERS]), pattern


def test_topic_pattern_matches_a_small_letter_that_kafka_misses_due_to_a_re2j_bug(
    kafka: RegularExpressionOracle,
) -> None:
    """RE2J takes two alternatives for the same if they begin with the same letter, and forgets that only one of them ignores case.

    Our broker does not have this bug.
    """
    assert kafka.match("K(?:KK)+|(?i:K)", ["K", "k"]) == [True, False]
    assert ours("K(?:KK)+|(?i:K)", ["K", "k"]) == [True, True]
