"""The mathematics that every learner shares, and the types that it speaks of.

Imports nothing else of ours.
"""
