"""The data dictionary: every column of the three row files, its type, unit and meaning.

A text column is utf-8; a count is a plain int64; times are integer nanoseconds of the run's clock
(modelled or wall, as the manifest says), so that sums stay exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

TEXT, INT, FLOAT, BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()
IDS = pa.list_(pa.int64())


@dataclass(frozen=True)
class Column:
    name: str
    type: pa.DataType
    text: str  # meaning, and unit where the name does not say it
    nullable: bool = False


@dataclass(frozen=True)
class Layout:
    """One row file: its grain (what one row is) and its columns in order."""

    grain: str
    columns: tuple[Column, ...]

    @property
    def schema(self) -> pa.Schema:
        return pa.schema([pa.field(c.name, c.type, c.nullable) for c in self.columns])

    def dictionary(self) -> dict[str, str]:
        """Column -> description; the first entry's first sentence is the row's grain."""
        null = " Null where unknown."
        texts = {c.name: c.text + (null if c.nullable else "") for c in self.columns}
        first = self.columns[0].name
        return texts | {first: f"{self.grain} {texts[first]}"}


RUN_ID = Column("run_id", TEXT, "Identity of the run: 12 hex digits.")
REQUEST_ID = Column("request_id", TEXT, "The workload's name for the request.")
CYCLE = Column("cycle", INT, "0 is prefill and is in no per-cycle or decode ratio.")

CYCLES = Layout(
    "One row per (run, request, cycle).",
    (
        RUN_ID,
        REQUEST_ID,
        CYCLE,
        Column("context_tokens", INT, "Prompt and committed tokens when the cycle starts."),
        Column("drafted_levels", INT, "Levels of the tree that were drafted."),
        Column("pool_nodes", INT, "Drafted nodes, root not counted."),
        Column("verified_nodes", INT, "Selected nodes, root not counted."),
        Column("accepted_tokens", INT, "Draft tokens kept, without the target's own token."),
        Column("committed_tokens", INT, "Tokens added to the output."),
        Column("stop_reason", TEXT, "eos, length, or null where decoding goes on.", True),
        Column("demand_experts", INT, "Distinct experts of the verified rows, over all layers."),
        Column("hit_experts", INT, "Demanded and resident."),
        Column("transferred_experts", INT, "Copied on demand."),
        Column("prefetched_experts", INT, "Copies begun before they were demanded."),
        Column("host_experts", INT, "Missing and run on the host instead of copied."),
        Column("transferred_bytes", INT, "Bytes copied, at the run's own expert size."),
        Column("billed_bytes", INT, "Bytes copied, as the clock bills them."),
        Column("evicted_experts", INT, "Residents that made room."),
        Column("peak_layer_demand", INT, "Demand of the layer that demanded most."),
        Column(
            "route_mismatches",
            INT,
            "Routed (row, layer, expert) that the selector's routes had not named: near-ties of an "
            "atlas, or simulated noise.",
            True,
        ),
        Column("draft_ns", INT, "Re-extension and drafting."),
        Column("route_ns", INT, "A route source on the clock; 0 for an atlas."),
        Column("select_ns", INT, "Atlas conversion and selection."),
        Column("verify_ns", INT, "The target's forward, waiting for copies included."),
        Column("transfer_wait_ns", INT, "Part of verify_ns spent waiting for copies."),
        Column("commit_ns", INT, "KV compaction and bookkeeping."),
        Column("cycle_ns", INT, "draft + route + select + verify + commit."),
        Column("predicted_reward", INT, "The selector's reward, in units of 2**-20.", True),
        Column("predicted_ns", INT, "The selector's cost of a whole cycle.", True),
        Column("searched_subtrees", INT, "Legal subtrees looked at.", True),
        Column(
            "used_prefetched_experts",
            INT,
            "Prefetched and then demanded: hits without a slot. Null without prefetching.",
            True,
        ),
    ),
)

REQUESTS = Layout(
    "One row per (run, request).",
    (
        RUN_ID,
        REQUEST_ID,
        Column("prompt_tokens", INT, "Tokens of the prompt.", True),
        Column("cut_tokens", INT, "Document tokens that the workload's own limit removed.", True),
        Column("output_ids", IDS, "Committed token ids, the stop token included.", True),
        Column("output_text", TEXT, "The output as text.", True),
        Column("score", FLOAT, "The workload's score of the output.", True),
        Column("prefill_ns", INT, "cycle_ns of cycle 0.", True),
        Column("decode_ns", INT, "Sum of cycle_ns of the later cycles.", True),
        Column("cycles", INT, "Cycles, prefill included.", True),
        Column("status", TEXT, "ok, or why the request failed."),
        Column("rouge1", FLOAT, "F1 of ROUGE-1, words stemmed, of a summary.", True),
        Column("rouge2", FLOAT, "F1 of ROUGE-2, words stemmed, of a summary.", True),
        Column("rougel", FLOAT, "F1 of ROUGE-L, words stemmed, of a summary.", True),
        Column("rougelsum", FLOAT, "F1 of ROUGE-Lsum, words stemmed, of a summary.", True),
        Column("fits", BOOL, "Whether the setting fits the profile's device memory.", True),
        Column("routing", TEXT, "Where routes come from: the router, or a stand-in.", True),
        Column(
            "drafter_forced",
            BOOL,
            "Whether committed ids are a script's, whatever the target said.",
            True,
        ),
        Column("link_gbps_cap", FLOAT, "Cap put on the link, GB/s; null without one.", True),
        Column("locked_share", FLOAT, "Page-locked share of the experts; null on a CPU.", True),
        Column(
            "route_fallbacks",
            INT,
            "Cycles whose pool the recording did not hold; null without routes=recording.",
            True,
        ),
        Column("pcie_generation", INT, "PCIe generation under load.", True),
        Column("pcie_width", INT, "PCIe lanes under load.", True),
        Column("sm_clock_mhz", FLOAT, "SM clock, MHz.", True),
        Column("temperature_c", FLOAT, "Device temperature, degrees Celsius.", True),
        Column("throttle_reasons", INT, "Bits as the driver reports them; 0 is none.", True),
        Column("power_limit_w", FLOAT, "Power limit, W.", True),
        Column("achieved_h2d_gbps", FLOAT, "Host-to-device bandwidth reached, GB/s.", True),
    ),
)

TIMINGS = Layout(
    "One row per (run, request, cycle), measured beside the clock; no two runs agree on it.",
    (
        RUN_ID,
        REQUEST_ID,
        CYCLE,
        Column("elapsed_ns", INT, "What a person waited for this cycle."),
        Column("atlas_ns", INT, "Part of it spent on the atlas, off the clock."),
        Column("selection_ns", INT, "Real time of the selector."),
    ),
)
