"""Faults written into the tables of a clean run: each function applies one and returns the `seq` of the affected request."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, NamedTuple

Rows = dict[str, list[dict[str, Any]]]


def row(rows: list[dict[str, Any]], condition: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
    """Return the first row that matches; rows are in order of seq."""
    return next(candidate for candidate in rows if condition(candidate))


def consecutive_requests(
    tables: Rows, condition: Callable[[dict[str, Any], dict[str, Any]], Any]
) -> list[dict[str, Any]]:
    """Return the first request and its successor on the same connection that match."""
    for table in tables["requests"]:
        following = next(
            (r for r in tables["requests"] if r["conn"] == table["conn"] and r["seq"] > table["seq"]), None
        )
        if following is not None and condition(table, following):
            return [table, following]
    raise AssertionError("no matching pair of requests")


def answered_while_muted(tables: Rows) -> int:
    first_row, following = consecutive_requests(tables, lambda first_row, _: first_row["muted_until_ms"])
    following["handled_ms"] = first_row["muted_until_ms"] - 1
    return int(following["seq"])


def wrong_throttle_reported(tables: Rows) -> int:
    request_row = row(tables["requests"], lambda r: r["throttle_quota"] == "Produce")
    request_row["throttle_ms"] += 1
    return int(request_row["seq"])


def throttled_with_records(tables: Rows) -> int:
    fetch_row = row(tables["requests"], lambda r: r["api"] == "Fetch" and r["applied_throttle_ms"] > 0)
    fetch_row["records_bytes"] = 100
    return int(fetch_row["seq"])


def answered_out_of_turn(tables: Rows) -> int:
    first_row, following = consecutive_requests(tables, lambda a, b: a["api"] == b["api"] == "Produce")
    first_row["ready_ns"], following["ready_ns"] = following["ready_ns"], first_row["ready_ns"]
    return int(following["seq"])


def response_to_another_request(tables: Rows) -> int:
    metadata_row = row(tables["requests"], lambda r: r["api"] == "Metadata")
    metadata_row["problem"] = "the correlation id of the response is 99"
    return int(metadata_row["seq"])


def unknown_version(tables: Rows) -> int:
    metadata_row = row(tables["requests"], lambda r: r["api"] == "Metadata")
    metadata_row["api_version"] = 99
    return int(metadata_row["seq"])


def answered_late(tables: Rows) -> int:
    fetch_row = row(tables["requests"], lambda r: r["api"] == "Fetch")
    fetch_row["handled_ns"] -= (fetch_row["max_wait_ms"] + 1001) * 1_000_000
    return int(fetch_row["seq"])


def answered_without_acks(tables: Rows) -> int:
    produce_row = row(tables["requests"], lambda r: r["acks"] == 0)
    produce_row["has_response"] = True
    return int(produce_row["seq"])


def over_the_limit(tables: Rows) -> int:
    partition_row = row(tables["partitions"], lambda r: r["limit_bytes"] and r["batches"] > 1)
    partition_row["limit_bytes"] = partition_row["bytes"] - 1
    return int(partition_row["seq"])


def overlapping(tables: Rows) -> int:
    batch_row = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["position"] == 1)
    batch_row["base_offset"] -= 1
    return int(batch_row["seq"])


def with_a_gap(tables: Rows) -> int:
    batch_row = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["position"] == 1 and r["count"] > 1)
    batch_row["base_offset"] += 1
    return int(batch_row["seq"])


def with_other_bytes(tables: Rows) -> int:
    batch_row = row(tables["batches"], lambda r: r["api"] == "Fetch")
    batch_row["crc"] ^= 1
    return int(batch_row["seq"])


def fallen_watermark(tables: Rows) -> int:
    fetch_rows = [r for r in tables["partitions"] if r["api"] == "Fetch" and r["error"] == 0 and r["partition"] == 1]
    fetch_rows[1]["high_watermark"] = fetch_rows[1]["last_stable_offset"] = fetch_rows[0]["high_watermark"] - 1
    return int(fetch_rows[1]["seq"])


def stable_above_the_watermark(tables: Rows) -> int:
    fetch_row = [
        r for r in tables["partitions"] if r["api"] == "Fetch" and r["error"] == 0 and r["high_watermark"] > 0
    ][-1]
    fetch_row["last_stable_offset"] = fetch_row["high_watermark"] + 1
    return int(fetch_row["seq"])


def no_progress(tables: Rows) -> int:
    partition_row = row(tables["partitions"], lambda r: r["requested_offset"] is not None and r["next_offset"])
    partition_row["requested_offset"] = partition_row["next_offset"]
    return int(partition_row["seq"])


def out_of_a_range_that_it_is_in(tables: Rows) -> int:
    fetch_row = row(tables["partitions"], lambda r: r["api"] == "Fetch" and r["error"] == 1)
    fetch_row["requested_offset"] = 5
    return int(fetch_row["seq"])


def fallen_epoch(tables: Rows) -> int:
    batch_row = row(tables["batches"], lambda r: r["api"] == "Fetch" and r["position"] == 1)
    row(
        tables["batches"],
        lambda r: (r["seq"], r["partition"], r["position"]) == (batch_row["seq"], batch_row["partition"], 0),
    )["epoch"] += 1
    return int(batch_row["seq"])


def id_of_two_topics(tables: Rows) -> int:
    """Rename the last mention of an id that an earlier response named: a broker may be the only one that names a topic."""
    named_ids: set[str] = set()
    repeated = []
    for event in tables["events"]:
        if event["kind"] == "named":
            topic_id = json.loads(event["facts"])["topic_id"]
            if topic_id in named_ids:
                repeated.append(event)
            named_ids.add(topic_id)
    renamed = repeated[-1]
    renamed["facts"] = json.dumps(json.loads(renamed["facts"]) | {"topic": "other"})
    return int(renamed["seq"])


def lost_behind_acks(tables: Rows) -> int:
    """Move a loss behind an acknowledgement: only the produces acknowledged between two fetches show that the later response is wrong."""
    produce_row = row(tables["partitions"], lambda r: r["api"] == "Produce" and r["acks"] == -1 and r["error"] == 0)
    produce_row["next_offset"] += 1_000_000
    fetch_row = row(
        tables["partitions"],
        lambda r: (
            (r["api"], r["error"], r["broker"], r["topic"], r["partition"])
            == ("Fetch", 0, produce_row["broker"], produce_row["topic"], produce_row["partition"])
            and r["begun_ns"] > produce_row["ready_ns"]
        ),
    )
    return int(fetch_row["seq"])


def fallen_move(tables: Rows) -> int:
    state_row = row(tables["state"], lambda r: not r["begins"] and r["high_watermark"] > 1)
    state_row["high_watermark"] = state_row["last_stable_offset"] = -1
    return int(state_row["seq"])


def missing_state_move(tables: Rows) -> int:
    """Keep the leader's high watermark in later responses at its value before a produce was acknowledged."""
    produce_row = row(tables["partitions"], lambda r: r["api"] == "Produce" and r["acks"] == -1 and r["error"] == 0)
    key = ("broker", "topic", "partition")
    for move in tables["state"]:
        if all(move[name] == produce_row[name] for name in key) and move["at_ns"] <= produce_row["ready_ns"]:
            move["high_watermark"] = move["last_stable_offset"] = min(
                move["high_watermark"], produce_row["next_offset"] - 1
            )
    return int(produce_row["seq"])


