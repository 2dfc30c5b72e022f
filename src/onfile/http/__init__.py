"""HTTP for the person it is about: read what is on file, delete what is theirs."""

from .router import memory_router

__all__ = ["memory_router"]
