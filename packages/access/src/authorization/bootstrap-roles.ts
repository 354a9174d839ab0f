import { Backoff, keyOf, missingIsUndefined } from '@keelson/client';
import { type ApiClient, isStatusError, type KindDefinition, type ResourceClient, StatusReason } from '@keelson/core';
import type { Clock, LogFields, Logger, Service } from '@keelson/core/runtime';
import { ClusterRole, ClusterRoleBinding, Role, RoleBinding, type Subject } from '@keelson/kinds';
import { autoupdateAnnotation, bootstrapPolicy } from './bootstrap-policy.ts';
import { missingRules } from './escalation.ts';

export interface BootstrapRolesOptions {
  readonly client: ApiClient;
  readonly clock: Clock;
  readonly logger: Logger;
}

type AnyRole = Role | ClusterRole;
type AnyBinding = RoleBinding | ClusterRoleBinding;

/** Returns an existing object with what it lacks; undefined when it lacks nothing. */
type Complete<T> = (existing: T, expected: T) => T | 'recreate' | undefined;

/** Maximum number of attempts to write an object that other clients change at the same time. */
const maxAttempts = 5;

/**
 * Creates the roles and bindings of {@link bootstrapPolicy} at the start, and adds to existing ones the rules,
 * subjects, labels and annotations that they lack. Additions by users are kept; an object whose annotation
 * `rbac.authorization.kubernetes.io/autoupdate` is `false` is not changed. A failed attempt, for example on a full
 * disk, is repeated in the background and does not prevent the start.
 */
export class BootstrapRoles implements Service {
  readonly name = 'rbac-bootstrap-roles';
  readonly #options: BootstrapRolesOptions;
  readonly #stop = new AbortController();
  #retrying: Promise<void> | undefined;

  constructor(options: BootstrapRolesOptions) {
    this.#options = options;
  }

  async start(): Promise<void> {
    if (!(await this.#attempt())) this.#retrying = this.#retry();
  }

  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#retrying;
  }

  async #retry(): Promise<void> {
    const backoff = new Backoff(this.#options.clock, 1_000);
    const { signal } = this.#stop;
    while (!signal.aborted) {
      await backoff.wait(signal);
      if (signal.aborted || (await this.#attempt())) return;
    }
  }

  /** False when an object could not be written. */
  async #attempt(): Promise<boolean> {
    const { clusterRoles, clusterRoleBindings, roles, roleBindings } = bootstrapPolicy;
    const results = await Promise.all([
      this.#reconcileAll(ClusterRole, clusterRoles, completeRole),
      this.#reconcileAll(Role, roles, completeRole),
    ]);
    // Bindings are useful only when their roles exist.
    const bound = await Promise.all([
      this.#reconcileAll(ClusterRoleBinding, clusterRoleBindings, completeBinding),
      this.#reconcileAll(RoleBinding, roleBindings, completeBinding),
    ]);
    return [...results, ...bound].every(Boolean);
  }

  async #reconcileAll<T extends AnyRole | AnyBinding>(
    kind: KindDefinition<T>,
    expected: readonly T[],
    complete: Complete<T>,
  ): Promise<boolean> {
    try {
      const { items } = await this.#options.client.resource(kind).list();
      const existing = new Map(items.map((object) => [keyOf(object), object]));
      const write = (object: T) => this.#reconcile(kind, object, existing.get(keyOf(object)), complete);
      return (await Promise.all(expected.map(write))).every(Boolean);
    } catch (err) {
      return this.#failed({ kind: kind.kind, err });
    }
  }

  async #reconcile<T extends AnyRole | AnyBinding>(
    kind: KindDefinition<T>,
    expected: T,
    listed: T | undefined,
    complete: Complete<T>,
  ): Promise<boolean> {
    const { name = '', namespace } = expected.metadata ?? {};
    const all = this.#options.client.resource(kind);
    const objects = namespace === undefined ? all : all.namespace(namespace);
    let existing = listed;
    try {
      for (let attempt = 1; !(await writeCompleted(objects, expected, existing, complete)); attempt += 1) {
        if (attempt === maxAttempts) throw new Error('the object is being changed by others');
        existing = await objects.get(name).catch(missingIsUndefined);
      }
      return true;
    } catch (err) {
      return this.#failed({ kind: kind.kind, name, namespace, err });
    }
  }

