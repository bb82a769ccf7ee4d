"""Topic patterns: what RE2J 1.8 accepts and refuses, whole names, and time linear in the length of names."""

from __future__ import annotations

import re
import string
import time
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kafkaproto.broker.errors import KafkaError
from kafkaproto.broker.group.topic_patterns import LONGEST_TOPIC_NAME, TOPIC_CHARACTERS, compile_topic_pattern
from kafkaproto.broker.regular_expressions import pattern as patterns
from kafkaproto.broker.regular_expressions.program import MOST_INSTRUCTIONS
from kafkaproto.error_codes import ErrorCode

topic_names = st.text(sorted(TOPIC_CHARACTERS), max_size=LONGEST_TOPIC_NAME)


def matched(pattern: str, *names: str) -> list[str]:
    compiled = compile_topic_pattern(pattern)
    return [name for name in names if compiled.matches(name)]


@pytest.mark.parametrize(
    ("pattern", "description"),
    [
        ("(", "missing closing )"),
        ("(a|b", "missing closing )"),
        (")", "regexp/syntax: internal error"),
        ("[a", "missing closing ]"),
        ("[]", "missing closing ]"),
        ("[b-a]", "invalid character class range"),
        ("[[:letter:]]", "invalid character class range"),
        ("\\p{Klingon}", "invalid character class range"),
        ("a(?=b)", "invalid or unsupported Perl syntax"),
        ("a(?!b)", "invalid or unsupported Perl syntax"),
        ("(?<=a)b", "invalid named capture"),
        ("(?<!a)b", "invalid named capture"),
        ("(?>a)", "invalid or unsupported Perl syntax"),
        ("(?P<n>a)(?P=n)", "invalid or unsupported Perl syntax"),
        ("(?P<n>a)(?<n>b)", "duplicate capture group name"),
        ("(a)\\1", "invalid escape sequence"),
        ("\\C", "invalid escape sequence"),
        ("\\x{110000}", "invalid escape sequence"),
        ("a\\", "trailing backslash at end of expression"),
        ("*", "missing argument to repetition operator"),
        ("(|+)", "missing argument to repetition operator"),
        ("a**", "invalid nested repetition operator"),
        ("a++", "invalid nested repetition operator"),
        ("a{*", "invalid nested repetition operator"),
        ("a{1001}", "invalid repeat count"),
        ("a{2,1}", "invalid repeat count"),
    ],
)
@pytest.mark.rule("GN-50")
def test_invalid_topic_pattern_gets_error_invalid_regular_expression_with_the_reason(
    pattern: str, description: str
) -> None:
    with pytest.raises(KafkaError) as refused:
        compile_topic_pattern(pattern)
    assert refused.value.error_code == ErrorCode.INVALID_REGULAR_EXPRESSION == 128
    assert refused.value.message == (
        f"SubscribedTopicRegex `{pattern}` is not a valid regular expression: {description}."
    )


@pytest.mark.parametrize(
    ("pattern", "matching", "others"),
    [
        ("orders", "orders", "orders2 my-orders order"),
        ("orders.*", "orders orders-eu orders.eu", "my-orders"),
        ("a|ab|abc", "a ab abc", "abcd b"),
        ("(eu|us)-[a-z]+\\.v\\d{1,2}", "eu-orders.v1 us-x.v12", "eu-.v1 eu-orders.v123 as-x.v1"),
        ("(?i)ORDERS", "orders Orders", "0rders"),
        ("a(?i:b)c", "abc aBc", "Abc abC"),
        ("(?i)a(?-i)b", "ab Ab", "aB AB"),
        ("(?P<region>eu)-(?<name>a)", "eu-a", "eu-b"),
        ("x\\Qa.b+\\E?", "xa.b", "xaab xa.bb"),
        ("\\Qa.b\\E", "a.b", "aab"),
        ("\\bb\\b.*", "b b-x b.x", "bx b_x ab"),
        ("\\Ba.*", "", "a -a"),
        ("[^\\w]", ". -", "a 0 _"),
        ("[[:upper:]][[:^digit:]]", "Aa A-", "A1 aa"),
        ("\\p{Lu}\\pN\\p{Pd}\\p{Pc}", "A1-_", "a1-_ A1_-"),
        ("\\p{Latin}+\\P{Common}", "ab abc", "a a1"),
        ("\\x61\\x{62}\\143", "abc", "ab"),
        ("(a*)*b", "b ab aab", "a"),
        ("(?:^a$)+", "a", "aa"),
        ("a{2}b{0}c{1,}d{0,1}", "aac aaccd", "ac aabc aaccdd"),
        ("a{,2}", "", "a aa"),
        ("(?i)\u212aey-\u017f", "key-s KEY-S", "ey-"),
    ],
)
@pytest.mark.rule("GN-50")
def test_topic_pattern_matches_only_whole_topic_names(pattern: str, matching: str, others: str) -> None:
    assert matched(pattern, *matching.split(), *others.split()) == matching.split()


