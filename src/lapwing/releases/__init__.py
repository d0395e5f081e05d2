"""The non-interactive half: what is measured once, and answers for ever. Sees noisy values and public facts only."""
