"""Training of a small transformer by data parallelism, measured step by step.

`job.train` starts the ranks and gathers what they measured; what imports torch runs in the ranks.
"""
