"""Is the table true? Episodes of random actions in the environment itself, beside the table: the
same states, rewards and ends at every step."""

import gymnasium
import numpy as np

from understudy.envs import guard, world_state
from understudy.envs.explored import Explored
from understudy.envs.limits import cut_off
from understudy.envs.world_state import Reading

EPISODES = 5  # besides one that ends as late as it can
ACTED = 2_000  # steps in all, or one whole episode


class Differs(Exception):
    """The environment does what the table does not; the message is a sentence without its end."""


def play(world: gymnasium.Env, found: Explored, name: str, layout: int) -> None:
    """Raises `Differs`, or a sentence where episodes are cut off too early for the horizon."""
    rng = np.random.default_rng(layout)
    live, left = guard.guarded(world, name), ACTED
    for episode in range(EPISODES + 1):
        left -= _episode(live, found, name, layout, rng, lasting=episode == 0)
        if left <= 0:
            return


def _episode(
    live: gymnasium.Env,
    found: Explored,
    name: str,
    layout: int,
    rng: np.random.Generator,
    *,
    lasting: bool,
) -> int:
    """One episode; how many steps it had. A lasting one takes no action that ends it, where it
    can."""
    live.reset(seed=layout)
    known, first = world_state.written_of(world_state.still(live)), int(live.action_space.start)  # type: ignore[attr-defined]
    s = 0
    for stage in range(found.horizon):
        chosen = np.arange(found.succ.shape[1])
        if lasting and (found.succ[s] != found.sink).any():
            chosen = np.flatnonzero(found.succ[s] != found.sink)
        a = int(rng.choice(chosen))
        _, gained, terminated, truncated, _ = live.step(a + first)
        to, over = int(found.succ[s, a]), terminated
        if truncated and not terminated and to != found.sink and stage + 1 < found.horizon:
            raise cut_off(name, stage + 1)
        here = f"Environment {name}, by action {a + first} in state {s} at step {stage},"
        if gained != found.gain(stage, s, a):
            raise Differs(f"{here} earned {gained:g}, and {found.gain(stage, s, a):g} before")
        if to == found.sink:
            if not (over or truncated):
                raise Differs(f"{here} did not end its episode, as it did before")
            return stage + 1
        if stage + 1 == found.horizon:
            break
        if over:
            raise Differs(f"{here} ended its episode, as it did not before")
        if Reading(live, found.clocks, known).digest != found.digests[to]:
            raise Differs(f"{here} came to another state than before")
        s = to
    return found.horizon
