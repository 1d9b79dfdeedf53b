"""What the paper proves, measured: regret, bounds, the choice of N. Imports no learner."""
