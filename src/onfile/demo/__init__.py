"""A small freight company to try things on: two tenants, two depots, three people, invented throughout."""

from .company import ACTORS, demo_lines, demo_records, demo_scopes, load_demo

__all__ = ["ACTORS", "demo_lines", "demo_records", "demo_scopes", "load_demo"]
