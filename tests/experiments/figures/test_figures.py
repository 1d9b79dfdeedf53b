"""Figures from stored runs: what is averaged, over which marks, and that it can be read."""

import dataclasses
import itertools
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.stats
from matplotlib.figure import Figure
from PIL import Image

from understudy.core.errors import UserError
from understudy.experiments import runs, stored_runs
from understudy.experiments.figures import averages, cells, drawing, palette
from understudy.experiments.stored_runs import StoredRun


def stored(
    folder: Path,
    *,
    env: str = "understudy/EmptyRoom-3x3-v0",
    window: str = "32",
    seed: int = 0,
    marks: tuple[int, ...] = (0, 50, 100),
    returns: tuple[float, ...] | None = None,
    **config,
) -> StoredRun:
    """A run written and read back as any other."""
    request = {"env": env, "horizon": 9, "seed": seed, "config": {"window": window, **config}}
    folder = folder / runs.name(request)
    runs.begin(folder, request)
    values = np.linspace(-1, 4 + 0.1 * seed, len(marks)) if returns is None else returns
    rows = [
        {"interactions": n, "updates": n, "return": float(value)}
        for n, value in zip(marks, values, strict=True)
    ]
    runs.append(folder, rows)
    runs.finish(folder, {"policy": np.zeros((1, 1, 1))}, {"expert_return": 4.6})
    return stored_runs.read(folder)


@pytest.mark.parametrize("band", ["std", "stderr", "iqm"])
def test_three_panels_at_the_width_of_a_page(tmp_path, band):
    rooms = [f"understudy/EmptyRoom-{n}x{n}-v0" for n in (3, 5, 11)]
    found = [
        stored(tmp_path, env=env, window=window, seed=seed)
        for env in rooms
        for window in ("1", "32", "all", "adaptive", "2*k^0.4", "77")
        for seed in range(3)
    ]
    before = set(tmp_path.iterdir())
    png, pdf = drawing.curves(found, tmp_path / "fig.1", band=band, title="Rooms")
    assert set(tmp_path.iterdir()) - before == {png, pdf}
    assert (png.name, pdf.name) == ("fig.1.png", "fig.1.pdf")
    with Image.open(png) as picture:
        assert picture.width == 7 * 200
        pixels = np.asarray(picture.convert("RGB")).astype(int)
    for window in ("1", "32"):  # a solid curve of each colour
        rgb = [int(palette.colour(window)[i : i + 2], 16) for i in (1, 3, 5)]
        assert (np.abs(pixels - rgb).max(-1) < 3).sum() > 100
    assert pdf.read_bytes().startswith(b"%PDF")
    again = drawing.curves(found[::-1], tmp_path / "again", band=band, title="Rooms")
    assert [p.read_bytes() for p in again] == [png.read_bytes(), pdf.read_bytes()]


def test_text_is_legible_and_the_legend_has_an_entry_a_window(tmp_path, monkeypatch):
    drawn = []
    save = Figure.savefig
    monkeypatch.setattr(
        Figure, "savefig", lambda self, *a, **k: (drawn.append(self), save(self, *a, **k))[1]
    )
    found = [stored(tmp_path, window=window) for window in ("4", "128", "k^0.4")]
    found.append(stored(tmp_path, env="FrozenLake-v1", window="256"))
    drawing.curves(found, tmp_path / "fig")
    figure = drawn[0]
    titles = [axes.get_title() for axes in figure.axes]
    assert titles == ["EmptyRoom 3×3", "FrozenLake-v1"]
    (legend,) = figure.legends
    labels = [text.get_text() for text in legend.get_texts()]
    assert labels == ["N = 4", "N = 128", "N = 256", "N = k$^{0.4}$", "expert"]
    texts = list(legend.get_texts())
    for axes in figure.axes:
        texts += [axes.title, axes.xaxis.label, axes.yaxis.label]
        texts += axes.get_xticklabels() + axes.get_yticklabels()
    assert min(text.get_fontsize() for text in texts) >= 8


def test_different_marks_meet_as_steps_up_to_the_shortest_run(tmp_path):
    a = stored(tmp_path, seed=0, marks=(0, 10, 20), returns=(0.0, 1.0, 2.0))
    b = stored(tmp_path, seed=1, marks=(5, 15, 99), returns=(10.0, 11.0, 12.0))
    x, y = cells.on_common_marks([a, b])
    np.testing.assert_array_equal(x, [0, 5, 10, 15, 20])
    np.testing.assert_array_equal(y, [[0, 0, 1, 1, 2], [10, 10, 10, 11, 11]])
    for column, at in enumerate(x):
        assert y[:, column].tolist() == [a.at(int(at)), b.at(int(at))]
    drawing.curves([a, b], tmp_path / "fig")


def test_one_run_of_one_mark_is_drawn(tmp_path):
    run = stored(tmp_path, marks=(0,), returns=(1.0,))
    for band in ("std", "stderr", "iqm"):
        drawing.curves([run], tmp_path / band, band=band)


