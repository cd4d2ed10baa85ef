"""All-gather (and, by transposition, reduce-scatter): everybody's piece to everybody."""
