"""Environments as finite MDPs, and ours in Gymnasium's registry.

This module stays light (no JAX, no MiniGrid): it is imported with the package, so that
`gymnasium.make("understudy/EmptyRoom-9x9-v0")` works.
"""

import gymnasium

ROOMS = (3, 5, 9)  # the paper's


def register() -> None:
    """Add our environments to Gymnasium's registry. Safe to repeat."""
    entry = "understudy.envs.empty_room_env:EmptyRoomEnv"
    ids = {f"understudy/EmptyRoom-{n}x{n}-v0": {"size": n} for n in ROOMS}
    ids["understudy/EmptyRoom-v0"] = {}  # any size: make(..., size=50)
    for id, kwargs in ids.items():
        if id not in gymnasium.registry:
            gymnasium.register(id=id, entry_point=entry, kwargs=kwargs)
