"""A file that several processes may write at once: the first one's stays, whole."""

from __future__ import annotations

import json
import threading
from pathlib import Path

from specfit.storage.atomic import write_json_once


def test_the_first_stays(tmp_path: Path) -> None:
    path = tmp_path / "fit.json"
    for number in range(3):
        write_json_once(path, {"number": number})
    assert json.loads(path.read_text()) == {"number": 0}
    assert list(tmp_path.iterdir()) == [path], "and nothing beside it"


def test_of_many_at_once_one_whole_file_stays(tmp_path: Path) -> None:
    path, seen = tmp_path / "fit.json", []

    def write(number: int) -> None:
        write_json_once(path, {"number": [number] * 10_000})
        seen.append(json.loads(path.read_text())["number"])

    threads = [threading.Thread(target=write, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({str(numbers) for numbers in seen}) == 1 and len(seen) == 8
    assert len(set(seen[0])) == 1 and list(tmp_path.iterdir()) == [path]
