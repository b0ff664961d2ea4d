"""One module per table or figure: rows in, numbers and sheets out; nothing is drawn here."""
