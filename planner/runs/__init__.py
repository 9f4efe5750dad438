"""The folders of earlier runs are found, summed up and compared."""
