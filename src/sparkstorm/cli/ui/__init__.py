"""The command ``ui``, and the page that ``run --ui`` serves beside a run."""
