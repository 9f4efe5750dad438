"""Planning ranks the predicted clusters and writes plan.json for the chosen one; pure."""
