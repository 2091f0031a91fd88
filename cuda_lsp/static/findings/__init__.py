"""What the static analyses say: conditions and doubts as data, one maker of diagnoses, words last."""
