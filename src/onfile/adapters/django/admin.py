"""Facts in Django's admin: to read, pin and delete. What a fact says is changed where people publish."""

from __future__ import annotations

from django.contrib import admin
from django.http import HttpRequest

from .models import Fact


@admin.register(Fact)
class FactAdmin(admin.ModelAdmin):  # pyright: ignore[reportMissingTypeArgument]  # Django's class takes none at run time
    """Lists facts; only the pin can be changed, because a text changed here would keep its old author."""

    list_display = ("scope", "key", "text", "origin_author", "pinned", "updated_at")
    list_filter = ("origin_author", "pinned")
    search_fields = ("scope", "key", "text")
    ordering = ("scope", "key")
    fields = (
        "id",
        "scope",
        "key",
        "text",
        "pinned",
        "origin_author",
        "origin_thread_id",
        "origin_run_id",
        "origin_actor_ref",
        "created_at",
        "updated_at",
    )
    readonly_fields = tuple(name for name in fields if name != "pinned")

    def has_add_permission(self, request: HttpRequest) -> bool:  # noqa: ARG002  # Django's signature
        """Say no: a fact is published with its author, by Memory.publish."""
        return False
