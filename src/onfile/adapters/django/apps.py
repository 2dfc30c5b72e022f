"""The app as Django knows it."""

from __future__ import annotations

from django.apps import AppConfig


class OnfileConfig(AppConfig):
    """Facts on file for AI assistants."""

    name = "onfile.adapters.django"
    label = "onfile"
    verbose_name = "On file"
