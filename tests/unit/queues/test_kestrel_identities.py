"""Identities of Kestrel's items: a lost item keeps its name until its server is back."""

from sparkstorm.queues.kestrel.identities import Identities


def test_a_lost_item_keeps_its_name_however_long_its_server_is_away() -> None:
    known = Identities()
    item = known.name("a:1", b"body", now=0.0)
    known.lose(item)
    known.regain("a:1", now=1000.0)
    assert known.name("a:1", b"body", now=1030.0) == item
    assert known.name("a:1", b"body", now=1031.0) != item


def test_an_item_that_comes_long_after_its_server_is_another_one() -> None:
    known = Identities()
    item = known.name("a:1", b"body", now=0.0)
    known.lose(item)
    known.regain("a:1", now=1.0)
    assert known.name("a:1", b"body", now=100.0) != item


def test_each_server_has_its_own_time() -> None:
    known = Identities()
    names = {server: known.name(server, b"body", now=0.0) for server in ("a:1", "b:1")}
    for item in names.values():
        known.lose(item)
    known.regain("a:1", now=1.0)
    known.regain("b:1", now=500.0)
    assert known.name("a:1", b"body", now=501.0) != names["a:1"]
    assert known.name("b:1", b"body", now=501.0) == names["b:1"]
