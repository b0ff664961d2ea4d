"""The parts of results/report.html: strings in, one page out. Nothing here reads a row."""
