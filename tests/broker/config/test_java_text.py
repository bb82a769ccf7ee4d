"""Text is trimmed and split as Java and Kafka do it, which differs from Python's `str.strip`."""

from __future__ import annotations

import pytest

from kafkaproto.broker.config.java_text import java_items, java_trim


@pytest.mark.rule("CF-27", "GN-5", "GC-56")
def test_java_trim_function_removes_leading_and_trailing_characters_up_to_u0020() -> None:
    removed = [code for code in range(0x3100) if not java_trim(chr(code))]
    assert removed == [*range(0x21)]
    assert java_trim("\0 \x1fa b\0c\t\r\n") == "a b\0c"
    assert java_trim("\u00a0a\u2003") == "\u00a0a\u2003"


@pytest.mark.rule("CF-27")
@pytest.mark.parametrize(
    ("text", "items"),
    [
        ("", [""]),
        (" \0", [""]),
        ("a", ["a"]),
        ("\0a\t,\v b,\r\n\fc\x1f", ["a", "b", "c"]),
        ("a,\0b\x1f,c", ["a", "\0b\x1f", "c"]),
        ("a,\u00a0b", ["a", "\u00a0b"]),
        (" , a,", ["", "a", ""]),
    ],
)
def test_list_setting_is_split_at_commas_and_ascii_whitespace_around_them_is_removed(
    text: str, items: list[str]
) -> None:
    assert java_items(text) == items
