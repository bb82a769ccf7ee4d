"""The pytest plugin in other test suites: in separate processes, without this repository on the path."""

from __future__ import annotations

import textwrap

import pytest

pytest_plugins = ("pytester",)


@pytest.fixture
def outside(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a test suite that treats warnings as errors, as this project does."""
    pytester.makeini("[pytest]\naddopts = -p no:cacheprovider -p no:asyncio\nfilterwarnings = error\n")
    return pytester


def run(suite: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return suite.runpytest_subprocess("-q", *arguments)


def test_kafka_cluster_fixture_starts_a_new_cluster_for_each_test(outside: pytest.Pytester) -> None:
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


def test_kafka_marker_configures_the_kafka_cluster_fixture(outside: pytest.Pytester) -> None:
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


def test_kafka_broker_fixture_is_shared_by_the_session_and_reset_for_each_test(outside: pytest.Pytester) -> None:
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


def test_each_pytest_xdist_worker_starts_its_own_kafka_broker(outside: pytest.Pytester) -> None:
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


def test_pytest_plugin_imports_broker_handlers_before_the_first_cluster_test(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import sys

        def test_before_any_cluster():
            assert "kafkaproto.broker.handlers.join_group" in sys.modules

        def test_with_a_cluster(kafka_cluster): ...
        """
    )
    run(outside).assert_outcomes(passed=2)


