"""Prediction turns a profile into time, power and energy of every possible cluster; pure."""
