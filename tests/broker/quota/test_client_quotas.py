"""Client quotas: entities, precedence and use (Q-1, Q-8 to Q-10, Q-17)."""

from __future__ import annotations

import pytest

from kafkaproto.broker.quota.client_quotas import INT32_MAX, ClientQuotas
from kafkaproto.broker.quota.entities import DEFAULT, QuotaEntity
from kafkaproto.broker.quota.precedence import Binding, Levels, Semantics, resolve
from kafkaproto.broker.quota.sensors import MOST_KNOWN_CLIENTS, BoundClient, Sensor
from kafkaproto.broker.quota.store import ClientQuotaStore
from kafkaproto.broker.runtime.timers import Timers
from kafkaproto.broker.testing.memory import VirtualCluster
from tests.support.memory import Living
from tests.support.wire import limit

PRODUCE, CONSUME, REQUEST = "producer_byte_rate", "consumer_byte_rate", "request_percentage"


def entity(user: str | None = None, client_id: str | None = None) -> QuotaEntity:
    return QuotaEntity(user=user, client_id=client_id)


class Cluster:
    """A quota store and the client quotas of one broker."""

    def __init__(self, semantics: Semantics = "kip") -> None:
        self.store = ClientQuotaStore(self._take_over)
        self.timers = Timers()
        self.quotas = ClientQuotas(self.store, semantics, timers=self.timers)
        self.fetch = self.quotas.fetch
        self.others: list[ClientQuotas] = []

    def _take_over(self, entity: QuotaEntity, key: str, value: float | None) -> None:
        for quotas in (self.quotas, *self.others):
            quotas.quota_changed(entity, key, value)

    def set(self, value: float | None, user: str | None = None, client_id: str | None = None) -> None:
        self.store.set(entity(user, client_id), CONSUME, value)

    def check(self, user: str, client_id: str, bound: float, value: int, now_ms: int, throttled: bool) -> None:
        assert self.fetch.bound(user, client_id) == bound
        assert (self.fetch.record(user, client_id, value * 11, now_ms) > 0) == throttled


@pytest.mark.rule("Q-8")
def test_client_gets_the_most_specific_quota_defined_for_its_user_and_client_id() -> None:
    """The precedence table of Kafka's ClientQuotaManagerTest.testQuotaConfigPrecedence."""
    c = Cluster()
    for user, client_id, value in [
        (DEFAULT, None, 1000),
        (None, DEFAULT, 2000),
        (DEFAULT, DEFAULT, 3000),
        ("userA", None, 4000),
        ("userA", "client1", 5000),
        ("userB", None, 6000),
        ("userB", "client1", 7000),
        ("userB", DEFAULT, 8000),
        (None, "client1", 9000),
        ("userC", None, 10000),
    ]:
        c.set(value, user, client_id)
    c.check("userA", "client1", 5000, 4500, 0, False)  # its own pair, not the user's 4000
    c.check("userA", "client2", 4000, 4500, 0, True)  # the user's
    c.check("userA", "client3", 4000, 0, 0, True)  # shared with client2
    c.check("userA", "client1", 5000, 0, 0, False)  # not affected by them

    c.check("userB", "client1", 7000, 8000, 0, True)
    c.check("userB", "client2", 8000, 7000, 0, False)  # default client of the user: exclusive per client
    c.check("userB", "client3", 8000, 7000, 0, False)

    c.check("userD", "client1", 3000, 3500, 0, True)  # (default user, default client)
    c.check("userD", "client2", 3000, 2500, 0, False)
    c.check("userE", "client1", 3000, 2500, 0, False)

    c.set(None, DEFAULT, DEFAULT)
    c.check("userD", "client1", 1000, 0, 0, False)  # fresh tags (userD, "")
    c.check("userE", "client4", 1000, 1500, 0, True)
    c.check("userF", "client4", 1000, 800, 0, False)  # the default user's quota is exclusive per user
    c.check("userF", "client5", 1000, 800, 0, True)  # and shared by the user's clients

    c.set(None, DEFAULT, None)
    c.check("userF", "client4", 2000, 0, 0, False)
    c.check("userF", "client5", 2000, 0, 0, False)
    c.check("userF", "client5", 2000, 2500, 0, True)
    c.check("userG", "client5", 2000, 0, 0, True)  # the client's, shared by users

    c.set(8000, DEFAULT, DEFAULT)
    c.set(10000, DEFAULT, "client7")
    c.check("userJ", "client6", 8000, 8500, 0, True)
    c.check("userJ", "client7", 10000, 9000, 0, False)
    c.check("userA", "client7", 4000, 0, 0, True)  # a user's own quota stands above (default user, client)

    c.set(20000, DEFAULT, None)
    assert c.fetch.bound("userJ", "client6") == 8000  # (default, default) stands above the default user


