"""Host memory as /proc and cgroups say, and the arithmetic of device bytes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from specfit.base.paths import PACKAGE
from specfit.base.published import QWEN3_30B_A3B
from specfit.hardware.memory import DeviceNeeds, host_memory
from specfit.hardware.reference_models import BILLED_MODELS

NEEDS = DeviceNeeds(
    layers=2,
    experts=8,
    expert_bytes=100,
    dense_bytes=1000,
    drafter_bytes=50,
    kv_bytes_per_token=3,
    workspace_bytes=7,
)


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    write(
        tmp_path, "proc/meminfo", "MemTotal: 1000 kB\nMemAvailable:   600 kB\nHugePages_Total: 0\n"
    )
    return tmp_path


def test_without_a_limit(root: Path) -> None:
    memory = host_memory(root)
    assert (memory.total, memory.available, memory.limit_left) == (1024000, 614400, None)
    assert memory.usable == 614400


def test_the_tightest_cgroup_counts_and_cached_pages_do_not(root: Path) -> None:
    write(root, "proc/self/cgroup", "0::/jobs/mine\n")
    write(root, "sys/fs/cgroup/jobs/mine/memory.max", "500000\n")
    write(root, "sys/fs/cgroup/jobs/mine/memory.current", "300000\n")
    write(
        root,
        "sys/fs/cgroup/jobs/mine/memory.stat",
        "anon 1\ninactive_file 60000\nactive_file 40000\n",
    )
    write(root, "sys/fs/cgroup/jobs/memory.max", "max\n")
    write(root, "sys/fs/cgroup/jobs/memory.current", "1\n")
    assert host_memory(root).usable == 500000 - 300000 + 100000
    write(root, "sys/fs/cgroup/memory.max", "400000\n")
    write(root, "sys/fs/cgroup/memory.current", "350000\n")
    assert host_memory(root).usable == 50000


def test_a_container_sees_its_own_group_as_the_top(root: Path) -> None:
    write(root, "proc/self/cgroup", "4:memory:/docker/abc\n0::/\n")
    write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "200000\n")
    write(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "50000\n")
    assert host_memory(root).usable == 150000


def test_version_1_says_no_limit_with_a_huge_number(root: Path) -> None:
    write(root, "proc/self/cgroup", "4:memory:/\n")
    write(root, "sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n")
    write(root, "sys/fs/cgroup/memory/memory.usage_in_bytes", "50000\n")
    assert host_memory(root).limit_left is None


def test_a_system_that_says_nothing(tmp_path: Path) -> None:
    assert host_memory(tmp_path).usable is None


def test_device_bytes_are_the_sum_of_their_parts() -> None:
    rows = NEEDS.rows(slots=5, staging_blocks=3, context=10)
    assert rows["slots"] == 1000 and rows["staging"] == 300 and rows["KV cache"] == 30
    assert NEEDS.device_bytes(5, 3, 10) == 1000 + 300 + 1000 + 50 + 30 + 7


def test_the_largest_count_that_fits() -> None:
    base = NEEDS.device_bytes(0, 3, 10)
    assert NEEDS.largest_slots(base - 1, 3, 10) == -1
    assert NEEDS.largest_slots(base, 3, 10) == 0
    assert NEEDS.largest_slots(base + 599, 3, 10) == 2
    assert NEEDS.largest_slots(base + 600, 3, 10) == 3
    assert NEEDS.largest_slots(10**9, 3, 10) == 8


def test_48_slots_are_marginal_on_a_card_of_24_gib() -> None:
    needs = BILLED_MODELS["qwen3-30b-a3b"]
    slots = needs.largest_slots(24564 * 2**20, 3, 1500)
    assert 43 <= slots < 48
    assert needs.store_bytes == pytest.approx(58.0e9, rel=1e-3)


def test_the_dummys_config_is_the_published_shape() -> None:
    shape = QWEN3_30B_A3B
    config = json.loads((PACKAGE / "weights" / "qwen3-30b-a3b-dummy" / "config.json").read_text())
    assert {
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.kv_heads,
        "head_dim": shape.head_dim,
        "num_experts": shape.experts,
        "num_experts_per_tok": shape.top_k,
        "moe_intermediate_size": shape.intermediate,
        "vocab_size": shape.vocabulary,
    }.items() <= config.items()
