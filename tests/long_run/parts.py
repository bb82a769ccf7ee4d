"""The parts of the long run, and the small committed result file of each: its commit and its findings.

A result counts only while the files that its part can load have the code with which it ran, see `tests.long_run.code`.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from benchmarks.rivals.jars import KAFKA_VERSION, NEWER_VERSION
from tests.clients.long_quotas import beside_kafka, configs, for_long
from tests.differential.__main__ import both
from tests.differential.__main__ import run as run_conversations
from tests.differential.comparing import Difference
from tests.differential.conversations import ASSIGNMENTS, CLASSIC_GROUPS, GROUPS, SETTINGS, TRANSACTIONS
from tests.differential.request_sequences import LOG
from tests.differential.unstable import UNSTABLE
from tests.distribution import NotAsPublished
from tests.distribution import lines as distribution_lines
from tests.long_run.code import CLIENTS, PROVEN, ROOT, SIMULATED, SUITE, git, simulated_files
from tests.long_run.simulated import many_seeds
from tests.support.broker import group_kills, transaction_kills
from tests.support.broker.group_kills import COORDINATORS
from tests.support.broker.kills import broker_processes
from tests.support.by_release import expected
from tests.support.by_release.real import VERSIONS
from tests.support.conformance.kinds import NOT_ON_NEWER_KAFKA
from tests.support.conformance.virtual import NEWER_RELEASE, RELEASE

RESULTS = Path(__file__).resolve().parent / "results"
SEEDS, SEEDS_OF_A_PART = 10_000, 500
KILLS = 100
KILLED_RELEASES = "3.9", "4.2"
"""The releases whose brokers are killed in the middle of transactions: without and with transaction version 2."""
CONVERSATIONS, CONVERSATIONS_OF_A_PART, WITH_NODES = 2_000, 200, 20
COMPARED = (
    (LOG, NEWER_RELEASE),
    (TRANSACTIONS, RELEASE),
    (TRANSACTIONS, NEWER_RELEASE),
    (CLASSIC_GROUPS, RELEASE),
    (GROUPS, RELEASE),
    (GROUPS, NEWER_RELEASE),
    (ASSIGNMENTS, RELEASE),
    (ASSIGNMENTS, NEWER_RELEASE),
    (SETTINGS, RELEASE),
    (SETTINGS, NEWER_RELEASE),
)
"""What conversations are about, and the release of Kafka, for the parts with one range of seeds each."""
SUITE_FILE = "tests/conformance/test_suite.py"
SUMMARY = re.compile(r"^(\d+ (?:passed|failed).*) in ", re.MULTILINE)
"""The last line of pytest, without the time."""


@dataclass(frozen=True)
class Finding:
    """One line of the page, and whether its statement holds."""

    line: str
    holds: bool


@dataclass(frozen=True)
class Part:
    """A part that can be run alone. run: returns its findings. name: the name of its result file. code: the keys of `code_hashes` it depends on."""

    name: str
    run: Callable[[], list[Finding]]
    code: tuple[str, ...] = PROVEN


@dataclass(frozen=True)
class Result:
    """The result of a part. code: the hashes of the code it depends on, see `code_hashes`."""

    name: str
    commit: str
    code: dict[str, str]
    date: str
    seconds: int
    findings: list[Finding]

    @property
    def holds(self) -> bool:
        return all(finding.holds for finding in self.findings)


def all_parts() -> list[Part]:
    """Return the parts in the order in which they run, the short ones first."""
    return [
        Part("kafka-configs", lambda: [Finding(*configs())]),
        Part("clients-30-seconds", lambda: [Finding(*fields) for fields in beside_kafka()]),
        Part("clients-300-seconds", lambda: [Finding(*fields) for fields in for_long()]),
        Part("clients-by-release", _clients_by_release, (CLIENTS,)),
        Part("distribution", _distribution, (*PROVEN, SUITE)),
        Part("kills-with-groups", _kills),
        Part("kills-in-transactions", _kills_in_transactions),
        Part(f"conformance-{NEWER_RELEASE}", _conformance, (*PROVEN, SUITE)),
        *(
            Part(
                f"conversations-{about}-{release}",
                partial(_conversations, 0, CONVERSATIONS_OF_A_PART, 0, about, release),
            )
            for about, release in COMPARED
        ),
        Part("conversations-with-nodes", partial(_conversations, CONVERSATIONS, 0, WITH_NODES)),
        Part(
            f"conversations-with-nodes-{NEWER_RELEASE}",
            partial(_conversations, CONVERSATIONS, 0, WITH_NODES, LOG, NEWER_RELEASE),
        ),
        *(
            Part(f"conversations-{first:05}", partial(_conversations, first, CONVERSATIONS_OF_A_PART, 0))
            for first in range(0, CONVERSATIONS, CONVERSATIONS_OF_A_PART)
        ),
        *(
            Part(f"simulation-{first:05}", partial(_simulation, first, SEEDS_OF_A_PART), (SIMULATED,))
            for first in range(0, SEEDS, SEEDS_OF_A_PART)
        ),
    ]


def _simulation(first: int, count: int) -> list[Finding]:
    simulated = many_seeds(first, count)
    line = (
        f"seeds {first} to {first + count - 1}: {simulated.held} of {count} held; {simulated.operations:,} client operations, "
        f"{simulated.virtual_ms / 3_600_000:,.0f} hours of virtual time, {simulated.limited_ms / 1000:,.0f} virtual seconds under quotas with "
        f"{simulated.throttles:,} throttles, each as rules Q-2 to Q-6 require"
    )
    broken = [Finding(f"seed {seed} is broken: {text}", False) for seed, text in sorted(simulated.broken.items())]
    unlisted = [
        Finding(f"{name} was loaded, but is not listed in simulated_files.txt", False)
        for name in sorted(simulated.loaded - simulated_files())
    ]
    return [Finding(line, not broken), *broken, *unlisted]


def _conversations(first: int, count: int, nodes: int, about: str = LOG, release: str = RELEASE) -> list[Finding]:
    with both(about, release) as pair:
        compared = run_conversations(pair, first, count, nodes, about=about, release=release)
    last = first + count + nodes - 1
    findings = [
        Finding(f"seed {seed} differs: {comparison.difference.step}", False)
        for seed, comparison in compared.differing.items()
    ]
    unstable = [
        _unstable(seed, comparison.difference, UNSTABLE.get((about, release, seed)))
        for seed, comparison in compared.unstable.items()
    ]
    whole = compared.played == count + nodes and not findings
    kafka = NEWER_VERSION if release == NEWER_RELEASE else KAFKA_VERSION
    return [Finding(f"seeds {first} to {last} against Kafka {kafka}: {compared}", whole), *findings, *unstable]


def _unstable(seed: int, difference: Difference, reason: str | None) -> Finding:
    """Return the finding about an unstable conversation, which holds only if the conversation is listed with a reason."""
    if reason is None:
        return Finding(f"seed {seed} is unstable and not in tests/differential/unstable.py: {difference.step}", False)
    return Finding(f"seed {seed} is unstable: {reason}", True)


def _conformance() -> list[Finding]:
    """Run the modules of the conformance suite that do not run on Kafka 4.2.0 by default."""
    modules = sorted(NOT_ON_NEWER_KAFKA)
    command = [sys.executable, "-m", "pytest", "-q", "-r", "fE", "-p", "no:cacheprovider", "--subjects", "real-newer"]
    ran = subprocess.run(
        [*command, *(f"{SUITE_FILE}::{module}.py" for module in modules)], cwd=ROOT, capture_output=True, text=True
    )
    summary = SUMMARY.search(ran.stdout)
    names = ", ".join(f"`{module}`" for module in modules)
    counted = summary[1] if summary else f"no result, exit status {ran.returncode}"
    failures = [line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    line = f"{names} against Kafka {NEWER_VERSION}: {counted}"
    return [Finding(line, ran.returncode == 0 and summary is not None), *(Finding(text, False) for text in failures)]


def _clients_by_release() -> list[Finding]:
    """Run the clients of the table of clients and releases with a real Kafka of each release. The committed outcomes are those of this broker."""
    return [finding for release in expected.RELEASES for finding in _clients_of_release(release)]


def _clients_of_release(release: str) -> list[Finding]:
    kafka = f"Kafka {VERSIONS[release]}"
    observed = expected.observe_real(release)
    differences = expected.differences(release, observed)
    tasks = sum(len(outcomes["tasks"]) for outcomes in observed.values())
    line = f"{kafka}: the outcomes of {tasks} tasks of {len(observed)} clients are those in `docs/reference/clients-by-release.md`"
    return [Finding(line, not differences), *(Finding(f"{kafka}: {text}", False) for text in differences)]


def _distribution() -> list[Finding]:
    try:
        return [Finding(line.removeprefix("- "), True) for line in distribution_lines()]
    except NotAsPublished as error:
        return [Finding(str(error), False)]


def _kills() -> list[Finding]:
    """Kill a broker with a data directory while members of groups commit and rebalance, with each group coordinator."""
    findings = []
    parts = len(COORDINATORS)
    for number, (name, coordinator) in enumerate(COORDINATORS.items()):
        kills = KILLS * (number + 1) // parts - KILLS * number // parts
        try:
            with tempfile.TemporaryDirectory() as folder, broker_processes() as processes:
                totals = group_kills.run(processes, Path(folder), kills, seed=0, coordinator=coordinator)
        except AssertionError as error:
            findings.append(Finding(f"{name}: a broker was killed while groups rebalanced: {error}", False))
            continue
        line = (
            f"{name}: {totals.kills} kills with `kill -9` during {totals.commits:,} commits and {totals.rebalances:,} rebalances; each "
            f"acknowledged offset was there afterwards, no generation or epoch went back, and {totals.continued} members continued"
        )
        findings.append(Finding(line, totals.kills == kills))
    return findings


def _kills_in_transactions() -> list[Finding]:
    """Kill a broker with a data directory in the middle of transactions of several producers."""
    findings = []
    kills = KILLS // len(KILLED_RELEASES)
    for release in KILLED_RELEASES:
        try:
            with tempfile.TemporaryDirectory() as folder, broker_processes() as processes:
                totals = transaction_kills.run(processes, Path(folder), kills, seed=0, release=release)
        except AssertionError as error:
            findings.append(Finding(f"a broker of release {release} was killed in transactions: {error}", False))
            continue
        line = (
            f"release {release}: {totals.kills} kills with `kill -9`, which hit {totals.open:,} open transactions; {totals.committed:,} "
            f"transactions committed before and between them are visible with their offsets, the {totals.aborted:,} aborted ones and the open "
            f"ones are not, and {totals.continued} producers continued with the request that got no response"
        )
        findings.append(Finding(line, totals.kills == kills))
    return findings


# ---- results -----------------------------------------------------------------------------------------------------------------------


def commit() -> str:
    """Return the short hash of the current commit."""
    return git("rev-parse", "--short", "HEAD")


def done(part: Part, name_of_commit: str, at: dict[str, str]) -> Result:
    """Run a part and return its result. at: the current `code_hashes`."""
    start_s = time.monotonic()
    findings = part.run()
    seconds = round(time.monotonic() - start_s)
    code = {key: at[key] for key in part.code}
    return Result(part.name, name_of_commit, code, f"{datetime.now(UTC):%Y-%m-%d}", seconds, findings)


def write(result: Result, folder: Path = RESULTS) -> None:
    """Write a result file, to be committed."""
    folder.mkdir(exist_ok=True)  # git keeps no empty folder
    (folder / f"{result.name}.json").write_text(json.dumps(asdict(result), indent=1) + "\n")


def read(folder: Path = RESULTS) -> dict[str, Result]:
    """Return the results from their files, by name of their part."""
    results = {}
    for path in sorted(folder.glob("*.json")):
        fields = json.loads(path.read_text())
        fields["findings"] = [Finding(**finding) for finding in fields["findings"]]
        results[fields["name"]] = Result(**fields)
    return results


def missing(parts: list[Part], results: dict[str, Result], at: dict[str, str]) -> Iterator[Part]:
    """Yield the parts without a result that counts."""
    return (part for part in parts if not counts(results.get(part.name), at))


def counts(result: Result | None, at: Mapping[str, str]) -> bool:
    """Return whether a result exists, was measured with the code `at`, and holds."""
    return result is not None and result.holds and all(at[key] == code for key, code in result.code.items())
