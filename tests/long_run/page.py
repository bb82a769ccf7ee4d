"""docs/long-run.md: the results of the parts of the long run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tests.documentation.markdown import table
from tests.long_run.code import ROOT
from tests.long_run.parts import Result, commit, counts

PAGE = ROOT / "docs" / "long-run.md"
OLDER = ", older code"
"""Marks a part whose result was measured with other code than the present one."""


class Kind(NamedTuple):
    """Parts that prove the same, which share a row of the table.

    names: matches the names of the parts. what: what they prove, for the table. how: how they prove it, for the text below the table; empty if `what`
    says all. amounts: (regular expression of a number in the findings, its unit) of what is counted.
    """

    title: str
    names: str
    what: str
    how: str
    amounts: tuple[tuple[str, str], ...]


_CONVERSATIONS = ((r"([\d,]+) conversations", "conversations"),)
KINDS = (
    Kind(
        "kafka-configs",
        "kafka-configs",
        "Kafka's tool `kafka-configs` prints the same as with a real Kafka.",
        "",
        ((r"all ([\d,]+) commands", "commands"),),
    ),
    Kind(
        "Clients under quotas",
        r"clients-\d+-seconds",
        "Client libraries are throttled as [Q-2 to Q-6](rules/quotas.md) say, and get as much of a byte quota as from a real Kafka.",
        "Client libraries produce or consume under a byte quota. The throttle time of each request is compared with a separate implementation of\n"
        "[the quota rules](rules/quotas.md). *Charged bytes / possible bytes* is 1 if the client used all that the quota allows.\n"
        "*Record bytes / quota* is what the client transferred; it exceeds 1 because the samples of a quota allow a burst at the start. Brackets\n"
        "hold the lowest and highest of five runs.",
        ((r"([\d,]+) requests,", "requests"), (r"([\d,]+) throttled", "of them throttled")),
    ),
    Kind(
        "Clients by release",
        "clients-by-release",
        "A real Kafka 0.11.0.3, 1.1.1, 2.8.2, 3.9.1 and 4.2.0 gives client libraries the results of [this table](reference/clients-by-release.md).",
        "`make test-all` checks that this broker gives the same results. This part runs no broker of this project, so only a change of\n"
        "the table makes it outdated.",
        ((r"outcomes of ([\d,]+) tasks", "tasks"),),
    ),
    Kind(
        "Distribution",
        "distribution",
        "The package that is built from a checkout works in an empty folder.",
        "The tests of `make test` run in an unpacked sdist. The wheel is installed with the extras `spark`, `demo` and `conformance`, and a\n"
        "command of each extra runs.",
        ((r"gives ([\d,]+) passed", "tests"),),
    ),
    Kind(
        "Kills",
        "kills-.*",
        "A broker with a data directory loses nothing that it acknowledged when it is killed with `kill -9`.",
        "The broker is killed in the middle of transactions, or while members of two groups join, commit and leave. With the coordinator in Scala,\n"
        "the default of 3.9, both groups are classic; with the one in Java, one of them is a KIP-848 group.",
        ((r"([\d,]+) kills", "kills"),),
    ),
    Kind(
        "Conformance on 4.2.0",
        r"conformance-.*",
        "The tests of the conformance suite hold on a real Kafka 4.2.0, too.",
        "These are the modules that `make test-all` runs on Kafka 3.9.1 but not on 4.2.0, because they take minutes.",
        ((r"([\d,]+) passed", "tests"),),
    ),
    Kind(
        "Conversations: log",
        r"conversations-(\d+|log-.*)",
        "Random requests that write and read records get the responses that a real Kafka gives.",
        "A *conversation* is a sequence of random requests that goes to this broker and to a real Kafka. Their responses are compared field by\n"
        "field. A conversation is *unstable* if Kafka itself responds differently when it is repeated; its part holds only if the reason is\n"
        "known and listed. The parts with only a number are about the log of Kafka 3.9.1; the others have the release in their name.",
        _CONVERSATIONS,
    ),
    Kind(
        "Conversations: stopped brokers",
        "conversations-with-nodes.*",
        "Random requests that write and read records get these responses while brokers stop and start, too.",
        "",
        _CONVERSATIONS,
    ),
    Kind(
        "Conversations: transactions",
        "conversations-transactions-.*",
        "Random requests of transactional producers get the responses that a real Kafka gives.",
        "",
        _CONVERSATIONS,
    ),
    Kind(
        "Conversations: groups",
        r"conversations-(classic-)?groups-.*",
        "Random requests of members of consumer groups, and about offsets, get the responses that a real Kafka gives.",
        "*classic-groups-3.9* has classic members and the coordinator in Scala, the default of that release. The others have the coordinator in\n"
        "Java, half of them with members of KIP-848 and half with classic members. The lists of members, topics and\n"
        "partitions in a response are sorted first, because their order depends on the hashes of ids, which differ.",
        _CONVERSATIONS,
    ),
    Kind(
        "Conversations: assignments",
        "conversations-assignments-.*",
        "KIP-848 groups with many members get the assignments that a real Kafka gives.",
        "Groups have up to 14 members and topics up to 16 partitions. With more, the differences that GN-45 names could show.",
        _CONVERSATIONS,
    ),
    Kind(
        "Conversations: settings",
        "conversations-settings-.*",
        "Random changes of settings and quotas get the responses that a real Kafka gives.",
        "",
        _CONVERSATIONS,
    ),
    Kind(
        "Simulation",
        "simulation-.*",
        "Under random failures, the broker never breaks an [invariant](rules/invariants.md).",
        "Random clients, members of groups, transactional producers, failures and quotas run in virtual time, and the invariants are checked after\n"
        "each step. The releases are 3.9, 4.1 and 4.2. About half of the runs of 3.9 have the coordinator in Java and half that in Scala.",
        ((r"of ([\d,]+) held", "runs"), (r"([\d,]+) client operations", "client operations")),
    ),
)
HEAD = """# The long run

