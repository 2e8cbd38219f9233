"""The user's files: which ones there are, their bytes, their encoding, their state in git, and how they are written."""
