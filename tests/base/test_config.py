"""What composes, what is refused, and which keys make another run."""

from __future__ import annotations

from dataclasses import MISSING
from pathlib import Path
from typing import Any

import pytest
from hydra.errors import ConfigCompositionException
from omegaconf import OmegaConf

from specfit.base.config import HASH_DEFAULTS, RunConfig, declared, from_hydra
from specfit.base.types import SpecfitError
from specfit.decoding.resolve import LiveRunSpec, resolve
from specfit.storage import identity
from specfit.workflows.command_help import help_template
from specfit.workflows.hydra_cli import compose, store_schema
from specfit.workflows.hydra_workers import LAUNCHERS, is_installed
from specfit.workflows.suites.composing import composed
from tests.fakes.tiny_model import RUN_EXPERTS, Command, Runnable

CONF = Path(__file__).resolve().parents[2] / "conf"
FILES = sorted(p.relative_to(CONF) for p in CONF.rglob("*.yaml") if p.parent != CONF)
GROUP_FILES = [file for file in FILES if file.parts[0] != "hydra"]
LAUNCHER_FILES = [file for file in FILES if file.parts[0] == "hydra"]


def config(*overrides: str) -> RunConfig:
    return from_hydra(compose(list(overrides)))


@pytest.mark.parametrize("file", GROUP_FILES, ids=str)
def test_every_group_file_composes(file: Path) -> None:
    group, name = file.parent.as_posix(), file.stem
    assert (CONF / file).read_text().startswith("# "), "a file says first what it is"
    made = config(f"{group}={name}")
    assert getattr(made, group).name == name


@pytest.mark.parametrize("file", LAUNCHER_FILES, ids=str)
def test_every_launcher_file_names_every_value_of_its_launcher(file: Path) -> None:
    """And none that it has not: Hydra checks them against the launcher's own schema."""
    from hydra import compose as hydra_compose
    from hydra import initialize_config_dir
    from hydra.core.config_store import ConfigStore

    name = file.stem
    if not is_installed(LAUNCHERS[name][0]):
        pytest.skip(f"hydra/launcher={name} is not installed")
    assert (CONF / file).read_text().startswith("# "), "a file says first what it is"
    store_schema()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        made = hydra_compose("config", [f"hydra/launcher={name}"], return_hydra_config=True)
    schema = ConfigStore.instance().load(f"hydra/launcher/{name}.yaml").node
    ours = OmegaConf.load(CONF / file)
    assert set(ours) == set(schema) == set(made.hydra.launcher)
    assert ours._target_ == schema._target_


def test_there_are_groups() -> None:
    assert {p.parent.name for p in GROUP_FILES} >= {
        *("model", "drafter", "selector", "routes", "gpu", "dataset", "logger")
    }


def test_every_value_of_a_run_says_what_it_is_for_and_help_shows_it() -> None:
    values = {name: item.metadata for name, item in declared() if "." not in name}
    bare = {
        name for name, about in values.items() if not (about.get("about") or about.get("one_of"))
    }
    groups = {"model", "drafter", "selector", "routes", "gpu", "dataset", "logger"}
    assert bare == groups | {"calibration", "record", "offload"}, (
        "a group is explained in conf/config.yaml"
    )
    shown = help_template("run")
    assert "  level_cost_ms=0.0                       of a drafted level" in shown
    assert "  selector.k=7                            verified nodes at most" in shown
    assert "  device=auto                             auto, cpu, cuda" in shown


def test_the_defaults_are_declared_once() -> None:
    """conf/config.yaml chooses files of groups and sets no value of a run."""
    assert set(OmegaConf.load(CONF / "config.yaml")) == {"defaults", "hydra"}


@pytest.mark.parametrize("dotted", HASH_DEFAULTS)
def test_a_later_key_is_left_out_of_the_hash_by_default(dotted: str) -> None:
    """A default that moves away from the hash default would give new runs new ids: decide it."""
    fields_of = {name: item for name, item in declared()}
    item = fields_of[dotted]
    default = item.default_factory() if item.default is MISSING else item.default  # type: ignore[misc]
    assert default == HASH_DEFAULTS[dotted]


@pytest.mark.parametrize("key", ["zebra", "model.zebra", "gpu.link", "calibration.slot"])
def test_unknown_keys_raise(key: str) -> None:
    with pytest.raises(ConfigCompositionException):
        compose([f"{key}=1"])
    with pytest.raises(SpecfitError, match=f"unknown key {key}"):
        config(f"+{key}=1")


def test_a_config_is_frozen_after_conversion() -> None:
    made = config()
    with pytest.raises(AssertionError, match="limit is frozen"):
        made.limit = 3
    with pytest.raises(AssertionError, match="k is frozen"):
        made.selector.k = 3


