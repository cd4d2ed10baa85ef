"""Send and receive: to the next rank."""
