"""The routes: `path("", include("onfile.adapters.django.urls"))`."""

from __future__ import annotations

from django.urls import path, re_path

from . import views

app_name = "onfile"

urlpatterns = [
    path("agent/memory-export", views.export_memories, name="memory-export"),
    path("agent/memories", views.memories, name="memories"),
    # Any text is an id: one that is nobody's is missing, never malformed.
    re_path(r"^agent/memories/(?P<id>(?s:.*))\Z", views.forget_memory, name="memory"),
]
