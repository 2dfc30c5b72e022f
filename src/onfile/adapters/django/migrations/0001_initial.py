"""Facts, and receipts of their writes."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """Makes both tables."""

    initial = True

    dependencies = ()

    operations = (
        migrations.CreateModel(
            name="Receipt",
            fields=[
                ("digest", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("created_at", models.DateTimeField()),
            ],
            options={"db_table": "onfile_receipt"},
        ),
        migrations.CreateModel(
            name="Fact",
            fields=[
                ("id", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("scope", models.CharField(max_length=255)),
                ("scope_sha256", models.CharField(db_index=True, editable=False, max_length=64)),
                ("key", models.CharField(max_length=255)),
                ("key_sha256", models.CharField(editable=False, max_length=64)),
                ("text", models.TextField()),
                (
                    "origin_author",
                    models.CharField(choices=[("agent", "agent"), ("human", "human")], max_length=5),
                ),
                ("origin_thread_id", models.TextField(blank=True, null=True)),
                ("origin_run_id", models.TextField(blank=True, null=True)),
                ("origin_actor_ref", models.TextField(blank=True, null=True)),
                (
                    "pinned",
                    models.BooleanField(default=False, help_text="In every turn's block, whatever the turn is about."),
                ),
                ("created_at", models.DateTimeField()),
                ("updated_at", models.DateTimeField()),
            ],
            options={
                "verbose_name": "fact",
                "db_table": "onfile_fact",
                "constraints": [
                    models.UniqueConstraint(fields=("scope_sha256", "key_sha256"), name="onfile_fact_one_per_key")
                ],
            },
        ),
    )
