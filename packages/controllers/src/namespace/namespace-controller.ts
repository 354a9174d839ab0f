import { type ControllerDefinition, patchStatus, type ReconcileRun, withCondition } from '@keelson/controller-kit';
import { type ApiClient, isStatusError, type KubeObject, StatusReason } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { Namespace } from '@keelson/kinds';
import { ResourceMap } from '../resource-map.ts';
import { type Emptied, emptyNamespace } from './empty-namespace.ts';
import { terminationConditions } from './termination-conditions.ts';

const finalizer = 'kubernetes';
/** Pause before remaining content is checked again; it doubles each time. */
const firstRecheckMs = 50;
const maxRecheckMs = 5_000;

/**
 * Completes the deletion of namespaces: removes all objects of a namespace, then its finalizer `kubernetes`, which
 * removes the namespace itself. Reports what still blocks the deletion in the conditions. See
 * docs/reference/api-rules.md#namespace-life-cycle.
 */
export function namespaceController(client: ApiClient, clock: Clock): ControllerDefinition<Namespace> {
  const resources = new ResourceMap(client, clock, 0);
  const rechecks = new Map<string, number>();
  return {
    name: 'namespace-controller',
    kind: Namespace,
    workers: 4,
    reconcile: async (namespace, run) => {
      const finalizers = namespace.spec?.finalizers ?? [];
      if (namespace.metadata?.deletionTimestamp === undefined || !finalizers.includes(finalizer)) return undefined;
      const emptied = await emptyNamespace(run.client, await resources.all(), run.key, run.signal);
      try {
        if (emptied.remaining.length === 0 && emptied.failures.length === 0) {
          await finalize(namespace, run);
          return undefined;
        }
        await reportRemaining(namespace, emptied, run);
      } catch (error) {
        if (!isStatusError(error, StatusReason.NotFound)) throw error;
        return undefined;
      }
      const pauseMs = rechecks.get(run.key) ?? firstRecheckMs;
      rechecks.set(run.key, Math.min(maxRecheckMs, pauseMs * 2));
      return { againAfterMs: pauseMs };
    },
    deleted: async ({ key }) => {
      rechecks.delete(key);
      return undefined;
    },
  };
}

async function finalize(namespace: Namespace, { client, key }: ReconcileRun): Promise<void> {
  const finalizers = namespace.spec?.finalizers?.filter((entry) => entry !== finalizer) ?? [];
  const finalized = { ...namespace, spec: { ...namespace.spec, finalizers } };
  await client.resource(Namespace).updateSubresource(key, 'finalize', finalized as KubeObject);
}

async function reportRemaining(namespace: Namespace, emptied: Emptied, run: ReconcileRun): Promise<void> {
  let conditions = namespace.status?.conditions ?? [];
  for (const condition of terminationConditions(emptied))
    conditions = [...withCondition(conditions, condition, run.clock)];
  await patchStatus(run, Namespace, namespace, { conditions });
}
