"""Both tables."""

import django.db.models.deletion
from django.db import migrations, models

import shop.models


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
        migrations.CreateModel(
            name="Refund",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("request", models.TextField()),
                ("payout_id", models.CharField(default="", max_length=64)),
                (
                    "order",
                    models.OneToOneField(on_delete=django.db.models.deletion.PROTECT, to="shop.order"),
                ),
            ],
        ),
    ]
