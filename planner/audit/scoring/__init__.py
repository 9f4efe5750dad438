"""Scoring compares measured runs with predictions and simpler rules, without files or devices."""
