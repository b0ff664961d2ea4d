"""Values only: one YAML file per choice of each config group."""
