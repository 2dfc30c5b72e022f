"""Pydantic AI: capabilities that bring the block and `remember`, and the catalogue and `skill`."""

from .memory import MemoryCapability
from .skills import SkillsCapability

__all__ = ["MemoryCapability", "SkillsCapability"]
