"""The ack core: numpy arrays of ids in, verdicts out. No tuples, no Spark, no clock, no I/O.

How a tree is tracked
=====================
Every message (root) has a 64-bit *seed*, known to the root's acker and router alone. The root's
ack val is the XOR of every id created and every id acked in the tree, with the seed XORed in once.
The ack val is 0 exactly when the tree is complete (Storm's rule; the seed stands in the place of
the spout's init value).

Ids and ack deltas do not travel side by side. A tuple carries a single number per root, its
*share*: the tuple's own id, and in one child of each root also the rest of the emitter's
contribution to the root. Acking a tuple contributes its share. So the shares of all living tuples
of a root XOR to the seed (less the entries already sent to the acker), and an emitter whose
children live sends nothing to the acker. A tuple costs 16 bytes on the wire, whatever its tree.

Read on in this order: :mod:`ids` (numbers derived from their position alone), :mod:`lineage` (roots
and shares of tuples), :mod:`shares` (a task's contributions), :mod:`anchors` and :mod:`groves`
(many roots at once), :mod:`tally` (one acker, one batch), :mod:`failed` (failures by cause),
:mod:`ledger` with :mod:`open_roots` (roots open between batches), :mod:`expiry` (time-outs).
"""
