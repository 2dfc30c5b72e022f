"""Memory for AI assistants: keyed facts at scopes."""
