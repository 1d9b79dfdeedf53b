"""The paper's figures: each its sweep, its drawing and its claims. Nothing here trains."""
