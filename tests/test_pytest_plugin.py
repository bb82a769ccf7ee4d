"""The plugin as other people's test suites have it: in processes of their own, with nothing of this repository on the path."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)


@pytest.fixture
def outside(pytester: pytest.Pytester) -> pytest.Pytester:
    """A suite that treats warnings as errors, as ours does."""
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:asyncio\nfilterwarnings = error\n")
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-q", *arguments)


def test_kafka_cluster_is_fresh_for_each_test(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        seen = []

        def test_one(kafka_cluster):
            kafka_cluster.create_topic("orders", 2)
            kafka_cluster.produce("orders", ["a"])
            assert [r.value for r in kafka_cluster.records("orders")] == [b"a"]
            seen.append(kafka_cluster.bootstrap)

        def test_two(kafka_cluster):
            assert "orders" not in kafka_cluster.state.controller.image.topics
            assert kafka_cluster.bootstrap != seen[0]
        """
    )
    run(outside).assert_outcomes(passed=2)


def test_the_marker_says_how_kafka_cluster_is_made(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import pytest

        @pytest.mark.kafka(brokers=3, topics={"t": 4}, config={"1.broker.rack": "b"}, clock="manual", semantics="kafka")
        def test_marked(kafka_cluster):
            assert len(kafka_cluster.bootstrap_servers) == 3
            assert kafka_cluster.partition("t", 3).leader in (0, 1, 2)
            assert kafka_cluster.state.nodes[1].config["broker.rack"] == "b"
            assert kafka_cluster.state.semantics == "kafka"
            before = kafka_cluster.clock.now_ms()
            kafka_cluster.clock.advance(30_000)
            assert kafka_cluster.clock.now_ms() == before + 30_000
        """
    )
    run(outside, "--strict-markers").assert_outcomes(passed=1)


def test_kafka_broker_is_one_for_the_session_and_reset_for_each_test(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import socket, time

        seen = {}

        def connect(address):
            host, port = address.split(":")
            return socket.create_connection((host, int(port)), 5)

        def test_one(kafka_broker):
            seen["address"] = kafka_broker.bootstrap
            seen["connection"] = connect(kafka_broker.bootstrap)
            kafka_broker.create_topic("orders")
            kafka_broker.produce("orders", ["a"])
            kafka_broker.set_quota(client_id="etl", producer_byte_rate=1)
            kafka_broker.clock.advance(3_600_000)

        def test_two(kafka_broker):
            assert kafka_broker.bootstrap == seen["address"]
            assert seen["connection"].recv(1) == b""   # what was connected before is closed
            seen["connection"].close()
            assert list(kafka_broker.state.controller.image.topics) == []
            assert kafka_broker.state.quota_store.describe([], strict=False) == []
            assert kafka_broker.journal.requests() == []
            assert abs(kafka_broker.clock.now_ms() - time.time() * 1000) < 60_000
            connect(kafka_broker.bootstrap).close()
        """
    )
    run(outside).assert_outcomes(passed=2)


def test_each_xdist_worker_has_a_broker_of_its_own(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import os, pathlib, pytest

        @pytest.mark.parametrize("number", range(4))
        def test_own(kafka_broker, number, request):
            page = pathlib.Path(__file__).with_name("seen-" + os.environ["PYTEST_XDIST_WORKER"])
            page.write_text(kafka_broker.bootstrap)
        """
    )
    run(outside, "-n", "2", "--dist", "each").assert_outcomes(passed=8)
    addresses = [page.read_text() for page in outside.path.glob("seen-*")]
    assert len(addresses) == len(set(addresses)) == 2


def test_a_suite_that_uses_no_fixture_never_imports_the_broker(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import sys

        def test_nothing():
            ours = [name for name in sys.modules if name.split(".")[0] in ("kafkaproto", "construct")]
            assert sorted(ours) == ["kafkaproto", "kafkaproto.pytest_plugin"]
        """
    )
    run(outside).assert_outcomes(passed=1)


def test_a_suite_with_a_package_named_broker_can_use_the_fixtures(outside: pytest.Pytester) -> None:
    outside.mkpydir("broker")
    outside.makepyfile(
        """
        import broker  # the suite's own

        def test_both(kafka_cluster):
            assert kafka_cluster.bootstrap
            assert "kafkaproto" not in broker.__file__
        """
    )
    run(outside).assert_outcomes(passed=1)


def test_both_fixtures_are_listed_with_what_they_are(outside: pytest.Pytester) -> None:
    result = run(outside, "--fixtures")
    result.stdout.fnmatch_lines(
        ["kafka_cluster*", "*fresh cluster for this test*", "kafka_broker*", "*session's one broker*"]
    )
    result = run(outside, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.kafka(*"])
