"""Which Spark settings an event, the operator or a script may set, and which stay fixed."""
