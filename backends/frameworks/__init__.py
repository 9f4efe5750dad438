"""A framework builds replicas of a model; this package says what a replica must do."""
