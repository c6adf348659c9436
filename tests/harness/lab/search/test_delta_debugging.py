"""The rest of a list shows the finding, and no single item can be taken away."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from harness.lab.search.delta_debugging import reduced

ITEMS = st.lists(st.integers(0, 30), max_size=40)


@st.composite
def lists_and_needs(draw):
    """A list, and alternative sets of places of which one must be kept."""
    items = draw(ITEMS)
    places = st.sets(st.integers(0, max(len(items) - 1, 0)), max_size=5)
    return list(enumerate(items)), draw(st.lists(places, min_size=1, max_size=3)) if items else [set()]


@given(lists_and_needs())
def test_no_single_item_can_be_taken_from_what_is_left(given_):
    items, needs = given_

    def shows(kept):
        return any(need <= {index for index, _ in kept} for need in needs)

    left = reduced(items, shows)
    assert shows(left)
    assert list(left) == [item for item in items if item in left]
    assert not any(shows(left[:index] + left[index + 1 :]) for index in range(len(left)))


@given(ITEMS, st.integers(0, 12))
def test_it_is_so_where_more_does_not_show_more_too(items, wanted):
    """The predicate is not monotonic: the sum must be one of these."""

    def shows(kept):
        return kept == tuple(items) or sum(kept) % 13 == wanted

    left = reduced(items, shows)
    assert shows(left)
    assert not any(shows(left[:index] + left[index + 1 :]) for index in range(len(left)))


def test_few_of_many_are_found_with_few_questions():
    asked = []

    def shows(kept):
        asked.append(kept)
        return {100, 370, 371} <= {*kept}

    assert reduced(range(500), shows) == (100, 370, 371)
    assert len(asked) < 150


def test_nothing_is_left_where_nothing_is_needed():
    assert reduced(range(5), lambda kept: True) == ()
