"""Two seeded text generators, written for this project: word problems and news reports."""
