"""Notes on an answer: clipping, suppression, quantiles."""