ALL = Levels.CLIENT_ID | Levels.USER | Levels.USER_AND_CLIENT_ID


@pytest.mark.rule("Q-8")
@pytest.mark.parametrize(
    ("configured", "expected"),
    [
        (entity("u", "c"), Binding("u", "c", 5, entity("u", "c"))),
        (entity("u", DEFAULT), Binding("u", "c", 5, entity("u", DEFAULT))),
        (entity("u"), Binding("u", "", 5, entity("u"))),
        (entity(DEFAULT, "c"), Binding("u", "c", 5, entity(DEFAULT, "c"))),
        (entity(DEFAULT, DEFAULT), Binding("u", "c", 5, entity(DEFAULT, DEFAULT))),
        (entity(DEFAULT), Binding("u", "", 5, entity(DEFAULT))),
        (entity(None, "c"), Binding("", "c", 5, entity(None, "c"))),
        (entity(None, DEFAULT), Binding("", "c", 5, entity(None, DEFAULT))),
    ],
)
def test_quota_defined_at_any_of_the_eight_levels_is_the_quota_of_a_matching_client(
    configured: QuotaEntity, expected: Binding
) -> None:
    for semantics in ("kip", "kafka"):
        values = {configured: 5.0, entity("other"): 1.0, entity(None, "other"): 1.0, entity("u", "other"): 1.0}
        assert resolve(values.get, ALL, "u", "c", semantics) == expected


@pytest.mark.rule("Q-8")
@pytest.mark.parametrize(
    ("levels", "tags"),
    [
        (Levels.CLIENT_ID, ("", "c")),
        (Levels.USER, ("u", "")),
        (Levels.USER_AND_CLIENT_ID, ("u", "c")),
        (ALL, ("", "c")),
    ],
)
def test_metric_tags_of_a_client_without_quota_follow_the_levels_of_existing_quotas(
    levels: Levels, tags: tuple[str, str]
) -> None:
    none: dict[QuotaEntity, float] = {}
    assert resolve(none.get, levels, "u", "c", "kip") == Binding(*tags)


@pytest.mark.rule("D9")
def test_clients_with_empty_id_share_default_client_quota_if_broker_follows_kips() -> None:
    c = Cluster("kip")
    c.set(1000, None, DEFAULT)
    assert c.fetch.record("u", "", 15000, 0) == 5000
    assert c.fetch.record("other", None, 0, 0) == 5000
    assert c.fetch.record("u", "named", 0, 0) == 0


@pytest.mark.rule("Q-9", "D9")
def test_client_with_empty_id_gets_no_default_quota_if_broker_follows_kafka_code() -> None:
    c = Cluster("kafka")
    c.set(1000, None, DEFAULT)
    assert c.fetch.record("u", "", 10**9, 0) == 0
    assert c.fetch.record("u", None, 10**9, 0) == 0
    assert c.fetch.record("u", "named", 15000, 0) == 5000


@pytest.mark.rule("Q-9")
def test_client_with_empty_id_gets_the_user_quota_if_broker_follows_kafka_code() -> None:
    values = {entity("u", DEFAULT): 5.0, entity("u"): 7.0}
    assert resolve(values.get, ALL, "u", "", "kafka") == Binding("u", "", 7, entity("u"))
    assert resolve(values.get, ALL, "u", "", "kip") == Binding("u", "", 5, entity("u", DEFAULT))


