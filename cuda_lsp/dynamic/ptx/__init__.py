"""PTX as data: read, looked at, written."""
