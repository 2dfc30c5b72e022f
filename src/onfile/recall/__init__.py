"""Relevance: which of thousands of facts a turn needs, by words, by vectors, or by both."""

from __future__ import annotations

from .embedders import CallableEmbedder, Embedder, FastembedEmbedder, Model2vecEmbedder, PydanticAIEmbedder

__all__ = ["CallableEmbedder", "Embedder", "FastembedEmbedder", "Model2vecEmbedder", "PydanticAIEmbedder"]
