"""Code that reads noisy values and public facts only: tables assembled from releases, their error bars, and the answers that interfaces
show."""
