"""Ways to run a test cluster (A10): `with`, `async with`, `start` and `stop`, and as a decorator."""

from __future__ import annotations

import asyncio
import gc
import os
import select
import signal
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from kafkaproto.broker.config.values import ConfigError
from kafkaproto.broker.errors import KafkaError
from kafkaproto.messages.metadata import MetadataRequest
from kafkaproto.pipeline.ask import ask
from kafkaproto.testing import AsyncTestCluster, TestCluster, async_cluster, cluster


def cluster_threads() -> int:
    """Return how many clusters run in threads of this process."""
    return sum(thread.name == "kafkaproto" for thread in threading.enumerate())


def values(c: TestCluster | AsyncTestCluster) -> list[bytes | None]:
    return [record.value for record in c.records("orders")]


def test_cluster_can_be_started_and_stopped_without_a_with_block() -> None:
    c = cluster(topics={"orders": 1})
    assert c.start() is c
    try:
        c.produce("orders", ["a"])
        assert values(c) == [b"a"]
    finally:
        c.stop()
    c.stop()  # does nothing


def test_stopped_cluster_is_empty_when_started_again() -> None:
    c = cluster(topics={"orders": 1})
    for _ in range(2):
        c.start()
        c.produce("orders", ["a"])
        assert values(c) == [b"a"]
        c.stop()


def test_running_cluster_cannot_be_started_again() -> None:
    with cluster() as c, pytest.raises(RuntimeError, match="is already running"):
        c.start()


async def test_async_cluster_can_be_started_stopped_and_started_again() -> None:
    c = async_cluster(topics={"orders": 1})
    for _ in range(2):
        assert await c.start() is c
        with pytest.raises(RuntimeError, match="is already running"):
            await c.start()
        c.produce("orders", ["a"])
        assert values(c) == [b"a"]
        await c.stop()
    await c.stop()


@pytest.mark.parametrize("make", [cluster, async_cluster])
def test_cluster_used_before_its_start_raises_an_error_that_suggests_calling_start(make: Callable[[], Any]) -> None:
    c = make()
    assert repr(c) == f"<{type(c).__name__} not running>"
    for use in (lambda: c.bootstrap, lambda: c.topics(), lambda: c.explain()):
        with pytest.raises(RuntimeError, match=r"not started: call start\(\)"):
            use()


def test_stopped_cluster_rejects_method_calls_but_still_has_its_bootstrap_address() -> None:
    with cluster() as c:
        address = c.bootstrap
    assert c.bootstrap == address
    with pytest.raises(RuntimeError, match="is stopped"):
        c.topics()


def test_stopped_cluster_still_returns_past_requests_from_explain_and_journal() -> None:
    with cluster() as c:
        c.produce("t", ["a"])
        ask(c.bootstrap, MetadataRequest([]), 9)
        explained, conversations = c.explain(), c.conversations()
    assert "Metadata v9" in explained
    assert [request.api for request in c.journal.requests()] == ["Metadata"]
    assert (c.explain(), c.conversations()) == (explained, conversations)


def test_cluster_repr_contains_bootstrap_addresses_and_topic_names() -> None:
    with cluster(topics={"orders": 2}) as c:
        assert repr(c) == f"<TestCluster {c.bootstrap}, topics: orders (2)>"
        c.delete_topic("orders")
        assert repr(c) == f"<TestCluster {c.bootstrap}, topics: none>"


def test_repr_of_the_journal_or_the_clock_of_a_cluster_is_a_single_line() -> None:
    c = cluster(2, topics={"orders": 3}, clock="manual")
    assert (repr(c.journal), repr(c.clock)) == (
        "<journal of a cluster that is not started>",
        "<clock of a cluster that is not started>",
    )
    with c:
        ask(c.bootstrap_servers[0], MetadataRequest([]), 9)
        first, second = c.bootstrap_servers
        assert repr(c.journal) == "<journal of 1 request, 0 throttles, 0 events>"
        assert repr(c.clock) == "<ManualClock 2023-11-14T22:13:20.000+00:00 (1700000000000 ms)>"
        led = [sum(c.partition("orders", i).leader == broker for i in range(3)) for broker in (0, 1)]
        counts = ["1 partition" if count == 1 else f"{count} partitions" for count in led]
        assert repr(c.broker(0)) == f"<broker 0 at {first}, running, leader of {counts[0]}>"
        assert repr(c.follower("orders", 1, 1)) == "<follower of orders-1 on broker 1>"
        assert repr(c.server) == f"<Server {first}, {second}>"
        c.broker(1).stop()
        assert repr(c.broker(1)).startswith(f"<broker 1 at {second}, stopped, leader of ")
    assert repr(c.server) == f"<Server stopped, was at {first}, {second}>"
    assert repr(c.broker(0)).startswith(f"<broker 0 at {first}, stopped, ")
    assert repr(c.journal).startswith("<journal of 1 request, ")


