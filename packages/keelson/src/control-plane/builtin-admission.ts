import { nodeRestriction, type ServiceAccounts } from '@keelson/access';
import type { AdmissionPlugin } from '@keelson/core';
import { namespaceLifecycle } from '@keelson/core/internal';
import { Namespace, Node, Pod } from '@keelson/kinds';
import type { CachedObjects } from '../admission/cached-objects.ts';
import { classAdmission } from '../admission/class-admission.ts';
import { limitRanger } from '../admission/limit-ranger.ts';
import { checkPluginNames } from '../config/admission-plugins.ts';
import type { PlaneStores } from '../storage/plane-stores.ts';

const keys = ['node.kubernetes.io/not-ready', 'node.kubernetes.io/unreachable'];
/** Time in which a node may come back before its pods are evicted. */
const tolerationSeconds = 300;

/** Pods tolerate a node that is not ready or unreachable for five minutes, unless they state a time themselves. */
const defaultTolerations: AdmissionPlugin = {
  name: 'DefaultTolerationSeconds',
  resources: ['pods'],
  handles: ({ operation, subresource }) => operation === 'create' && subresource === undefined,
  mutate: ({ object }) => {
    const { spec } = object as Pod;
    const given = spec.tolerations ?? [];
    const missing = keys.filter(
      (missed) =>
        !given.some(
          ({ key = '', effect = '' }) => (key === '' || key === missed) && (effect === '' || effect === 'NoExecute'),
        ),
    );
    if (missing.length === 0) return;
    const added = missing.map((key) => ({ key, operator: 'Exists', effect: 'NoExecute', tolerationSeconds }));
    spec.tolerations = [...given, ...added];
  },
};

/** Objects are created in existing namespaces only; an agent modifies only its own node and the pods bound to it. */
export function builtinAdmission(
  stores: PlaneStores,
  accounts: ServiceAccounts | undefined,
  cached: CachedObjects,
  disabled: readonly string[] = [],
): AdmissionPlugin[] {
  checkPluginNames(disabled, 'disabledAdmissionPlugins');
  return [
    namespaceLifecycle({ kind: Namespace, storage: stores.forKind(Namespace) }),
    ...(accounts ? [accounts.admission] : []),
    limitRanger(cached),
    defaultTolerations,
    ...classAdmission(cached),
    nodeRestriction({ nodes: stores.forKind(Node), pods: stores.forKind(Pod) }),
  ].filter(({ name }) => !disabled.includes(name));
}