  #failed(fields: LogFields): false {
    const message = 'a default role or binding could not be written, will retry';
    if (!this.#stop.signal.aborted) this.#options.logger.warn(message, { component: this.name, ...fields });
    return false;
  }
}

/** Writes what an object lacks. False when another writer was faster. */
async function writeCompleted<T extends AnyRole | AnyBinding>(
  objects: ResourceClient<T>,
  expected: T,
  existing: T | undefined,
  complete: Complete<T>,
): Promise<boolean> {
  try {
    if (existing === undefined) {
      await objects.create(expected);
      return true;
    }
    if (existing.metadata?.annotations?.[autoupdateAnnotation] === 'false') return true;
    const completed = complete(existing, expected);
    if (completed === 'recreate') {
      const { name = '', uid = '', resourceVersion = '' } = existing.metadata ?? {};
      await objects.delete(name, { preconditions: { uid, resourceVersion } });
      return false;
    }
    if (completed !== undefined) await objects.update(completed);
    return true;
  } catch (error) {
    const { AlreadyExists, Conflict, NotFound } = StatusReason;
    if ([AlreadyExists, Conflict, NotFound].some((reason) => isStatusError(error, reason))) return false;
    throw error;
  }
}

/** The metadata with missing labels and annotations added; undefined when none is missing. */
function completeMetadata({ metadata }: AnyRole | AnyBinding, expected: AnyRole | AnyBinding) {
  const labels = { ...expected.metadata?.labels, ...metadata?.labels };
  const annotations = { ...expected.metadata?.annotations, ...metadata?.annotations };
  const count = (map: object = {}) => Object.keys(map).length;
  const same = count(labels) === count(metadata?.labels) && count(annotations) === count(metadata?.annotations);
  return same ? undefined : { ...metadata, labels, annotations };
}

/**
 * The role with missing labels, annotations and rules added; undefined when nothing is missing. To aggregated
 * ClusterRoles selectors are added instead of rules, because their rules are computed.
 */
function completeRole<T extends AnyRole>(existing: T, expected: T): T | undefined {
  const metadata = completeMetadata(existing, expected);
  const { aggregationRule } = expected as ClusterRole;
  let addition: Partial<ClusterRole> | undefined;
  if (aggregationRule === undefined) {
    const rules = existing.rules ?? [];
    const missing = (expected.rules ?? []).filter((rule) => missingRules(rules, [rule]).length > 0);
    if (missing.length > 0) addition = { rules: [...rules, ...missing] };
  } else {
    const selectors = (existing as ClusterRole).aggregationRule?.clusterRoleSelectors ?? [];
    const known = new Set(selectors.map((selector) => JSON.stringify(selector)));
    const missing = (aggregationRule.clusterRoleSelectors ?? []).filter((one) => !known.has(JSON.stringify(one)));
    if (missing.length > 0) addition = { aggregationRule: { clusterRoleSelectors: [...selectors, ...missing] } };
  }
  if (metadata === undefined && addition === undefined) return undefined;
  return { ...existing, ...addition, ...(metadata === undefined ? {} : { metadata }) };
}

function isSame(a: Subject, b: Subject): boolean {
  return a.kind === b.kind && a.name === b.name && (a.namespace ?? '') === (b.namespace ?? '');
}

/** Adds missing metadata and subjects; `recreate` when the binding grants another role, which is immutable. */
function completeBinding<T extends AnyBinding>(existing: T, expected: T): T | 'recreate' | undefined {
  const { kind, name } = existing.roleRef;
  if (kind !== expected.roleRef.kind || name !== expected.roleRef.name) return 'recreate';
  const metadata = completeMetadata(existing, expected);
  const subjects = existing.subjects ?? [];
  const missing = (expected.subjects ?? []).filter((subject) => !subjects.some((other) => isSame(other, subject)));
  if (metadata === undefined && missing.length === 0) return undefined;
  return { ...existing, subjects: [...subjects, ...missing], ...(metadata === undefined ? {} : { metadata }) };
}
