"""A device sends these records to the operator: named tuples that become JSON.

Every quantity carries its unit in its name or beside it.
"""
