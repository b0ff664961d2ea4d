"""Where the package's own files lie: in a wheel, an editable install or a bare checkout."""

from __future__ import annotations

from pathlib import Path

from specfit.base.types import SpecfitError

PACKAGE = Path(__file__).resolve().parents[1]
_HOMES = (PACKAGE / "conf", PACKAGE.parent / "conf")
CONF = next((folder for folder in _HOMES if folder.is_dir()), _HOMES[0])
"""The config groups: `specfit/conf` of a wheel, `conf/` at the top of a checkout."""


def checkpoint_folder(folder: Path) -> Path:
    """The folder. Raises SpecfitError where it is not there."""
    if not folder.is_dir():
        raise SpecfitError(f"no checkpoint folder at {folder}; set model.path to one")
    return folder
