"""Which generated requests share a template."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from specfit.data import examples
from specfit.data.examples import address_of, clusters_of
from specfit.data.synthetic.word_problems import families, word_problem


@pytest.fixture
def generated(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[examples.Example]]:
    """Thirty rows of a generator whose families are known."""
    monkeypatch.setattr(examples, "word_problem", word_problem)
    examples._made.cache_clear()
    yield examples.embedded("embedded_gsm8k", "calibration", 30)
    examples._made.cache_clear()


def test_every_request_has_the_template_it_was_made_from(generated: list[examples.Example]) -> None:
    ids, digests = [one.example_id for one in generated], [one.digest() for one in generated]
    found = clusters_of("embedded_gsm8k", ids, digests)
    assert found == {n: word_problem("calibration", i).family for i, n in enumerate(ids)}
    assert len(set(found.values())) == len(families("calibration")), "they take turns"
    shard = clusters_of("embedded_gsm8k", ids[1::4], digests[1::4])
    assert shard == {name: found[name] for name in ids[1::4]}


def test_a_text_that_is_no_longer_made_has_none(generated: list[examples.Example]) -> None:
    ids, digests = [one.example_id for one in generated], [one.digest() for one in generated]
    assert set(clusters_of("embedded_gsm8k", ids, ["other", *digests[1:]])) == set(ids[1:])
    plain = examples.Example(ids[0], generated[0].fields)
    assert plain.digest() == digests[0], "the template is no part of the text's identity"


def test_an_address_is_a_split_and_a_number() -> None:
    assert address_of("evaluation-7") == ("evaluation", 7)
    assert address_of("held_out-0") == ("held_out", 0)
    assert address_of("q1")[1] == -1