def test_bands():
    y = np.random.default_rng(0).normal(size=(10, 7))
    mean, low, high = averages.summarise(y, "std")
    np.testing.assert_allclose(mean, y.mean(0))
    np.testing.assert_allclose([mean - low, high - mean], [y.std(0, ddof=1)] * 2)
    mean, low, high = averages.summarise(y, "stderr")
    np.testing.assert_allclose((high - low) / 2, scipy.stats.sem(y))
    middle, low, high = averages.summarise(y, "iqm")
    np.testing.assert_allclose(middle, scipy.stats.trim_mean(y, 0.25))
    assert (low < middle).all()
    assert (middle < high).all()


@pytest.mark.parametrize("seeds", range(1, 14))
def test_interquartile_mean_is_scipys(seeds):
    y = np.random.default_rng(seeds).normal(size=(seeds, 5))
    expected = scipy.stats.trim_mean(y, 0.25, axis=0)
    np.testing.assert_allclose(averages.interquartile_mean(y), expected)


def test_bootstrap_interval_is_scipys_up_to_its_noise():
    y = np.random.default_rng(1).standard_t(3, size=(12, 4))
    low, high = averages.bootstrap_interval(y)
    theirs = scipy.stats.bootstrap(
        (y,),
        lambda x, axis: scipy.stats.trim_mean(x, 0.25, axis=axis),
        method="percentile",
        n_resamples=4000,
        axis=0,
        rng=np.random.default_rng(2),
    ).confidence_interval
    width = theirs.high - theirs.low
    assert np.abs(low - theirs.low).max() < 0.15 * width.min()
    assert np.abs(high - theirs.high).max() < 0.15 * width.min()
    one = averages.bootstrap_interval(y[:1])
    np.testing.assert_allclose(one, [y[0], y[0]])


def test_every_window_has_one_look_and_none_fails():
    for window in ("1", " 32", "128", "256", "all", "ALL", "adaptive"):
        assert palette.colour(window) in palette.COLOURS.values()
    for window in (1, 4, 32, 128, 256, 7):
        assert palette.colour(window) == palette.colour(str(window))
        assert palette.line_style(window) == palette.line_style(str(window))
    assert len(set(palette.COLOURS.values())) == len(palette.COLOURS)
    assert not set(palette.COLOURS.values()) & set(palette.OTHERS)
    looks = {(palette.colour(N), palette.line_style(N)) for N in range(1000)}
    assert len(looks) >= 20  # spread over what there is
    assert (palette.colour("2*k^0.4"), palette.line_style("2*k^0.4")) == ("#663355", "--")


# What red- and green-blind readers see of linear RGB (Machado et al. 2009, severity 1).
SIGHTS = {
    "usual": np.eye(3),
    "red-blind": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "green-blind": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
}
XYZ = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])


def lab(colour: str, sight: np.ndarray) -> np.ndarray:
    """CIELAB of a colour as it is seen."""
    rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    x = XYZ @ np.clip(sight @ linear, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(x > 0.008856, np.cbrt(x), 7.787 * x + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHTS)
def test_colours_are_told_apart_by_colour_blind_readers(sight):
    listed = [*palette.COLOURS.values(), "#000000", "#FFFFFF"]  # the expert, the paper
    for a, b in itertools.combinations(listed, 2):
        apart = np.linalg.norm(lab(a, SIGHTS[sight]) - lab(b, SIGHTS[sight]))
        assert apart > 15, (a, b)  # 2 is just noticeable


def test_only_seeds_are_averaged(tmp_path):
    a, b = stored(tmp_path, seed=0, eta=0.5), stored(tmp_path, seed=1, eta=0.25)
    with pytest.raises(UserError, match="differ in eta"):
        drawing.curves([a, b], tmp_path / "fig")
    with pytest.raises(UserError, match="no finished runs"):
        drawing.curves([], tmp_path / "fig")
    assert not list(tmp_path.glob("fig*"))
    copied = dataclasses.replace(a, folder=tmp_path / "copy")
    ((cell,),) = [cells.values() for cells in cells.by_panel([a, copied]).values()]
    assert len(cell) == 1
    more = stored(tmp_path, seed=2, eta=0.5, marks=(0, 100))
    assert len(cells.by_panel([a, more])[a.env]["32"]) == 2


def test_a_thousand_runs_are_drawn_in_seconds(tmp_path):
    marks = np.arange(0, 10_001, 100)
    first = stored(tmp_path, marks=(0, 1))
    many = [
        dataclasses.replace(
            first,
            request={**first.request, "env": env, "seed": seed, "config": {"window": window}},
            interactions=marks + seed % 2,
            returns=np.random.default_rng(seed).normal(size=len(marks)).cumsum(),
        )
        for env in ("Hopper-v5", "Walker2d-v5", "HalfCheetah-v5", "Ant-v5")
        for window in ("1", "4", "32", "256", "all")
        for seed in range(50)
    ]
    begun = time.perf_counter()
    drawing.curves(many, tmp_path / "fig", band="iqm")
    assert time.perf_counter() - begun < 20
