import { Informer, type InformerHandlers, WorkQueue, type WorkResult } from '@keelson/client';
import { isStatusError, type KubeObject, type ResourceClient, StatusReason } from '@keelson/core';
import type { Service } from '@keelson/core/runtime';
import { ConfigMap, Namespace, ServiceAccount } from '@keelson/kinds';
import type { ControllerOptions } from '../controller-options.ts';

export interface NamespaceDefaultsOptions extends ControllerOptions {
  /** Authorities of the server's certificate, PEM. Absent: they are not published. */
  readonly certificateAuthority?: string;
}

const accountName = 'default';
const mapName = 'kube-root-ca.crt';
const mapDescription =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the ' +
  'internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

/**
 * Keeps two objects in every namespace that is not being deleted: the service account `default`, and the config map
 * `kube-root-ca.crt`, with which pods verify the server. Pods mount both.
 */
export class NamespaceDefaults implements Service {
  readonly name = 'serviceaccount-controller';
  readonly #options: NamespaceDefaultsOptions;
  readonly #queue: WorkQueue;
  readonly #namespaces: Informer<KubeObject, string>;
  readonly #dependents: readonly Informer<KubeObject, string>[];

  constructor(options: NamespaceDefaultsOptions) {
    this.#options = options;
    this.#queue = new WorkQueue({ ...options, name: this.name, workers: 4, work: (name) => this.#complete(name) });
    const consider = (namespace: string) => this.#queue.add(namespace);
    this.#namespaces = new Informer({
      ...options,
      client: options.client.dynamic({ group: '', version: 'v1', resource: 'namespaces' }, { metadataOnly: true }),
      keep: ({ metadata }) => metadata?.name ?? '',
      handlers: { added: consider },
    });
    const observe = (resource: string, name: string, handlers: InformerHandlers<string>) =>
      new Informer<KubeObject, string>({
        ...options,
        client: options.client.dynamic({ group: '', version: 'v1', resource }, { metadataOnly: true }),
        keep: ({ metadata }) => metadata?.namespace ?? '',
        fieldSelector: `metadata.name=${name}`,
        handlers,
      });
    this.#dependents = [
      observe('serviceaccounts', accountName, { deleted: consider }),
      ...(options.certificateAuthority === undefined
        ? []
        : [observe('configmaps', mapName, { updated: consider, deleted: consider })]),
    ];
  }

  async start(): Promise<void> {
    await Promise.all([this.#namespaces, ...this.#dependents].map((informer) => informer.start()));
  }

  async stop(): Promise<void> {
    await Promise.all([this.#namespaces, ...this.#dependents].map((informer) => informer.stop()));
    await this.#queue.stop();
  }

  async #complete(name: string): Promise<WorkResult> {
    const { client, certificateAuthority } = this.#options;
    const namespace = await client.resource(Namespace).get(name).catch(missingIsUndefined);
    if (namespace === undefined || namespace.metadata?.deletionTimestamp) return undefined;
    const accounts = client.resource(ServiceAccount).namespace(name);
    await createMissing(accounts, {
      apiVersion: 'v1',
      kind: 'ServiceAccount',
      metadata: { name: accountName, namespace: name },
    });
    if (certificateAuthority !== undefined) await this.#publish(name, { 'ca.crt': certificateAuthority });
    return undefined;
  }

  async #publish(namespace: string, data: Record<string, string>): Promise<void> {
    const maps = this.#options.client.resource(ConfigMap).namespace(namespace);
    const annotations = { 'kubernetes.io/description': mapDescription };
    const metadata = { name: mapName, namespace, annotations };
    const existing = await maps.get(mapName).catch(missingIsUndefined);
    if (existing === undefined) {
      await createMissing(maps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
    } else if (existing.data?.['ca.crt'] !== data['ca.crt'] || Object.keys(existing.data ?? {}).length > 1) {
      await maps.update({ ...existing, data });
    }
  }
}

/** Does nothing when the object exists, or when its namespace has been deleted in the meantime. */
async function createMissing<T extends KubeObject>(objects: ResourceClient<T>, object: T): Promise<void> {
  try {
    await objects.create(object);
  } catch (error) {
    const expected = [StatusReason.AlreadyExists, StatusReason.NotFound];
    if (expected.some((reason) => isStatusError(error, reason)) || isTerminating(error)) return;
    throw error;
  }
}

function isTerminating(error: unknown): boolean {
  return (
    isStatusError(error, StatusReason.Forbidden) &&
    error.status.details?.causes?.some(({ reason }) => reason === 'NamespaceTerminating') === true
  );
}

function missingIsUndefined(error: unknown): undefined {
  if (!isStatusError(error, StatusReason.NotFound)) throw error;
}