def test_topic_pattern_never_matches_illegal_topic_names() -> None:
    assert matched(".*", "a", "a b", "ä", "a\n") == ["a"]


literals = st.sampled_from(
    ["a", "b", "A", "0", "_", "-", "\\.", ".", "[ab]", "[^a]", "[a-c0]", "\\w", "\\W", "\\d", "\\b"]
)
common_patterns = st.recursive(
    literals,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4).map("".join),
        st.lists(inner, min_size=1, max_size=3).map(lambda parts: f"(?:{'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}", "*?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=8,
)


@given(pattern=common_patterns, names=st.lists(st.text("abA0_-.", max_size=6), min_size=1, max_size=20))
def test_topic_pattern_matches_the_same_names_as_python_re_with_the_same_pattern(
    pattern: str, names: list[str]
) -> None:
    theirs = re.compile(pattern, re.ASCII)
    assert matched(pattern, *names) == [name for name in names if theirs.fullmatch(name)]


@given(name=topic_names, pattern=st.text(string.printable, max_size=12))
def test_quoted_text_in_a_topic_pattern_matches_only_that_text(name: str, pattern: str) -> None:
    assert matched(f"\\Q{name}\\E", name, name + "a", "-" + name) == [name]
    if "\\E" not in pattern and not pattern.endswith("\\"):
        assert matched(f"\\Q{pattern}\\E", name) == ([name] if pattern == name else [])


@given(st.text(max_size=30) | st.text("ab(?:<n>i)[]^-\\pdQE{},1*+|", max_size=15))
def test_arbitrary_text_is_accepted_or_rejected_as_a_topic_pattern_without_a_crash(pattern: str) -> None:
    with suppress(KafkaError):
        compile_topic_pattern(pattern).matches("a")


@settings(max_examples=25)
@given(count=st.integers(0, 1000), extra=st.integers(0, 1000), length=st.integers(0, LONGEST_TOPIC_NAME))
def test_bounded_repetition_in_topic_pattern_matches_only_lengths_within_its_bounds(
    count: int, extra: int, length: int
) -> None:
    assert compile_topic_pattern(f"a{{{count}}}").matches("a" * length) == (length == count)
    assert compile_topic_pattern(f"(?:a|){{{count}}}").matches("a" * length) == (length <= count)
    assert compile_topic_pattern(f"a{{{count},}}").matches("a" * length) == (length >= count)
    most = min(1000, count + extra)
    assert compile_topic_pattern(f"a{{{count},{most}}}").matches("a" * length) == (count <= length <= most)


def test_topic_patterns_that_would_backtrack_exponentially_take_less_than_5_seconds() -> None:
    """Python's `re` needs some 2**249 steps for the first pattern."""
    start = time.perf_counter()
    for pattern in ("(a*)*b", "(a|a)*b", "(a?){249}a{249}b", "(.*)(.*)(.*)(.*)[^a]"):
        assert matched(pattern, "a" * LONGEST_TOPIC_NAME) == []
    assert time.perf_counter() - start < 5


def test_topic_pattern_with_2000_alternatives_is_accepted() -> None:
    names = [f"topic-{index:06}" for index in range(2000)]
    assert matched("|".join(names), *names, "topic-002000") == names


def test_topic_pattern_that_compiles_to_too_many_instructions_is_rejected() -> None:
    with pytest.raises(KafkaError, match=rf"expression too large \(more than {MOST_INSTRUCTIONS} instructions\)"):
        compile_topic_pattern("(((a{200}){200}){200}){200}")


def test_topic_pattern_with_deeply_nested_groups_is_accepted() -> None:
    assert matched("(" * 10_000 + "ab" + ")?" * 10_000, "", "ab", "a") == ["", "ab"]


def test_names_matched_by_a_topic_pattern_do_not_depend_on_the_matcher_cache_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = [f"{letter}{index}" for letter in "ab" for index in range(200)]
    expected = matched("a1.*|b.*7", *names)
    monkeypatch.setattr(patterns, "MOST_CACHED_POSITIONS", 20)
    assert matched("a1.*|b.*7", *names) == expected
