"""Reduce-scatter algorithms that are no transpose of an all-gather."""
