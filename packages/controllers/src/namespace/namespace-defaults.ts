import { type ControllerDefinition, type ReconcileRun, relatedKind } from '@keelson/controller-kit';
import { isStatusError, type KubeObject, type ResourceClient, StatusReason } from '@keelson/core';
import { ConfigMap, Namespace, ServiceAccount } from '@keelson/kinds';

const accountName = 'default';
/** Name of the config map in every namespace that contains the certificate authority of the server. */
export const rootAuthorityMap = 'kube-root-ca.crt';
/**
 * Interval at which the config maps are compared with the certificate authority, which may change. Only local copies
 * are read.
 */
export const authorityCheckMs = 60_000;
const mapDescription =
  'Contains a CA bundle that can be used to verify the kube-apiserver when using internal endpoints such as the ' +
  'internal service IP or kubernetes.default.svc. No other usage is guaranteed across distributions of Kubernetes clusters.';

/**
 * Keeps two objects in every namespace that is not being deleted: the service account `default`, and the config map
 * `kube-root-ca.crt`, with which pods verify the server. Pods mount the config map together with a token of the
 * account.
 *
 * @param certificateAuthority the current certificate authorities of the server in PEM format; undefined: they are not
 *   published
 */
export function namespaceDefaults(certificateAuthority: (() => string) | undefined): ControllerDefinition<Namespace> {
  const namespaceOf = ({ metadata }: KubeObject) => [metadata?.namespace ?? ''];
  const select = (name: string) => ({ fieldSelector: `metadata.name=${name}` });
  return {
    name: 'serviceaccount-controller',
    kind: Namespace,
    related: [
      relatedKind(ServiceAccount, namespaceOf, { ...select(accountName), metadataOnly: true }),
      ...(certificateAuthority === undefined ? [] : [relatedKind(ConfigMap, namespaceOf, select(rootAuthorityMap))]),
    ],
    workers: 4,
    reconcile: async (namespace, run) => {
      if (namespace.metadata?.deletionTimestamp !== undefined) return undefined;
      if (run.read(ServiceAccount).get(`${run.key}/${accountName}`) === undefined)
        await createMissing(run.client.resource(ServiceAccount).namespace(run.key), {
          apiVersion: 'v1',
          kind: 'ServiceAccount',
          metadata: { name: accountName, namespace: run.key },
        });
      if (certificateAuthority === undefined) return undefined;
      await publish(run, { 'ca.crt': certificateAuthority() });
      return { againAfterMs: authorityCheckMs };
    },
  };
}

async function publish({ key: namespace, client, read }: ReconcileRun, data: Record<string, string>): Promise<void> {
  const maps = client.resource(ConfigMap).namespace(namespace);
  const annotations = { 'kubernetes.io/description': mapDescription };
  const metadata = { name: rootAuthorityMap, namespace, annotations };
  const existing = read(ConfigMap).get(`${namespace}/${rootAuthorityMap}`);
  if (existing === undefined) await createMissing(maps, { apiVersion: 'v1', kind: 'ConfigMap', metadata, data });
  else if (existing.data?.['ca.crt'] !== data['ca.crt'] || Object.keys(existing.data ?? {}).length > 1)
    await maps.update({ ...existing, data });
}

/** Creates an object unless it exists already or its namespace has been deleted in the meantime. */
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
