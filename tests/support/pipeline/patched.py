"""Faults that are written into the tables of a clean run: each function does one, and tells at which request it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Rows = dict[str, list[dict[str, Any]]]


def row(found: list[dict[str, Any]], wanted: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """The first that is as wanted; `found` is in order of seq."""
    return next(one for one in found if wanted(one))


def in_conversation(tables: Rows, wanted: Callable[[dict[str, Any], dict[str, Any]], Any]) -> list[dict[str, Any]]:
    """A request and the next of its connection."""
    for one in tables["requests"]:
        following = next((r for r in tables["requests"] if r["conn"] == one["conn"] and r["seq"] > one["seq"]), None)
        if following is not None and wanted(one, following):
            return [one, following]
    raise AssertionError("no such pair of requests")


def answered_while_muted(tables: Rows) -> int:
    one, following = in_conversation(tables, lambda one, _: one["muted_until_ms"])
    following["handled_ms"] = one["muted_until_ms"] - 1
    return int(following["seq"])


def told_another_throttle(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["throttle_quota"] == "Produce")
    one["throttle_ms"] += 1
    return int(one["seq"])


def throttled_with_records(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["api"] == "Fetch" and r["decided_ms"] > 0)
    one["records_bytes"] = 100
    return int(one["seq"])


def answered_out_of_turn(tables: Rows) -> int:
    one, following = in_conversation(tables, lambda a, b: a["api"] == b["api"] == "Produce")
    one["ready_ns"], following["ready_ns"] = following["ready_ns"], one["ready_ns"]
    return int(following["seq"])


def somebody_elses_answer(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["api"] == "Metadata")
    one["trouble"] = "the answer's correlation id is 99"
    return int(one["seq"])


def unknown_version(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["api"] == "Metadata")
    one["api_version"] = 99
    return int(one["seq"])


def answered_late(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["api"] == "Fetch")
    one["handled_ns"] -= (one["max_wait_ms"] + 1001) * 1_000_000
    return int(one["seq"])


def answered_without_acks(tables: Rows) -> int:
    one = row(tables["requests"], lambda r: r["acks"] == 0)
    one["answered"] = True
    return int(one["seq"])


def over_the_limit(tables: Rows) -> int:
    one = row(tables["partitions"], lambda r: r["limit_bytes"] and r["batches"] > 1)
    one["limit_bytes"] = one["bytes"] - 1
    return int(one["seq"])


def overlapping(tables: Rows) -> int:
    one = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["place"] == 1)
    one["base_offset"] -= 1
    return int(one["seq"])


def with_a_gap(tables: Rows) -> int:
    one = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["place"] == 1 and r["count"] > 1)
    one["base_offset"] += 1
    return int(one["seq"])


def with_other_bytes(tables: Rows) -> int:
    one = row(tables["batches"], lambda r: r["api"] == "Fetch")
    one["crc"] ^= 1
    return int(one["seq"])


def fallen_watermark(tables: Rows) -> int:
    found = [r for r in tables["partitions"] if r["api"] == "Fetch" and r["error"] == 0 and r["partition"] == 1]
    found[1]["high_watermark"] = found[1]["last_stable_offset"] = found[0]["high_watermark"] - 1
    return int(found[1]["seq"])


def stable_above_the_watermark(tables: Rows) -> int:
    one = [r for r in tables["partitions"] if r["api"] == "Fetch" and r["error"] == 0 and r["high_watermark"] > 0][-1]
    one["last_stable_offset"] = one["high_watermark"] + 1
    return int(one["seq"])


def no_progress(tables: Rows) -> int:
    one = row(tables["partitions"], lambda r: r["asked_offset"] is not None and r["next_offset"])
    one["asked_offset"] = one["next_offset"]
    return int(one["seq"])


def out_of_a_range_that_it_is_in(tables: Rows) -> int:
    one = row(tables["partitions"], lambda r: r["api"] == "Fetch" and r["error"] == 1)
    one["asked_offset"] = 5
    return int(one["seq"])


def fallen_epoch(tables: Rows) -> int:
    one = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["place"] == 1)
    row(tables["batches"], lambda r: (r["seq"], r["partition"], r["place"]) == (one["seq"], one["partition"], 0))[
        "epoch"
    ] += 1
    return int(one["seq"])


def id_of_two_topics(tables: Rows) -> int:
    named = [one for one in tables["events"] if one["kind"] == "named"]
    facts = json.loads(named[-1]["facts"])
    named[-1]["facts"] = json.dumps(facts | {"topic": "other"})
    return int(named[-1]["seq"])


def lost_behind_acks(tables: Rows) -> int:
    """A fetch that came before is told no less than one that came later: only what was acknowledged in between tells that it is wrong."""
    one = row(tables["partitions"], lambda r: r["api"] == "Produce" and r["acks"] == -1 and r["error"] == 0)
    one["next_offset"] += 1_000_000
    found = row(
        tables["partitions"],
        lambda r: (
            (r["api"], r["error"], r["broker"], r["topic"], r["partition"])
            == ("Fetch", 0, one["broker"], one["topic"], one["partition"])
            and r["begun_ns"] > one["ready_ns"]
        ),
    )
    return int(found["seq"])


def fallen_move(tables: Rows) -> int:
    one = row(tables["state"], lambda r: not r["begins"] and r["high_watermark"] > 1)
    one["high_watermark"] = one["last_stable_offset"] = -1
    return int(one["seq"])


def move_that_never_came(tables: Rows) -> int:
    """What the leader told of its high watermark before a produce was answered stays as it was."""
    one = row(tables["partitions"], lambda r: r["api"] == "Produce" and r["acks"] == -1 and r["error"] == 0)
    key = ("broker", "topic", "partition")
    for move in tables["state"]:
        if all(move[name] == one[name] for name in key) and move["at_ns"] <= one["ready_ns"]:
            move["high_watermark"] = move["last_stable_offset"] = min(move["high_watermark"], one["next_offset"] - 1)
    return int(one["seq"])


def watermark_behind_the_end(tables: Rows) -> int:
    """Of who leads: followers may know of more than they have."""
    asked = row(tables["partitions"], lambda r: r["api"] == "Produce" and r["acks"] == -1 and r["error"] == 0)
    key = ("broker", "topic", "partition")
    one = row(tables["state"], lambda r: r["high_watermark"] > 1 and all(r[name] == asked[name] for name in key))
    one["log_end"] = one["high_watermark"] - 1
    return int(one["seq"])


class Patched(NamedTuple):
    """must: the rule that breaks first at the row that was patched. may: those that may break beside them, wherever."""

    must: str
    may: frozenset[str] = frozenset()


FAULTS: dict[Callable[[Rows], int], Patched] = {
    answered_while_muted: Patched("3"),
    told_another_throttle: Patched("4"),
    throttled_with_records: Patched("5"),
    answered_out_of_turn: Patched("6"),
    somebody_elses_answer: Patched("6"),
    unknown_version: Patched("7"),
    answered_late: Patched("13"),
    answered_without_acks: Patched("20"),
    over_the_limit: Patched("2"),
    overlapping: Patched("8", frozenset({"15"})),
    with_a_gap: Patched("8 gap", frozenset({"9 lost", "15"})),
    with_other_bytes: Patched("9"),
    fallen_watermark: Patched("10", frozenset({"20 HW"})),
    stable_above_the_watermark: Patched("10 order"),
    fallen_epoch: Patched("10 epoch"),
    no_progress: Patched("12"),
    out_of_a_range_that_it_is_in: Patched("18"),
    id_of_two_topics: Patched("19"),
    lost_behind_acks: Patched("20 HW", frozenset({"20 moved"})),
    fallen_move: Patched("10 moved", frozenset({"20 moved"})),
    move_that_never_came: Patched("20 moved"),
    watermark_behind_the_end: Patched("10 order"),
}
