"""pgvector's table of vectors, on a PostgreSQL that has the extension or lets this role make it; nothing elsewhere.

Vectors that were kept as bytes are moved into it. Where the extension comes later, the next
`upgrade` or `setup()` makes the table then, whatever revision the database is at.
"""

from __future__ import annotations

from alembic import op

from onfile.stores import halfvec

revision = "0002"
down_revision = "0001"

# One statement, so that it also can be printed for somebody else to run, on a server that nobody has asked yet.
_MAKE = """
DO $onfile$
BEGIN
    IF to_regtype('halfvec') IS NULL AND EXISTS (
        SELECT FROM pg_available_extensions WHERE name = 'vector' AND installed_version IS NULL
        AND CAST(string_to_array(default_version, '.') AS int[]) >= ARRAY[0, 7]
    ) THEN
        BEGIN
            CREATE EXTENSION IF NOT EXISTS vector;
        EXCEPTION WHEN insufficient_privilege OR undefined_file OR feature_not_supported THEN
            RAISE NOTICE 'pgvector could not be made; an administrator can: CREATE EXTENSION vector';
        END;
    END IF;
    IF to_regtype('halfvec') IS NOT NULL AND to_regclass('agent_memory_halfvec') IS NULL THEN
        LOCK TABLE agent_memory, agent_memory_vector IN SHARE ROW EXCLUSIVE MODE;
        CREATE TABLE agent_memory_halfvec (
            memory_id VARCHAR(255) COLLATE "C" NOT NULL,
            scope VARCHAR(255) COLLATE "C" NOT NULL,
            model VARCHAR(255) COLLATE "C" NOT NULL,
            dimensions INTEGER NOT NULL,
            embedding halfvec NOT NULL,
            PRIMARY KEY (memory_id),
            FOREIGN KEY(memory_id) REFERENCES agent_memory (id) ON DELETE CASCADE
        ) WITH (toast_tuple_target = 8160);
        CREATE INDEX ix_agent_memory_halfvec_scope_model ON agent_memory_halfvec (scope, model);
    END IF;
END
$onfile$
"""


def upgrade() -> None:
    """Make the table if it can be had."""
    context = op.get_context()
    if context.dialect.name != "postgresql":
        return
    op.execute(_MAKE)
    if not context.as_sql:
        halfvec.install(op.get_bind())
