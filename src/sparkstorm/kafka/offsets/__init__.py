"""Offsets: which of a partition's are done, where progress is kept, and where to begin.

Pure: :mod:`ranges` (sets of offsets), :mod:`progress` (what is done of one partition), :mod:`place`
(a partition and its log), :mod:`arrivals` (the age of its lag), :mod:`acks` (a set as a short text)
and :mod:`texts` (what stands beside a commit). :mod:`stored` is what a store keeps; :mod:`stores`
(the group's offsets) and :mod:`zookeeper` are the stores, :mod:`committer` the thread that uses
them. :mod:`beginnings` says where to begin.
"""
