"""The Spark settings that an event, the owner or a script may set, and those that are fixed."""
