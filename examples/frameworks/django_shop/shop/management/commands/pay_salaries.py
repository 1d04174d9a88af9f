"""`manage.py pay_salaries june.csv salaries-june`: pay a file, each row at most once. It can be run again."""

from __future__ import annotations

from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from shop import payments

from payments_sync.bulk import PayoutBatch


class Command(BaseCommand):
    """Pays a batch."""

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("file")
        parser.add_argument("batch_id")

    def handle(self, *, file: str, batch_id: str, **options: Any) -> None:
        with PayoutBatch.open(f"{batch_id}.ledger", payments.blocking()) as batch:
            batch.load(file, batch_id=batch_id)
            report = batch.run()
            certificate = batch.reconcile()
        if report.exit_code or not certificate.is_clean:
            raise CommandError(f"{batch_id} is not done: run it again", returncode=report.exit_code or 1)
        self.stdout.write(f"{batch_id}: paid, and the service's list agrees")
