"""What making a recording took: measured here, and billed to the run's profile."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any


@dataclass(frozen=True)
class Plain:
    """Decoding the same requests one token at a time with an expert cache, as a replay bills it."""

    slots: int
    ns: int  # modelled
    billed_bytes: int


@dataclass
class Tally:
    """None of it is in a recording's id. Seconds are elapsed time."""

    tokens: int = 0
    token_mismatches: int = 0  # the text pass says another token than the greedy ids
    largest_mismatch_margin: float = 0.0
    decode_seconds: float = 0.0  # greedy ids, where no finished run had them
    text_seconds: float = 0.0
    draft_seconds: float = 0.0
    pools_seconds: float = 0.0
    ids_from: str | None = None  # the run they were read from
    passes: int = 0  # times the experts were streamed
    rows: int = 0  # that went through the target's layers
    nodes: int = 0  # drafted; of equal ones one is a row
    pass_ns: int = 0  # passes and drafting as the modelled clock bills them
    pass_bytes: int = 0

    @property
    def teacher_seconds(self) -> float:
        return self.text_seconds + self.draft_seconds + self.pools_seconds

    @classmethod
    def total(cls, parts: Iterable[Mapping[str, Any]]) -> Tally:
        """Of batches that several processes may have made."""
        whole = cls()
        for part in parts:
            for field in fields(cls):
                mine, theirs = getattr(whole, field.name), part[field.name]
                if field.name == "ids_from":
                    value = theirs or mine
                elif field.name == "largest_mismatch_margin":
                    value = max(mine, theirs)
                else:
                    value = mine + theirs
                setattr(whole, field.name, value)
        return whole

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    def sentences(self, plain: Plain | None) -> list[str]:
        """For a person; last, the ratio of the passes' time to decoding token by token."""
        source, of_it = "given", ""
        if self.ids_from is not None:
            source = f"of run {self.ids_from}"
        elif self.decode_seconds:
            source = f"decoded here in {self.decode_seconds:.1f} s"
            of_it = f", {100 * self.teacher_seconds / self.decode_seconds:.0f} % of that"
        said = [
            f"greedy ids: {source}; layer-major passes: "
            f"{self.teacher_seconds:.1f} s{of_it} (text {self.text_seconds:.1f}, pools drafted "
            f"{self.draft_seconds:.1f}, pools routed {self.pools_seconds:.1f}); elapsed, measured",
            f"{self.token_mismatches} of {self.tokens} tokens differ between one pass and step by "
            f"step (largest margin {self.largest_mismatch_margin:.1e})",
            f"rows through the layers: {self.rows} for {self.tokens} tokens ({self.nodes} nodes "
            f"drafted, equal ones routed once), experts streamed {self.passes} times",
        ]
        if plain is not None and self.pass_ns:
            said.append(
                f"billed (modelled): {self.pass_bytes / 1e9:.0f} GB, {self.pass_ns / 1e9:.1f} s; "
                f"{100 * self.pass_bytes / max(plain.billed_bytes, 1):.1f} % of the bytes and "
                f"{100 * self.pass_ns / plain.ns:.1f} % of the time of ar_cache at "
                f"{plain.slots} slots"
            )
        return said
