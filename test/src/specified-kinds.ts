import { manifestsOf } from './manifests.ts';

/** A row of the specification's table of kinds. */
export interface SpecifiedKind {
  /** `{P}` of its paths. */
  readonly prefix: string;
  readonly kind: string;
  readonly plural: string;
  readonly apiVersion: string;
  readonly namespaced: boolean;
  readonly subresources: readonly string[];
  /** An object to be created. */
  manifest(name: string, namespace: string): Readonly<Record<string, unknown>>;
}

function kindOf(prefix: string, kind: string, plural: string, subresources: readonly string[]): SpecifiedKind {
  const key = prefix === '/api/v1' ? plural : `${plural}.extensions`;
  return {
    prefix,
    kind,
    plural,
    apiVersion: prefix === '/api/v1' ? 'v1' : 'extensions/v1beta1',
    namespaced: kind !== 'Namespace',
    subresources,
    manifest: (name, namespace) =>
      kind === 'Namespace'
        ? { apiVersion: 'v1', kind, metadata: { name, labels: { app: name } } }
        : (manifestsOf(name, namespace)[key] ?? {}),
  };
}

const core = '/api/v1';
const extensions = '/apis/extensions/v1beta1';

/** The nine kinds of the specification, in its order. */
export const specifiedKinds: readonly SpecifiedKind[] = [
  kindOf(core, 'ConfigMap', 'configmaps', []),
  kindOf(core, 'Event', 'events', []),
  kindOf(core, 'Namespace', 'namespaces', ['status', 'finalize']),
  kindOf(core, 'Secret', 'secrets', []),
  kindOf(core, 'Service', 'services', ['status']),
  kindOf(extensions, 'DaemonSet', 'daemonsets', ['status']),
  kindOf(extensions, 'Deployment', 'deployments', ['status', 'scale', 'rollback']),
  kindOf(extensions, 'Ingress', 'ingresses', ['status']),
  kindOf(extensions, 'ReplicaSet', 'replicasets', ['status', 'scale']),
];

/** Path of a kind's collection. */
export function collectionPath(kind: SpecifiedKind, namespace: string): string {
  return kind.namespaced ? `${kind.prefix}/namespaces/${namespace}/${kind.plural}` : `${kind.prefix}/${kind.plural}`;
}
