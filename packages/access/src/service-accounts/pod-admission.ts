import { type AdmissionPlugin, type AdmissionRequest, type StatusError, statusErrors } from '@keelson/core';
import { randomName } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import { type Container, type Pod, ServiceAccount, type Volume } from '@keelson/kinds';
import { apiReferenceOf } from '../node/pod-references.ts';
import type { ExistingObjects } from './existing-objects.ts';
import { podTokenSeconds } from './token-subresource.ts';

export interface ServiceAccountAdmissionOptions {
  readonly objects: ExistingObjects;
  readonly clock: Clock;
}

const defaultAccount = 'default';
/** A controller creates the account `default` shortly after its namespace. A pod waits for it up to 2 seconds. */
const attempts = 20;
const retryMs = 100;

const mirrorAnnotation = 'kubernetes.io/config.mirror';
const volumePrefix = 'kube-api-access-';
/** Clients in pods read their token, the certificate authority and their namespace from this directory. */
const mountPath = '/var/run/secrets/kubernetes.io/serviceaccount';

/**
 * Gives each new pod a service account and, unless the pod or the account declines, a volume with a token for it:
 * see docs/how-to/use-service-accounts.md#pods. Behaviour and messages are those of the plugin ServiceAccount of
 * kube-apiserver, without the annotation `kubernetes.io/enforce-mountable-secrets`.
 */
export function serviceAccountAdmission({ objects, clock }: ServiceAccountAdmissionOptions): AdmissionPlugin {
  const accountOf = async (namespace: string, name: string): Promise<ServiceAccount | undefined> => {
    const cached = await objects.read(ServiceAccount, namespace, name, 'any');
    if (cached !== undefined) return cached;
    for (let attempt = 1; ; attempt += 1) {
      const found = await objects.read(ServiceAccount, namespace, name);
      if (found !== undefined || name !== defaultAccount || attempt === attempts) return found;
      await new Promise<void>((resolve) => {
        clock.after(retryMs, resolve);
      });
    }
  };
  return {
    name: 'ServiceAccount',
    resources: ['pods'],
    handles: ({ operation, subresource }) => operation === 'create' && subresource === undefined,
    async mutate(request) {
      const pod = request.object as Pod;
      const { spec } = pod;
      if (isMirrorPod(pod)) return;
      const name = spec.serviceAccountName || defaultAccount;
      spec.serviceAccountName = name;
      spec.serviceAccount = name;
      const namespace = request.namespace ?? '';
      const account = await accountOf(namespace, name);
      if (account === undefined) {
        const missing = statusErrors.notFound({ group: '', resource: 'serviceaccount' }, name).message;
        throw refusal(request, `error looking up service account ${namespace}/${name}: ${missing}`);
      }
      if (spec.automountServiceAccountToken ?? account.automountServiceAccountToken ?? true) mountToken(pod);
      if (!spec.imagePullSecrets?.length && account.imagePullSecrets?.length) {
        spec.imagePullSecrets = account.imagePullSecrets.map(({ name: secret }) =>
          secret === undefined ? {} : { name: secret },
        );
      }
    },
    validate(request) {
      const pod = request.object as Pod;
      if (!isMirrorPod(pod)) return;
      const why = mirrorPodProblem(pod);
      if (why !== undefined) throw refusal(request, why);
    },
  };
}

function refusal({ kind, name }: AdmissionRequest, why: string): StatusError {
  return statusErrors.forbidden({ group: kind.group, resource: kind.names.plural }, name, why);
}

function isMirrorPod({ metadata }: Pod): boolean {
  return metadata?.annotations?.[mirrorAnnotation] !== undefined;
}

/** The agent reads a mirror pod from a file of its node; no service account belongs to such a file. */
function mirrorPodProblem(pod: Pod): string | undefined {
  const reference = apiReferenceOf(pod);
  if (reference === 'serviceaccounts') return 'a mirror pod may not reference service accounts';
  if (reference === 'secrets') return 'a mirror pod may not reference secrets';
  const sources = (pod.spec.volumes ?? []).flatMap(({ projected }) => projected?.sources ?? []);
  return sources.some(({ serviceAccountToken }) => serviceAccountToken)
    ? 'a mirror pod may not use ServiceAccountToken volume projections'
    : undefined;
}

/** Mounts the token into every container that mounts nothing else at its path. */
function mountToken({ spec }: Pod): void {
  const existing = spec.volumes?.find(({ name }) => name.startsWith(volumePrefix));
  const name = existing?.name ?? randomName(volumePrefix);
  let mounted = false;
  const mount = (container: Container) => {
    if (container.volumeMounts?.some((other) => other.mountPath === mountPath)) return;
    container.volumeMounts = [...(container.volumeMounts ?? []), { name, readOnly: true, mountPath }];
    mounted = true;
  };
  for (const container of [...(spec.initContainers ?? []), ...spec.containers]) mount(container);
  if (mounted && existing === undefined) spec.volumes = [...(spec.volumes ?? []), tokenVolume(name)];
}

function tokenVolume(name: string): Volume {
  return {
    name,
    projected: {
      defaultMode: 0o644,
      sources: [
        { serviceAccountToken: { path: 'token', expirationSeconds: podTokenSeconds } },
        { configMap: { name: 'kube-root-ca.crt', items: [{ key: 'ca.crt', path: 'ca.crt' }] } },
        {
          downwardAPI: {
            items: [{ path: 'namespace', fieldRef: { apiVersion: 'v1', fieldPath: 'metadata.namespace' } }],
          },
        },
      ],
    },
  };
}
