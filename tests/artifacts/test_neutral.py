"""No artifact names the machine on which it was made."""

from __future__ import annotations

import tarfile

import pytest

from tests.artifacts.holding import FOLDER

PLACES = (b"/tmp/", b"/home/", b"/root/", b"/Users/", b"/dev/shm", b"/work/")


@pytest.mark.parametrize("name", sorted(path.name for path in FOLDER.glob("*.tar.gz")))
def test_an_artifact_names_no_place_of_the_machine_that_made_it(name: str) -> None:
    with tarfile.open(FOLDER / name) as tar:
        files = [one for one in tar if one.isfile()]
        found = [one.name for one in files for place in PLACES if place in tar.extractfile(one).read()]
    assert files and not found
