"""The ack core: numpy arrays of ids in, verdicts out. No tuples, no Spark, no clock, no I/O.

How a tree is tracked
=====================
Every message (root) has a 64-bit *seed*, which only the acker and the router of the root know.
The ack val of a root is the XOR of every id created and every id acked in its tree, and the seed
once; it is 0 exactly when the tree is complete (Storm's rule, with the seed in the place of the
spout's init value).

Ids do not travel beside their ack deltas. A tuple carries one number per root, its *share*: its
own id with the XOR of whatever its emitter had to contribute folded into one child of that root.
Acking a tuple contributes its share. So the shares of all living tuples of a root XOR to the
seed (less what went to the acker as entries already), and an emitter whose children live has
nothing to send to the acker at all. A tuple costs 16 bytes on the wire, whatever its tree.

Read on in this order: :mod:`ids` (numbers from nothing but their position), :mod:`lineage`
(which roots a tuple belongs to), :mod:`shares` (what a task contributes), :mod:`tally` (one
acker, one batch), :mod:`ledger` (what stays open between batches), :mod:`expiry` (time-outs).
"""