def watermark_behind_the_end(tables: Rows) -> int:
    """Raise a leader's high watermark above its log end; for followers this is possible."""
    produce_row = row(tables["partitions"], lambda r: r["api"] == "Produce" and r["acks"] == -1 and r["error"] == 0)
    key = ("broker", "topic", "partition")
    state_row = row(
        tables["state"], lambda r: r["high_watermark"] > 1 and all(r[name] == produce_row[name] for name in key)
    )
    state_row["log_end"] = state_row["high_watermark"] - 1
    return int(state_row["seq"])


class Patched(NamedTuple):
    """A patched fault. must: the rule that breaks first, at the patched row. may: rules that may break as well, at any row."""

    must: str
    may: frozenset[str] = frozenset()


FAULTS: dict[Callable[[Rows], int], Patched] = {
    answered_while_muted: Patched("3"),
    wrong_throttle_reported: Patched("4"),
    throttled_with_records: Patched("5"),
    answered_out_of_turn: Patched("6"),
    response_to_another_request: Patched("6"),
    unknown_version: Patched("7"),
    answered_late: Patched("13"),
    answered_without_acks: Patched("20"),
    over_the_limit: Patched("2"),
    overlapping: Patched("8", frozenset({"15"})),
    with_a_gap: Patched("8-gap", frozenset({"9-lost", "15"})),
    with_other_bytes: Patched("9"),
    fallen_watermark: Patched("10", frozenset({"20-HW"})),
    stable_above_the_watermark: Patched("10-order"),
    fallen_epoch: Patched("10-epoch"),
    no_progress: Patched("12"),
    out_of_a_range_that_it_is_in: Patched("18"),
    id_of_two_topics: Patched("19"),
    lost_behind_acks: Patched("20-HW", frozenset({"20-moved"})),
    fallen_move: Patched("10-moved", frozenset({"20-moved"})),
    missing_state_move: Patched("20-moved"),
    watermark_behind_the_end: Patched("10-order"),
}
