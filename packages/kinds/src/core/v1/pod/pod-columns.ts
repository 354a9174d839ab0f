import { type Column, humanDuration, type RowCondition } from '@keelson/core';
import { ageColumn, column, nameColumn, wide } from '../../../columns/columns.ts';
import type { Pod } from '../schema/index.ts';
import { podSummary } from './pod-summary.ts';

/** Columns of the table of pods. */
export const podColumns: readonly Column<Pod>[] = [
  nameColumn(),
  column('Ready', 'string', 'Ready containers of all containers.', (pod) => {
    const { ready, total } = podSummary(pod);
    return `${ready}/${total}`;
  }),
  column('Status', 'string', 'Status of the pod, derived from its containers.', (pod) => podSummary(pod).status),
  column('Restarts', 'string', 'Number of container restarts, and time since the last one.', (pod, { now }) => {
    const { restarts, lastRestart } = podSummary(pod);
    if (restarts === 0 || lastRestart === undefined) return String(restarts);
    return `${restarts} (${humanDuration(now.getTime() - lastRestart)} ago)`;
  }),
  ageColumn,
  wide('IP', 'string', 'Address of the pod.', (pod) => pod.status?.podIPs?.[0]?.ip || pod.status?.podIP || '<none>'),
  wide('Node', 'string', 'Node on which the pod runs.', (pod) => pod.spec.nodeName || '<none>'),
  wide(
    'Nominated Node',
    'string',
    'Node on which pods are preempted for this pod.',
    (pod) => pod.status?.nominatedNodeName || '<none>',
  ),
  wide('Readiness Gates', 'string', 'Number of true readiness gates of all readiness gates.', (pod) => {
    const gates = pod.spec.readinessGates ?? [];
    if (gates.length === 0) return '<none>';
    const holding = new Set<string>();
    for (const { type, status } of pod.status?.conditions ?? []) if (status === 'True') holding.add(type);
    return `${gates.filter((gate) => holding.has(gate.conditionType)).length}/${gates.length}`;
  }),
];

/** Conditions that mark rows of finished pods, which clients may hide. */
export function podRowConditions(pod: Pod): RowCondition[] {
  switch (pod.status?.phase) {
    case 'Succeeded':
      return [{ type: 'Completed', status: 'True', reason: 'Succeeded', message: 'The pod ended with success.' }];
    case 'Failed':
      return [{ type: 'Completed', status: 'True', reason: 'Failed', message: 'The pod ended with a failure.' }];
    default:
      return [];
  }
}
