"""Sets, keys with values, levels of ordered values: what clients send is estimated, what is none refused."""

from __future__ import annotations

import json
import math
from typing import Any

import bitldp
import numpy as np
import pytest
from bitldp.client import DocumentError, client_reports, open_document
from bitldp.client.notation import double
from support.client_library import LibraryClient, LibraryRefusedError, library_path
from support.clients import changed

BASKETS = bitldp.ItemSet(["tea", "milk", "bread", "eggs"], epsilon=4.0, padding=2, oracle="GRR")
HASHED = bitldp.ItemSet(30, epsilon=3.0, padding=2, oracle="OLH")
BLOCKS = bitldp.ItemSet(40, epsilon=3.0, padding=2, oracle="BlockDesign")
RATINGS = bitldp.KeyValue(["film", "book", "song"], epsilon=5.0, padding=1, interval=(0.0, 5.0))
STRICT = bitldp.KeyValue(3, epsilon=5.0, padding=1, interval=(0.0, 5.0), clip=False)
MINUTES = bitldp.Hierarchy(1440, epsilon=4.0)
PAIRS = bitldp.HDG((16, 40), epsilon=4.0, cells=(8, 4))


def sent(mechanism: Any, records: Any) -> Any:
    """Return the reports of clients, seeded, as the mechanism takes them."""
    client = open_document(mechanism.client_document())
    return client_reports(mechanism, [client.randomize(own, rng=index) for index, own in enumerate(records)])


@pytest.mark.parametrize("mechanism", [BASKETS, HASHED, BLOCKS], ids=lambda each: each.oracle)
def test_shares_of_items_are_estimated_from_clients(mechanism: Any) -> None:
    sets = np.zeros((400, mechanism.columns), np.uint8)
    sets[:, 1], sets[:100, 3] = 1, 1
    estimate = mechanism.estimate_frequencies(sent(mechanism, sets))
    truth = sets.mean(axis=0)
    assert (np.abs(estimate.value - truth) < 5.0 * estimate.stderr).all()


def test_means_of_keys_are_estimated_from_clients() -> None:
    ratings = np.full((600, 3), np.nan)
    ratings[:400, 0], ratings[400:, 2] = 4.0, 9.0  # beyond the interval
    reports = sent(RATINGS, ratings)
    shares, means = RATINGS.estimate_frequencies(reports), RATINGS.estimate_means(reports)
    assert (np.abs(shares.value - [2 / 3, 0.0, 1 / 3]) < 5.0 * shares.stderr).all()
    assert (np.abs(means.value - [4.0, 0.0, 5.0]) < 5.0 * means.stderr)[[0, 2]].all()
    record = open_document(RATINGS.client_document()).program.records[0]
    assert (record.names, record.gaps) == (("film", "book", "song"), True)


def test_ranges_are_estimated_from_clients() -> None:
    rng = np.random.default_rng(5)
    minutes = rng.integers(600, 800, 500)
    share = MINUTES.estimate_range(sent(MINUTES, minutes), 600, 700)
    assert abs(share.value - np.mean(minutes < 700)) < 5.0 * share.stderr
    pairs = rng.integers(0, [16, 40], (500, 2))
    half = PAIRS.estimate_range(sent(PAIRS, pairs), (0, 8), (0, 40))
    assert abs(half.value - np.mean(pairs[:, 0] < 8)) < 5.0 * half.stderr


def test_a_number_outside_the_interval_of_a_key_is_refused() -> None:
    text = STRICT.client_document()
    client = open_document(text)
    assert len(client.randomize([5.0, np.nan, 0.0], rng=1)) == 1
    for wrong in ([5.5, np.nan, 0.0], [np.nan, np.nan, -np.inf]):
        with pytest.raises(ValueError, match="is outside its interval"):
            client.randomize(wrong)
    path = library_path()
    if path is not None:
        with LibraryClient(text, path) as library:
            assert len(library.randomize(np.array([5.0, np.nan, 0.0]).tobytes())) == 1
            for wrong in ([5.5, np.nan, 0.0], [np.nan, np.nan, -np.inf]):
                with pytest.raises(LibraryRefusedError, match="outside what the document allows"):
                    library.randomize(np.array(wrong).tobytes())


PART = json.loads(bitldp.GRR(4, epsilon=1.0).client_document())


