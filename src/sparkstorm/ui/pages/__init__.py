"""The pages: each a URL, drawn on this side, and kept fresh by server-sent events."""
