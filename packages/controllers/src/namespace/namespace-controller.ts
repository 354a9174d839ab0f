import { missingIsUndefined } from '@keelson/client';
import { type ControllerDefinition, patchStatus, type ReconcileRun, withCondition } from '@keelson/controller-kit';
import { type ApiClient, isStatusError, type KubeObject, StatusReason } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { APIService, Namespace } from '@keelson/kinds';
import { ResourceMap } from '../resource-map.ts';
import { emptyNamespace, type OtherApis } from './empty-namespace.ts';
import { type TerminationCondition, terminationConditions } from './termination-conditions.ts';

const finalizer = 'kubernetes';
/** Pause before remaining content is checked again; it doubles each time. */
const firstRecheckMs = 50;
const maxRecheckMs = 5_000;

/**
 * Completes the deletion of namespaces: removes all objects of a namespace, then its finalizer `kubernetes`, which
 * removes the namespace itself. Reports what still blocks the deletion in the conditions. See
 * docs/reference/api-rules.md#namespace-life-cycle.
 *
 * @param others the API groups of other servers, for a client that does not reach them
 */
export function namespaceController(
  client: ApiClient,
  clock: Clock,
  others?: OtherApis,
): ControllerDefinition<Namespace> {
  const resources = new ResourceMap(client, clock, 0);
  const rechecks = new Map<string, number>();
  return {
    name: 'namespace-controller',
    kind: Namespace,
    workers: 4,
    reconcile: async (namespace, run) => {
      const finalizers = namespace.spec?.finalizers ?? [];
      if (namespace.metadata?.deletionTimestamp === undefined || !finalizers.includes(finalizer)) return undefined;
      const undiscovered = await undiscoveredVersions(run);
      const emptied = await emptyNamespace(run.client, await resources.all(), run.key, run.signal, others);
      try {
        if (emptied.remaining.length + emptied.failures.length + undiscovered.length === 0) {
          await finalize(namespace, run);
          return undefined;
        }
        await reportRemaining(namespace, terminationConditions(emptied, undiscovered), run);
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

/** API versions of servers that do not answer, which may have content in the namespace. */
async function undiscoveredVersions({ client, signal }: ReconcileRun): Promise<string[]> {
  const services = await client.resource(APIService).list({ signal }).catch(missingIsUndefined);
  return (services?.items ?? [])
    .filter(
      ({ spec, status }) =>
        spec.service !== undefined &&
        !status?.conditions?.some((condition) => condition.type === 'Available' && condition.status === 'True'),
    )
    .map(({ spec }) => `${spec.group}/${spec.version}`);
}

async function finalize(namespace: Namespace, { client, key }: ReconcileRun): Promise<void> {
  const finalizers = namespace.spec?.finalizers?.filter((entry) => entry !== finalizer) ?? [];
  const finalized = { ...namespace, spec: { ...namespace.spec, finalizers } };
  await client.resource(Namespace).updateSubresource(key, 'finalize', finalized as KubeObject);
}

async function reportRemaining(
  namespace: Namespace,
  reported: readonly TerminationCondition[],
  run: ReconcileRun,
): Promise<void> {
  let conditions = namespace.status?.conditions ?? [];
  for (const condition of reported) conditions = [...withCondition(conditions, condition, run.clock)];
  await patchStatus(run, Namespace, namespace, { conditions });
}
