"""A Django project with the app in it, for the tests: settings and URLs in one module."""

from __future__ import annotations

from pathlib import Path
from tempfile import gettempdir

import django
from django.conf import settings

from onfile import Actor

# Each test's provider has a database of its own; this one only has to exist.
if not settings.configured:
    settings.configure(
        SECRET_KEY="only-for-tests",
        USE_TZ=True,
        ALLOWED_HOSTS=["host", "testserver"],
        ROOT_URLCONF="tests.adapters.django_host",
        INSTALLED_APPS=[
            "django.contrib.admin",
            "django.contrib.auth",
            "django.contrib.contenttypes",
            "django.contrib.messages",
            "django.contrib.sessions",
            "onfile.adapters.django",
        ],
        MIDDLEWARE=[
            "django.contrib.sessions.middleware.SessionMiddleware",
            "django.middleware.csrf.CsrfViewMiddleware",
            "django.contrib.auth.middleware.AuthenticationMiddleware",
            "django.contrib.messages.middleware.MessageMiddleware",
        ],
        TEMPLATES=[
            {
                "BACKEND": "django.template.backends.django.DjangoTemplates",
                "APP_DIRS": True,
                "OPTIONS": {
                    "context_processors": [
                        "django.template.context_processors.request",
                        "django.contrib.auth.context_processors.auth",
                        "django.contrib.messages.context_processors.messages",
                    ]
                },
            }
        ],
        DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": str(Path(gettempdir()) / "unused.db")}},
    )
    django.setup()

from django.contrib import admin
from django.http import HttpRequest
from django.urls import include, path

urlpatterns = [path("admin/", admin.site.urls), path("", include("onfile.adapters.django.urls"))]


def header_actor(request: HttpRequest) -> Actor | None:
    """A host's own way to say who is signed in."""
    name = request.headers.get("X-Actor")
    return Actor(id=name, tenant_ref="acme") if name else None
