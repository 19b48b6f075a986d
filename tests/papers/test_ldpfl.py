"""LDPFL's parts: the clients' networks, where they begin, how they are trained, and runs without messages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("flwr", reason="the extra fl is not installed")
pytest.importorskip("jax", reason="the extra fl is not installed")

import jax.numpy as jnp
from bitldp_papers.ldpfl import extractor, system
from bitldp_papers.ldpfl.extractor import Network, Training, network_of
from bitldp_papers.ldpfl.settings import LDPFLSettings
from bitldp_papers.ldpfl.system import learned
from bitldp_papers.models.steps import OPTIMIZERS, stepper
from support.small_runs import run

SMALL: dict[str, Any] = {
    **{"data": "digits", "clients": 3, "rounds": 2, "hidden": 8, "epochs": 1, "filters": 2},
    **{"extractor_epochs": 1, "rate": 0.05},
}


@pytest.mark.parametrize(
    ("numbers", "blocks", "flat"), [(784, 2, 1024), (784, 3, 1152), (3072, 3, 2048), (64, 2, 256)]
)
def test_the_papers_networks_make_as_many_numbers(numbers: int, blocks: int, flat: int) -> None:
    network = network_of(numbers, classes=10, blocks=blocks, norm=True)
    assert network.flat == flat
    start = network.initial(np.random.default_rng(1))
    x = np.random.default_rng(2).uniform(-1.0, 1.0, (2, numbers)).astype(np.float32)
    found = extractor.extract(network, start, x)
    assert found.shape == (2, flat)
    assert found.min() >= 0.0
    with pytest.raises(ValueError, match="not square images"):
        network_of(63, classes=10)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_optimizers_find_a_minimum(name: str) -> None:
    step = stepper(name)
    current: Any = [jnp.asarray([3.0, -2.0])]
    state = step.begin(current)
    for _ in range(400):
        current, state = step.take(current, [2.0 * current[0]], state, 0.02)
    assert float(jnp.abs(current[0]).max()) < 0.05


def test_adams_first_step_is_the_rate() -> None:
    step = stepper("adam")
    current: Any = [jnp.asarray([1.0, 1.0])]
    after, _ = step.take(current, [jnp.asarray([5.0, -0.001])], step.begin(current), 0.1)
    assert np.allclose(after[0], [0.9, 1.1], atol=1e-3)


def test_all_clients_begin_alike_but_where_they_do_not() -> None:
    x = np.random.default_rng(3).uniform(-1.0, 1.0, (64, 64)).astype(np.float32)
    y = np.arange(64) % 10
    for start, same in (("shared", True), ("own", False)):
        settings = LDPFLSettings(**{**SMALL, "extractor_rate": 1e-9}, extractor_start=start)
        one, other = (
            system.own_network(settings, x, y, np.random.SeedSequence(1, spawn_key=(place,)))
            for place in (0, 1)
        )
        assert np.allclose(one[0], other[0], atol=1e-6) is same


def test_normalisation_keeps_running_means_and_learns() -> None:
    settings = LDPFLSettings(**{**SMALL, "filters": 8}, batch_norm=True, augment=True, ridge=1e-4)
    network = settings.network()
    assert network.norm
    rng = np.random.default_rng(4)
    y = np.arange(600) % 2
    x = (rng.uniform(-1.0, 0.0, (600, 64)) + y[:, None] * 0.8).astype(np.float32)
    training = Training(4, 0.003, "adam", 1e-4, True)
    found = extractor.fitted(network, x, y, training, start=1, seed=2)
    places = network.running
    assert places
    assert all(np.abs(found[place]).max() > 0.0 for place in places[::2])
    assert extractor.accuracy(network, found, x, y) > 0.9


def test_images_are_turned_and_shifted_by_what_is_said() -> None:
    images = np.zeros((2, 9, 9, 1), np.float32)
    images[:, 4, 6] = 1.0
    turned = np.asarray(extractor._moved(images, jnp.asarray([0.0, np.pi / 2]), jnp.zeros((2, 2))))
    assert np.allclose(turned[0], images[0], atol=1e-5)
    assert turned[1, :, :, 0].max() == pytest.approx(1.0, abs=1e-5)
    assert turned[1, 4, 6, 0] < 1e-5
    shifted = np.asarray(extractor._moved(images[:1], jnp.zeros(1), jnp.asarray([[0.0, 1 / 9]])))
    assert shifted[0, 4, 5, 0] == pytest.approx(1.0, abs=1e-5)


def test_without_messages_it_is_the_same_run(tmp_path: Path) -> None:
    given = {"mechanism": "noiseless", **SMALL}
    summary, rows = run("ldpfl", tmp_path, **given)
    found = learned(LDPFLSettings(**{**LDPFLSettings.presets["quick"], **given}))
    # One record of 1,438 is dealt to one client more; sums differ in their order.
    assert found["accuracy"][-1] == pytest.approx(summary.score, abs=0.03)
    assert found["loss"][-1] == pytest.approx(rows[-1]["loss"], rel=0.02)
    noisy = learned(LDPFLSettings(**SMALL))
    assert noisy["claimed"] == 0.5
    assert noisy["exact"] > 100.0


def test_fewer_records_and_tests_where_that_is_asked() -> None:
    settings = LDPFLSettings(**SMALL, records=90, tested=40)
    assert system.tested(settings)[0].shape == (40, 64)
    from bitldp_papers.ldpfl.system import own_networks

    assert [len(each.labels) for each in own_networks(settings)] == [30, 30, 30]
    assert Network(8, 1, 10).flat == 256
    for given in ({"blocks": 4}, {"optimizer": "newton"}, {"extractor_start": "none"}, {"records": -1}):
        with pytest.raises(ValueError, match=next(iter(given))):
            LDPFLSettings(**{**SMALL, **given})
