"""docs/long-run.md: the results of the parts of the long run."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from tests.long_run.code import ROOT
from tests.long_run.parts import Result, commit, counts

PAGE = ROOT / "docs" / "long-run.md"
OLDER = ", older code"
"""Marks a part whose result was measured with other code than the present one."""
HEAD = """# The long run

Proofs that take hours. Each part compares this broker with a real Kafka or with the [rules](rules/index.md). `make long` runs the parts, keeps one
result file for each in `tests/long_run/results/`, and writes this page. A result counts only for the code it was measured with: after a change of
`broker/` or `kafkaproto/`, except of comments, docstrings and names of tests, the part must be repeated. A simulation must be repeated only
after a change of the files it loads (`tests/long_run/simulated_files.txt`). A change in the tests of the conformance suite matters only to
*conformance* and *distribution*.
"""
LEGEND = """What the lines say:

- *kafka-configs*: the tool kafka-configs of Apache Kafka prints the same against this broker and against a real Kafka.
- *clients*: client libraries produce or consume under a byte quota. The throttle time of each request is compared with a separate implementation of
  [the quota rules](rules/quotas.md) (Q-2 to Q-6). *Charged bytes / possible bytes* is 1 if the client used all that the quota allows.
  *Record bytes / quota* is what the client transferred; it exceeds 1 because the samples of a quota allow a burst at the start. Brackets hold the
  lowest and highest of five runs.
- *clients-by-release*: client libraries get the same results from a real Kafka of each release as from this broker, which
  [clients by release](reference/clients-by-release.md) lists and `make test-all` checks. It runs no broker of this project, so only
  a change of that page makes it outdated.
- *distribution*: the sdist and the wheel, installed into an empty folder.
- *kills*: a broker with a data directory is killed in the middle of transactions, or while members of two groups join, commit and leave. With the
  coordinator in Scala, the default of 3.9, both groups are classic; with the one in Java, one of them is a KIP-848 group.
- *conformance*: the modules of the conformance suite that `make test-all` runs on Kafka 3.9.1 but not on 4.2.0, because they take minutes.
- *conversations*: the same random requests go to this broker and to a real Kafka, and their responses are compared. A conversation is *unstable* if
  Kafka itself responds differently when it is repeated; its part holds only if the reason is known and listed. With *nodes*, brokers stop and start
  in between. Parts with a release in their name go to Kafka 3.9.1 or 4.2.0: about the *log*, *transactions*, *settings* with quotas, the
  *assignments* of KIP-848 groups with many members, and groups. *classic-groups-3.9* has classic members and the old
  coordinator, the default of that release. The other groups have the coordinator in Java, half of them with members of KIP-848 and half with
  classic members. The parts with only a number are about the log, on 3.9.1.
- *simulation*: random clients, members of groups, transactional producers, failures and quotas in virtual time, checked against the
  [invariants](rules/invariants.md) after each step. The releases are 3.9, 4.1 and 4.2. About half of the runs of 3.9 have the coordinator in Scala.
- *older code*: the code has changed since the part was run.
"""


def page(names: Sequence[str], results: Mapping[str, Result], outdated: Collection[str], head: str) -> str:
    """Return the page. names: all parts, in their order. outdated: those that are to be run at the commit `head`."""
    return "\n".join([HEAD, *_lines(names, results, outdated, head)]) + "\n"


def _lines(names: Sequence[str], results: Mapping[str, Result], outdated: Collection[str], head: str) -> Iterator[str]:
    available = [results[name] for name in names if name in results]
    held = [result for result in available if result.holds]
    commits = sorted({result.commit for result in available})
    yield f"{len(held)} of {len(names)} parts held when they were last run, at {', '.join(commits) or 'no commit'}."
    yield f"{state(names, len(outdated), head)}\n"
    yield LEGEND
    for name in names:
        result = results.get(name)
        if result is None:
            yield f"- {name}: not run."
            continue
        yield f"- {name}, {result.commit}, {result.date}, {result.seconds} s{OLDER if name in outdated else ''}:"
        for finding in result.findings:
            yield (
                f"  - {finding.line.removesuffix('.')}." if finding.holds else f"  - **does not hold:** {finding.line}"
            )


def state(names: Sequence[str], outdated: int, head: str) -> str:
    """Return the sentence that says how many parts are to be run at a commit."""
    if not outdated:
        return f"All of these results count for the code of {head}, at which this page was written."
    return f"When this page was written, at {head}, {outdated} of {len(names)} parts had no result for the present code: they must be run."


def write_page(names: Sequence[str], results: Mapping[str, Result], at: Mapping[str, str], path: Path = PAGE) -> None:
    """Write docs/long-run.md. at: the present `code_hashes`."""
    outdated = [name for name in names if not counts(results.get(name), at)]
    path.write_text(page(names, results, outdated, commit()))
