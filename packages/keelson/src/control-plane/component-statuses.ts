import { missingIsUndefined } from '@keelson/client';
import type { ApiClient, KindDefinition } from '@keelson/core';
import type { Clock } from '@keelson/core/runtime';
import { type ComponentStatus, componentStatusKind, Lease } from '@keelson/kinds';
import type { PlaneStores } from '../storage/plane-stores.ts';
import type { ControllerChoice } from './controller-choice.ts';
import { controllerLeases } from './controllers.ts';

/** What this process runs besides the API. */
export interface ProcessControllers {
  /** Names of the controllers. */
  readonly names: readonly string[];
  readonly workloads: boolean;
  readonly scheduler: boolean;
}

/** Returns what a process with these controllers runs. */
export function processControllers({ api, workloads, scheduler }: ControllerChoice): ProcessControllers {
  return { names: [...api, ...workloads.map(({ name }) => name)], workloads: workloads.length > 0, scheduler };
}

export interface ComponentStatusOptions {
  readonly api: () => ApiClient;
  readonly stores: () => PlaneStores;
  readonly runs: ProcessControllers;
  readonly clock: Clock;
}

type Component = readonly [name: string, check: () => Promise<string | undefined>];

/**
 * The kind ComponentStatus. With a store that has a single writer, the controllers run in this process without an
 * election, and are healthy if it is. In all other cases the holder of the Lease runs them, possibly in another
 * process.
 */
export function componentStatuses({ api, stores, runs, clock }: ComponentStatusOptions): KindDefinition {
  const elected =
    (isHere: boolean, { namespace, name }: { namespace: string; name: string }) =>
    async () => {
      if (isHere && !stores().of(Lease).capabilities.multiWriter) return undefined;
      const lease = await api().resource(Lease).namespace(namespace).get(name).catch(missingIsUndefined);
      const { holderIdentity, renewTime = '', leaseDurationSeconds = 0 } = lease?.spec ?? {};
      const isHeld = Boolean(holderIdentity) && Date.parse(renewTime) + leaseDurationSeconds * 1000 > clock.now();
      return isHeld ? undefined : `no process holds the lease ${namespace}/${name}`;
    };
  const components = (): Component[] => [
    ['controller-manager', elected(runs.workloads, controllerLeases.workloads)],
    ['scheduler', elected(runs.scheduler, controllerLeases.scheduler)],
    ...stores().all.map(
      (store, index): Component => [
        `etcd-${index}`,
        async () => (store.healthy ? undefined : `the store "${store.name}" does not answer`),
      ],
    ),
  ];
  return componentStatusKind(({ name: asked }) =>
    Promise.all(
      components()
        .filter(([name]) => asked === undefined || name === asked)
        .map(async ([name, check]) => statusOf(name, await check().catch((error: Error) => error.message))),
    ),
  );
}

function statusOf(name: string, error: string | undefined): ComponentStatus {
  const condition = error === undefined ? { status: 'True', message: 'ok' } : { status: 'False', error };
  return { metadata: { name }, conditions: [{ type: 'Healthy', ...condition }] };
}
