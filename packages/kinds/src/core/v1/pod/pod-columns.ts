import { type Column, humanDuration, type RowCondition } from '@keelson/core';
import { ageColumn, column, nameColumn, wide } from '../../../columns/columns.ts';
import type { Pod } from '../schema/index.ts';
import { podSummary } from './pod-summary.ts';

/** Table of pods (kinds.json). */
export const podColumns: readonly Column<Pod>[] = [
  nameColumn(),
  column('Ready', 'string', 'Ready containers of all containers.', (pod) => {
    const { ready, total } = podSummary(pod);
    return `${ready}/${total}`;
  }),
  column('Status', 'string', 'What the pod as a whole is doing.', (pod) => podSummary(pod).status),
  column('Restarts', 'string', 'How often containers were restarted, and when last.', (pod, { now }) => {
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
    'Node on which room is being made for the pod.',
    (pod) => pod.status?.nominatedNodeName || '<none>',
  ),
  wide('Readiness Gates', 'string', 'Further conditions that hold, of all there are.', (pod) => {
    const gates = pod.spec.readinessGates ?? [];
    if (gates.length === 0) return '<none>';
    const holding = new Set<string>();
    for (const { type, status } of pod.status?.conditions ?? []) if (status === 'True') holding.add(type);
    return `${gates.filter((gate) => holding.has(gate.conditionType)).length}/${gates.length}`;
  }),
];

/** Rows of finished pods are marked, so that clients can leave them out. */
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
