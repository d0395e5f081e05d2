"""What sees noisy values and public facts only: tables put together from releases, their error bars, and the answer a face shows."""