def test_pytest_plugin_does_not_import_the_broker_if_no_fixture_is_used(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import sys

        def test_nothing():
            ours = [name for name in sys.modules if name.split(".")[0] in ("kafkaproto", "construct")]
            assert sorted(ours) == ["kafkaproto", "kafkaproto.pytest_plugin"]
        """
    )
    run(outside).assert_outcomes(passed=1)


def test_pytest_fixtures_start_brokers_in_a_suite_with_a_package_named_broker(outside: pytest.Pytester) -> None:
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


def test_pytest_lists_all_fixtures_and_markers_with_descriptions(outside: pytest.Pytester) -> None:
    result = run(outside, "--fixtures")
    for lines in (
        ["kafka_cluster*", "*fresh cluster for this test*"],
        ["kafka_broker*", "*broker that all tests of the session share*"],
        ["kafka_async_cluster*", "*fresh cluster in the loop of this test*"],
    ):
        result.stdout.fnmatch_lines(lines)
    result = run(outside, "--markers")
    result.stdout.fnmatch_lines(["@pytest.mark.kafka(*"])


# ---- asynchronous tests --------------------------------------------------------------------------------------------------------------

ASYNCHRONOUS = """
    import asyncio, pytest
    {imports}

    {mark}
    @pytest.mark.kafka(brokers=2, topics={{"t": 4}}, clock="manual")
    async def test_in_its_own_loop(kafka_async_cluster):
        assert kafka_async_cluster.topics() == {{"t": 4}}
        assert len(kafka_async_cluster.bootstrap_servers) == 2
        before = kafka_async_cluster.clock.now_ms()
        await kafka_async_cluster.clock.advance(30_000)
        assert kafka_async_cluster.clock.now_ms() == before + 30_000
        reader, writer = await asyncio.open_connection(*kafka_async_cluster.bootstrap_servers[0].split(":"))
        writer.close()
        await writer.wait_closed()
"""


@pytest.mark.parametrize(
    ("plugin", "mark", "imports"),
    [
        ("pytest_asyncio.plugin", "@pytest.mark.asyncio", ""),
        (
            "anyio.pytest_plugin",
            "@pytest.mark.anyio",
            "@pytest.fixture\n    def anyio_backend():\n        return 'asyncio'",
        ),
    ],
    ids=["pytest-asyncio", "anyio"],
)
def test_kafka_async_cluster_fixture_runs_in_the_event_loop_of_its_test(
    pytester: pytest.Pytester, plugin: str, mark: str, imports: str
) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\n")
    pytester.makepyfile(ASYNCHRONOUS.format(mark=mark, imports=imports))
    disabled = "no:asyncio" if plugin.startswith("anyio") else "no:anyio"
    run(pytester, "-p", disabled, "-p", "no:cacheprovider").assert_outcomes(passed=1)


WITH_A_CLIENT = """
    import asyncio, pytest
    from aiokafka import AIOKafkaProducer

    async def produce(c):
        producer = AIOKafkaProducer(bootstrap_servers=c.bootstrap)
        await asyncio.wait_for(producer.start(), 10)
        try:
            return (await asyncio.wait_for(producer.send_and_wait("orders", b"a"), 10)).offset
        finally:
            await producer.stop()
"""


@pytest.mark.parametrize(
    ("loop_scope", "chosen_by"),
    [
        *((scope, "marker") for scope in ("function", "class", "module", "package", "session")),
        ("module", "configuration"),
    ],
)
def test_kafka_async_cluster_runs_in_the_event_loop_of_its_test_for_any_loop_scope(
    pytester: pytest.Pytester, loop_scope: str, chosen_by: str
) -> None:
    by_marker = chosen_by == "marker"
    pytester.makeini(
        "[pytest]\nasyncio_default_fixture_loop_scope = function\ntimeout = 30\n"
        + ("" if by_marker else f"asyncio_default_test_loop_scope = {loop_scope}\n")
    )
    pytester.mkpydir("suite").joinpath("test_clients.py").write_text(
        textwrap.dedent(
            WITH_A_CLIENT
            + f"""
    pytestmark = pytest.mark.asyncio{f"(loop_scope='{loop_scope}')" if by_marker else ""}

    class TestClients:
        async def test_first(self, kafka_async_cluster):
            assert await produce(kafka_async_cluster) == 0

        @pytest.mark.kafka(topics={{"orders": 1, "more": 2}})
        async def test_second(self, kafka_async_cluster):
            assert await produce(kafka_async_cluster) == 0
            assert kafka_async_cluster.topics() == {{"orders": 1, "more": 2}}
    """
        )
    )
    run(pytester, "-p", "no:cacheprovider").assert_outcomes(passed=2)


def test_async_fixture_that_uses_the_cluster_of_another_event_loop_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\ntimeout = 30\n")
    pytester.makepyfile(
        WITH_A_CLIENT
        + """
    import pytest_asyncio

    @pytest_asyncio.fixture
    async def elsewhere(kafka_async_cluster):
        return await produce(kafka_async_cluster)

    @pytest_asyncio.fixture(loop_scope="session")
    async def in_the_same(kafka_async_cluster):
        return await produce(kafka_async_cluster)

    @pytest.mark.asyncio(loop_scope="session")
    async def test_refused(elsewhere):
        pass

    @pytest.mark.asyncio(loop_scope="session")
    async def test_works(in_the_same):
        assert in_the_same == 0
    """
    )
    result = run(pytester, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, errors=1)
    result.stdout.fnmatch_lines(
        [
            '*fixture elsewhere runs in the function loop and kafka_async_cluster in the session loop*loop_scope="session"*'
        ]
    )


def test_async_cluster_can_be_used_in_its_own_event_loop_but_not_in_another_loop(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\ntimeout = 30\n")
    pytester.makepyfile(
        """
    import pytest, pytest_asyncio

    @pytest_asyncio.fixture
    async def elsewhere(kafka_async_cluster):
        yield 1

    @pytest.mark.asyncio(loop_scope="session")
    async def test_refused(elsewhere):
        pass

    @pytest.mark.asyncio(loop_scope="session")
    async def test_refused_too(elsewhere):
        pass

    @pytest.mark.asyncio
    async def test_works(elsewhere):
        assert elsewhere == 1
    """
    )
    result = run(pytester, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*elsewhere runs in the function loop*session loop of *::test_refused;*",
            "*elsewhere runs in the function loop*session loop of *::test_refused_too;*",
        ]
    )


def test_async_fixture_in_another_loop_fails_even_if_it_uses_the_cluster_indirectly(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\ntimeout = 30\n")
    pytester.makepyfile(
        """
    import pytest, pytest_asyncio

    @pytest.fixture
    def bootstrap(kafka_async_cluster):
        return kafka_async_cluster.bootstrap

    @pytest.fixture
    def address(bootstrap):
        return bootstrap

    @pytest_asyncio.fixture
    async def elsewhere(address):
        return 1

    @pytest_asyncio.fixture
    async def unrelated():
        return 2

    @pytest.mark.asyncio(loop_scope="session")
    async def test_refused(elsewhere):
        pass

    @pytest.fixture
    def indirectly(request):
        return request.getfixturevalue("elsewhere")

    @pytest.mark.asyncio(loop_scope="session")
    async def test_refused_if_requested_dynamically(indirectly):
        pass

    @pytest.mark.asyncio(loop_scope="session")
    async def test_works(address, unrelated):
        assert unrelated == 2
    """
    )
    result = run(pytester, "-p", "no:cacheprovider")
    result.assert_outcomes(passed=1, errors=2)
    result.stdout.fnmatch_lines(
        [
            "*fixture elsewhere runs in the function loop*session loop of *::test_refused;*",
            "*fixture elsewhere runs in the function loop*session loop of *::test_refused_if_requested_dynamically;*",
        ]
    )


def test_anyio_test_and_its_cluster_share_a_loop_even_if_pytest_asyncio_is_installed(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\ntimeout = 30\n")
    pytester.makepyfile(
        WITH_A_CLIENT
        + """
    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    @pytest.mark.anyio
    async def test_one(kafka_async_cluster):
        assert await produce(kafka_async_cluster) == 0
    """
    )
    run(pytester, "-p", "no:cacheprovider").assert_outcomes(passed=1)


def test_kafka_async_cluster_in_a_synchronous_test_under_anyio_is_an_error(outside: pytest.Pytester) -> None:
    outside.makepyfile("def test_one(kafka_async_cluster): pass")
    result = run(outside)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*kafka_async_cluster needs an asynchronous test*@pytest.mark.anyio*"])


def test_kafka_async_cluster_without_an_async_plugin_explains_what_to_install(
    outside: pytest.Pytester,
) -> None:
    outside.makepyfile("def test_one(kafka_async_cluster): pass")
    result = run(outside, "-p", "no:anyio")
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*pip install pytest-asyncio*"])


# ---- fixtures of other scopes --------------------------------------------------------------------------------------------------------


def test_cluster_fixture_can_be_defined_with_session_or_module_scope(outside: pytest.Pytester) -> None:
    outside.makeconftest(
        """
        from kafkaproto.testing import cluster_fixture

        everywhere = cluster_fixture("session", brokers=2)
        """
    )
    for name in ("one", "two"):
        outside.makepyfile(
            **{
                f"test_{name}": """
                from kafkaproto.testing import cluster_fixture

                orders = cluster_fixture("module", topics={"orders": 3})
                seen = []

                def test_first(orders, everywhere):
                    assert orders.topics() == {"orders": 3}
                    orders.produce("orders", ["a"])
                    seen.append(orders.bootstrap)
                    everywhere.create_topic("of-" + __name__)
                    assert len(everywhere.bootstrap_servers) == 2

                def test_second(orders, everywhere):
                    assert orders.bootstrap == seen[0] and len(orders.records("orders")) == 1
                    if __name__ == "test_two":
                        assert set(everywhere.topics()) == {"of-test_one", "of-test_two"}
                """
            }
        )
    run(outside).assert_outcomes(passed=4)


# ---- invalid markers ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fixture", "marker", "text"),
    [
        ("kafka_broker", "kafka(brokers=3)", "*no effect on the fixture kafka_broker*kafka_cluster*"),
        ("module_wide", "kafka(brokers=3)", "*no effect on the fixture module_wide*kafka_cluster*"),
        (
            "kafka_cluster",
            "kafka(relase='3.9')",
            "*marker kafka of *test_one*no option 'relase'; did you mean 'release'?*",
        ),
        ("kafka_cluster", "kafka(port=-1)", "*marker kafka of *test_one*port must be 0 to 65535*"),
        ("kafka_cluster", "kafka(config={'nope': 3})", '*marker kafka of *test_one*unknown broker setting "nope"*'),
        ("kafka_cluster", "kafka(topics={'a b': 1})", "*marker kafka of *test_one*Topic name 'a b' is illegal*"),
        (
            "kafka_cluster, kafka_broker",
            "kafka(brokers=3)",
            "*marker kafka of *test_one*no effect on the fixture kafka_broker*cluster_fixture*",
        ),
        (
            "own",
            "kafka(brokers=3)",
            "*marker kafka of *test_one*fixture own ignores the marker's arguments*kafka_cluster*",
        ),
    ],
)
def test_kafka_marker_that_is_invalid_or_has_no_effect_fails_only_the_marked_test(
    outside: pytest.Pytester, fixture: str, marker: str, text: str
) -> None:
    outside.makepyfile(
        f"""
        import pytest
        from kafkaproto.testing import cluster, cluster_fixture

        module_wide = cluster_fixture("module")

        @pytest.fixture
        def own():
            with cluster() as c:
                yield c

        @pytest.mark.{marker}
        def test_one({fixture}):
            pass

        def test_two({fixture}):
            pass
        """
    )
    result = run(outside)
    result.assert_outcomes(errors=1, passed=1)
    result.stdout.fnmatch_lines([text])
    assert "pytest_plugin.py" not in result.stdout.str()  # only the message is shown


@pytest.mark.parametrize("fixture", ["kafka_broker", "module_wide", "own", "of_module"])
@pytest.mark.parametrize("outcome", ["pass", "assert False"])
def test_marked_test_fails_if_it_uses_a_fixture_that_ignores_the_kafka_marker(
    outside: pytest.Pytester, fixture: str, outcome: str
) -> None:
    outside.makepyfile(
        f"""
        import pytest
        from kafkaproto.testing import cluster, cluster_fixture

        module_wide = cluster_fixture("module")

        @pytest.fixture
        def own():
            with cluster() as c:
                yield c

        @pytest.fixture(scope="module")
        def of_module():
            with cluster() as c:
                yield c

        def test_before(request):
            request.getfixturevalue("{fixture}")

        @pytest.mark.kafka(brokers=3)
        def test_one(request):
            request.getfixturevalue("{fixture}")
            {outcome}
        """
    )
    result = run(outside)
    result.assert_outcomes(failed=1, passed=1)
    result.stdout.fnmatch_lines([f"*marker kafka of *test_one: *the fixture {fixture}*use the fixture kafka_cluster*"])


def test_kafka_marker_applies_to_a_cluster_requested_with_getfixturevalue(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import pytest

        @pytest.fixture
        def chosen(request):
            return request.getfixturevalue("kafka_cluster")

        @pytest.mark.kafka(brokers=3)
        @pytest.mark.parametrize("name", ["kafka_cluster", "chosen"])
        def test_one(request, name):
            assert len(request.getfixturevalue(name).bootstrap_servers) == 3
        """
    )
    run(outside).assert_outcomes(passed=2)


