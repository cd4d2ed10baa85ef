"""All-reduce: everybody contributes, everybody gets the sum."""
