"""Open batches of an account, found without their figures: no damaged chunk keeps workers from the others."""

from __future__ import annotations

from typing import Final

from ....._http.addresses import same_service
from ....protocol.stop_rules import Account
from ..chunks import HERE, Batch
from ..driver.database import Database
from ..schema import PROTOCOL

_OPEN: Final = (
    f"SELECT b.batch, b.batch_id, b.chunk_size, {HERE}, b.base_url FROM payments.batches b "
    f"WHERE b.state = 'open' AND b.schema = {PROTOCOL} AND b.environment = %s AND (%s = ANY(b.keys)) = %s "
    "AND (%s::bigint IS NULL OR b.batch = %s)"
)
_UNDER_WAY: Final = (
    " AND EXISTS (SELECT 1 FROM payments.chunks c WHERE c.batch = b.batch AND c.chunk > 0 "
    "AND (c.expires > clock_timestamp() OR c.in_flight > 0 OR c.unsent > 0 AND b.stopped IS NULL))"
)


async def open_batches(
    database: Database, account: Account, only: int | None, *, proven: bool = True, under_way: bool = False
) -> list[tuple[Batch, bool]]:
    """Find open batches, each with whether its last commit went to this store. Raises LedgerError.

    Args:
        database: where they are.
        account: the account that they are paid from.
        only: the number of the only batch to look at; None for all.
        proven: whether the account's key is proven to be of the batch's project.
        under_way: find only those whose rows are sent now, or can be. Rows in doubt wait for a look.
    """
    sql = f"{_OPEN}{_UNDER_WAY if under_way else ''}"
    (found,) = await database.read((sql, (account.environment, account.key, proven, only, only)))
    return [
        (Batch(number, batch_id, size), is_here)
        for number, batch_id, size, is_here, url in found
        if same_service(url, account.base_url)
    ]
