"""Stored artifacts contain no path of the machine that made them."""

from __future__ import annotations

import tarfile

import pytest

from tests.artifacts.holding import FOLDER

PLACES = (b"/tmp/", b"/home/", b"/root/", b"/Users/", b"/dev/shm", b"/work/")


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.tar.gz")))
def test_archived_test_data_contains_no_paths_of_the_machine_that_wrote_the_data(name: str) -> None:
    with tarfile.open(FOLDER / name) as tar:
        files = [member for member in tar if member.isfile()]
        leaks = [member.name for member in files for place in PLACES if place in tar.extractfile(member).read()]
    assert files and not leaks