@pytest.mark.rule("Q-10")
def test_throttle_after_a_quota_change_is_computed_from_bytes_sent_before_the_change() -> None:
    """Kafka's ClientQuotaManagerTest.testQuotaParsing."""
    c = Cluster()
    c.set(2000, None, "p1")
    c.set(4000, None, DEFAULT)
    assert c.fetch.record("ANONYMOUS", "p1", 27500, 0) > 0
    c.set(3000, None, "p1")
    assert c.fetch.record("ANONYMOUS", "p1", 0, 0) == 0
    c.set(500, None, "p1")
    assert c.fetch.record("ANONYMOUS", "p1", 0, 0) > 0
    c.set(None, None, "p1")
    assert c.fetch.record("ANONYMOUS", "p1", 11000, 0) == 0
    assert c.fetch.bound("ANONYMOUS", "p1") == 4000


@pytest.mark.rule("Q-1")
def test_client_usage_is_not_recorded_for_quota_types_that_were_never_configured() -> None:
    c = Cluster()
    assert not c.fetch.enabled
    assert c.fetch.record("u", "c", 10**9, 0) == 0
    c.store.set(entity("u"), PRODUCE, 1)
    assert c.quotas.produce.enabled and not c.fetch.enabled
    c.set(1000, None, "c")
    assert c.fetch.record("u", "c", 0, 0) == 0
    c.set(None, None, "c")
    # Permanently enabled: a client without a quota is still measured.
    assert c.fetch.enabled
    c.fetch.record("u", "c", 500, 0)
    assert [(m.rate, m.bound) for m in c.fetch.metrics(0)] == [(50.0, None)]


@pytest.mark.rule("Q-0")
def test_each_broker_measures_client_quotas_separately() -> None:
    c = Cluster()
    other = ClientQuotas(c.store, "kip")
    c.others.append(other)
    c.set(1000, "u")
    assert c.fetch.record("u", "c", 15000, 0) == 5000
    assert other.fetch.record("u", "c", 0, 0) == 0
    late = ClientQuotas(c.store, "kip")
    assert late.fetch.enabled and late.fetch.bound("u", "c") == 1000


@pytest.mark.rule("Q-1")
def test_quota_changes_after_a_restart_do_not_reach_the_old_quotas_of_the_broker() -> None:
    cluster = VirtualCluster()
    node = cluster.state.nodes[0]
    stopped = node.quotas
    cluster.state.stop_broker(0)
    cluster.state.start_broker(0)
    limit(cluster, consumer_byte_rate=1000.0)
    assert not stopped.fetch.enabled and node.quotas.fetch.enabled


@pytest.mark.rule("F-4")
def test_fetch_response_limit_is_byte_quota_times_quota_window_and_at_most_int32_max() -> None:
    c = Cluster()
    assert c.fetch.max_bytes_in_window("u", "c") == INT32_MAX
    c.set(1000, "u")
    assert c.fetch.max_bytes_in_window("u", "c") == 10_000
    assert c.fetch.max_bytes_in_window("nobody", "c") == INT32_MAX
    c.set(2.0**60, "u")
    assert c.fetch.max_bytes_in_window("u", "c") == INT32_MAX


@pytest.mark.rule("Q-6")
def test_request_time_quota_throttles_for_at_most_the_length_of_a_quota_window() -> None:
    c = Cluster()
    for key in (PRODUCE, REQUEST):
        c.store.set(entity("u"), key, 1)
    assert c.quotas.produce.record("u", "c", 10**12, 0) == INT32_MAX
    assert c.quotas.produce.record("v", "c", 10**12, 0) == 0
    assert c.quotas.request.record("u", "c", 1000, 0) == 1000


@pytest.mark.rule("Q-6")
def test_request_quota_of_the_smallest_positive_float_throttles_for_1000_ms() -> None:
    c = Cluster()
    c.store.set(entity("u"), REQUEST, 5e-324)
    assert c.quotas.request.record("u", "c", 0.4, 0) == 1000


