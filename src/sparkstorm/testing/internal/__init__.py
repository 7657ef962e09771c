"""The inside of the simulation: its cluster, its witness, and what outlives a driver.

Nothing here is for users; :mod:`sparkstorm.testing` has the names that are.
"""
