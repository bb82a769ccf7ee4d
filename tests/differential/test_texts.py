"""Texts of responses are compared without what differs between two brokers that respond the same."""

from __future__ import annotations

from kafkaproto.messages.describe_groups import DescribedGroup
from kafkaproto.messages.produce import BatchIndexAndErrorMessage
from tests.differential.playing import plain
from tests.differential.shown import Shown
from tests.differential.texts import id_in_texts, shown

NAMES = {"t-1-1795000000000000000": "topic", "no-t-1-1795000000000000000": "missing topic", "": "nothing"}


def test_response_comparison_replaces_the_longest_known_topic_name_in_error_messages() -> None:
    text = "t-1-1795000000000000000-0 exists, no-t-1-1795000000000000000 does not"
    assert shown(text, NAMES) == "topic-0 exists, missing topic does not"


def test_response_comparison_masks_generated_member_ids_in_error_messages() -> None:
    text = "Member pc-01234567-89ab-cdef-0123-456789abcdef is not a member of group g."
    assert shown(text, {}) == "Member an id is not a member of group g."


def test_response_comparison_masks_clock_times_in_errors_but_no_other_numbers() -> None:
    text = "Timestamp 1700000005000 is not within [1795000000000, 9223372036854775807], [-9223370241854775807, 7]"
    assert (
        shown(text, {}) == "Timestamp 1700000005000 is not within [a time, 9223372036854775807], [the earliest time, 7]"
    )


def test_response_comparison_includes_error_messages_of_groups_and_of_records() -> None:
    names = Shown()
    names.add(bytes(16), "id of topic")
    described = names.plain(DescribedGroup(error_message=f"Topic {id_in_texts(bytes(16))} is unknown."))
    assert described["error_message"] == "Topic id of topic is unknown."
    assert plain(BatchIndexAndErrorMessage(0, "bad"), {})["batch_index_error_message"] == "bad"


def test_response_comparison_shortens_a_text_only_if_it_repeats_a_single_character() -> None:
    long_text = "ab" * 100
    assert Shown().plain([long_text, "m" * 4096]) == [long_text, "'m' and 4095 more"]
