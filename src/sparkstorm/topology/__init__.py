"""How users wire components: groupings, the builder, the validated graph."""
