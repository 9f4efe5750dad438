"""What each command shows: its tables, and its JSON where that is not the command's own record."""
