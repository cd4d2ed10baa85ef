"""What describes a machine: how its devices are connected, and what is not as it should be."""
