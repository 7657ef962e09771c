"""Planning: from a topology to a plan of levels, tasks, exchanges and stages. No Spark, no I/O.

Read ``plan.py`` (the plan as a value), then ``passes.py`` (the steps that make one) with
``levels.py`` and ``guarantee.py``. ``explain.py`` shows a plan to people.
"""
