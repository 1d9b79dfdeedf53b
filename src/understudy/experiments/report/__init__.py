"""The report: what stored runs say, on one page."""
