"""What an analyst imports: data sets, answers, prices. No privacy logic here."""