Some proofs take hours, too long to repeat them for each change. Each part of the long run compares this broker with a real Kafka or with the
[rules](rules/index.md). `make long` runs the parts whose results are missing or outdated, keeps one result file for each part in
`tests/long_run/results/`, and writes this page.

A result counts only for the code with which it was measured:

- After a change of `broker/` or `kafkaproto/`, the part must be repeated. Comments, docstrings, names of tests and local variables do not count.
- A simulation must be repeated only after a change of the files that it loads (`tests/long_run/simulated_files.txt`).
- A change in the tests of the conformance suite matters only to *conformance* and *distribution*.
"""
CURRENT = "All {parts} parts have a result for the code of {head}, at which this page was written."
NOT_CURRENT = (
    "When this page was written, at {head}, {outdated} of {parts} parts had no result for the code of this commit. `make long` runs them again. The "
    "table says of each part whether its result is of older code."
)


def page(names: Sequence[str], results: Mapping[str, Result], outdated: Collection[str], head: str) -> str:
    """Return the page. names: all parts, in their order. outdated: those that are to be run at the commit `head`."""
    available = {name: results[name] for name in names if name in results}
    parts = [HEAD, "## Results\n", f"{_state(len(names), len(outdated), head)}\n", f"{_held(len(names), available)}\n"]
    kinds = _by_kind(names)
    parts.append(
        table(
            ("part", "what it proves", "how much", "result", "date", "commit"),
            (_row(kind, of_kind, available, outdated) for kind, of_kind in kinds.items()),
        )
    )
    parts.append("## How the parts prove it\n")
    parts.extend(f"- **{kind.title}.** {_indented(kind.how, 2)}" for kind in kinds if kind.how)
    parts.append('\n??? example "The result of each part"\n')
    parts.extend(f"    {line}" for line in _lines(names, available, outdated))
    return "\n".join(parts) + "\n"


def _by_kind(names: Sequence[str]) -> dict[Kind, list[str]]:
    """Return the names of the parts by kind. Raises ValueError for a part that has not exactly one kind."""
    for name in names:
        count = sum(re.fullmatch(kind.names, name) is not None for kind in KINDS)
        if count != 1:
            raise ValueError(f"part {name} has {count} kinds in tests/long_run/page.py; give it one")
    by_kind = {kind: [name for name in names if re.fullmatch(kind.names, name)] for kind in KINDS}
    return {kind: of_kind for kind, of_kind in by_kind.items() if of_kind}


def _state(parts: int, outdated: int, head: str) -> str:
    """Return the sentence that says how many parts are to be run at a commit; a warning if there are any."""
    text = (NOT_CURRENT if outdated else CURRENT).format(parts=parts, outdated=outdated, head=head)
    return f'!!! warning "Not current"\n\n    {text}' if outdated else text


def _held(parts: int, available: Mapping[str, Result]) -> str:
    broken = [name for name, result in available.items() if not result.holds]
    if broken:
        return f"{len(available)} of {parts} parts were run. **These do not hold:** {', '.join(broken)}."
    return f"{len(available)} of {parts} parts were run, and each of them held when it was last run."


def _row(
    kind: Kind, names: Sequence[str], available: Mapping[str, Result], outdated: Collection[str]
) -> tuple[str, ...]:
    results = [available[name] for name in names if name in available]
    dates = sorted({result.date for result in results})
    commits = sorted({result.commit for result in results})
    return (
        kind.title,
        kind.what,
        _amount(kind, results),
        _verdict(names, available, outdated),
        " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "",
        ", ".join(commits),
    )


def _amount(kind: Kind, results: Sequence[Result]) -> str:
    """Return what the results have counted, in total, such as "10,000 runs"."""
    text = "\n".join(finding.line for result in results for finding in result.findings)
    counted = ((sum(int(number.replace(",", "")) for number in re.findall(n, text)), unit) for n, unit in kind.amounts)
    return ", ".join(f"{total:,} {unit}" for total, unit in counted if total)


def _verdict(names: Sequence[str], available: Mapping[str, Result], outdated: Collection[str]) -> str:
    """Return the result of some parts in words: how many hold, held with older code, do not hold, or were not run."""

    def of(name: str) -> str:
        if name not in available:
            return "not run"
        if not available[name].holds:
            return "**does not hold**"
        return "held with older code" if name in outdated else "holds"

    counted = Counter(map(of, names))
    if len(counted) == 1:
        return next(iter(counted))
    return ", ".join(f"{verdict} ({count} of {len(names)})" for verdict, count in counted.most_common())


def _lines(names: Sequence[str], available: Mapping[str, Result], outdated: Collection[str]) -> Iterator[str]:
    """Yield the lines of a list of all parts with their findings."""
    for name in names:
        result = available.get(name)
        if result is None:
            yield f"- {name}: not run."
            continue
        yield f"- {name}, {result.commit}, {result.date}, {result.seconds} s{OLDER if name in outdated else ''}:"
        for finding in result.findings:
            line = finding.line.removesuffix(".")
            yield f"    - {line}." if finding.holds else f"    - **does not hold:** {finding.line}"


def _indented(text: str, spaces: int) -> str:
    return text.replace("\n", "\n" + " " * spaces)


def write_page(names: Sequence[str], results: Mapping[str, Result], at: Mapping[str, str], path: Path = PAGE) -> None:
    """Write docs/long-run.md. at: the present `code_hashes`."""
    outdated = [name for name in names if not counts(results.get(name), at)]
    path.write_text(page(names, results, outdated, commit()))
