"""From what a run saw to findings: confirmed, not observed, or new; and what else a reader must know."""
