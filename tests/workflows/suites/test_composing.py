"""Composing in two steps gives what Hydra gives in one."""

from __future__ import annotations

import pytest
from hydra.errors import HydraException
from omegaconf import OmegaConf

from specfit.workflows.hydra_cli import compose, explain
from specfit.workflows.suites.composing import composed
from specfit.workflows.suites.files import choices, read_suite_file, suite_names
from tests.workflows.suites.test_running import SHIPPED

LINES = [
    "",
    "selector=ar limit=3 gpu.link_gbps=12.5 results_dir=/a/b",
    "selector.k=3 selector=eagle3_cache model=qwen3-30b-a3b-dummy model.num_layers=2",
    "gpu=rtx4090 model=qwen3-30b-a3b drafter.hits=[0.5,0.25] dataset.path=null",
    "routes=noisy routes.accuracy=0.6 calibration.at=own cache_slots=all",
    "+model.shape.hidden_size=64 model.source=random",
]


def same(line: list[str]) -> None:
    assert OmegaConf.to_container(composed(line)) == OmegaConf.to_container(compose(line)), line


@pytest.mark.parametrize("line", LINES)
def test_a_line_gives_the_config_that_hydra_composes(line: str) -> None:
    same(line.split())
    same([*line.split(), "seed=3"])


def test_the_first_line_of_every_shipped_group_does() -> None:
    for name in suite_names(SHIPPED):
        group = read_suite_file(name, SHIPPED).groups[0]
        if group.is_configured:
            same(next(iter(choices(group)))[1])


def test_two_lines_share_no_config() -> None:
    first = composed(["selector=ar", "limit=3"])
    assert composed(["selector=ar"]).limit is None and first.limit == 3


@pytest.mark.parametrize("line", ["limt=3", "selector=nope", "limit=1,2", "limit", "gpu.link=x"])
def test_what_hydra_refuses_is_refused_in_the_same_words(line: str) -> None:
    said = []
    for way in (compose, composed):
        with pytest.raises(HydraException) as refused:
            way([line])
        said.append(explain(refused.value))
    assert said[0] == said[1]
