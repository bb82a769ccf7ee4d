"""Character classes in topic patterns: Perl, POSIX and Unicode classes, and ranges of characters.

Topic names consist of few characters, `TOPIC_CHARACTERS`. A class is therefore represented by the set of topic characters in it. This makes Unicode
classes exact without Unicode tables: of all scripts, only Latin and Common contain topic characters.
"""

from __future__ import annotations

import string
import unicodedata
from typing import Final

TOPIC_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")
"""The characters that may occur in the name of a topic."""
WORD_CHARACTERS: Final = TOPIC_CHARACTERS - {".", "-"}
r"""The topic characters that `\w` matches. A word boundary lies between a word character and another character, or the start or end of the name."""

_CATEGORIES: Final = (
    "C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps S Sc Sk Sm So Z Zl Zp Zs"
)
"""The names of the Unicode general categories that RE2J 1.8 supports."""
_SCRIPTS: Final = """
    Arabic Armenian Avestan Balinese Bamum Batak Bengali Bopomofo Brahmi Braille Buginese Buhid Canadian_Aboriginal
    Carian Cham Cherokee Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Egyptian_Hieroglyphs Ethiopic
    Georgian Glagolitic Gothic Greek Gujarati Gurmukhi Han Hangul Hanunoo Hebrew Hiragana Imperial_Aramaic Inherited
    Inscriptional_Pahlavi Inscriptional_Parthian Javanese Kaithi Kannada Katakana Kayah_Li Kharoshthi Khmer Lao
    Latin Lepcha Limbu Linear_B Lisu Lycian Lydian Malayalam Mandaic Meetei_Mayek Mongolian Myanmar New_Tai_Lue Nko
    Ogham Ol_Chiki Old_Italic Old_Persian Old_South_Arabian Old_Turkic Oriya Osmanya Phags_Pa Phoenician Rejang
    Runic Samaritan Saurashtra Shavian Sinhala Sundanese Syloti_Nagri Syriac Tagalog Tagbanwa Tai_Le Tai_Tham
    Tai_Viet Tamil Telugu Thaana Thai Tibetan Tifinagh Ugaritic Unknown Vai Yi
"""
"""The names of the Unicode scripts that RE2J 1.8 supports (Unicode 6.0); it rejects the names of newer scripts."""

Characters = frozenset[str]
_NO_CHARACTERS: Final[Characters] = frozenset()
_LETTERS: Final = frozenset(string.ascii_letters)
_DIGITS: Final = frozenset(string.digits)
_PUNCTUATION: Final = TOPIC_CHARACTERS - _LETTERS - _DIGITS

PERL_CLASSES: Final[dict[str, Characters]] = {"d": _DIGITS, "s": _NO_CHARACTERS, "w": WORD_CHARACTERS}
POSIX_CLASSES: Final[dict[str, Characters]] = {
    "alnum": _LETTERS | _DIGITS,
    "alpha": _LETTERS,
    "ascii": TOPIC_CHARACTERS,
    "blank": _NO_CHARACTERS,
    "cntrl": _NO_CHARACTERS,
    "digit": _DIGITS,
    "graph": TOPIC_CHARACTERS,
    "lower": frozenset(string.ascii_lowercase),
    "print": TOPIC_CHARACTERS,
    "punct": _PUNCTUATION,
    "space": _NO_CHARACTERS,
    "upper": frozenset(string.ascii_uppercase),
    "word": WORD_CHARACTERS,
    "xdigit": frozenset(string.hexdigits),
}
UNICODE_CLASSES: Final[dict[str, Characters]] = {
    **dict.fromkeys(_SCRIPTS.split(), _NO_CHARACTERS),
    **{
        name: frozenset(c for c in TOPIC_CHARACTERS if unicodedata.category(c).startswith(name))
        for name in _CATEGORIES.split()
    },
    "Any": TOPIC_CHARACTERS,
    "Common": _DIGITS | _PUNCTUATION,
    "Latin": _LETTERS,
}

UNICODE_CLASSES_IGNORING_CASE: Final[dict[str, Characters]] = {
    **UNICODE_CLASSES,
    "Ll": frozenset(string.ascii_lowercase + "KS"),
    "Lu": _LETTERS,
}
r"""The characters of Unicode classes if case is ignored.

In RE2J 1.8, K and S are then the only capital letters in `\p{Ll}`, because its table lacks the others.
"""

_FOLDED_BEYOND_ASCII: Final = {"s": 0x17F, "k": 0x212A}
"""The only characters beyond ASCII that equal an ASCII letter if case is ignored: long s and the Kelvin sign, as code points."""


def in_range(low: int, high: int, *, ignore_case: bool) -> Characters:
    """Return the topic characters from one code point to another, both included."""
    if not ignore_case:
        return frozenset(c for c in TOPIC_CHARACTERS if low <= ord(c) <= high)
    return frozenset(c for c in TOPIC_CHARACTERS if any(low <= code_point <= high for code_point in _folded(c)))


def _folded(character: str) -> list[int]:
    """Return the code points that equal a topic character if case is ignored."""
    lower = character.lower()
    same = [ord(lower), ord(character.upper())]
    return [*same, _FOLDED_BEYOND_ASCII[lower]] if lower in _FOLDED_BEYOND_ASCII else same
