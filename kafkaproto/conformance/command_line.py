"""`kafkaproto conformance`: run the suite against a running cluster, and print the card."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence

import pytest

from kafkaproto.conformance import card, plugin
from kafkaproto.conformance.foreign import NoCluster, brokers_at, check_reachable
from kafkaproto.conformance.subject import profiles, settings_of

BROKERS_NEEDED = "three brokers with the ids 0, 1 and 2, in the racks r0, r1 and r2"


def main(arguments: Sequence[str]) -> int:
    """Run the suite. Returns 0 if tests passed and none failed, 1 if one failed, 2 to 4 if the suite did not run, 5 if no test ran."""
    options, pytest_arguments = parser().parse_known_args(arguments)
    if options.settings:
        return print_settings(options.settings)
    if options.bootstrap is None:
        parser().error("--bootstrap HOST:PORT is missing: the address of one broker of the cluster to test")
    try:
        brokers = brokers_at(plugin.addresses(options.bootstrap), options.semantics)
        check_reachable(brokers, options.semantics)
    except pytest.UsageError as error:
        parser().error(str(error))
    except NoCluster as error:
        sys.stderr.write(f"kafkaproto conformance: {error}\n")
        return pytest.ExitCode.USAGE_ERROR
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"  # a plugin that is installed for other tests has no say here
    outcomes = Outcomes()
    status = pytest.main(
        [
            *map(str, plugin.modules()),
            # Nothing of the folder from which it is called: neither its pytest settings nor its conftest.
            f"--config-file={os.devnull}",
            f"--rootdir={plugin.FOLDER}",
            f"--confcutdir={plugin.FOLDER}",
            *("--strict-markers", "-q", "-r", "fE", "-p", "no:cacheprovider"),
            f"--bootstrap={options.bootstrap}",
            f"--semantics={options.semantics}",
            *pytest_arguments,
        ],
        [plugin, card, outcomes],  # as modules: named with -p, pytest warns that they are imported already
    )
    if status == pytest.ExitCode.OK and outcomes.seen == {"skipped"}:
        sys.stderr.write("kafkaproto conformance: no test ran: the cluster is not prepared for any of them\n")
        return pytest.ExitCode.NO_TESTS_COLLECTED
    return int(status)


class Outcomes:
    """A pytest plugin that keeps which outcomes there were: "passed", "failed", "skipped"."""

    def __init__(self) -> None:
        self.seen: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "call" or not report.passed:
            self.seen.add(report.outcome)


def parser() -> argparse.ArgumentParser:
    """Return the options of the command; what it does not know goes to pytest."""
    made = argparse.ArgumentParser(
        prog="kafkaproto conformance",
        description="Black-box tests of a running Kafka cluster; other options go to pytest, for example -k quotas or -x.",
        epilog=f"The cluster should have {BROKERS_NEEDED}, and the settings of a profile. A test whose settings "
        "the cluster does not have is reported as not prepared.",
        allow_abbrev=False,
    )
    made.add_argument("--bootstrap", metavar="HOST:PORT", help="address of one broker of the cluster")
    made.add_argument(
        "--semantics",
        choices=("kip", "kafka"),
        default="kafka",
        help="where the design documents and Kafka itself differ, what to expect (default: kafka)",
    )
    made.add_argument(
        "--settings",
        metavar="PROFILE",
        choices=profiles(),
        help=f"print the settings of a profile: {', '.join(profiles())}",
    )
    return made


def print_settings(profile: str) -> int:
    """Print the settings that the brokers need for the tests of a profile, as a properties file."""
    sys.stdout.writelines(f"{key}={value}\n" for key, value in settings_of(profile).items())
    return 0