@pytest.mark.parametrize(("said", "meant"), [("0", 0), ("12", 12), ("all", "all"), ("fit", "fit")])
def test_cache_slots_is_a_value(said: str, meant: int | str) -> None:
    assert config(f"cache_slots={said}").cache_slots == meant


def test_a_dataset_gives_the_defaults_that_are_not_set() -> None:
    assert (config().request_limit, config().new_tokens) == (20, 96)
    made = config("limit=3", "max_new_tokens=7")
    assert (made.request_limit, made.new_tokens) == (3, 7)


# -- resolving -------------------------------------------------------------------------------------


@pytest.fixture
def settled(runnable: Runnable):  # type: ignore[no-untyped-def]
    def settle(*overrides: str) -> LiveRunSpec:
        said = [*runnable.overrides, "limit=1", "cache_slots=4", *overrides]
        return resolve(from_hydra(composed(said)))

    return settle


@pytest.mark.parametrize("selector", ["ar", "eagle3"])
def test_uncached_systems_have_no_slots_and_say_so(settled, selector: str) -> None:  # type: ignore[no-untyped-def]
    spec = settled(f"selector={selector}", "cache_slots=12")
    assert spec.slots == 0
    assert spec.notes == (
        f"{selector} is the paper's uncached system: cache_slots is 0; see {selector}_cache",
    )


def test_all_is_the_expert_count(settled) -> None:  # type: ignore[no-untyped-def]
    assert settled("cache_slots=all").slots == RUN_EXPERTS


def run_id(spec: LiveRunSpec, calibration: str | None = None) -> str:
    return identity.run_id(spec.identity(calibration))


IRRELEVANT_TO_AR = {
    "drafter": ("drafter.top_k=3", "drafter.max_depth=2", "drafter.path=/nowhere"),
    "routes": ("routes=noisy", "routes.accuracy=0.5"),
    "calibration": ("calibration.slots=2", "calibration.at=own", "calibration.path=/nowhere"),
    "slots": ("cache_slots=all", "cache_slots=12"),
}


@pytest.mark.parametrize("section", IRRELEVANT_TO_AR)
def test_sections_that_ar_never_reads_do_not_change_its_id(settled, section: str) -> None:  # type: ignore[no-untyped-def]
    plain = run_id(settled("selector=ar"))
    for override in IRRELEVANT_TO_AR[section]:
        assert run_id(settled("selector=ar", override)) == plain, override


UNHASHED = (
    "results_dir=/elsewhere",
    "force=true",
    "trace=evaluation-0",
    "device=cpu",
    "gpu.clock=modelled",
    "gpu.advice=none",
)
TELLING = (
    "selector=eagle3_cache",
    "selector.k=5",
    "selector.adaptive_depth=false",
    "drafter.top_k=3",
    "drafter.max_depth=4",
    "routes=noisy",
    "cache_slots=5",
    "limit=2",
    "max_new_tokens=5",
    "prefill_chunk=16",
    "threads=2",
    "repeat=1",
    "model.dtype=bfloat16",
    "gpu=rtx4090",
    "gpu.link_gbps=24",
    "gpu.billed=self",
    "gpu.clock=wall",
    "dataset=embedded_news",
)


def test_keys_that_make_another_run_and_keys_that_do_not(settled) -> None:  # type: ignore[no-untyped-def]
    plain = run_id(settled(), "c")
    for override in UNHASHED:
        assert run_id(settled(override), "c") == plain, override
    ids = {override: run_id(settled(override), "c") for override in TELLING}
    assert plain not in ids.values(), [key for key, value in ids.items() if value == plain]
    assert len(set(ids.values())) == len(TELLING)
    assert run_id(settled(), "another calibration") != plain


def test_saying_a_default_aloud_makes_no_other_run(settled) -> None:  # type: ignore[no-untyped-def]
    said = ("max_new_tokens=96", "seed=0", "gpu=paper_main", "gpu.link_gbps=25", "selector.k=7")
    assert run_id(settled(*said), "c") == run_id(settled(), "c")


def test_the_same_checkpoint_elsewhere_is_the_same_run(
    settled: Any, runnable: Runnable, tmp_path: Path
) -> None:
    moved = runnable.copied_to(tmp_path)
    assert run_id(settled(*moved.overrides), "c") == run_id(settled(), "c")


def test_a_sweep_over_slots(command: Command, runnable: Runnable, tmp_path: Path) -> None:
    settings = ("-m", f"results_dir={tmp_path}", "limit=1", "max_new_tokens=3")
    ended = command(*runnable.overrides, *settings, "selector=ar_cache", "cache_slots=0,all")
    assert (ended.code, ended.err) == (0, "")
    (said,) = [line for line in ended.out.splitlines() if line.startswith("tokens/s ")]
    assert said.split()[1:] == ["0", "slots", str(RUN_EXPERTS), "slots"]
