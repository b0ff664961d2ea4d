"""The tiny random pair, once per session. A plugin of `conftest.py`; torch is imported on use."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.fakes.pairs import Pair


@pytest.fixture(scope="session")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Pair:
    from tests.fakes.pairs import make_pair

    return make_pair(tmp_path_factory.mktemp("pair"))
