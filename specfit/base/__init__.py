"""Types, interfaces and config: what every room may import."""
