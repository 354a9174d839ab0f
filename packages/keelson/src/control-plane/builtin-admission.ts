import { nodeRestriction, type ServiceAccounts } from '@keelson/access';
import type { AdmissionPlugin, Authorizer } from '@keelson/core';
import { namespaceLifecycle } from '@keelson/core/internal';
import type { Clock } from '@keelson/core/runtime';
import { Namespace, Node, Pod } from '@keelson/kinds';
import type { CachedObjects } from '../admission/cached-objects.ts';
import { certificateAdmission } from '../admission/certificate-requests.ts';
import { defaultAdmission } from '../admission/default-admission.ts';
import { limitRanger } from '../admission/limit-ranger.ts';
import { podSecurity } from '../admission/pod-security/pod-security.ts';
import { claimResizeAdmission, storageProtectionAdmission } from '../admission/storage-admission.ts';
import { checkPluginNames } from '../config/admission-plugins.ts';
import type { PlaneStores } from '../storage/plane-stores.ts';

/** What the plugins use. */
export interface BuiltinAdmissionOptions {
  readonly stores: PlaneStores;
  readonly accounts: ServiceAccounts | undefined;
  readonly cached: CachedObjects;
  readonly authorizer: Authorizer;
  readonly clock: Clock;
  /** Names of the controllers of this process. */
  readonly controllers: readonly string[];
  /** Names of plugins that are left out. */
  readonly disabled?: readonly string[] | undefined;
}

/** The plugins that kube-apiserver enables by default. @throws UsageError for a name that is no built-in plugin */
export function builtinAdmission(options: BuiltinAdmissionOptions): AdmissionPlugin[] {
  const { stores, accounts, cached, authorizer, clock, controllers, disabled = [] } = options;
  checkPluginNames(disabled, 'disabledAdmissionPlugins');
  return [
    namespaceLifecycle({ kind: Namespace, storage: stores.forKind(Namespace) }),
    ...(accounts ? [accounts.admission] : []),
    limitRanger(cached),
    podSecurity(stores, clock),
    ...defaultAdmission(cached, controllers),
    ...storageProtectionAdmission(controllers),
    claimResizeAdmission(cached),
    ...certificateAdmission(authorizer),
    nodeRestriction({ nodes: stores.forKind(Node), pods: stores.forKind(Pod) }),
  ].filter(({ name }) => !disabled.includes(name));
}
