"""The table of orders, and those of the outbox."""

from typing import Any

from django.db import migrations, models
from sqlalchemy import create_mock_engine

import shop.models
from payments_sync.bulk import metadata


def make_outbox(apps: Any, editor: Any) -> None:
    """Make its tables on Django's own connection."""

    def execute(made: Any, *_: object) -> None:
        editor.execute(str(made.compile(dialect=engine.dialect)))

    engine = create_mock_engine(f"{editor.connection.vendor}://", execute)
    metadata.create_all(engine, checkfirst=False)


class Migration(migrations.Migration):
    initial = True
    dependencies = []
    operations = [
        migrations.CreateModel(
            name="Order",
            fields=[
                (
                    "number",
                    models.CharField(
                        default=shop.models.new_number, max_length=32, primary_key=True, serialize=False
                    ),
                ),
                ("paid", models.BooleanField(default=False)),
            ],
        ),
        migrations.RunPython(make_outbox),
    ]
