"""Episodes, sentences and files at the edges of what is accepted."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from understudy.core import demonstrations, extras, files, memory
from understudy.core.demonstrations import Demonstrations
from understudy.core.errors import UserError, plain


def shown(observations=3, actions=2, rewards=2, ends=1, **values):
    given = {"o": np.zeros((observations, 2)), "a": np.zeros(actions), "r": np.zeros(rewards)}
    given |= values
    return Demonstrations([given["o"]], [given["a"]], [given["r"]], [False] * ends)


@pytest.mark.parametrize(
    ("sizes", "says"),
    [
        ({"observations": 2}, "2 observations, 2 actions and 2 rewards"),
        ({"observations": 4}, "4 observations, 2 actions and 2 rewards"),
        ({"rewards": 1}, "3 observations, 2 actions and 1 rewards"),
        ({"rewards": 3}, "3 observations, 2 actions and 3 rewards"),
        ({"ends": 2}, "1 episodes of observations, 1 of actions, 1 of rewards and 2 of ends"),
    ],
)
def test_an_episode_of_t_actions_has_t_rewards_and_one_observation_more(sizes, says):
    assert len(shown()) == 1
    with pytest.raises(UserError, match=says):
        shown(**sizes)


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("what", ["o", "a", "r"])
def test_numbers_up_to_1e100_can_be_reckoned_with(what, sign):
    like = shown()
    size = len({"o": like.observations, "a": like.actions, "r": like.rewards}[what][0])
    at = np.zeros((size, 2) if what == "o" else size)
    at[-1] = sign * 1e100
    shown(**{what: at})
    at[-1] = sign * np.nextafter(1e100, np.inf)
    with pytest.raises(UserError, match="of size 1e\\+100; numbers up to 1e\\+100"):
        shown(**{what: at})


def test_an_episode_without_a_step_is_an_episode():
    assert shown(1, 0, 0).returns.tolist() == [0.0]


def test_the_first_episodes_keep_all_that_belongs_to_them():
    every = Demonstrations(
        [np.arange(n + 1.0) for n in (1, 2, 3)],
        [np.full(n, 10.0 * n) for n in (1, 2, 3)],
        [np.full(n, float(n)) for n in (1, 2, 3)],
        [True, False, True],
    )
    two = every.first(2)
    assert [len(o) for o in two.observations] == [2, 3]
    assert [a.tolist() for a in two.actions] == [[10.0], [20.0, 20.0]]
    assert (two.returns.tolist(), two.terminated) == ([1.0, 4.0], [True, False])
    assert every.returns.tolist() == [1.0, 4.0, 9.0]


def test_the_last_observation_stands_in_for_a_final_one_that_is_missing():
    of = [np.array([[1.0], [2.0]]), np.array([[3.0]])]
    assert [o.ravel().tolist() for o in demonstrations.finished(of)] == [[1, 2, 2], [3, 3]]
    final = [np.array([7.0]), np.array([8.0])]
    assert [o.ravel().tolist() for o in demonstrations.finished(of, final)] == [[1, 2, 7], [3, 8]]
    with pytest.raises(UserError, match="do not fit"):
        demonstrations.finished(of, final[:1])


def test_an_end_is_the_last_mark_and_no_other_may_be_set():
    no = np.zeros(4, bool)
    for at in range(4):
        marks = no.copy()
        marks[at] = True
        if at == 3:
            assert demonstrations.ended(marks, no, "Episode 0") is True
            assert demonstrations.ended(no, marks, "Episode 0") is False
            assert demonstrations.ended(no, None, "Episode 0") is False
            continue
        with pytest.raises(UserError, match=f"is terminated in step {at + 1} of 4"):
            demonstrations.ended(marks, None, "Episode 0")
        with pytest.raises(UserError, match=f"is truncated in step {at + 1} of 4"):
            demonstrations.ended(no, marks, "Episode 0")
    assert [r.tolist() for r in demonstrations.unrewarded([no, no[:1]])] == [[0] * 4, [0]]


def test_a_sentence_has_at_most_2000_characters_the_middle_left_out():
    for length in (1, 1_999, 2_000):
        assert plain("x" * length) == "x" * length
    cut = plain("a" * 1_000 + "?" + "b" * 1_000)
    assert cut == "a" * 1_000 + " … " + "b" * 1_000


def test_a_sentence_is_one_line_that_no_terminal_obeys():
    assert plain("a\nb\tc\x1b[31md\x07e\udc80f\u202eg") == "a b cde?fg"
    assert plain("\ud800\udfff") == "??"


@pytest.mark.parametrize(
    ("read", "most"), [(files.regular, 8 * 2**30), (files.text, 64 * 2**20)]
)  # as large as can be meant: arrays, settings
def test_a_file_may_be_so_large_and_no_larger(read, most, tmp_path):
    path = tmp_path / "large"
    path.touch()
    os.truncate(path, most + 1)  # of holes: it takes no place
    with pytest.raises(UserError, match=f"has {most + 1:,} bytes; at most {most:,} are read"):
        read(path)
    os.truncate(path, most)
    files.regular(path, most)


def test_a_text_is_utf_8_with_or_without_a_mark(tmp_path):
    for mark in (b"", b"\xef\xbb\xbf"):
        (tmp_path / "text").write_bytes(mark + "σ = ½".encode())
        assert files.text(tmp_path / "text") == "σ = ½"


def test_what_needs_all_the_memory_is_tried_and_what_needs_more_is_not():
    there = memory.machine()
    told = re.findall(r"MemTotal: +(\d+) kB", Path("/proc/meminfo").read_text())
    assert 0 < there <= int(told[0]) * 1024
    memory.refuse(there, "the batch")
    with pytest.raises(UserError, match="make the batch smaller"):
        memory.refuse(there + 1, "the batch")


def test_a_containers_limit_counts_where_it_is_the_smaller(tmp_path, monkeypatch):
    (tmp_path / "max").write_text("max\n")
    (tmp_path / "limit").write_text("1048576\n")
    none = str(tmp_path / "none")
    monkeypatch.setattr(memory, "LIMITS", (none, str(tmp_path / "max"), none))
    whole = memory.machine()
    assert whole == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(memory, "LIMITS", (str(tmp_path / "max"), str(tmp_path / "limit")))
    assert memory.machine() == 2**20


def test_a_name_that_no_file_can_have_is_refused_with_the_systems_reason():
    with pytest.raises(UserError, match="cannot be read: File name too long"):
        files.regular("x" * 300)
    with pytest.raises(UserError, match="cannot be read: embedded null byte"):
        files.regular("a\0b")
    with pytest.raises(FileNotFoundError):
        files.regular("no such file")


def test_a_package_that_is_missing_is_named_by_its_first_part():
    told = extras.explained(ModuleNotFoundError("no", name="wandb.sdk.lib"))
    assert str(told).startswith("This needs wandb, which is missing")
    assert extras.explained(ModuleNotFoundError("no")) is None
    extras.refuse_missing("A test", "numpy")
