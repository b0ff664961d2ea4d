"""Where the package's own files lie: in a wheel, an editable install or a bare checkout."""

from __future__ import annotations

from pathlib import Path

PACKAGE = Path(__file__).resolve().parents[1]
_HOMES = (PACKAGE / "conf", PACKAGE.parent / "conf")
CONF = next((folder for folder in _HOMES if folder.is_dir()), _HOMES[0])
"""The config groups: `specfit/conf` of a wheel, `conf/` at the top of a checkout."""
