"""What programmers make of atomics and loops, as what it is: locks as regions, counters as grid barriers."""
