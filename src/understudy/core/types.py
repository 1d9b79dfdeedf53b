"""Shape aliases, in the paper's symbols: H stages, S states, A actions.

T (transitions), R (rewards) and M (counts) are 1 where a thing is the same at every stage and H
where it is stage-indexed; both forms go through the same code (see `mdp.at`). C is the largest
number of successors of any (s, a).
"""

from jaxtyping import Array, Float, Int

Policy = Float[Array, "H S A"]  # π_h(a|s)
Logits = Float[Array, "H S A"]  # log π up to a constant per (h, s)
Values = Float[Array, "H S A"]  # Q_h(s,a)
Occupancy = Float[Array, "H S A"]  # d_h(s,a), sums to one per stage
Reward = Float[Array, "R S A"]  # μ_h(s,a)
Successors = Int[Array, "T S A C"]  # s'
Transitions = Float[Array, "T S A C"]  # P_h(s'|s,a), laid along Successors
