"""Barrier: nobody goes on before everybody has come."""
