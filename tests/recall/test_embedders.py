"""The adapters around other people's embedding libraries."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy
import pytest

from onfile.recall import CallableEmbedder, Embedder, FastembedEmbedder, Model2vecEmbedder, PydanticAIEmbedder


async def test_any_function_is_an_embedder_sync_or_async():
    async def later(texts):
        return [[float(len(text)), 1.0] for text in texts]

    for embed in (later, lambda texts: [[float(len(text)), 1.0] for text in texts]):
        embedder = CallableEmbedder(embed, model="lengths", dimensions=2, query_prefix="q:")
        assert isinstance(embedder, Embedder)
        assert await embedder.embed_query("abc") == [5.0, 1.0]
        assert await embedder.embed_documents(["a", "ab"]) == [[1.0, 1.0], [2.0, 1.0]]


async def test_a_static_model_embeds_through_model2vec_itself():
    wordllama = pytest.importorskip("wordllama")
    from model2vec import StaticModel
    from safetensors.numpy import load_file
    from tokenizers import Tokenizer

    package = Path(wordllama.__file__).parent
    weights = load_file(package / "weights" / "l2_supercat_256.safetensors")["embedding.weight"].astype("f4")
    tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
    embedder = Model2vecEmbedder("wordllama", static_model=StaticModel(weights, tokenizer, normalize=True))

    near, far = await embedder.embed_documents(["green tea", "a lorry on the motorway"])
    query = await embedder.embed_query("a hot drink")

    assert embedder.dimensions == len(query) == 256
    assert numpy.dot(query, near) > numpy.dot(query, far)


async def test_pydantic_ais_embedder_is_one_of_ours():
    class Theirs:
        model = SimpleNamespace(model_name="text-embedding-3-small")

        async def embed_query(self, text):
            return SimpleNamespace(embeddings=[[1.0, float(len(text))]])

        async def embed_documents(self, texts):
            return SimpleNamespace(embeddings=[[0.0, float(len(text))] for text in texts])

    embedder = PydanticAIEmbedder(Theirs(), dimensions=2)

    assert embedder.model == "text-embedding-3-small"
    assert await embedder.embed_query("tea") == [1.0, 3.0]
    assert await embedder.embed_documents(["a", "bc"]) == [[0.0, 1.0], [0.0, 2.0]]


def test_a_model_without_a_name_is_asked_for_one():
    with pytest.raises(ValueError, match="model="):
        PydanticAIEmbedder(object(), dimensions=2)


def test_a_missing_library_is_named_with_its_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastembed", None)
    monkeypatch.setitem(sys.modules, "model2vec", None)

    for build in (FastembedEmbedder, Model2vecEmbedder):
        with pytest.raises(ModuleNotFoundError, match=r"onfile\[embeddings\]"):
            build()


def test_importing_recall_imports_nothing_heavy():
    heavy = ("numpy", "fastembed", "model2vec", "sqlalchemy")
    told = f"import onfile.recall, sys; print([name for name in {heavy} if name in sys.modules])"

    done = subprocess.run([sys.executable, "-c", told], capture_output=True, text=True, check=True)

    assert done.stdout.strip() == "[]"
