"""Which requests were made from one template: intervals resample these as well as requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache

from specfit.data.examples import Example, embedded


def clusters_of(name: str, ids: Sequence[str], digests: Sequence[str]) -> Mapping[str, str]:
    """Template or kind of event by request id, of the requests that the generator of dataset `name`
    makes. A text that it no longer makes (another digest) has none, and so has text of others."""
    addresses = [address_of(request_id) for request_id in ids]
    longest: dict[str, int] = {}
    for split, index in addresses:
        longest[split] = max(longest.get(split, 0), index + 1)
    rows = {split: _made(name, split, count) for split, count in longest.items()}
    found = {}
    for request_id, digest, (split, index) in zip(ids, digests, addresses, strict=True):
        example = rows[split][index] if index >= 0 else None
        if example is not None and example.cluster is not None and example.digest() == digest:
            found[request_id] = example.cluster
    return found


def address_of(request_id: str) -> tuple[str, int]:
    """`evaluation-7` -> ("evaluation", 7); an index of -1 where it is no such id."""
    split, _, index = request_id.rpartition("-")
    return (split, int(index)) if index.isdecimal() else (split, -1)


@lru_cache(maxsize=8)
def _made(name: str, split: str, count: int) -> Sequence[Example]:
    return embedded(name, split, count)
