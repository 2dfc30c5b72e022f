"""Django: an app with the routes by which a person reads and deletes what is on file, and a store on its ORM.

Add `"onfile.adapters.django"` to INSTALLED_APPS, run `migrate`, and include `onfile.adapters.django.urls`.
"""
