"""From a topology to a plan: levels, tasks, exchanges, stages. No Spark, no I/O."""