def test_repr_of_a_cluster_does_not_wait_for_the_broker_thread() -> None:
    with cluster(topics={"orders": 1}) as c:
        reprs: list[str] = []
        repr_thread = threading.Thread(
            target=lambda: reprs.extend(map(repr, (c, c.journal, c.clock, c.broker(0), c.server)))
        )

        def hold() -> None:
            repr_thread.start()
            repr_thread.join(5)

        c.run_in_loop(hold)
        assert len(reprs) == 5


def in_a_fork(action: Callable[[], object], timeout_s: float = 10) -> str:
    """Return the RuntimeError of `action` in a forked process, or what else it did."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            text = f"returned {action()!r}"
        except RuntimeError as error:
            text = str(error)
        except BaseException as error:  # noqa: BLE001 - the child must not return into pytest
            text = repr(error)
        os.write(sending, text.encode())
        os._exit(0)
    os.close(sending)
    try:
        is_done, _, _ = select.select([receiving], [], [], timeout_s)
        return os.read(receiving, 4096).decode() if is_done else "nothing: it hangs"
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(receiving)


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
@pytest.mark.parametrize(
    "use",
    [
        lambda c: c.topics(),
        lambda c: c.produce("orders", ["a"]),
        lambda c: c.clock.advance(1),
        lambda c: c.wait_for_records("orders", 1),
        lambda c: c.journal.requests(),
        lambda c: c.stop(),
    ],
)
def test_cluster_used_in_a_forked_process_raises_an_error_about_the_fork(use: Callable[[Any], object]) -> None:
    with cluster(topics={"orders": 1}) as c:
        text = in_a_fork(lambda: use(c))
        assert f"is a fork of process {os.getpid()}, which runs the cluster" in text
        assert in_a_fork(lambda: c.bootstrap) == f"returned {c.bootstrap!r}"
        assert c.topics() == {"orders": 1}


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
async def test_async_cluster_used_in_a_forked_process_raises_an_error_about_the_fork() -> None:
    async with async_cluster(topics={"orders": 1}) as c:
        assert f"is a fork of process {os.getpid()}, which runs the cluster" in in_a_fork(c.topics)


@pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")
def test_forked_process_that_exits_the_with_block_does_not_stop_the_cluster() -> None:
    with cluster(topics={"orders": 1}) as c:
        assert in_a_fork(lambda: c.__exit__(None, None, None)) == "returned None"
        assert c.topics() == {"orders": 1}


@pytest.mark.parametrize("moment", ["before the loop ends", "while the loop ends", "after the loop is closed"])
def test_cluster_call_during_a_stop_in_another_thread_raises_an_error(
    moment: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The call is past its first check when the cluster stops, and reaches the loop at the given moment."""
    c = cluster(topics={"orders": 1}).start()
    submitting, may_submit, submitted = (threading.Event() for _ in range(3))
    submit = asyncio.run_coroutine_threadsafe
    errors: list[BaseException | str] = []

    def let_it_submit() -> None:
        may_submit.set()
        assert submitted.wait(5)

    def delayed_submit(coroutine: Any, loop: Any) -> Any:
        if threading.current_thread() is not calling:
            return submit(coroutine, loop)
        submitting.set()
        assert may_submit.wait(5)
        try:
            return submit(coroutine, loop)
        finally:
            submitted.set()

    def call() -> None:
        try:
            errors.append(f"returned {c.topics()}")
        except BaseException as error:  # noqa: BLE001 - reported to the test
            errors.append(error)

    calling = threading.Thread(target=call, daemon=True)
    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", delayed_submit)
    calling.start()
    assert submitting.wait(5)
    loop = c.run_in_loop(asyncio.get_running_loop)
    if moment == "before the loop ends":
        stop_server = c.server.stop

        async def stop_and_submit() -> None:
            await stop_server()
            let_it_submit()

        monkeypatch.setattr(c.server, "stop", stop_and_submit)
    elif moment == "while the loop ends":
        stop_loop = loop.stop

        def stop_loop_and_submit() -> None:
            stop_loop()
            let_it_submit()

        monkeypatch.setattr(loop, "stop", stop_loop_and_submit)
    c.stop()
    may_submit.set()
    calling.join(5)
    [error] = errors or ["nothing: it hangs"]
    assert isinstance(error, RuntimeError) and "the cluster is stopped" in str(error)
    del errors[:], error
    gc.collect()
    assert [record.message for record in caplog.records] == []  # asyncio logs lost tasks and errors


