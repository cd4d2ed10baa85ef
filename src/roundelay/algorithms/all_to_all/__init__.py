"""All-to-all: a piece from everybody to everybody."""
