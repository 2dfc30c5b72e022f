"""A Django site in one file, for size: `python django_site.py migrate`, then `python django_site.py runserver`."""

import os
import sys

from django.conf import settings
from django.core.management import execute_from_command_line
from django.urls import include, path

from onfile import Actor


def signed_in(request):
    person = {"session-of-ana": "ana", "session-of-bo": "bo"}.get(request.headers.get("X-Session", ""))
    return Actor(id=person, tenant_ref="acme") if person else None


settings.configure(
    DEBUG=True,
    SECRET_KEY=os.environ.get("SECRET_KEY", "change me"),
    USE_TZ=True,
    ROOT_URLCONF=__name__,
    INSTALLED_APPS=["onfile.adapters.django"],  # the tables, in `migrate` and in the admin where you have one
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "site.db"}},
    ONFILE={"ACTOR": signed_in},  # without it the signed-in user, by primary key
)

urlpatterns = [path("", include("onfile.adapters.django.urls"))]

if __name__ == "__main__":
    execute_from_command_line(sys.argv)
