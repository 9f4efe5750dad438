"""Scoring compares measured runs with predictions and with simpler rules; it reads no file and no device."""
