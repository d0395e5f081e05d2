"""Operations of owners on a data set: draft a catalogue, set policies, administer the ledger, back up, report spending."""
