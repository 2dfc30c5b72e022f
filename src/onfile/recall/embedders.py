"""Embedders: one small protocol, and the libraries that fit behind it. Each is imported when it is used."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol, runtime_checkable

Vectors = Sequence[Sequence[float]]
_MISSING = "{} is not installed: pip install 'onfile[embeddings]'"


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into vectors. Implement it around whatever model you run.

    It may also say `lexical_weight` (how much BM25 weighs beside its cosines) and `scripts` (the
    writing systems that it knows); see `onfile.recall.fusion`.
    """

    model: str
    """Stored with every vector: vectors of another model are never compared."""
    dimensions: int

    async def embed_query(self, text: str) -> Sequence[float]:
        """Answer the vector of a question."""
        ...

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Answer the vectors of facts, in their order."""
        ...


class CallableEmbedder:
    """Any function from texts to vectors, sync or async, as an embedder.

    A sync function runs in a thread.
    """

    def __init__(
        self,
        embed: Callable[[Sequence[str]], Vectors | Awaitable[Vectors]],
        *,
        model: str,
        dimensions: int,
        query_prefix: str = "",
        document_prefix: str = "",
    ) -> None:
        self.model = model
        self.dimensions = dimensions
        self._embed = embed
        self._query_prefix = query_prefix
        self._document_prefix = document_prefix

    async def embed_query(self, text: str) -> Sequence[float]:
        """Answer the vector of a question."""
        return (await self._call([self._query_prefix + text]))[0]

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Answer the vectors of facts, in their order."""
        return await self._call([self._document_prefix + text for text in texts])

    async def _call(self, texts: Sequence[str]) -> Vectors:
        if inspect.iscoroutinefunction(self._embed):
            return await self._embed(texts)
        vectors = await asyncio.to_thread(self._embed, texts)
        return await vectors if inspect.isawaitable(vectors) else vectors


class FastembedEmbedder:
    """A local model through fastembed (`onfile[embeddings]`), on the CPU without torch.

    The model is fetched at first use by fastembed itself, unless it is in its cache; `options` are
    those of `fastembed.TextEmbedding`.
    """

    def __init__(self, model: str = "BAAI/bge-small-en-v1.5", **options: Any) -> None:
        try:
            import fastembed  # pyright: ignore[reportMissingImports]  # an extra, and a second to import
        except ModuleNotFoundError as error:
            raise ModuleNotFoundError(_MISSING.format("fastembed")) from error
        self.model = model
        library: Any = fastembed
        self._embedding: Any = library.TextEmbedding(model_name=model, **options)
        self.dimensions: int = len(next(iter(self._embedding.embed(["dimensions"]))))

    async def embed_query(self, text: str) -> Sequence[float]:
        """Answer the vector of a question."""
        return await asyncio.to_thread(lambda: next(iter(self._embedding.query_embed([text]))))

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Answer the vectors of facts, in their order."""
        return await asyncio.to_thread(lambda: list(self._embedding.passage_embed(list(texts))))


class Model2vecEmbedder:
    """A static model through model2vec (`onfile[embeddings]`): a tenth of a millisecond a question.

    Give a name to load, or a loaded `model2vec.StaticModel` with the name to store.
    """

    def __init__(self, model: str = "minishlab/potion-base-8M", *, static_model: Any | None = None) -> None:
        if static_model is None:
            try:
                from model2vec import StaticModel  # an extra
            except ModuleNotFoundError as error:
                raise ModuleNotFoundError(_MISSING.format("model2vec")) from error
            static_model = StaticModel.from_pretrained(model)
        self.model = model
        self._static = static_model
        self.dimensions: int = int(self._static.dim)

    async def embed_query(self, text: str) -> Sequence[float]:
        """Answer the vector of a question, at once: it is quicker than a thread would be."""
        return self._static.encode([text])[0]

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Answer the vectors of facts, in their order."""
        return await asyncio.to_thread(self._static.encode, list(texts))


class PydanticAIEmbedder:
    """Pydantic AI's `Embedder` (OpenAI, Cohere, Google, Voyage, Bedrock…) as ours.

    `embedder` is a `pydantic_ai.Embedder`, or the name that one is made from, such as
    `openai:text-embedding-3-small`.
    """

    def __init__(self, embedder: Any, *, dimensions: int, model: str | None = None) -> None:
        if isinstance(embedder, str):
            model = model or embedder
            try:
                from pydantic_ai import Embedder as Theirs  # the host's own dependency
            except ImportError as error:
                msg = "pydantic-ai with embeddings is not installed: pip install 'pydantic-ai-slim>=1.39'"
                raise ModuleNotFoundError(msg) from error
            embedder = Theirs(embedder)
        if model is None:
            theirs = getattr(embedder, "model", None)
            model = theirs if isinstance(theirs, str) else getattr(theirs, "model_name", None)
        if not model:
            msg = (
                "PydanticAIEmbedder could not tell the model's name; pass model='…', which is stored with every vector"
            )
            raise ValueError(msg)
        self.model: str = model
        self.dimensions = dimensions
        self._embedder = embedder

    async def embed_query(self, text: str) -> Sequence[float]:
        """Answer the vector of a question."""
        return (await self._embedder.embed_query(text)).embeddings[0]

    async def embed_documents(self, texts: Sequence[str]) -> Vectors:
        """Answer the vectors of facts, in their order."""
        return (await self._embedder.embed_documents(list(texts))).embeddings
