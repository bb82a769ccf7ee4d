"""The parts of the long run, and the small committed file that each leaves: what was done, at which commit, with what result.

A part counts only while `broker/` and `kafkaproto/` are as they were when it was done.
"""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.rivals.jars import KAFKA_VERSION
from tests.clients.long_quotas import beside_kafka, configs, for_long
from tests.differential.__main__ import both
from tests.differential.__main__ import run as run_conversations
from tests.distribution import NotAsPublished
from tests.distribution import lines as distribution_lines
from tests.long_run.simulated import many_seeds

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parent / "results"
PROVEN = ("broker", "kafkaproto")
"""The folders whose change undoes a result."""
SEEDS, SEEDS_OF_A_PART = 10_000, 500
CONVERSATIONS, CONVERSATIONS_OF_A_PART, WITH_NODES = 2_000, 200, 20


@dataclass(frozen=True)
class Finding:
    """One line of the page, and whether what it tells holds."""

    line: str
    holds: bool


@dataclass(frozen=True)
class Part:
    """A part that can be done by itself. `run` gives its findings; name: that of its file."""

    name: str
    run: Callable[[], list[Finding]]


@dataclass(frozen=True)
class Result:
    """What a part came to. trees: the git trees of `PROVEN` at that commit."""

    name: str
    commit: str
    trees: dict[str, str]
    date: str
    seconds: int
    findings: list[Finding]

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)


def all_parts() -> list[Part]:
    """Return the parts in the order in which they are done, the short ones first."""
    return [
        Part("kafka-configs", lambda: [Finding(*configs())]),
        Part("clients-30-seconds", lambda: [Finding(*found) for found in beside_kafka()]),
        Part("clients-300-seconds", lambda: [Finding(*found) for found in for_long()]),
        Part("distribution", _distribution),
        Part("conversations-with-nodes", partial(_conversations, CONVERSATIONS, 0, WITH_NODES)),
        *(
            Part(f"conversations-{first:05}", partial(_conversations, first, CONVERSATIONS_OF_A_PART, 0))
            for first in range(0, CONVERSATIONS, CONVERSATIONS_OF_A_PART)
        ),
        *(
            Part(f"simulation-{first:05}", partial(_simulation, first, SEEDS_OF_A_PART))
            for first in range(0, SEEDS, SEEDS_OF_A_PART)
        ),
    ]


def _simulation(first: int, count: int) -> list[Finding]:
    done = many_seeds(first, count)
    line = (
        f"seeds {first} to {first + count - 1}: {done.held} of {count} held; {done.operations:,} client operations, "
        f"{done.virtual_ms / 3_600_000:,.0f} hours of virtual time, {done.limited_ms / 1000:,.0f} virtual seconds under quotas with "
        f"{done.throttles:,} throttles, each as Q-2 to Q-6 say"
    )
    broken = [Finding(f"seed {seed} is broken: {text}", False) for seed, text in sorted(done.broken.items())]
    return [Finding(line, not broken), *broken]


def _conversations(first: int, count: int, nodes: int) -> list[Finding]:
    with both() as pair:
        compared = run_conversations(pair, first, count, nodes)
    last = first + count + nodes - 1
    found = [Finding(f"seed {seed} differs: {one.difference.step}", False) for seed, one in compared.found.items()]
    unstable = [
        Finding(f"seed {seed} is unstable: {one.difference.step}", True) for seed, one in compared.unstable.items()
    ]
    whole = compared.played == count + nodes and not found
    return [Finding(f"seeds {first} to {last} against Kafka {KAFKA_VERSION}: {compared}", whole), *found, *unstable]


def _distribution() -> list[Finding]:
    try:
        return [Finding(line.removeprefix("- "), True) for line in distribution_lines()]
    except NotAsPublished as error:
        return [Finding(str(error), False)]


# ---- results -----------------------------------------------------------------------------------------------------------------------


def trees(root: Path = ROOT) -> dict[str, str] | None:
    """Return the git trees of `PROVEN` as committed; None if they have changes that are not committed."""
    if _git("status", "--porcelain", "--", *PROVEN, root=root):
        return None
    return {folder: _git("rev-parse", f"HEAD:{folder}", root=root) for folder in PROVEN}


def _git(*command: str, root: Path = ROOT) -> str:
    done = subprocess.run(["git", *command], cwd=root, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def commit() -> str:
    """Return the short name of the present commit."""
    return _git("rev-parse", "--short", "HEAD")


def done(part: Part, name_of_commit: str, at: dict[str, str]) -> Result:
    """Do a part, and return its result. at: the present trees."""
    begun = time.monotonic()
    findings = part.run()
    seconds = round(time.monotonic() - begun)
    return Result(part.name, name_of_commit, at, f"{datetime.now(UTC):%Y-%m-%d}", seconds, findings)


def write(result: Result, folder: Path = RESULTS) -> None:
    """Keep a result, to be committed."""
    folder.mkdir(exist_ok=True)  # git keeps no empty folder
    (folder / f"{result.name}.json").write_text(json.dumps(asdict(result), indent=1) + "\n")


def read(folder: Path = RESULTS) -> dict[str, Result]:
    """Return the results that were kept, by name of their part."""
    found = {}
    for path in sorted(folder.glob("*.json")):
        told = json.loads(path.read_text())
        told["findings"] = [Finding(**finding) for finding in told["findings"]]
        found[told["name"]] = Result(**told)
    return found


def missing(parts: list[Part], results: dict[str, Result], at: dict[str, str]) -> Iterator[Part]:
    """Yield the parts without a result that counts: never done, done at other trees, or not holding."""
    for part in parts:
        result = results.get(part.name)
        if result is None or result.trees != at or not result.holds:
            yield part
