"""The report in a real browser, without a network: drawn, alive, readable, and right."""

import json
import math
import os
import shutil

import pytest
from test_report import store_networks, store_run, store_sweep, told_at

from understudy.experiments.report import cells
from understudy.experiments.report import page as report_page
from understudy.theory import bounds
from understudy.theory.bounds import Sizes

FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def browser():
    path = shutil.which("chromium")
    if path is None:
        if os.environ.get("CI"):
            pytest.fail("No browser: CI needs `chromium` on the PATH.")
        pytest.skip("No browser: `chromium` is not on the PATH.")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, args=FLAGS)
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    root = tmp_path_factory.mktemp("runs")
    store_sweep(root)
    report_page.write(root, root / "report.html")
    return root / "report.html"


@pytest.fixture
def visit(browser):
    """Open a page offline; at the end, nothing was said to the console or asked of a network."""
    contexts, trouble = [], []

    def open_page(file, width=1280, scheme="light"):
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, reduced_motion="reduce"
        )
        context.set_offline(True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda m: trouble.append(m.text) if m.type != "log" else None)
        page.on("pageerror", lambda error: trouble.append(str(error)))
        page.on(
            "request",
            lambda r: None if r.url.startswith(("file:", "data:")) else trouble.append(r.url),
        )
        page.goto(file.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []


def walk(page):
    """Scroll past every chart, so that each is drawn."""
    for chart in page.locator(".chart").all():
        if chart.is_visible():
            chart.scroll_into_view_if_needed()
            page.wait_for_function("node => node.dataset.drawn > 0", arg=chart.element_handle())


def test_every_chart_is_drawn(visit, page_file):
    page = visit(page_file)
    walk(page)
    assert page.locator("#curve-charts .chart").count() == 4
    assert not page.locator("#dimensions").is_visible()  # nothing here is of linear MDPs
    for chart in page.locator(".chart:visible").all():
        assert chart.locator("svg.main-svg path.js-line").count() > 0
    assert page.locator("#verdict-table .holds").count() == 1
    assert page.locator("#verdict-table .fails").inner_text() == "✗ does not hold"
    assert "seed99" in page.locator("#skipped-list").inner_text()
    order = page.eval_on_selector_all("main > section", "nodes => nodes.map((n) => n.id)")
    assert order == [
        "verdicts", "curves", "networks", "comparison", "ledger", "rates", "dimensions", "replay",
        "explorer", "skipped",
    ]  # fmt: skip


def test_windows_can_be_hidden_and_the_scale_changed(visit, page_file):
    page = visit(page_file)
    walk(page)
    chart = page.locator("#curve-charts .chart").first
    before = int(chart.get_attribute("data-lines"))
    button = page.locator("#toggles button[data-n='4']")
    button.focus()
    page.keyboard.press("Enter")
    assert button.get_attribute("aria-pressed") == "false"
    assert int(chart.get_attribute("data-lines")) < before
    page.keyboard.press("Space")
    assert int(chart.get_attribute("data-lines")) == before
    page.get_by_role("button", name="log x").click()
    assert chart.get_attribute("data-scale") == "log"
    page.wait_for_function("node => node.layout.xaxis.type === 'log'", arg=chart.element_handle())


def test_hover_shows_values(visit, page_file):
    page = visit(page_file)
    walk(page)
    chart = page.locator("#curve-charts .chart").last
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    said = chart.locator(".hoverlayer").filter(has_text="expert").text_content()
    assert "N = 32" in said
    assert "4.6" in said


def test_the_ledger_follows_its_choices(visit, page_file):
    page = visit(page_file)
    assert "4 of 22 settings kept no ledger" in page.locator("#ledger-note").inner_text()
    page.select_option("#ledger-env", "EmptyRoom-5x5")
    page.select_option("#ledger-n", "32")
    assert page.locator("#ledger-title").inner_text() == "EmptyRoom-5x5, N = 32: mean over 3 seeds"
    traces = page.evaluate(
        "document.getElementById('ledger-chart').data.map((t) => [t.type, t.name])"
    )
    assert [name for kind, name in traces if kind == "bar"] == list(cells.SPLIT)
    assert [name for kind, name in traces if kind == "scatter"] == ["reward regret", "AIL regret"]
    assert "not covered" in page.locator("#ledger-table").inner_text()
    assert "100,000" in page.locator("#ledger-table").inner_text()


def test_slopes_stand_beside_the_chart(visit, page_file):
    page = visit(page_file)
    page.select_option("#rates-env", "FrozenLake-v1")
    assert "final regret" in page.locator("#rates-note").inner_text()
    assert "0.5" in page.locator("#rates-table").inner_text()
    page.select_option("#rates-env", "EmptyRoom-3x3")
    assert "same K" in page.locator("#rates-note").inner_text()


def test_the_slider_moves_the_replay(visit, page_file):
    page = visit(page_file)
    picture = "document.getElementById('left-visits').toDataURL()"
    first = page.evaluate(picture)
    slider = page.locator("#replay-mark")
    slider.focus()
    page.keyboard.press("End")
    assert page.locator("#left-visits").get_attribute("data-frame") == "20"
    assert page.locator("#replay-at").inner_text() == "1,000"
    last = page.evaluate(picture)
    assert last != first
    page.keyboard.press("ArrowLeft")
    assert page.locator("#right-reward").get_attribute("data-frame") == "19"
    page.keyboard.press("Home")
    assert page.evaluate(picture) == first
    play = page.locator("#replay-play")
    play.focus()
    page.keyboard.press("Enter")
    assert play.inner_text() == "pause"
    page.wait_for_function("() => Number(document.getElementById('replay-mark').value) >= 2")
    page.keyboard.press("Enter")
    assert play.inner_text() == "play"
    page.select_option("#replay-env", "EmptyRoom-5x5")
    assert page.locator("#replay-mark").input_value() == "0"
    page.select_option("#replay-left", "32")
    assert "N = 32" in page.locator("#left-visits").get_attribute("aria-label")


@pytest.mark.parametrize(
    "size",
    [
        Sizes(S=81, A=5, H=27, K=10_000, B=1),
        Sizes(S=1000, A=2, H=3, K=500, B=1),
        Sizes(S=5000, A=17, H=10, K=123_456, B=7),
        Sizes(S=1, A=2, H=9, K=1, B=4),
    ],
)
def test_the_explorer_agrees_with_the_bounds(visit, page_file, size):
    page = visit(page_file)
    for name in ("S", "A", "H", "K", "B"):
        page.fill(f"#size-{name}", str(getattr(size, name)))
    page.fill("#size-N", "3")
    for kind in ("paper", "sharp"):
        star = float(page.locator(f"#star-{kind}").get_attribute("data-value"))
        assert star == pytest.approx(bounds.best_window(size, sharp=kind == "sharp"), rel=1e-12)
    limit = f"at most N = {bounds.largest_window(size.K):,} here"
    assert limit in page.locator("#star-note").inner_text()
    drawn = page.evaluate(
        """() => document.getElementById('explorer-chart').data.map(
            (t) => [t.name, t.y[Array.from(t.x).indexOf(3)]])"""
    )
    printed, proven = bounds.order(size, 3.0, sharp=False), bounds.proven(size, 3.0)
    expected = {
        "policy": printed.policy,
        "optimisation": printed.optimisation,
        "estimation, printed": printed.estimation,
        "estimation, proven": proven.estimation,
        "shift, paper": printed.shift,
        "shift, proven": proven.shift,
        "total, paper": printed.total,
        "total, proven": proven.total,
    }
    assert dict(drawn) == pytest.approx(expected, rel=1e-12)


def test_the_explorer_has_sliders(visit, page_file):
    page = visit(page_file)
    page.locator("#range-A").focus()
    before = page.locator("#star-sharp").get_attribute("data-value")
    page.keyboard.press("ArrowRight")
    assert page.input_value("#size-A") == "6"
    after = page.locator("#star-sharp").get_attribute("data-value")
    assert float(after) > float(before)
    assert math.isclose(float(after), (81 * 6 / 27) ** (1 / 3), rel_tol=1e-12)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_it_fits_the_screen(visit, page_file, width, scheme):
    page = visit(page_file, width, scheme)
    walk(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if where := os.environ.get("REPORT_SCREENSHOTS"):  # to look at it
        page.locator("#replay-mark").fill("8")
        page.screenshot(path=f"{where}/{width}-{scheme}.png", full_page=True)


def test_colours_follow_the_scheme(visit, page_file):
    page = visit(page_file)
    colour = "document.getElementById('explorer-chart').layout.font.color"
    assert page.evaluate(colour) == "#1c2026"
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(f"() => {colour} === '#e8eaee'")


def test_every_control_has_a_name(visit, page_file):
    page = visit(page_file)
    nameless = page.evaluate(
        """() => [...document.querySelectorAll("button, select, input")].filter((node) =>
            !node.textContent.trim() && !node.getAttribute("aria-label") && !node.labels.length
            || node.tagName === "SELECT" && !node.labels.length).map((node) => node.id)"""
    )
    assert nameless == []


def shown_of(page):
    """The parts of the page that can be seen, by what leads there and by themselves."""
    links = page.locator("nav a:visible")
    sections = page.eval_on_selector_all(
        "main > section:not([hidden])", "nodes => nodes.map((n) => `#${n.id}`)"
    )
    assert [link.get_attribute("href") for link in links.all()] == sections
    return [name[1:] for name in sections]


def test_parts_that_the_runs_have_nothing_for_are_left_out(visit, tmp_path):
    store_run(tmp_path, "FrozenLake-v1", "4", 0, ledger=False)
    report_page.write(tmp_path, tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    assert shown_of(page) == ["curves", "explorer", "skipped"]
    left_out = page.locator("#left-out").inner_text()
    for why in ("kept a ledger", "replay", "nothing was judged", "has networks"):
        assert why in left_out
    assert "Nothing was skipped" in page.locator("#skipped-list").inner_text()


def slower(n, end, seed):
    return told_at(n, 2 * end, seed)


@pytest.fixture(scope="module")
def networks_file(tmp_path_factory):
    """Two environments, one of them with two settings, and one run that tells less."""
    root = tmp_path_factory.mktemp("networks")
    for seed in (0, 1, 2):
        store_networks(root, "Hopper-v5", seed)
        store_networks(root, "Walker2d-v5", seed)
        store_networks(root, "Walker2d-v5", seed, kl=2.0, tell=slower)
    store_networks(
        root, "Ant-v5", 0, tell=lambda n, *_: {"q": 1.0 * n, "entropy": -2.0} if n else {}
    )
    report_page.write(root, root / "report.html")
    return root / "report.html"


def test_a_page_of_networks_has_their_parts_alone(visit, networks_file):
    page = visit(networks_file)
    walk(page)
    assert shown_of(page) == ["curves", "networks", "skipped"]
    assert page.locator("#network-charts .chart:visible").count() == 2  # Ant, which is first
    page.select_option("#networks-env", "Hopper-v5")
    walk(page)
    assert page.locator("#network-charts .chart:visible").count() == 8
    for chart in page.locator("#network-charts > div").all():
        assert "Healthy:" in chart.locator("p").inner_text()
    title = "Hopper-v5, N = all: mean over 3 seeds"
    assert page.locator("#networks-title").inner_text() == title
    assert not page.locator("#networks-cell").is_visible()


def test_what_is_drawn_of_networks_is_what_they_told(visit, networks_file):
    page = visit(networks_file)
    page.select_option("#networks-env", "Hopper-v5")
    drawn = page.evaluate(
        """() => [...document.querySelectorAll("#network-charts .chart")].flatMap((node) =>
            node.data.filter((t) => t.name).map((t) => [t.name, [t.x.at(-1), t.y.at(-1)]]))"""
    )
    ends = [told_at(2_000, 2_000, seed) for seed in (0, 1, 2)]
    mean = {name: sum(row[name] for row in ends) / 3 for name in ends[0]}
    told = {
        "practice": "practice_return", "the average’s": "earned", "missed": "missed",
        "the clone’s auditions": "clone_earned", "Q of the policy’s actions": "q",
        "at the expert’s points": "expert_logit", "at those of practice": "agent_logit",
        "KL to the policy before": "kl", "entropy of the policy": "entropy",
        "weight of the clone’s actions": "held",
    }  # fmt: skip
    expected = {title: (2_000, pytest.approx(mean[name], rel=1e-4)) for title, name in told.items()}
    shown = {title: tuple(at) for title, at in drawn}
    marked = shown.pop("new lead")
    assert marked[0] == 1_800
    assert shown == expected | {"handed out": (2_000, 3_050), "expert": (2_000, 3_000)}


def test_runs_with_networks_are_chosen_by_keyboard(visit, networks_file):
    page = visit(networks_file)
    page.select_option("#networks-env", "Walker2d-v5")
    choice = page.locator("#networks-cell")
    assert choice.locator("option").all_inner_texts() == [
        "N = all, kl 0.5 (3 seeds)", "N = all, kl 2 (3 seeds)",
    ]  # fmt: skip
    ends = "document.getElementById('network-q').data.map((t) => t.y.at(-1))"
    first = page.evaluate(ends)
    choice.focus()
    page.keyboard.press("ArrowDown")
    assert choice.input_value() == "1"
    assert page.evaluate(ends) != first
    page.select_option("#networks-env", "Ant-v5")
    assert page.locator("#networks-title").inner_text() == "Ant-v5, N = all: one seed"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_networks_fit_the_screen(visit, networks_file, width, scheme):
    page = visit(networks_file, width, scheme)
    page.select_option("#networks-env", "Hopper-v5")
    walk(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if where := os.environ.get("REPORT_SCREENSHOTS"):  # to look at it
        page.screenshot(path=f"{where}/networks-{width}-{scheme}.png", full_page=True)


def store_comparison(root):
    """Three methods, as `understudy compare` writes them down."""
    x = list(range(0, 2_001, 100))
    rows, curves, executed = [], [], []
    for rank, (title, end, below) in enumerate(
        [("understudy", 1.0, None), ("understudy, from scratch", 0.9, (0.78, 0.44, 1.0)),
         ("behavioural cloning", 0.6, (1.0, 1.0, 1.0))], start=1,
    ):  # fmt: skip
        rows.append(
            {"shown": "all trajectories", "title": title, "rank": rank, "reached": "1,000",
             "shares": [end / 4, end / 2, end, end], "interval": [end - 0.1, end + 0.05],
             "seconds": 200.0, "below": below}
        )  # fmt: skip
        middle = [end * n / 2_000 for n in x]
        curves.append(
            {"shown": "all trajectories", "title": title, "colour": "#882255", "x": x,
             "middle": middle, "low": [m - 0.1 for m in middle], "high": [m + 0.1 for m in middle]}
        )  # fmt: skip
        spelt = {"policy_steps": "0.75", "reward_steps": "0.5", "batch": "128", "actor": "3 × 256",
                 "critics": "two of 2 × 256", "begins": "its clone"}  # fmt: skip
        executed.append({"title": title, "spelt": spelt})
    document = {"env": "Hopper-v5", "rows": rows, "curves": curves, "executed": executed}
    (root / "compare.json").write_text(json.dumps(document))


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_a_comparison_states_what_each_executed(visit, tmp_path, width, scheme):
    store_networks(tmp_path, "Hopper-v5", 0)
    store_comparison(tmp_path)
    report_page.write(tmp_path, tmp_path / "report.html")
    page = visit(tmp_path / "report.html", width, scheme)
    walk(page)
    assert shown_of(page) == ["curves", "networks", "comparison", "skipped"]
    ranking = page.locator("#comparison-table tbody tr")
    assert [row.locator("td").nth(8).inner_text() for row in ranking.all()] == [
        "–", "0.78 (0.44 to 1.00)", "1.00 (1.00 to 1.00)",
    ]  # fmt: skip
    executed = page.locator("#comparison-executed tbody tr").nth(1)
    assert executed.locator("td").all_inner_texts() == [
        "understudy, from scratch", "0.75", "0.5", "128", "3 × 256", "two of 2 × 256", "its clone",
    ]  # fmt: skip
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    if where := os.environ.get("REPORT_SCREENSHOTS"):  # to look at it
        page.locator("#comparison").screenshot(path=f"{where}/comparison-{width}-{scheme}.png")


def test_many_settings_are_shown_one_at_a_time(visit, tmp_path):
    for interactions in range(1000, 8000, 1000):
        store_run(tmp_path, "FrozenLake-v1", "4", 0, interactions=interactions)
    report_page.write(tmp_path, tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    walk(page)
    chart = page.locator("#curve-charts .chart")
    assert page.input_value("#curve-setting") == "interactions 7000"
    assert chart.get_attribute("data-lines") == "1"
    page.select_option("#curve-setting", "")
    assert chart.get_attribute("data-lines") == "7"


def test_what_a_run_is_called_is_text_and_nothing_else(visit, tmp_path):
    """Names from configs, folders and verdicts are shown as they are, and run nothing."""
    hostile = (
        "<img src=x onerror=\"document.title='owned'\"></script><script>document.title='owned'//"
    )
    for seed in (0, 1):
        for N in ("4", "32"):
            store_run(tmp_path, hostile, N, seed, interactions=1000)
    stopped = store_run(tmp_path, f"{hostile}2", "4", 0)
    (stopped / "done.json").unlink()
    told = {"claim": hostile, "measured": hostile, "holds": True, "rule": hostile}
    (tmp_path / "verdicts.json").write_text(
        json.dumps({"figure": hostile, "rule": hostile, "verdicts": [told]})
    )
    report_page.write(tmp_path, tmp_path / "report.html")
    page = visit(tmp_path / "report.html")
    walk(page)
    assert page.title() != "owned"
    assert page.locator("img").count() == 0
    assert hostile in page.locator("body").inner_text()
