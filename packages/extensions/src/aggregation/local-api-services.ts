import { missingIsUndefined } from '@keelson/client';
import { type ApiClient, isStatusError, type KindDefinition, StatusReason } from '@keelson/core';
import type { Clock, Logger, Service } from '@keelson/core/runtime';
import { APIService } from '@keelson/kinds';

export interface LocalApiServicesOptions {
  readonly client: ApiClient;
  /** The kinds of the server. */
  readonly registry: { kinds(): readonly KindDefinition[]; readonly generation: number };
  readonly clock: Clock;
  readonly logger: Logger;
}

const label = 'kube-aggregator.kubernetes.io/automanaged';
/** Interval for detecting added and removed kinds. */
const pollMs = 1_000;

/** Priorities of API groups as in kube-apiserver. Groups that are not listed have the priority of custom resources. */
const groupPriorities: Readonly<Record<string, number>> = {
  '': 18_000,
  'events.k8s.io': 17_750,
  'authentication.k8s.io': 17_700,
  'authorization.k8s.io': 17_600,
  autoscaling: 17_500,
  batch: 17_400,
  'certificates.k8s.io': 17_300,
  'networking.k8s.io': 17_200,
  extensions: 17_150,
  policy: 17_100,
  apps: 17_800,
  'rbac.authorization.k8s.io': 17_000,
  'storage.k8s.io': 16_800,
  'apiextensions.k8s.io': 16_700,
  'admissionregistration.k8s.io': 16_700,
  'scheduling.k8s.io': 16_600,
  'coordination.k8s.io': 16_500,
  'node.k8s.io': 16_300,
  'discovery.k8s.io': 16_200,
  'apiregistration.k8s.io': 18_000,
};
const otherGroups = 1_000;

function versionPriority(group: string, version: string): number {
  if (group === '') return 1;
  if (groupPriorities[group] === undefined) return 100;
  const [, major = '0', stage] = /^v(\d+)(alpha|beta)?/.exec(version) ?? [];
  return (stage === undefined ? 15 : stage === 'beta' ? 9 : 1) + Number(major) - 1;
}

/**
 * Keeps an APIService for each group version that this server serves, so that clients can list all of them. An
 * APIService of another server replaces a local one only when a user writes it.
 */
export class LocalApiServices implements Service {
  readonly name = 'local-api-services';
  readonly #options: LocalApiServicesOptions;
  readonly #registered = new Set<string>();
  #generation = Number.NaN;
  #cancel: () => void = () => {};
  #stopped = false;
  #running: Promise<void> = Promise.resolve();

  constructor(options: LocalApiServicesOptions) {
    this.#options = options;
  }

  /** Starts without waiting for the APIServices to be written, because the server serves its groups without them. */
  async start(): Promise<void> {
    this.#running = this.#poll();
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    this.#cancel();
    await this.#running;
  }

  async #poll(): Promise<void> {
    const { registry, clock, logger } = this.#options;
    const { generation } = registry;
    if (generation !== this.#generation) {
      try {
        await this.#register();
        this.#generation = generation;
      } catch (err) {
        if (!this.#stopped) logger.warn('local APIServices were not written', { component: this.name, err });
      }
    }
    if (this.#stopped) return;
    this.#cancel = clock.after(pollMs, () => {
      this.#running = this.#poll();
    });
  }

  async #register(): Promise<void> {
    const services = this.#options.client.resource(APIService);
    const wanted = new Map<string, APIService>();
    for (const { group, version } of this.#options.registry.kinds()) {
      const name = `${version}.${group}`;
      const groupPriorityMinimum = groupPriorities[group] ?? otherGroups;
      wanted.set(name, {
        apiVersion: 'apiregistration.k8s.io/v1',
        kind: 'APIService',
        metadata: { name, labels: { [label]: groupPriorities[group] === undefined ? 'true' : 'onstart' } },
        spec: {
          ...(group === '' ? {} : { group }),
          version,
          groupPriorityMinimum,
          versionPriority: versionPriority(group, version),
        },
      });
    }
    const { items } = await services.list({ resourceVersion: '0' });
    const existing = new Set(items.map(({ metadata }) => metadata?.name));
    for (const [name, service] of wanted) {
      if (this.#stopped) return;
      if (!existing.has(name)) {
        await services.create(service).catch((error: unknown) => {
          if (!isStatusError(error, StatusReason.AlreadyExists)) throw error;
        });
      }
      this.#registered.add(name);
    }
    // Only groups that this process has served before are removed. APIServices of other servers remain.
    for (const name of this.#registered) {
      if (wanted.has(name) || this.#stopped) continue;
      const stored = await services.get(name).catch(missingIsUndefined);
      if (stored?.metadata?.labels?.[label] !== undefined && stored.spec.service === undefined)
        await services.delete(name).catch(missingIsUndefined);
      this.#registered.delete(name);
    }
  }
}
