"""Whether what was measured is as it should be."""
