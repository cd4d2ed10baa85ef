"""Broadcast (and, by transposition, reduce): the root's data to everybody."""
