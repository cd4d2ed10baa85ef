"""Reduce algorithms that are no transpose of a broadcast."""
