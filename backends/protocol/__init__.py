"""The messages between operator and agents are named tuples, with one way into JSON and back."""
