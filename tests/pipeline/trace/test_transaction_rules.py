"""The rules of transactions report faults that resemble correct behaviour, and no correct behaviour. Each case is a run of a few rows."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from kafkaproto.pipeline.trace.audit import producer_epochs, transactions
from tests.support.pipeline.judging import broken_rows

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(300),
    # py4j leaves its sockets to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning", "ignore::ResourceWarning"),
]

RULES = (*transactions.RULES, *producer_epochs.RULES)

Row = dict[str, Any]
NS = 1000
CONCURRENT, UNAVAILABLE, FENCED = 51, 15, 90
COMMIT, ABORT = True, False
Batch = tuple[int, int, int, int | bool | None]
"""A batch of one record: (offset, producer id, epoch, sequence number), or the decision of a marker in place of the last."""


def produced(offset: int, epoch: int = 0, sequence: int = 0, producer: int = 7, **more: Any) -> Row:
    return {"api": "Produce", "batches": [(offset, producer, epoch, sequence)], "api_version": 11, **more}


def fetched(*batches: Batch, lso: int | None = None, hw: int | None = None, aborted: Any = (), **more: Any) -> Row:
    """Return a fetch of batches. The last stable offset in the response is right if `lso` and `hw` are None."""
    end = batches[-1][0] + 1
    ends = {(producer, offset) for offset, producer, _, last in batches if last is None or isinstance(last, bool)}
    undecided = [
        offset for offset, producer, _, _ in batches if not any(p == producer and at >= offset for p, at in ends)
    ]
    stable = min(undecided, default=end) if lso is None else lso
    offsets = {"high_watermark": end if hw is None else hw, "last_stable_offset": stable}
    return {"api": "Fetch", "batches": batches, "aborted": json.dumps(list(aborted)), "isolation": 0, **offsets, **more}


def committed_only(*batches: Batch, **more: Any) -> Row:
    return fetched(*batches, isolation=1, **more)


def ended(commit: bool, epoch: int = 0, error: int | None = 0, returned: int | None = None, producer: int = 7) -> Row:
    new = {} if returned is None else {"returned_producer_id": producer, "returned_epoch": returned}
    return {
        "api": "EndTxn",
        "producer_id": producer,
        "producer_epoch": epoch,
        "committed": commit,
        "error": error,
        **new,
    }


def begun(epoch: int, producer: int = 7, expected: tuple[int, int] = (-1, -1)) -> Row:
    returned = {"returned_producer_id": producer, "returned_epoch": epoch}
    return {"api": "InitProducerId", "producer_id": expected[0], "producer_epoch": expected[1], "error": 0, **returned}


def added(epoch: int, error: int = 0) -> Row:
    return {
        "api": "AddPartitionsToTxn",
        "producer_id": 7,
        "producer_epoch": epoch,
        "topic": "t",
        "partition": 0,
        "error": error,
    }


B0, B1, B2 = (0, 7, 0, 0), (1, 7, 0, 1), (2, 7, 0, 2)
RECREATED = {"api": "DeleteTopics"}

CASES: dict[str, tuple[list[Row], dict[str, int]]] = {
    # ---- what read_committed consumers get
    "an aborted transaction is listed": ([committed_only(B0, (1, 7, 0, ABORT), aborted=[[7, 0]])], {}),
    "an aborted transaction is listed nowhere": ([committed_only(B0, (1, 7, 0, ABORT))], {"11-aborted": 1}),
    "the rest of an aborted transaction whose beginning was not fetched": ([committed_only(B1, (2, 7, 0, ABORT), aborted=[[7, 0]])], {}),
    "the listed transaction is the one before": (
        [committed_only(B0, (1, 7, 0, ABORT), B2, (3, 7, 0, ABORT), aborted=[[7, 0]])],
        {"11-aborted": 1},
    ),
    "the end of the transaction was not fetched": ([committed_only(B0, lso=5, hw=5)], {}),
    "a marker follows a gap": ([committed_only(B0, lso=3, hw=3), fetched((2, 7, 0, ABORT))], {}),
    "read_uncommitted responses list nothing": ([fetched(B0, (1, 7, 0, ABORT))], {}),
    "a marker without a decision, as in old traces": ([committed_only(B0, (1, 7, 0, None))], {}),
    "a committed transaction after an aborted one": (
        [committed_only(B0, (1, 7, 0, ABORT), B2, (3, 7, 0, COMMIT), aborted=[[7, 0]])],
        {},
    ),
    "a committed transaction is listed": ([committed_only(B0, (1, 7, 0, COMMIT), aborted=[[7, 0]])], {"24": 1}),
    "an aborted transaction of another producer between": (
        [committed_only(B0, (1, 8, 0, 0), (2, 8, 0, ABORT), (3, 7, 0, COMMIT), aborted=[[8, 1]])],
        {},
    ),
    # ---- the last stable offset
    "the last stable offset is the first open offset": ([fetched(B0, B1, lso=0)], {}),
    "the last stable offset passes an open transaction": ([fetched(B0, B1, lso=1)], {"25": 1}),
    "a marker above the high watermark decides nothing yet": (
        [fetched(B0, lso=1, hw=1), fetched(B0, (1, 7, 0, COMMIT))],
        {"25": 1},
    ),
    "the transaction ended, and another one is open": ([fetched(B0, (1, 7, 0, COMMIT), B2, lso=2)], {}),
    "a transaction of a topic that was created again": (
        [fetched(B0), RECREATED, fetched((0, 9, 0, 0)), fetched((0, 9, 0, 0), (1, 9, 0, COMMIT))],
        {},
    ),
    # ---- epochs
    "epochs rise with markers": ([fetched(B0, (1, 7, 1, ABORT), (2, 7, 2, 0))], {}),
    "a batch of an old epoch follows a marker": ([fetched(B0, (1, 7, 1, ABORT), B2)], {"26": 1}),
    "two producers have their own epochs": ([fetched((0, 7, 3, 0), (1, 8, 0, 0), (2, 7, 3, 1))], {}),
    "a new epoch begins in the middle": ([fetched(B0, (1, 7, 1, ABORT), (2, 7, 2, 5))], {"26-first": 1}),
    "the beginning of an epoch was not fetched": ([fetched((1, 7, 1, ABORT), (2, 7, 1, 5))], {}),
    "an epoch for each transaction, as in version 2": (
        [begun(0), ended(COMMIT, 0, returned=1), ended(COMMIT, 0, returned=1), ended(ABORT, 1, returned=2)],
        {},
    ),
    "a producer that continues gets its epoch again": ([begun(4), begun(4, expected=(7, 3))], {}),
    "two producers get one epoch": ([begun(4), begun(4)], {"26-responses": 1}),
    "an epoch falls in a response": ([begun(4), begun(3, expected=(7, 4))], {"26-responses": 1}),
    "another producer id begins with epoch 0": ([begun(4), begun(0, producer=8)], {}),
    # ---- fenced producers
    "a request with the newest epoch": ([begun(0), begun(1), added(1)], {}),
    "a request of a fenced producer is refused": ([begun(0), begun(1), added(0, FENCED)], {}),
    "a request of a fenced producer is accepted": ([begun(0), begun(1), added(0)], {"27": 1}),
    "an EndTxn repeats the epoch that it raised": ([begun(0), ended(COMMIT, 0, returned=1), ended(COMMIT, 0, returned=1)], {}),
    "an old epoch adds partitions after an EndTxn raised it": ([begun(0), ended(COMMIT, 0, returned=1), added(0)], {"27": 1}),
    "a fenced producer ends a transaction": ([begun(0), begun(1), ended(COMMIT, 0)], {"27": 1}),
    "a fenced producer writes": ([begun(0), begun(1), produced(0)], {"27": 1}),
    "a broker before 3.8 accepts a fenced producer where it is unknown": ([begun(0), begun(1), produced(0, api_version=9)], {}),
    # ---- markers
    "a marker is what EndTxn decided": ([produced(0), ended(COMMIT), fetched(B0, (1, 7, 0, COMMIT))], {}),
    "a marker is not what EndTxn decided": ([produced(0), ended(COMMIT), fetched(B0, (1, 7, 0, ABORT))], {"28": 1}),
    "a transaction timed out after a refused EndTxn": (
        [produced(0), ended(COMMIT, error=FENCED), fetched(B0, (1, 7, 1, ABORT))],
        {},
    ),
    "an EndTxn is repeated until the coordinator is free": (
        [produced(0), ended(COMMIT, error=CONCURRENT), ended(COMMIT), fetched(B0, (1, 7, 0, COMMIT))],
        {},
    ),
    "an EndTxn without a response, and the next transaction": (
        [produced(0), ended(COMMIT, error=None), produced(2, sequence=1), ended(ABORT),
         fetched(B0, (1, 7, 0, COMMIT), (2, 7, 0, 1), (3, 7, 0, ABORT))],
        {},
    ),
    "an EndTxn with an error that may have had an effect": (
        [produced(0), ended(COMMIT, error=UNAVAILABLE), ended(ABORT), fetched(B0, (1, 7, 0, COMMIT))],
        {},
    ),
    "two transactions share a marker": (
        [produced(0), ended(COMMIT), produced(1, sequence=1), ended(COMMIT), fetched(B0, B1, (2, 7, 0, COMMIT))],
        {"28": 1},
    ),
    "an admin aborts a transaction that hangs": (
        [produced(0), {"api": "WriteTxnMarkers", "producer_id": 7, "producer_epoch": 0, "topic": "t", "partition": 0, "committed": False, "error": 0},
         ended(COMMIT), fetched(B0, (1, 7, 0, ABORT))],
        {},
    ),
}  # fmt: skip


def rows_of(run: str, steps: list[Row]) -> Iterator[tuple[str, Row]]:
    """Yield (table, row) of requests that follow each other."""
    for seq, step in enumerate(steps, 1):
        fields = dict(step)
        batches = fields.pop("batches", ())
        times = {"begun_ns": seq * NS, "ready_ns": seq * NS + 1}
        row = {"run": run, "seq": seq, "broker": 0, "position": 0, **times}
        yield "requests", row | {"api": step["api"], "api_version": step.get("api_version", 11), "replica_id": -1,
                                 "received_ns": seq * NS}  # fmt: skip
        place = {"topic": "t", "partition": 0}
        if batches:
            end = {"replica_id": -1, "error": 0, "next_offset": batches[-1][0] + 1}
            yield "partitions", row | place | end | fields
            for offset, producer, epoch, last in batches:
                is_marker = last is None or isinstance(last, bool)
                producer_columns = {
                    "producer_id": producer,
                    "producer_epoch": epoch,
                    "base_sequence": -1 if is_marker else last,
                }
                kind = {"transactional": True, "control": is_marker, "committed": last if is_marker else None, "crc": 1}
                batch_columns = {"base_offset": offset, "last_offset": offset, "count": 1, "acks": -1}
                yield "batches", row | place | {"api": step["api"]} | producer_columns | kind | batch_columns
        elif step["api"] != "DeleteTopics":
            yield "transactions", row | fields


@pytest.fixture(scope="module")
def broken(spark: Any) -> dict[str, dict[str, int]]:
    """Return the number of broken rows of each rule by case, without rules that hold."""
    return broken_rows(spark, RULES, {run: rows_of(run, steps) for run, (steps, _) in CASES.items()})


@pytest.mark.parametrize("case", CASES)
def test_transaction_audit_reports_faulty_traces_but_not_similar_correct_traces(
    broken: dict[str, dict[str, int]], case: str
) -> None:
    assert broken[case] == CASES[case][1]
