import { formatTime } from '@keelson/core';
import type { ContainerStatus, Pod, PodCondition } from '@keelson/kinds';
import { initContainersOf, isSidecar } from '../../base/pod/pod-spec.ts';
import type { PodPhase } from './pod-phase.ts';

type Finding = Pick<PodCondition, 'type' | 'status'> & { readonly reason?: string; readonly message?: string };

/** Conditions that the agent owns. */
export const agentConditions = ['Initialized', 'Ready', 'ContainersReady', 'PodScheduled'] as const;

export interface ConditionFacts {
  readonly phase: PodPhase;
  readonly init: readonly ContainerStatus[];
  readonly main: readonly ContainerStatus[];
  /** The previous conditions; readiness gates are read from those of other owners. */
  readonly before: readonly PodCondition[];
  readonly nowMs: number;
}

/** The agent's conditions of a pod; a transition time changes only with the status of its condition. */
export function podConditions(pod: Pod, facts: ConditionFacts): PodCondition[] {
  const containers = containersReady(pod, facts);
  const findings: Finding[] = [
    initialized(pod, facts),
    ready(pod, facts, containers),
    { ...containers, type: 'ContainersReady' },
    { type: 'PodScheduled', status: 'True' },
  ];
  return findings.map((finding) => {
    const old = facts.before.find(({ type }) => type === finding.type);
    const kept = old?.status === finding.status ? old.lastTransitionTime : undefined;
    return { ...finding, lastTransitionTime: kept ?? formatTime(new Date(facts.nowMs)) };
  });
}

function initialized(pod: Pod, { phase, init, main }: ConditionFacts): Finding {
  const type = 'Initialized';
  const missing = initContainersOf(pod).filter((container) => {
    const status = init.find(({ name }) => name === container.name);
    return isSidecar(container) ? status?.started !== true : status?.ready !== true;
  });
  const begun = main.some(({ state, lastState }) => state?.running || state?.terminated || lastState?.terminated);
  if (phase === 'Succeeded') return { type, status: 'True', reason: 'PodCompleted' };
  if (missing.length === 0 || begun) return { type, status: 'True' };
  return {
    type,
    status: 'False',
    reason: 'ContainersNotInitialized',
    message: `containers with incomplete status: [${missing.map(({ name }) => name).join(' ')}]`,
  };
}

function containersReady(pod: Pod, { phase, main }: ConditionFacts): Finding {
  const type = 'ContainersReady';
  if (phase === 'Succeeded') return { type, status: 'False', reason: 'PodCompleted' };
  if (phase === 'Failed') return { type, status: 'False', reason: 'PodFailed' };
  const names = (pod.spec.containers ?? []).map(({ name }) => name);
  const unknown = names.filter((name) => !main.some((status) => status.name === name));
  const unready = names.filter((name) => main.some((status) => status.name === name && !status.ready));
  if (unknown.length + unready.length === 0) return { type, status: 'True' };
  const parts = [
    ...(unknown.length > 0 ? [`containers with unknown status: [${unknown.join(' ')}]`] : []),
    ...(unready.length > 0 ? [`containers with unready status: [${unready.join(' ')}]`] : []),
  ];
  return { type, status: 'False', reason: 'ContainersNotReady', message: parts.join(', ') };
}

function ready(pod: Pod, facts: ConditionFacts, containers: Finding): Finding {
  const type = 'Ready';
  if (containers.status !== 'True') return { ...containers, type };
  const closed: string[] = [];
  for (const { conditionType } of pod.spec.readinessGates ?? []) {
    const gate = facts.before.find((condition) => condition.type === conditionType);
    if (gate?.status !== 'True') closed.push(`the status of pod readiness gate "${conditionType}" is not "True"`);
  }
  return closed.length === 0
    ? { type, status: 'True' }
    : { type, status: 'False', reason: 'ReadinessGatesNotReady', message: closed.join(', ') };
}
