import {
  isStatusError,
  type KindDefinition,
  type KubeObject,
  type ResourceClient,
  StatusReason,
  type Stored,
} from '@keelson/core';
import type { ReconcileRun } from './controller-definition.ts';

/** The client of a run, or one that the caller created. */
type Access = Pick<ReconcileRun, 'client'>;

/**
 * Adds a finalizer, so that the object is not removed before {@link removeFinalizer}. Returns the object as it is on
 * the server afterwards, and sends nothing when it has the finalizer.
 *
 * @throws StatusError `Conflict` when the object has changed since it was read
 */
export async function addFinalizer<T extends KubeObject>(
  access: Access,
  kind: KindDefinition<T>,
  object: T,
  finalizer: string,
): Promise<Stored<T>> {
  const { finalizers = [] } = object.metadata ?? {};
  if (finalizers.includes(finalizer)) return object as Stored<T>;
  return patchAsRead(access, kind, object, { metadata: { finalizers: [...finalizers, finalizer] } });
}

/**
 * Removes a finalizer; undefined when the object no longer exists. Sends nothing when the object does not have it.
 *
 * @throws StatusError `Conflict` when the object has changed since it was read
 */
export async function removeFinalizer<T extends KubeObject>(
  access: Access,
  kind: KindDefinition<T>,
  object: T,
  finalizer: string,
): Promise<Stored<T> | undefined> {
  const { finalizers = [] } = object.metadata ?? {};
  if (!finalizers.includes(finalizer)) return object as Stored<T>;
  const rest = finalizers.filter((other) => other !== finalizer);
  try {
    return await patchAsRead(access, kind, object, { metadata: { finalizers: rest } });
  } catch (error) {
    if (isStatusError(error, StatusReason.NotFound)) return undefined;
    throw error;
  }
}

/**
 * Sets fields of the status; a field with the value undefined is removed. Sends nothing when all of them have their
 * values, and otherwise only those that change. Returns the object as it is on the server afterwards.
 *
 * @throws StatusError `Conflict` when the object has changed since it was read
 */
export async function patchStatus<T extends KubeObject & { status?: object }>(
  access: Access,
  kind: KindDefinition<T>,
  object: T,
  fields: { readonly [F in keyof NonNullable<T['status']>]?: NonNullable<T['status']>[F] | undefined },
): Promise<Stored<T>> {
  const current: Readonly<Record<string, unknown>> = { ...object.status };
  const changed = Object.entries(fields).filter(([name, value]) => !isSame(current[name], value));
  if (changed.length === 0) return object as Stored<T>;
  const status = Object.fromEntries(changed.map(([name, value]) => [name, replacement(current[name], value)]));
  return patchAsRead(access, kind, object, { status }, 'status');
}

/** Objects are equal if they have the same fields, in any order; undefined fields are absent. */
export function isSame(a: unknown, b: unknown): boolean {
  if (Object.is(a, b)) return true;
  if (typeof a !== 'object' || typeof b !== 'object' || a === null || b === null) return false;
  if (Array.isArray(a) !== Array.isArray(b)) return false;
  const [left, right] = [presentFields(a), presentFields(b)];
  return (
    left.length === right.length &&
    left.every(([name, value]) => Object.hasOwn(b, name) && isSame(value, (b as Record<string, unknown>)[name]))
  );
}

function presentFields(value: object): [string, unknown][] {
  return Object.entries(value).filter(([, field]) => field !== undefined);
}

/** The merge patch that turns `before` into `after`: nested objects are merged, so missing fields become null. */
function replacement(before: unknown, after: unknown): unknown {
  if (after === undefined) return null;
  if (!isPlain(before) || !isPlain(after)) return after;
  const names = new Set([...Object.keys(before), ...Object.keys(after)]);
  return Object.fromEntries([...names].map((name) => [name, replacement(before[name], after[name])]));
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Sends a merge patch that is rejected if the object has changed or was replaced since it was read. */
async function patchAsRead<T extends KubeObject>(
  { client }: Access,
  kind: KindDefinition<T>,
  object: T,
  patch: { readonly metadata?: object; readonly status?: object },
  subresource?: 'status',
): Promise<Stored<T>> {
  const { namespace, name = '', uid, resourceVersion } = object.metadata ?? {};
  const objects: ResourceClient<T> = client.resource(kind);
  const narrowed = namespace === undefined ? objects : objects.namespace(namespace);
  const whole = { ...patch, metadata: { ...patch.metadata, uid, resourceVersion } };
  const hasStatus = kind.subresources.some((other) => other.name === 'status');
  if (subresource === undefined || !hasStatus) return narrowed.patch(name, 'merge', whole);
  return (await narrowed.patchSubresource(name, subresource, 'merge', whole)) as Stored<T>;
}
