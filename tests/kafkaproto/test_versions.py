"""Version ranges of message definitions."""

from __future__ import annotations

import pytest

from kafkaproto.versions import NO_VERSIONS, OPEN_ENDED, VersionRange


@pytest.mark.parametrize(
    ("text", "lowest", "highest"), [("3", 3, 3), ("0-7", 0, 7), ("9+", 9, OPEN_ENDED), ("0+", 0, OPEN_ENDED)]
)
def test_version_range_is_printed_in_the_form_in_which_it_was_written(text: str, lowest: int, highest: int) -> None:
    parsed = VersionRange.parse(text)
    assert (parsed.lowest, parsed.highest, str(parsed)) == (lowest, highest, text)
    assert lowest in parsed and highest in parsed and lowest - 1 not in parsed and highest + 1 not in parsed


@pytest.mark.parametrize("text", ["", "+", "-", "7-3", "a", "-1", "1-2-3", "32768", "3 +x"])
def test_invalid_version_range_raises_a_value_error(text: str) -> None:
    with pytest.raises(ValueError):
        VersionRange.parse(text)


def test_version_range_none_contains_no_version_and_lies_within_every_range() -> None:
    none = VersionRange.parse("none")
    assert none == NO_VERSIONS and not none and list(none) == [] and str(none) == "none"
    assert none.within(VersionRange(3, 4)) and none.open_ended and 0 not in none


def test_intersection_of_two_version_ranges_has_the_versions_common_to_both() -> None:
    low, high = VersionRange.parse("0-5"), VersionRange.parse("3+")
    assert low.intersect(high) == VersionRange(3, 5) and high.intersect(low) == VersionRange(3, 5)
    assert VersionRange(0, 2).intersect(high) == NO_VERSIONS
    assert VersionRange(3, 5).within(low) and not high.within(low) and not low.open_ended and high.open_ended
    assert list(VersionRange(2, 4)) == [2, 3, 4]
