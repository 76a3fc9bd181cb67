"""``evidence/chains.json`` of a run: for every fusion and compute finding the calls it is about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from rooftrace.analyzers.fusion import FusionDraft, inputs_of
from rooftrace.calltree.surroundings import record_op
from rooftrace.contracts.chains import Chain, ChainsFile
from rooftrace.fusion.examples import chain_of_call, chain_of_candidate, chain_without_calls

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from rooftrace.analyzers import RatedRun
    from rooftrace.analyzers.draft import Draft

GROUPS_OF_A_FINDING = 3  # the heaviest; one script tries them all


def chains(workload: RatedRun, drafts: Iterable[Draft], head: Mapping[str, Any]) -> ChainsFile:
    """Examples of the calls of every finding that has some; ``head`` is what every artifact begins with."""
    run = inputs_of(workload)
    found: list[Chain] = []
    for draft in drafts:
        finding = draft.finding
        if finding.tier == "fusion":
            example = draft.example if isinstance(draft, FusionDraft) else None
            if example is None:
                pattern, count = (
                    finding.evidence.get("pattern", ""),
                    finding.evidence.get("instances_count", 1),
                )
                found.append(chain_without_calls(finding.id, str(pattern), int(count)))
            else:
                found.append(chain_of_candidate(run, example.calls, example.candidate, finding.id))
        elif finding.tier == "compute":
            found += _of_groups(workload, finding.id, finding.members[:GROUPS_OF_A_FINDING])
    return ChainsFile(chains=[_writable(chain) for chain in found], **head)


def _writable(chain: Chain) -> Chain:
    """The chain, without its calls where damage has made integers that no file can hold."""
    try:
        orjson.dumps(chain.model_dump(mode="json"))
    except TypeError:
        return chain_without_calls(chain.finding, chain.pattern, chain.instances, chain.op_id)
    return chain


def _of_groups(workload: RatedRun, finding: str, members: list[str]) -> list[Chain]:
    """The heaviest op groups of a compute finding, each by its slowest instance."""
    number = {identity: at for at, identity in enumerate(workload.op_ids)}
    found = []
    for identity in members:
        group = workload.groups[number[identity]]
        if group.node < 0 or group.graph:
            found.append(chain_without_calls(finding, "", group.count, identity))
            continue
        tree = workload.tree
        row = int(tree.row[group.node])
        op = record_op(workload.trace, int(tree.name[group.node]), int(workload.trace.inputs[row]))
        infos = [workload.activities.infos[code] for code in group.kernel_codes]
        median = sorted(group.instance_busy.tolist())[group.count // 2]
        found.append(chain_of_call(op, infos, int(median), (finding, identity, group.count)))
    return found
