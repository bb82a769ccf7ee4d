"""Kinds of clusters: which tests run on a kind whose release is known, and that none of them is skipped there."""

from __future__ import annotations

import pytest

pytest_plugins = ("pytester",)

KINDS = """
    from kafkaproto.conformance.plugin import Kind

    class Stub:
        def __init__(self, profile):
            pass

        def close_connections(self):
            pass

        def restore(self):
            pass

        def stop(self):
            pass

    def pytest_conformance_kinds(config):
        older = Kind("older", Stub, release="3.9")
        newer = Kind("newer", Stub, release="4.2", left_out=["test_left_out"])
        return [older, newer, Kind("unknown", Stub)]
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    """Return a suite whose clusters are two of known releases and one of an unknown one."""
    pytester.makeini(
        "[pytest]\naddopts = -p no:cacheprovider -p no:asyncio --strict-markers -p kafkaproto.conformance.plugin\n"
    )
    pytester.makeconftest(KINDS)
    return pytester


def ran(suite: pytest.Pytester) -> list[str]:
    """Run the suite and return the names of the tests that passed."""
    lines = suite.runpytest_subprocess("-v", "-rA").stdout.lines
    return sorted(line.rpartition("::")[2] for line in lines if line.startswith("PASSED"))


def test_conformance_test_marked_for_kafka_4_0_and_later_does_not_run_on_kafka_3_9(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        def test_all(subject):
            pass

        @pytest.mark.releases(first="4.0")
        def test_new(subject):
            pass

        @pytest.mark.parametrize("version", [pytest.param(0, marks=pytest.mark.releases(before="4.0")), 3])
        def test_versions(subject, version):
            pass
        """
    )
    assert ran(suite) == [
        *("test_all[newer]", "test_all[older]", "test_all[unknown]", "test_new[newer]", "test_new[unknown]"),
        *("test_versions[newer-3]", "test_versions[older-0]", "test_versions[older-3]"),
        *("test_versions[unknown-0]", "test_versions[unknown-3]"),
    ]


def test_conformance_test_runs_only_on_releases_allowed_by_test_and_module_markers(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        pytestmark = pytest.mark.releases(first="4.0")

        def test_new(subject):
            pass

        @pytest.mark.releases(before="4.2")
        def test_between(subject):
            pass
        """
    )
    assert ran(suite) == ["test_between[unknown]", "test_new[newer]", "test_new[unknown]"]


def test_conformance_module_excluded_on_one_cluster_still_runs_on_other_clusters(suite: pytest.Pytester) -> None:
    suite.makepyfile(test_left_out="def test_it(subject): pass")
    assert ran(suite) == ["test_it[older]", "test_it[unknown]"]


def test_conformance_test_may_skip_itself_only_on_a_cluster_of_unknown_release(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        def test_it(subject):
            pytest.skip("not prepared: needs Fetch v0")
        """
    )
    result = suite.runpytest_subprocess("-k", "not older")
    result.assert_outcomes(failed=1, skipped=1)
    result.stdout.fnmatch_lines("*skipped on newer, whose release 4.2 is known*needs Fetch v0*")
