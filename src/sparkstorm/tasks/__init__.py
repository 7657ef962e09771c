"""Tasks: a task's batch, from packets to packets. The same code under every runner. No Spark.

Read on in this order: :mod:`worker` (the tasks of a process, and the stages that they run),
:mod:`reading` (the first stage), :mod:`task` (the life of a task) with :mod:`instance` (the task's
bolt), :mod:`execution` (the calls of user code, also several at a time: :mod:`concurrency`) and
:mod:`sending`. Components emit into :mod:`collectors`; :mod:`dispatch` and :mod:`routing` make
packets of the emitted tuples. :mod:`acker` is the last stage. :mod:`report` has counts and log
lines, :mod:`state_runs` the proof that Spark commits the right state.
"""