@pytest.mark.parametrize(
    ("mechanism", "changes"),
    [
        (BASKETS, {"codec.items": 5}),
        (BASKETS, {"codec.padding": 3}),
        (BASKETS, {"codec.padding": 0}),
        (BASKETS, {"codec.signs": True}),
        (BASKETS, {"codec.signs": False}),
        (BASKETS, {"codec.items": 1 << 40}),
        (BASKETS, {"record.below": 3}),
        (BASKETS, {"record.columns": 5, "record.names": ...}),
        (BASKETS, {"keys": 1}),
        (BASKETS, {"channel.width": 2}),
        (BASKETS, {"channel.mute": True}),
        (BASKETS, {"epsilon": double(3.9999)}),
        (HASHED, {"public": ...}),
        (HASHED, {"codec": ...}),
        (HASHED, {"public.0.prime": 31}),
        (BLOCKS, {"channel.inputs": 41}),
        (RATINGS, {"record.gaps": ...}),
        (RATINGS, {"record.span": [double(0.0), double(1.0)]}),
        (RATINGS, {"record.interval": [double(0.0), double(1.0)]}),
        (RATINGS, {"codec.signs": ...}),
        (RATINGS, {"codec": PART["channel"]}),
        (RATINGS, {"codec": ...}),
        (MINUTES, {"cells": ...}),
        (MINUTES, {"record": ...}),
        (MINUTES, {"public": ...}),
        (MINUTES, {"cells.0.0.2": 16}),
        (MINUTES, {"cells.0.0.2": 0}),
        (MINUTES, {"cells.0.0.1": 1 << 31}),
        (MINUTES, {"cells.0.0.3": 1 << 32}),
        (MINUTES, {"cells.0.0.0": 1}),
        (MINUTES, {"cells.0.0": [0, 1, 1]}),
        (MINUTES, {"cells.0": [[0, 1, 4096, 1]] * 9}),
        (MINUTES, {"cells.0": 7}),
        (MINUTES, {"record.below": 1441}),
        (MINUTES, {"record": {"type": "f64", "columns": 1, "outside": "clip"}}),
        (MINUTES, {"record": {"type": "f64", "columns": 1, "outside": "clip"}, "cells": [[]] * 6}),
        (PAIRS, {"cells.2.0.3": 5}),
        (PAIRS, {"record.below": [16, 41]}),
        (PAIRS, {"parts.0.record.columns": 1}),
    ],
)
def test_a_document_of_sets_or_levels_that_does_not_hold_is_refused(
    mechanism: Any, changes: dict[str, Any]
) -> None:
    text = changed(mechanism.client_document(), changes)
    with pytest.raises(DocumentError):
        open_document(text)
    path = library_path()
    if path is not None:
        with pytest.raises(LibraryRefusedError):
            LibraryClient(text, path)


def test_only_randomized_response_is_amplified_by_the_secret_draw() -> None:
    """With another channel, or one whose own cell is rarer than others, epsilon is that of the channel."""
    drawn, spent = BASKETS.drawn.guarantee.record, BASKETS.guarantee.record
    assert drawn > spent
    for mechanism in (HASHED, BLOCKS):
        assert open_document(mechanism.client_document()).epsilon == mechanism.drawn.guarantee.record
    fields, path = json.loads(BASKETS.client_document()), library_path()
    rare = int(fields["channel"]["high"]) // 1000  # below the share of one cell in six
    changes = {"channel.high": str(rare), "golden": fields["golden"]}
    for claimed in (0.0, spent):
        text = changed(BASKETS.client_document(), changes | {"epsilon": double(claimed)})
        with pytest.raises(DocumentError, match="epsilon: does not follow"):
            open_document(text)
        if path is not None:
            with pytest.raises(LibraryRefusedError, match="epsilon or delta does not follow"):
                LibraryClient(text, path)


def test_epsilon_of_many_items_is_computed() -> None:
    """Integers of more than 128 bits are rounded outward: 2^20 items by randomized response."""
    mechanism = bitldp.ItemSet(1 << 20, epsilon=5.0, padding=3, oracle="GRR")
    assert 4.999 < mechanism.guarantee.record <= 5.0
    p, q = mechanism._inner._release.chances()
    assert math.isclose(mechanism.guarantee.record, math.log1p((p - q) / q / 3.0), rel_tol=1e-9)
