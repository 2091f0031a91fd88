"""Z3 on what arithmetic leaves open: proofs, witnesses that are replayed, readable conditions."""
