"""Runs, figures and reports. Learners never import this package."""
