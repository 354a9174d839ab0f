import type { Pod } from '@keelson/kinds';
import { isAvailable } from '../workload/pod-state.ts';
import { isUpdated, surgeOf, unavailableOf } from './daemon-pods.ts';
import { applyChanges, type DaemonRun } from './manage-pods.ts';
import type { NodeEntry } from './node-pods.ts';

/** One step of a rolling update. Pods for nodes without any are created by `managePods`. */
export async function rollOut(options: DaemonRun): Promise<void> {
  const { nodes, set } = options;
  const desired = nodes.existing.filter(({ fit }) => fit.shouldRun).length;
  const relevant = [...nodes.existing.filter(({ fit, pods }) => fit.shouldRun || pods.length > 0), ...nodes.gone];
  const surge = surgeOf(set, desired);
  if (surge === 0) await replaceOld(options, relevant, unavailableOf(set, desired));
  else await surgeNew(options, relevant, surge, desired);
}

/** The new and the old pod of a node. Undefined while the node has several of either, until the surplus is deleted. */
function pairOn({ set, hash }: DaemonRun, { pods }: NodeEntry): { old?: Pod; updated?: Pod } | undefined {
  const present = pods.filter(({ metadata }) => metadata?.deletionTimestamp === undefined);
  const updated = present.filter((pod) => isUpdated(pod, set, hash));
  const old = present.filter((pod) => !isUpdated(pod, set, hash));
  if (updated.length > 1 || old.length > 1) return undefined;
  return { ...(old[0] ? { old: old[0] } : {}), ...(updated[0] ? { updated: updated[0] } : {}) };
}

function availability({ run, set }: DaemonRun): (pod: Pod) => boolean {
  const now = run.clock.now();
  return (pod) => isAvailable(pod, set.spec.minReadySeconds ?? 0, now);
}

/** Deletes old pods that are unavailable, and old pods that are available as far as `maxUnavailable` permits. */
async function replaceOld(options: DaemonRun, nodes: readonly NodeEntry[], most: number): Promise<void> {
  const available = availability(options);
  let unavailable = 0;
  const broken: Pod[] = [];
  const candidates: Pod[] = [];
  for (const node of nodes) {
    const { old, updated } = pairOn(options, node) ?? {};
    if (old === undefined || updated !== undefined) {
      if (updated === undefined || old !== undefined || !available(updated)) unavailable += 1;
    } else if (available(old)) candidates.push(old);
    else {
      broken.push(old);
      unavailable += 1;
    }
  }
  await applyChanges(options, [], [...broken, ...candidates.slice(0, Math.max(0, most - unavailable))]);
}

/** Creates new pods beside old ones, and deletes an old one when the new one beside it is available. */
async function surgeNew(options: DaemonRun, nodes: readonly NodeEntry[], most: number, desired: number): Promise<void> {
  const available = availability(options);
  let surging = 0;
  let availableNodes = 0;
  const create: string[] = [];
  const candidates: string[] = [];
  const remove: Pod[] = [];
  /** Available pods on nodes that should not run any. They stay until enough nodes have an available pod. */
  const leaving: Pod[] = [];
  for (const node of nodes) {
    const pair = pairOn(options, node);
    if (pair === undefined) {
      surging += 1;
      continue;
    }
    const { old, updated } = pair;
    const first = old ?? updated;
    if (first !== undefined && available(first)) availableNodes += 1;
    if (old === undefined) continue;
    if (updated !== undefined) {
      if (available(updated)) remove.push(old);
      else surging += 1;
    } else if (available(old)) {
      if (node.fit.shouldRun) candidates.push(node.name);
      else leaving.push(old);
    } else if (node.fit.shouldRun) create.push(node.name);
    else remove.push(old);
  }
  remove.push(...leaving.slice(0, Math.max(0, availableNodes - desired)));
  create.push(...candidates.slice(0, Math.max(0, most - surging)));
  await applyChanges(options, create, remove);
}
