"""The shop in Flask under uWSGI, which forks its workers after the application was loaded, and a call made.

    uwsgi --http-socket :8000 --master --processes 2 --py-call-osafterfork --module uwsgi_shop
    uwsgi --http-socket :8000 --master --processes 2 --lazy-apps --module uwsgi_shop

With `--lazy-apps` each worker loads it for itself.
"""

from __future__ import annotations

from flask_shop import app as application  # noqa: F401 - uWSGI looks for this name
from flask_shop import client

client.warm_up(deadline=10)
