"""Non-interactive releases, which are measured once and answer from then on. This package reads noisy values and public facts only."""
