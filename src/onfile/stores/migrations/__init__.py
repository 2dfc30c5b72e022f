"""The schema's released versions, as Alembic revisions: each adds to the one before it, none takes away."""
