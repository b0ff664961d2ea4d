"""A slow link is explained by name; where nothing is known nothing is invented."""

from __future__ import annotations

from pathlib import Path

import pytest

from specfit.hardware.pcie import LinkReading, LinkState
from specfit.hardware.system_info import Surroundings, surroundings

FULL = LinkState(4, 16, 4, 16)


def findings(pinned: float, pageable: float, state: LinkState, **around: bool | None) -> str:
    return " / ".join(LinkReading(pinned, pageable, state).findings(**around))


def test_a_healthy_link_has_no_findings() -> None:
    assert findings(25.5, 14.0, FULL) == ""
    assert findings(55.0, 18.0, LinkState(5, 16, 5, 16)) == ""


@pytest.mark.parametrize(
    ("pinned", "pageable", "state", "named"),
    [
        (12.8, 9.0, LinkState(4, 8, 4, 16), "8 of 16 lanes: a slot wired x8, a riser"),
        (12.6, 9.0, LinkState(3, 16, 4, 16), "PCIe 3 under load where 4 is possible"),
        (12.0, 11.8, FULL, "no faster than pageable"),
        (12.0, 8.0, FULL, "12 GB/s where 25 belong on this link"),
        (12.0, 8.0, LinkState(), "24 belong to PCIe 4 x16"),
    ],
)
def test_12_where_24_belong(pinned: float, pageable: float, state: LinkState, named: str) -> None:
    assert named in findings(pinned, pageable, state)


def test_the_wrong_numa_node_is_named() -> None:
    assert "another NUMA node than the GPU: numactl" in findings(12, 8, FULL, on_wrong_node=True)
    assert "node is the right one" in findings(12, 8, FULL, on_wrong_node=False)


def test_wsl_is_named() -> None:
    assert "WSL2" in findings(12, 12, FULL, is_wsl=True)


def test_unknown_state_is_said() -> None:
    assert "unknown" in str(LinkState()) and str(FULL) == "PCIe 4 x16"
    assert findings(25.0, 14.0, LinkState()) == ""


# -- surroundings --------------------------------------------------------------------------------


def write(root: Path, path: str, text: str) -> None:
    file = root / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_plain_machine_has_no_notes(tmp_path: Path) -> None:
    found = surroundings(root=tmp_path)
    assert found == Surroundings(False, False, (), None) and found.notes() == []
    assert found.on_wrong_node is None


def test_wsl_and_container_are_seen(tmp_path: Path) -> None:
    write(tmp_path, "proc/sys/kernel/osrelease", "5.15.90.1-microsoft-standard-WSL2\n")
    write(tmp_path, "proc/1/cgroup", "0::/docker/abc\n")
    found = surroundings(root=tmp_path)
    assert found.is_wsl and found.in_container and len(found.notes()) == 2


def test_the_gpus_node_is_held_against_the_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path, "sys/devices/system/node/node0/cpulist", "0-3,8\n")
    write(tmp_path, "sys/devices/system/node/node1/cpulist", "4-7\n")
    write(tmp_path, "sys/bus/pci/devices/0000:c1:00.0/numa_node", "1\n")
    monkeypatch.setattr("specfit.hardware.system_info._affinity", lambda: {2, 8})
    found = surroundings("0000:C1:00.0", tmp_path)
    assert found.nodes == (0,) and found.gpu_node == 1 and found.on_wrong_node
    assert "--cpunodebind=1" in found.notes()[0]
    monkeypatch.setattr("specfit.hardware.system_info._affinity", lambda: {2, 5})
    found = surroundings("0000:C1:00.0", tmp_path)
    assert found.nodes == (0, 1) and found.on_wrong_node is False
