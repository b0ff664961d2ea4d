"""The offload engine: host store, expert cache, copies, and the experts' arithmetic."""
