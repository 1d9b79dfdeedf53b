"""The deep learner: the same five lines with networks in place of tables."""
