"""Scatter (and, by transposition, gather): a piece from the root to everybody."""