async def test_async_with_runs_a_cluster_in_the_running_event_loop() -> None:
    async with cluster(topics={"orders": 1}, clock="manual") as c:
        assert isinstance(c, AsyncTestCluster)
        before = c.clock.now_ms()
        await c.clock.advance(30_000)
        assert c.clock.now_ms() == before + 30_000


def test_cluster_that_fails_to_start_leaves_no_thread() -> None:
    threads = cluster_threads()
    for wrong in (cluster(config={"log.nonsense": 1}), cluster(topics={"a b": 1}), cluster(data_dir="/proc/nowhere")):
        with pytest.raises((ConfigError, ValueError, KafkaError)):
            wrong.start()
        assert cluster_threads() == threads
        assert repr(wrong) == "<TestCluster not running>"


# ---- arguments ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: cluster(port=-1), ValueError, "port must be 0 to 65535 (got -1); 0 picks free ports"),
        (lambda: cluster(port=70_000), ValueError, "port must be 0 to 65535 (got 70000); 0 picks free ports"),
        (lambda: cluster(relase="3.9"), TypeError, "cluster() has no option 'relase'; did you mean 'release'?"),  # type: ignore[call-arg]
        (
            lambda: cluster(topics={"a": {"partition": 3}}),
            TypeError,
            "topics['a'] has an unknown argument 'partition'; did you mean 'partitions'?",
        ),
        (lambda: cluster(topics=["a"]), TypeError, "topics must be a dict of names to partitions (got ['a'])"),  # type: ignore[arg-type]
        (
            lambda: cluster(topics={"a": "3"}),
            TypeError,
            "topics['a'] must be a number of partitions or a dict (got '3')",
        ),  # type: ignore[dict-item]
    ],
)
def test_call_of_cluster_with_an_invalid_argument_raises_before_any_broker_starts(
    make: Callable[[], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error) as raised:
        make()
    assert str(raised.value).startswith(text)


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"release": "9.9"}, "for example release='3.9'"),
        ({"profile": "fast"}, "for example profile='test'"),
        ({"data_dir": "/proc/nowhere"}, "data_dir='./kafka-data'"),
        ({"host": "nowhere.invalid"}, "port=0"),
    ],
)
def test_cluster_start_errors_name_python_arguments_instead_of_command_line_options(
    options: dict[str, Any], text: str
) -> None:
    with pytest.raises(ValueError) as raised:
        cluster(**options).start()
    assert text in str(raised.value)
    assert "--" not in str(raised.value)


# ---- unusual uses ----------------------------------------------------------------------------------------------------------------------


async def test_running_cluster_cannot_be_entered_again_with_async_with() -> None:
    c = cluster()
    async with c:
        with pytest.raises(RuntimeError, match="is already running"):
            await c.__aenter__()
    async with c as again:
        assert again.topics() == {}


def test_only_one_of_several_threads_can_start_a_cluster() -> None:
    c, outcomes = cluster(), []
    threads = cluster_threads()

    def start() -> None:
        try:
            c.start()
        except RuntimeError as error:
            outcomes.append(str(error))
        else:
            outcomes.append("started")

    starting = [threading.Thread(target=start) for _ in range(5)]
    for thread in starting:
        thread.start()
    for thread in starting:
        thread.join()
    assert outcomes.count("started") == 1
    assert cluster_threads() == threads + 1
    c.stop()
    assert cluster_threads() == threads


def test_create_topic_error_for_a_misspelt_argument_suggests_the_correct_argument() -> None:
    with cluster() as c:
        with pytest.raises(TypeError) as caught:
            c.create_topic("z", config={"retention.ms": 1})  # type: ignore[call-arg]
        assert str(caught.value) == "create_topic() has no argument 'config'; did you mean 'configs'?"
        with pytest.raises(TypeError, match="has no argument 'rack'; known are name, partitions, replication_factor"):
            c.create_topic("z", rack="a")  # type: ignore[call-arg]
        assert c.topics() == {}


