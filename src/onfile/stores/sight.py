"""What a PostgreSQL transaction may see, where row-level security holds it to some scopes.

The scopes are set for the one transaction (`SET LOCAL`), so that none of them is left on a pooled
connection. A transaction that sets none sees nothing.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from sqlalchemy import text

from ..errors import StoreError
from .transactions import EVERY_SCOPE

if TYPE_CHECKING:
    from sqlalchemy.ext.asyncio import AsyncConnection

    from .transactions import Scopes

SETTING = "onfile.scopes"
OPERATOR_POLICY = "onfile_operator"

# Any number will do, as long as it is always the same: "onfile" in ASCII.
SETUP_LOCK = 0x6F6E66696C65
LOCK_SETUP = text(f"SELECT pg_advisory_xact_lock({SETUP_LOCK})")
"""Held by whoever makes or changes tables, until their transaction ends."""

_SEE = text(f"SELECT set_config('{SETTING}', :scopes, true)")
SEE_EVERYTHING = f"SELECT set_config('{SETTING}', '{EVERY_SCOPE.value}', true)"
"""Only an operator's role sees anything by this; any other sees nothing."""
# Whether it did any good is asked in the same trip: to see nothing must not look like an empty database.
_SEE_EVERYTHING = text(
    f"{SEE_EVERYTHING}, row_security_active(to_regclass('agent_memory')) IS NOT TRUE"
    " OR EXISTS (SELECT FROM pg_policy p, unnest(p.polroles) AS held (role)"
    f" WHERE p.polrelid = to_regclass('agent_memory') AND p.polname = '{OPERATOR_POLICY}'"
    " AND pg_has_role(held.role, 'USAGE'))"
)


async def see(conn: AsyncConnection, scopes: Scopes) -> None:
    """Hold the transaction to the scopes from here on.

    Raises:
        StoreError: An operator's act, and the role is not an operator's.
    """
    if scopes is not EVERY_SCOPE:
        # As JSON, in which any text is exact; a joined list would be as unsafe as a joined scope.
        await conn.execute(_SEE, {"scopes": json.dumps(list(scopes), ensure_ascii=False)})
        return
    _, allowed = (await conn.execute(_SEE_EVERYTHING)).one()
    if not allowed:
        msg = (
            "this looks beyond the scopes of one request, and row-level security holds this database role to them; "
            "connect as the tables' owner, or as a role that `onfile db rls --operator` was given"
        )
        raise StoreError(msg)