@pytest.mark.rule("Q-17")
def test_reason_of_a_throttle_and_quota_metrics_contain_measured_rate_and_quota() -> None:
    c = Cluster()
    c.set(1000, "u")
    wait_ms = c.fetch.record("u", "c", 15000, 7)
    reason = c.fetch.throttled("u", "c", 15000, wait_ms, 7)
    assert (reason.quota, reason.user, reason.client_id, reason.entity) == ("Fetch", "u", "", entity("u"))
    assert (reason.bound, reason.value, reason.rate, reason.window_ms) == (1000, 15000, 1500, 10_000)
    assert reason.throttle_ms == 5000
    (metrics,) = c.quotas.metrics(7)
    assert (metrics.quota, metrics.rate, metrics.bound, metrics.last_throttle_ms) == ("Fetch", 1500, 1000, 5000)
    assert metrics.mean_throttle_ms == 5000


@pytest.mark.rule("Q-10")
def test_quota_sensors_idle_for_an_hour_are_removed() -> None:
    c, sensors = Cluster(), Living(Sensor)
    c.set(1000, None, DEFAULT)
    for n in range(20):
        c.fetch.record("u", f"client-{n}", 1, 0)
    c.fetch.record("u", "client-0", 1, 1)
    assert len(list(c.fetch.metrics(3_600_000))) == 20
    assert [m.client_id for m in c.fetch.metrics(3_600_001)] == ["client-0"]
    c.timers.run_due(3_600_000)
    assert sensors.count() == 20
    c.timers.run_due(3_600_001)
    assert sensors.count() == 1


@pytest.mark.rule("Q-10")
def test_quota_usage_of_a_client_is_measured_from_zero_after_an_idle_hour() -> None:
    c = Cluster()
    c.set(1000, None, DEFAULT)
    wait_ms = c.fetch.record("u", "c", 15_000, 0)
    c.fetch.throttled("u", "c", 15_000, wait_ms, 0)
    c.timers.run_due(3_600_001)
    c.fetch.record("u", "c", 500, 3_600_001)
    (metrics,) = c.fetch.metrics(3_600_001)
    assert (metrics.rate, metrics.last_throttle_ms) == (50, None)


@pytest.mark.rule("Q-10")
def test_check_every_30_s_removes_idle_quota_sensors_and_keeps_sensors_in_use() -> None:
    c, sensors = Cluster(), Living(Sensor)
    c.set(1000, None, DEFAULT)
    for n in range(100):
        c.fetch.record("u", f"client-{n}", 1, n)
    rounds, now_ms = 0, 0
    while sensors.count() > 1:
        now_ms = c.timers.next_deadline_ms() or 0
        c.fetch.record("u", "client-0", 1, now_ms)
        c.timers.run_due(now_ms)
        rounds += 1
    assert rounds == 2  # the first sensor to expire, and the 98 that were used within the half minute after it
    assert now_ms == 3_600_002 - 1 + 30_000
    c.quotas.close()
    assert c.timers.next_deadline_ms() is None


@pytest.mark.rule("Q-10")
def test_broker_remembers_at_most_65536_of_100000_client_ids_that_share_a_user_quota() -> None:
    c, sensors, clients = Cluster(), Living(Sensor), Living(BoundClient)
    c.set(1000, "u")
    for n in range(100_000):
        c.fetch.record("u", f"client-{n}", 0, 0)
    assert 0 < clients.count() <= MOST_KNOWN_CLIENTS
    assert sensors.count() == 1
    c.timers.run_due(3_600_001)
    assert (clients.count(), sensors.count()) == (0, 0)


@pytest.mark.rule("Q-17")
def test_quota_metrics_show_a_changed_quota_before_the_next_request() -> None:
    c = Cluster()
    c.set(1000, None, DEFAULT)
    c.fetch.record("u", "c", 500, 0)
    c.set(2000, None, "c")
    assert [m.bound for m in c.fetch.metrics(0)] == [2000]


def test_recording_a_throttle_for_a_client_without_quota_raises_an_error() -> None:
    c = Cluster()
    c.set(1000, "u")
    with pytest.raises(ValueError, match="has no Fetch quota"):
        c.fetch.throttled("other", "c", 1, 1, 0)
