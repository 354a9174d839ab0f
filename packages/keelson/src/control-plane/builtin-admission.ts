import { nodeRestriction, type ServiceAccounts } from '@keelson/access';
import type { AdmissionPlugin } from '@keelson/core';
import { namespaceLifecycle } from '@keelson/core/internal';
import { Namespace, Node, Pod } from '@keelson/kinds';
import type { CachedObjects } from '../admission/cached-objects.ts';
import { defaultAdmission } from '../admission/default-admission.ts';
import { limitRanger } from '../admission/limit-ranger.ts';
import { checkPluginNames } from '../config/admission-plugins.ts';
import type { PlaneStores } from '../storage/plane-stores.ts';

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
    ...defaultAdmission(cached),
    nodeRestriction({ nodes: stores.forKind(Node), pods: stores.forKind(Pod) }),
  ].filter(({ name }) => !disabled.includes(name));
}
