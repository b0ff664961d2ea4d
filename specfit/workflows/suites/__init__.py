"""experiments/<artefact>.yaml to finished runs: read, planned, run, verified."""
