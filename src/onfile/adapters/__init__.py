"""Memory in other people's agent frameworks: one thin file each, imported by its own name."""
