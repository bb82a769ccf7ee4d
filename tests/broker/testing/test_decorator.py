"""A test cluster as a decorator: each call has its own cluster, and the caller leaves out the parameter `kafka`."""

from __future__ import annotations

import functools
import inspect
import subprocess
import sys
import unittest
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest

from kafkaproto.testing import AsyncTestCluster, TestCluster, async_cluster, cluster

ROOT = Path(__file__).parents[3]


def values(c: TestCluster | AsyncTestCluster) -> list[bytes | None]:
    return [record.value for record in c.records("orders")]


@cluster(topics={"orders": 1})
def produced(value: str, *, kafka: TestCluster) -> list[bytes | None]:
    kafka.produce("orders", [value])
    return values(kafka)


@cluster(topics={"orders": 1})
async def produced_async(value: str, kafka: AsyncTestCluster) -> list[bytes | None]:
    kafka.produce("orders", [value])
    return values(kafka)


@async_cluster(topics={"orders": 1})
async def produced_in_loop(value: str, kafka: AsyncTestCluster) -> list[bytes | None]:
    kafka.produce("orders", [value])
    return values(kafka)


async def test_each_call_of_a_function_with_the_cluster_decorator_gets_a_new_cluster() -> None:
    for value in ("a", "b"):
        assert produced(value) == [value.encode()]
        assert await produced_async(value) == [value.encode()]
        assert await produced_in_loop(value) == [value.encode()]
    assert list(inspect.signature(produced).parameters) == ["value"]
    assert produced.__name__ == "produced"


@cluster()
def test_function_with_the_cluster_decorator_can_use_pytest_fixtures(kafka: TestCluster, tmp_path: Any) -> None:
    assert kafka.topics() == {}
    assert tmp_path.is_dir()


class Decorated(unittest.TestCase):
    """A class with a decorated method, as in unittest."""

    @cluster(topics={"orders": 1})
    def test_method_with_the_cluster_decorator_gets_a_cluster(self, kafka: TestCluster) -> None:
        assert kafka.topics() == {"orders": 1}


def test_error_for_cluster_decorator_on_a_class_or_generator_suggests_alternative() -> None:
    with pytest.raises(TypeError, match="decorate each test method"):
        cluster()(Decorated)
    with pytest.raises(TypeError, match="with cluster"):
        cluster()(generator)
    with pytest.raises(TypeError, match="use cluster"):
        async_cluster()(values)


def generator() -> Any:
    yield


@cluster()
def by_position(first: int, kafka: TestCluster, /, second: int = 0) -> tuple[int, bool, int]:
    return first, kafka.is_running, second


@cluster()
def in_the_middle(first: int, kafka: TestCluster, second: int, *others: int, last: int = 0) -> tuple[Any, ...]:
    return first, kafka.is_running, second, others, last


@cluster()
def without(**named: object) -> dict[str, object]:
    return named


def test_function_with_cluster_decorator_gets_the_cluster_as_its_kafka_parameter() -> None:
    assert by_position(1) == (1, True, 0)
    assert by_position(1, 2) == (1, True, 2)
    assert by_position(1, second=2) == (1, True, 2)
    assert in_the_middle(1, 2) == (1, True, 2, (), 0)
    assert in_the_middle(1, 2, 3, 4, last=5) == (1, True, 2, (3, 4), 5)
    assert in_the_middle(1, second=2) == (1, True, 2, (), 0)
    assert without(kafka=3) == {"kafka": 3}


def test_function_with_the_cluster_decorator_raises_type_error_on_wrong_arguments() -> None:
    with pytest.raises(
        TypeError, match=r"in_the_middle\(\) gets its cluster from the decorator; call it without kafka="
    ):
        in_the_middle(1, kafka=3)
    with pytest.raises(TypeError, match="missing a required argument: 'first'"):
        by_position()
    with pytest.raises(TypeError, match=r"produced\(\) missing 1 required positional argument: 'value'"):
        produced()


class Callable:
    """An object that is called like a coroutine function."""

    async def __call__(self, kafka: AsyncTestCluster) -> bool:
        return kafka.is_running


class Generator:
    """An object that is called like a generator."""

    def __call__(self) -> Any:
        yield


async def running(value: str, kafka: AsyncTestCluster) -> tuple[str, bool]:
    return value, kafka.is_running


def returns_a_coroutine() -> Coroutine[Any, Any, None]:
    async def never() -> None:
        raise AssertionError("it ran")

    return never()


async def test_cluster_decorator_accepts_callable_objects_and_functools_partials() -> None:
    for decorator in (cluster(), async_cluster()):
        assert await decorator(Callable())() is True
        assert await decorator(functools.partial(running, "a"))() == ("a", True)
    with pytest.raises(TypeError, match="cannot decorate a generator"):
        cluster()(Generator())
    with pytest.raises(
        TypeError, match=r"returns_a_coroutine\(\) returned a coroutine, which would run without the cluster"
    ):
        cluster()(returns_a_coroutine)()


CHECKED = """
from kafkaproto.testing import AsyncTestCluster, TestCluster, async_cluster, cluster

@cluster(topics={"orders": 1})
def count(topic: str, kafka: TestCluster) -> int:
    return len(kafka.records(topic))

@async_cluster()
async def count_in_loop(kafka: AsyncTestCluster) -> int:
    return len(kafka.topics())

@cluster()
def last(kafka: TestCluster, topic: str, partition: int = 0) -> int:
    return len(kafka.records(topic, partition))

@cluster()
async def count_records(kafka: AsyncTestCluster, topic: str) -> int:
    return len(kafka.records(topic))

@async_cluster()
async def count_records_async(topic: str, kafka: AsyncTestCluster) -> int:
    return len(kafka.records(topic))

@cluster()
def anywhere(topic: str, count: int, kafka: TestCluster) -> int:
    return count

@cluster()
def without(count: object) -> int:
    return 3

class Tests:
    @cluster()
    def named(self, kafka: TestCluster, topic: str, *, count: int) -> None:
        kafka.produce(topic, ["a"] * count)

    @cluster()
    def method(self, kafka: TestCluster) -> int:
        return 3

async def main() -> None:
    number: int = count("orders")
    number = await count_in_loop()
    number = Tests().method()
    text: str = count("orders")  # error
    count(3)  # error
    count("orders", 3)  # error
    count()  # error
    number = last("orders", partition=1)
    last("orders", partition="1")  # error
    number = await count_records("orders")
    await count_records(b"orders")  # error
    number = await count_records_async("orders")
    await count_records_async(3)  # error
    Tests().named("orders", count=1)
    Tests().named("orders", count="1")  # error
    number = anywhere("orders", 1)
    number = without(3)

@async_cluster()  # error
def plain() -> int:
    return 3
"""


@pytest.mark.slow
def test_mypy_accepts_decorated_calls_without_the_cluster_argument(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(CHECKED)
    command = [sys.executable, "-m", "mypy", "--config-file", "", "--ignore-missing-imports", "--follow-imports=silent"]
    command += ["--strict", "--cache-dir", str(tmp_path / "cache"), "program.py"]
    environment = {"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    completed = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    errors = [line.split(":")[1] for line in completed.stdout.splitlines() if ": error: " in line]
    expected = [str(number) for number, line in enumerate(CHECKED.splitlines(), 1) if line.endswith("# error")]
    assert errors == expected, completed.stdout
