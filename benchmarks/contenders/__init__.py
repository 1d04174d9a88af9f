"""Workers that are measured. Those of peers run in the peers' environment: they import nothing of ours."""
