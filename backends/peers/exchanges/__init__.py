"""How the members of a run exchange what they learn: strategies' parts put to work on links."""