@pytest.mark.parametrize("requested", ["orders", "request"])
def test_module_level_kafka_marker_with_a_module_scoped_cluster_is_an_error(
    outside: pytest.Pytester, requested: str
) -> None:
    outside.makepyfile(
        f"""
        import pytest
        from kafkaproto.testing import cluster_fixture

        pytestmark = pytest.mark.kafka(brokers=3)
        orders = cluster_fixture("module")

        @pytest.fixture(scope="module")
        def address(request):
            return request.getfixturevalue("orders").bootstrap

        def test_one({requested}, address):
            pass
        """
    )
    result = run(outside)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*marker kafka of *test_one*no effect on the fixture orders*"])


def test_kafka_marker_does_not_affect_a_fixture_that_starts_its_own_cluster(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import pytest
        from kafkaproto.testing import cluster

        @pytest.fixture
        def target():
            with cluster() as c:
                yield c

        @pytest.mark.kafka(brokers=2)
        def test_one(kafka_cluster, target):
            assert len(kafka_cluster.bootstrap_servers) == 2
            assert len(target.bootstrap_servers) == 1
        """
    )
    run(outside).assert_outcomes(passed=1)


# ---- the report of a failed test -------------------------------------------------------------------------------------------------------

REQUESTS = """
    from kafkaproto.messages.metadata import MetadataRequest, MetadataRequestTopic
    from kafkaproto.client import Client
    import socket

    def ask(c, client_id, topic):
        host, port = c.bootstrap_servers[0].split(":")
        with socket.create_connection((host, int(port)), 5) as sock:
            client = Client(client_id)
            sock.sendall(client.send(MetadataRequest([MetadataRequestTopic(name=topic)]), 9))
            while not list(client.receive(sock.recv(65536))):
                pass
"""


def test_pytest_output_of_a_failed_test_has_the_last_kafka_requests_of_each_client(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        REQUESTS
        + """
    import pytest

    @pytest.fixture
    def wrapped(kafka_cluster):
        return kafka_cluster

    def test_one_client(wrapped):
        ask(wrapped, "shop", "a b")
        assert not "one client"

    def test_two_clients(kafka_broker):
        ask(kafka_broker, "first", "t")
        ask(kafka_broker, "second", "t")
        assert not "two clients"

    def test_no_request(kafka_cluster):
        assert not "no request"

    def test_that_passes(kafka_cluster):
        ask(kafka_cluster, "unseen", "t")

    def test_without_a_cluster():
        assert not "without"
    """
    )
    result = run(outside)
    result.assert_outcomes(failed=4, passed=1)
    text = result.stdout.str()
    assert text.count("Kafka requests of") == 3
    assert "unseen" not in text
    result.stdout.fnmatch_lines(
        [
            "*Kafka requests of kafka_cluster*",
            "+0.* s broker 0 connection 1 shop: Metadata v9 a b INVALID_TOPIC_EXCEPTION (#1, *",
            "*Kafka requests of kafka_broker*",
            "+0.* first: Metadata v9 t*",
            "+0.* second: Metadata v9 t*",
            "client id first: 1 request",
            "  +0.* first: Metadata v9 t*",
            "client id second: 1 request",
            "*Kafka requests of kafka_cluster*",
            "(no requests)",
        ]
    )


def test_pytest_output_of_a_failed_fixture_setup_has_the_last_kafka_requests(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        REQUESTS
        + """
    import pytest

    @pytest.fixture
    def broken(kafka_cluster):
        ask(kafka_cluster, "shop", "t")
        raise RuntimeError("broken")

    def test_one(broken):
        pass
    """
    )
    result = run(outside)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["*Kafka requests of kafka_cluster*", "*shop: Metadata v9 t*"])


def test_pytest_output_of_a_failed_fixture_teardown_has_the_last_kafka_requests(pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\nasyncio_default_fixture_loop_scope = function\naddopts = -p no:cacheprovider\n")
    pytester.makepyfile(
        REQUESTS
        + """
    import pytest
    from kafkaproto.testing import cluster_fixture

    orders = cluster_fixture("module")

    @pytest.fixture
    def closing(kafka_cluster):
        yield
        ask(kafka_cluster, "first", "t")
        raise RuntimeError("not closed")

    @pytest.fixture
    def closing_orders(orders):
        ask(orders, "second", "t")
        yield
        raise RuntimeError("not closed")

    @pytest.fixture
    def closing_in_the_loop(kafka_async_cluster):
        yield
        raise RuntimeError("not closed")

    def test_fresh(closing):
        pass

    def test_of_the_module(closing_orders):
        pass

    @pytest.mark.asyncio
    async def test_in_the_loop(closing_in_the_loop):
        pass
    """
    )
    result = run(pytester)
    result.assert_outcomes(passed=3, errors=3)
    result.stdout.fnmatch_lines(
        [
            "*Kafka requests of kafka_cluster*",
            "*first: Metadata v9 t*",
            "*Kafka requests of orders*",
            "*second: Metadata v9 t*",
            "*Kafka requests of kafka_async_cluster*",
            "(no requests)",
        ]
    )


def test_pytest_output_of_failed_setup_has_last_requests_of_module_scoped_cluster(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        REQUESTS
        + """
    import pytest
    from kafkaproto.testing import cluster_fixture

    orders = cluster_fixture("module")

    @pytest.fixture
    def broken(orders):
        ask(orders, "shop", "t")
        raise RuntimeError("broken")

    def test_one(broken):
        pass

    def test_two():
        assert not "without a cluster"
    """
    )
    result = run(outside)
    result.assert_outcomes(errors=1, failed=1)
    assert result.stdout.str().count("Kafka requests of orders") == 1
    result.stdout.fnmatch_lines(["*Kafka requests of orders*", "*shop: Metadata v9 t*"])


MISTAKES = {
    "kafka_cluster.delete_topic('nope')": "There is no topic nope.",
    "kafka_cluster.produce('t', ['a'], partition=7)": "Topic t has no partition 7: it has 1 partition.",
    "kafka_cluster.produce('t', 3)": "values must be a list of records (got 3)",
    "kafka_cluster.create_topic('a b')": "Topic name 'a b' is illegal",
    "kafka_cluster.alter_topic('t', nope=3)": 'unknown topic setting "nope"',
    "kafka_cluster.journal.requests('Prodce')": "unknown API 'Prodce'; did you mean 'Produce'?",
    "kafka_cluster.force_throttle(0)": "throttle_ms must be 1 to ",
    "kafka_cluster.set_quota(client_id='x', producer_byte_rat=1)": "producer_byte_rat",
    "kafka_cluster.wait_for_group('g', state='stable')": "state must be ",
    "kafka_cluster.wait_for_group('g', timeout_s=0)": "group g is Dead with 0 members",
    "kafka_cluster.wait_for_records('t', 1, timeout_s=0)": "t has 0 records",
    "cluster(brokers=0)": "brokers must be at least 1 (got 0)",
    "cluster(config={'nope': 3}).start()": 'unknown broker setting "nope"',
    "cluster(data_dir='/proc/nowhere').start()": "data directory /proc/nowhere cannot be created",
}


def test_traceback_of_a_failed_cluster_method_ends_at_the_line_that_calls_the_method(outside: pytest.Pytester) -> None:
    tests = [
        f"@pytest.mark.kafka(topics={{'t': 1}})\ndef test_{number}(kafka_cluster):\n    {line}\n"
        for number, line in enumerate(MISTAKES)
    ]
    outside.makepyfile("\n".join(["import pytest", "from kafkaproto.testing import cluster", *tests]))
    result = run(outside)
    result.assert_outcomes(failed=len(MISTAKES))
    lines = [text for text in result.outlines if text.startswith(">")]
    errors = [text for text in result.outlines if text.startswith("E  ") and "Error: " in text]
    assert [text[1:].strip() for text in lines] == list(MISTAKES)
    assert [part for part, text in zip(MISTAKES.values(), errors, strict=True) if part not in text] == []
    assert not [text for text in result.outlines if "broker/testing" in text]


def test_pytest_output_of_an_exception_inside_the_broker_has_the_complete_traceback(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        def broken():
            return {}["key"]

        def test_one(kafka_cluster):
            kafka_cluster.run_in_loop(broken)
        """
    )
    result = run(outside)
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [">       kafka_cluster.run_in_loop(broken)", "*broker/testing/threaded.py*", ">*{}*key*"]
    )


def test_arguments_of_several_kafka_markers_are_merged_and_the_closest_marker_wins(outside: pytest.Pytester) -> None:
    outside.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.kafka(2, {"orders": 1}, release="3.9")

        @pytest.mark.kafka(topics={"payments": 2}, seed=7)
        class TestGroup:
            def test_class(self, kafka_cluster):
                assert len(kafka_cluster.bootstrap_servers) == 2
                assert kafka_cluster.topics() == {"payments": 2}

            @pytest.mark.kafka(3)
            def test_method(self, kafka_cluster):
                assert len(kafka_cluster.bootstrap_servers) == 3
                assert kafka_cluster.topics() == {"payments": 2}

        def test_module(kafka_cluster):
            assert len(kafka_cluster.bootstrap_servers) == 2
            assert kafka_cluster.topics() == {"orders": 1}
        """
    )
    run(outside).assert_outcomes(passed=3)
