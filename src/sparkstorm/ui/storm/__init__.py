"""REST under Storm UI's paths and field names, so that tools made for Storm UI read ours."""