@pytest.mark.timeout(20)
def test_condition_of_method_wait_for_cannot_stop_the_cluster_or_advance_the_clock() -> None:
    with cluster() as c:
        for act in (c.stop, lambda: c.clock.advance(1), lambda: c.wait_for_records("t", 1)):
            with pytest.raises(RuntimeError, match="runs inside the broker"):
                c.wait_for(lambda _, act=act: act())  # type: ignore[misc]
        assert c.topics() == {}


@pytest.mark.timeout(20)
def test_wait_for_raises_error_if_the_condition_adds_a_record_in_each_of_10_checks() -> None:
    with cluster(topics={"orders": 1}) as c:
        with pytest.raises(RuntimeError, match="changed the cluster in each of 10 checks") as caught:
            c.wait_for(lambda _: c.produce("orders", ["a"]) and None)
        assert len(caught.traceback) < 20
        assert caught.value.__context__ is None
        assert len(c.records("orders")) == 10


@pytest.mark.timeout(20)
def test_method_wait_for_repeats_a_false_condition_that_adds_a_record() -> None:
    with cluster(topics={"orders": 1}) as c:
        assert c.wait_for(lambda _: c.produce("orders", ["a"])) == [(0, 0)]
        assert c.wait_for(lambda _: len(c.records("orders")) > 2 or (c.produce("orders", ["b"]) and None)) is True
        assert values(c) == [b"a", b"b", b"b"]


@pytest.mark.timeout(20)
def test_async_wait_for_raises_if_the_condition_adds_a_record_in_each_of_10_checks() -> None:
    async def run() -> None:
        async with async_cluster(topics={"orders": 1}) as c:
            with pytest.raises(RuntimeError, match="changed the cluster in each of 10 checks"):
                await c.wait_for(lambda _: c.produce("orders", ["a"]) and None)
            assert len(c.records("orders")) == 10

    asyncio.run(run())


WAITS: list[Callable[[Any], Any]] = [
    lambda c: c.wait_for(lambda _: None, timeout_s=15),
    lambda c: c.wait_for_records("orders", 2, timeout_s=15),
    lambda c: c.wait_for_group("readers", members=1, timeout_s=15),
]


@pytest.mark.parametrize("wait", WAITS, ids=["condition", "records", "group"])
def test_stopping_the_cluster_ends_a_wait_in_another_thread_at_once_with_an_error(wait: Callable[[Any], Any]) -> None:
    c = cluster(topics={"orders": 1}).start()
    c.produce("orders", ["a"])
    errors: list[str] = []

    def wait_for_it() -> None:
        with pytest.raises(RuntimeError) as caught:
            wait(c)
        errors.append(str(caught.value))

    waiting = threading.Thread(target=wait_for_it)
    observers = len(c.state.events.observers)
    waiting.start()
    while len(c.state.events.observers) == observers:
        time.sleep(0.01)
    c.stop()
    waiting.join(5)
    assert errors
    assert "it stopped while the test waited" in errors[0]


@pytest.mark.parametrize("wait", WAITS, ids=["condition", "records", "group"])
def test_stopping_an_async_cluster_ends_a_wait_in_another_task_with_an_error(wait: Callable[[Any], Any]) -> None:
    async def run() -> None:
        async with async_cluster(topics={"orders": 1}) as c:
            c.produce("orders", ["a"])
            waiting = asyncio.create_task(wait(c))
            await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="it stopped while the test waited"):
            await asyncio.wait_for(waiting, 5)
        with pytest.raises(RuntimeError, match=r"the cluster is stopped: call start\(\)"):
            await asyncio.wait_for(wait(c), 5)

    asyncio.run(run())


def test_starting_an_async_cluster_without_a_running_event_loop_raises_an_error() -> None:
    starting = async_cluster().start()
    with pytest.raises(RuntimeError, match="needs a running asyncio event loop"):
        starting.send(None)


async def test_start_of_a_test_cluster_logs_each_setting_that_has_no_effect(caplog: pytest.LogCaptureFixture) -> None:
    config = {"num.io.threads": 3, "num.partitions": 2}
    async with async_cluster(config=config):
        pass
    with cluster(config=config):
        pass
    line = "setting num.io.threads is accepted, but has no effect (see `kafkaproto settings`)"
    assert [record.getMessage() for record in caplog.records if "effect" in record.getMessage()] == [line, line]
