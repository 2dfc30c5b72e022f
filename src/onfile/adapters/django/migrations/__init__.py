"""What the tables were and became."""
