"""The layout of graphs: whatever the topology, boxes do not overlap and edges lead right."""

import re
from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from sparkstorm.ui.pages.graph import HEIGHT, WIDTH, Layout, lay_out

EDGES = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=30)


def laid_out(count: int, edges: list[tuple[int, int]]) -> Layout:
    names = [f"c{number}" for number in range(count)]
    return lay_out(names, [(f"c{a}", f"c{b}") for a, b in edges])


@given(st.integers(0, 12), EDGES)
def test_boxes_do_not_overlap_and_are_inside(count: int, edges: list[tuple[int, int]]) -> None:
    """Circles and edges to nowhere do no harm."""
    layout = laid_out(count, edges)
    assert len(layout.boxes) == count
    for a, b in combinations(layout.boxes, 2):
        assert abs(a.x - b.x) >= WIDTH or abs(a.y - b.y) >= HEIGHT
    for box in layout.boxes:
        assert 0 <= box.x <= layout.width - WIDTH
        assert 0 <= box.y <= layout.height - HEIGHT


@given(st.integers(1, 12), EDGES)
def test_edges_lead_to_the_right_where_there_is_no_circle(
    count: int, edges: list[tuple[int, int]]
) -> None:
    """Each edge begins at the right side of its source and ends at the left side of its target."""
    forward = [(a, b) for a, b in edges if a < b < count]
    layout = laid_out(count, forward)
    boxes = {box.name: box for box in layout.boxes}
    assert len(layout.curves) == len(set(forward))
    for curve in layout.curves:
        numbers = [float(number) for number in re.findall(r"-?[\d.]+", curve.path)]
        source, target = boxes[curve.source], boxes[curve.target]
        assert numbers[:2] == [source.x + WIDTH, source.y + HEIGHT / 2]
        assert numbers[-2:] == [target.x, target.y + HEIGHT / 2]
        assert target.x > source.x


def test_an_edge_over_several_levels_passes_beside_the_boxes() -> None:
    """Storm's page draws such an edge through the boxes between."""
    layout = laid_out(3, [(0, 1), (1, 2), (0, 2)])
    (long,) = [curve for curve in layout.curves if curve.target == "c2" and curve.source == "c0"]
    (between,) = [box for box in layout.boxes if box.name == "c1"]
    level = re.search(r"([\d.]+)H", long.path)
    assert level is not None
    beside = float(level[1].split()[-1])
    assert not between.y <= beside <= between.y + HEIGHT


def test_a_wide_graph_is_laid_out_quickly() -> None:
    """Five hundred components with edges between all neighbours."""
    edges = [(a, a + step) for a in range(500) for step in (1, 7) if a + step < 500]
    assert len(laid_out(500, edges).boxes) == 500
