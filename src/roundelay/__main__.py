"""``python -m roundelay``: the command line."""

from .cli import main

main()
