"""JSON forms: what leaves and enters the process, checked by pydantic where bytes arrive."""
