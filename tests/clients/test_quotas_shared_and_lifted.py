"""Two clients of one user share its quota (Q-8) and run at full speed within a second after the quota is removed (Q-10)."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

import pytest

from kafkaproto.broker.observe.journal import Journal
from kafkaproto.testing import TestCluster, cluster
from tests.support.clients import KAFKA_PYTHON_WARNINGS
from tests.support.clients.paced import CONSUMERS, PRODUCERS, Client, Job, Run, value
from tests.support.clients.replay import FETCH, PRODUCE, bytes_within, charges, replayed, wrong

pytestmark = [
    pytest.mark.clients,
    pytest.mark.slow,
    pytest.mark.timeout(120),
    pytest.mark.filterwarnings(KAFKA_PYTHON_WARNINGS, "ignore:unclosed <socket:ResourceWarning"),
]
QUOTA = 200_000
REQUEST_BYTES = 10_000
SAMPLES = 3
USER = "ANONYMOUS"
LIMITED_MS = 3_500
"""The time under the quota: two seconds' worth are not throttled, then each client waits."""
LIFTED_MS = 1_000
SECONDS = 30.0
"""The longest run; clients are stopped when each has been unthrottled for long enough."""
FREE_MS = 1_000
LOOK_MS = 100
FULL_SPEED = 3
"""Full speed as a multiple of the quota, far below the speed of an unthrottled client even on a busy machine."""


class Free:
    """A check whether each client has been unthrottled for FREE_MS. It runs only occasionally, because the journal grows fast at full speed."""

    def __init__(self, api: str, names: Sequence[str], lifted_ms: int) -> None:
        self._api, self._names, self._lifted_ms = api, names, lifted_ms
        self._looked_ms = lifted_ms

    def __call__(self, journal: Journal) -> bool:
        newest_ms = next(journal.latest(1)).at_ms
        if newest_ms - self._looked_ms < LOOK_MS:
            return False
        self._looked_ms = newest_ms
        firsts_ms: dict[str | None, int] = {}
        for request in journal.requests(self._api):
            if request.at_ms > self._lifted_ms:
                firsts_ms.setdefault(request.client_id, request.at_ms)
        return all(newest_ms - firsts_ms.get(name, newest_ms) > FREE_MS for name in self._names)


def run(kafka: TestCluster, pair: dict[str, Client], topics: dict[str, str], api: str, key: str) -> list[Run]:
    """Run both clients under the user's quota for LIMITED_MS, and without the quota afterwards."""
    kafka.set_quota(user=USER, **{key: QUOTA})
    stop = threading.Event()
    jobs = [
        (client, Job(kafka.bootstrap, name, topics[name], REQUEST_BYTES, SECONDS, stop))
        for name, client in pair.items()
    ]
    names = list(pair)
    with ThreadPoolExecutor(len(jobs)) as pool:
        runs = [pool.submit(client, job) for client, job in jobs]

        def limited_for_long_enough(journal: Journal) -> bool:
            requests = journal.requests(api)
            return (
                len({charge.client_id for charge in requests}) == 2
                and requests[-1].at_ms - requests[0].at_ms >= LIMITED_MS
            )

        kafka.wait_for(limited_for_long_enough, 30)
        before_ms = kafka.clock.now_ms()
        kafka.set_quota(user=USER, **{key: None})
        lifted_ms = kafka.clock.now_ms()
        # At full speed the journal soon drops old entries, so it is read now, and again as soon as there are enough.
        limited = [charge for charge in charges(kafka, api, names) if charge.at_ms < before_ms]
        shares = [
            sum(c.value for c in charges(kafka, api, [name]) if c.given and c.at_ms < before_ms) for name in names
        ]
        kafka.wait_for(Free(api, names, lifted_ms), 30)
        freed = {name: [charge for charge in charges(kafka, api, [name]) if charge.at_ms > lifted_ms] for name in names}
        stop.set()
        finished_runs = [charge.result() for charge in runs]

    assert {charge.reason.user for charge in kafka.journal.throttles(api)} == {USER}
    assert wrong(limited, QUOTA, SAMPLES) == []
    charged, possible = bytes_within(limited, LIMITED_MS), bytes_within(replayed(limited, QUOTA, SAMPLES), LIMITED_MS)
    assert 0.97 * possible <= charged <= 1.03 * possible
    assert min(shares) > 0.1 * sum(shares)

    for name, mine in freed.items():
        assert {charge.throttle_ms for charge in mine} == {0}
        # Neither this broker nor Kafka shortens a running mute.
        muted_ms = max(charge.ended_ms for charge in kafka.journal.throttles(api, name) if charge.ended_ms is not None)
        assert mine[0].at_ms <= max(lifted_ms, muted_ms) + LIFTED_MS
        assert bytes_within(mine, FREE_MS) > FULL_SPEED * QUOTA
    return finished_runs


@pytest.mark.rule("Q-8", "Q-10")
def test_two_producers_of_one_user_share_the_user_quota_until_it_is_removed() -> None:
    pair = {name: PRODUCERS[name] for name in ("confluent-kafka", "kafka-python")}
    with cluster(1, dict.fromkeys(pair, 1), {"quota.window.num": SAMPLES}) as kafka:
        runs = run(kafka, pair, {name: name for name in pair}, PRODUCE, "producer_byte_rate")
        for name, client_run in zip(pair, runs, strict=True):
            assert [record.value[:10] for record in kafka.records(name)] == [value(n, 10) for n in client_run.numbers]
            assert client_run.numbers == list(range(len(client_run.numbers)))


@pytest.mark.rule("Q-8", "Q-10")
def test_two_consumers_of_one_user_share_the_user_quota_until_it_is_removed() -> None:
    pair = {name: CONSUMERS[name] for name in ("confluent-kafka", "aiokafka")}
    with cluster(1, {"t": 1}, {"quota.window.num": SAMPLES}) as kafka:
        for number in range(3000):
            kafka.produce("t", [value(number, REQUEST_BYTES)])
        runs = run(kafka, pair, dict.fromkeys(pair, "t"), FETCH, "consumer_byte_rate")
        for client_run in runs:
            assert client_run.numbers == list(range(len(client_run.numbers)))
