"""What planner has left on devices is found and removed."""
