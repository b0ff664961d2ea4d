"""Where else a run is written down, live. A logger can fail or hang; the run goes on as if not."""
