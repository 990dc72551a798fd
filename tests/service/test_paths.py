"""Folders of ours: private, and nobody else's."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from a40console.errors import RefusedError
from a40console.paths import make_private

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")


def test_a_linked_home_is_a_home(tmp_path: Path) -> None:
    volume, link = tmp_path / "volume", tmp_path / "state"
    volume.mkdir(mode=0o755)
    link.symlink_to(volume)
    assert make_private(link) == link
    assert volume.stat().st_mode & 0o777 == 0o700


def test_where_everybody_writes_a_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "runtime").symlink_to(tmp_path / "real")
    with pytest.raises(RefusedError, match="is a symbolic link"):
        make_private(tmp_path / "runtime", link=False)


@as_root
@pytest.mark.parametrize("linked", [False, True])
def test_somebody_elses_folder_is_refused(tmp_path: Path, linked: bool) -> None:
    theirs, ours = tmp_path / "theirs", tmp_path / "ours"
    theirs.mkdir()
    os.chown(theirs, 12345, 12345)
    ours.symlink_to(theirs)
    with pytest.raises(RefusedError, match="belongs to somebody else"):
        make_private(ours if linked else theirs)


def test_a_link_that_leads_nowhere_is_told(tmp_path: Path) -> None:
    (tmp_path / "state").symlink_to(tmp_path / "gone")
    with pytest.raises(RefusedError, match="cannot be used"):
        make_private(tmp_path / "state")
