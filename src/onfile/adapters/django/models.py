"""The two tables: facts, and receipts of their writes."""

from __future__ import annotations

from django.db import models


class Fact(models.Model):
    """One fact on file: the answer to one question, held at one scope.

    Databases disagree on when two texts are equal (case, accents, trailing blanks), so what must
    compare byte for byte is compared by its SHA-256.
    """

    id = models.CharField(primary_key=True, max_length=64)
    scope = models.CharField(max_length=255)
    scope_sha256 = models.CharField(max_length=64, db_index=True, editable=False)
    key = models.CharField(max_length=255)
    key_sha256 = models.CharField(max_length=64, editable=False)
    text = models.TextField()
    origin_author = models.CharField(max_length=5, choices=[("agent", "agent"), ("human", "human")])
    origin_thread_id = models.TextField(null=True, blank=True)  # unknown and empty are two things
    origin_run_id = models.TextField(null=True, blank=True)  # as above
    origin_actor_ref = models.TextField(null=True, blank=True)  # as above
    pinned = models.BooleanField(default=False, help_text="In every turn's block, whatever the turn is about.")
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()

    class Meta:
        """One fact for each key at each scope."""

        db_table = "onfile_fact"
        verbose_name = "fact"
        constraints = (models.UniqueConstraint(fields=("scope_sha256", "key_sha256"), name="onfile_fact_one_per_key"),)

    def __str__(self) -> str:
        """Name it by its id: what it says belongs in no log and no title."""
        return str(self.id)


class Receipt(models.Model):
    """That one write was done. It holds no text, and outlives the fact, so that a replay does not bring it back."""

    digest = models.CharField(primary_key=True, max_length=64)
    created_at = models.DateTimeField()

    class Meta:
        """Kept beside the facts."""

        db_table = "onfile_receipt"

    def __str__(self) -> str:
        """Name it by its digest."""
        return str(self.digest)
