"""Outside formats, one file each: ``read_x(bytes)`` to our type, ``write_x(value)`` to bytes."""
