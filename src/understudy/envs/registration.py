"""Our environments in Gymnasium's registry, for who wants to make them by `gymnasium.make`.

Nothing is registered unasked: call `understudy.register_envs()`, or name `registered`, as Gymnasium
lets one: `gymnasium.make("understudy.envs.registered:understudy/EmptyRoom-9x9-v0")`. We ourselves
make them from their specs.
"""

import gymnasium
from gymnasium.envs.registration import EnvSpec

ROOMS = (3, 5, 9)  # the paper's
_ROOM = "understudy.envs.empty_room_env:EmptyRoomEnv"
SPECS = {
    spec.id: spec
    for spec in (
        *(
            EnvSpec(f"understudy/EmptyRoom-{n}x{n}-v0", entry_point=_ROOM, kwargs={"size": n})
            for n in ROOMS
        ),
        EnvSpec("understudy/EmptyRoom-v0", entry_point=_ROOM),  # any size: make(..., size=50)
        EnvSpec("understudy/WideGrid-v0", entry_point="understudy.envs.wide_grid:WideGridEnv"),
    )
}


def register() -> None:
    """Add our environments to Gymnasium's registry. Safe to repeat."""
    for id, spec in SPECS.items():
        if id not in gymnasium.registry:
            gymnasium.register(id=id, entry_point=spec.entry_point, kwargs=spec.kwargs)
