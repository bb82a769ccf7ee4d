"""Runs the commands of a scenario against one cluster, and compares what two clusters print."""

from __future__ import annotations

import difflib
import shlex
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple, Protocol

from tests.support.tools.clients import CLIENTS
from tests.support.tools.jvm import ToolsProcess
from tests.support.tools.normalising import normalised
from tests.support.tools.scenarios import BY_NAME
from tests.support.tools.steps import Scenario, Step

Lines = list[str]


class Brokers(Protocol):
    """Stops a broker in an orderly way, and starts it again, by its id."""

    def stop_broker(self, broker_id: int) -> None: ...

    def start_broker(self, broker_id: int) -> None: ...


class Target(NamedTuple):
    """A cluster to which commands go. addresses: (host, port) of its brokers, by id. folder: for files that commands name.

    brokers: stops and starts its brokers. settles_within_s: how long brokers may take to apply a change.
    """

    addresses: Sequence[tuple[str, int]]
    folder: Path
    brokers: Brokers
    settles_within_s: float = 0


def play(tools: ToolsProcess, scenario: Scenario, target: Target) -> list[tuple[Step, Lines]]:
    """Run the steps of a scenario that the version of the tools has. Returns each with its normalised output.

    Commands know the addresses of the running brokers. At the end, stopped brokers are started.
    """
    stopped: set[int] = set()
    ports = [port for _, port in target.addresses]
    played = []
    with ExitStack() as clients:
        for step in scenario.steps:
            if tools.version not in step.only:
                continue
            if step.stops_broker is not None:
                target.brokers.stop_broker(step.stops_broker)
                stopped.add(step.stops_broker)
                clients.callback(_start, target, stopped, step.stops_broker)
            if step.starts_broker is not None:
                _start(target, stopped, step.starts_broker)
            addresses = [address for i, address in enumerate(target.addresses) if i not in stopped]
            bootstrap = ",".join(f"{host}:{port}" for host, port in addresses)
            if step.starts is not None:
                kind, topic, name = step.starts
                clients.enter_context(CLIENTS[kind](bootstrap, topic, name))
            arguments = step.arguments.replace("{bootstrap}", bootstrap)
            for name, content in scenario.files.items():
                path = target.folder / f"{scenario.name.replace(' ', '-')}-{name}"
                path.parent.mkdir(exist_ok=True)
                path.write_text(content.replace("{folder}", str(target.folder)))
                arguments = arguments.replace(f"{{file:{name}}}", str(path))
            main_class = BY_NAME[step.tool or scenario.name].classes[tools.version]
            if step.settles:
                time.sleep(target.settles_within_s)
            output = tools.run(main_class, shlex.split(arguments), step.stdin, step.stopped_after_s)
            lines = normalised(output, ports, step.patterns, unordered=step.unordered)
            played.append((step, sorted(set(lines)) if step.stopped_after_s else lines))
    return played


def _start(target: Target, stopped: set[int], broker_id: int) -> None:
    """Start a broker unless it runs."""
    if broker_id in stopped:
        target.brokers.start_broker(broker_id)
        stopped.remove(broker_id)


def differences(expected: Sequence[tuple[Step, Lines]], actual: Sequence[tuple[Step, Lines]]) -> list[str]:
    """Return the differences between the outputs of a real Kafka and those of this broker, as text, step by step."""
    texts = []
    for (step, kafka_lines), (_, broker_lines) in zip(expected, actual, strict=True):
        if kafka_lines != broker_lines:
            changes = difflib.unified_diff(kafka_lines, broker_lines, "Kafka", "this broker", lineterm="", n=2)
            texts.append("\n".join([f"{step.verb}: {step.arguments}", *changes]))
    return texts
