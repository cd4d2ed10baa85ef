"""What a measured process does.

These modules also run where Roundelay is not installed, in the environment of a rival, and
import nothing but NumPy and one another (`ours` excepted).
"""
