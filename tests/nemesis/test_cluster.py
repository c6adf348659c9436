"""A target says what it can do, and why it cannot do the rest."""

import pytest

from nemesis.cluster import Capability, Target, require
from nemesis.faults import FAULTS
from tests.conftest import ObedientCluster


def test_every_capability_is_the_name_of_a_part():
    assert set(Target.__struct_fields__) == {"view", "lacks", "unplanned", *Capability}


def test_what_a_target_lacks_comes_with_its_reason():
    target = ObedientCluster().target({Capability.FILES: "somebody else's disks"})
    assert target.why_not((Capability.PROCESSES, Capability.FILES)) == "somebody else's disks"
    assert target.why_not((Capability.PROCESSES,)) == ""


def test_a_part_that_is_missing_without_a_reason_is_missed_all_the_same():
    bare = Target(view=ObedientCluster().view)
    assert {capability for capability in Capability if not bare.why_not((capability,))} == set()


def test_using_a_part_that_is_not_there_is_a_mistake():
    with pytest.raises(LookupError, match="ask why_not"):
        require(Target(view=ObedientCluster().view).power)


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_names_what_it_needs(fault):
    assert fault.needs
    assert set(fault.needs) <= set(Capability)
