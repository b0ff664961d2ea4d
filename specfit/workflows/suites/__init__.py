"""experiments/<artifact>.yaml to finished runs: read, planned, run, verified."""
