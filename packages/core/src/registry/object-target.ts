import { statusErrors } from '../errors/status-error.ts';
import type { KindDefinition } from '../kind/kind-definition.ts';
import { collectionPrefix, objectKey } from '../scope/storage-key.ts';
import { maxKeyBytes } from '../storage/key-order.ts';
import type { Key } from '../storage/store.ts';
import type { AnyObject } from './json-values.ts';
import type { ResourceBinding } from './resource-binding.ts';
import type { Target } from './resource-service.ts';

/** One named object, as the path of the request names it. */
export interface ObjectTarget {
  /** Undefined exactly for cluster-scoped kinds. */
  readonly namespace: string | undefined;
  readonly name: string;
  readonly key: Key;
}

/**
 * The namespace that an operation on one object is about.
 *
 * @throws StatusError 400 when a namespaced kind is asked for without one.
 */
export function requiredNamespace(kind: KindDefinition, target: Target): string | undefined {
  if (kind.scope === 'Cluster') return undefined;
  if (!target.namespace) throw statusErrors.badRequest('an object of this kind is named by its namespace and its name');
  return target.namespace;
}

/** The object that a request names. @throws StatusError 400 when the name or the namespace is missing. */
export function objectTarget(binding: ResourceBinding, target: Target): ObjectTarget {
  const namespace = requiredNamespace(binding.kind, target);
  const name = target.name ?? '';
  if (name === '') throw statusErrors.badRequest('name must be provided');
  return { namespace, name, key: objectKey(binding.kind, namespace, name) };
}

/** Storage prefix of the collection that a request names; all namespaces when it names none. */
export function targetPrefix(binding: ResourceBinding, target: Target): string {
  return collectionPrefix(binding.kind, binding.kind.scope === 'Cluster' ? undefined : target.namespace || undefined);
}

function isSegment(text: string): boolean {
  return text !== '' && !text.includes('/') && !text.includes('\0');
}

/**
 * False for names under which nothing can be stored. Reads answer them without asking the storage: a slash in a name
 * would reach into another namespace.
 */
export function isStorable(target: ObjectTarget): boolean {
  return (
    isSegment(target.name) &&
    (target.namespace === undefined || isSegment(target.namespace)) &&
    Buffer.byteLength(target.key) <= maxKeyBytes
  );
}

/**
 * Compares the namespace of a body with that of the path and sets it: see
 * docs/reference/api-rules.md#server-set-metadata. Changes `object`.
 *
 * @throws StatusError 400.
 */
export function settleNamespace(namespace: string | undefined, object: AnyObject): void {
  const meta = object.metadata ?? {};
  object.metadata = meta;
  if (namespace === undefined) delete meta.namespace;
  else if (meta.namespace === undefined || meta.namespace === '') meta.namespace = namespace;
  else if (meta.namespace !== namespace) {
    throw statusErrors.badRequest(
      'the namespace of the provided object does not match the namespace sent on the request',
    );
  }
}

/**
 * Compares the name and namespace of a body with those of the path: steps 2 and 3 of
 * docs/reference/api-rules.md#order-of-a-write. Changes `object`.
 *
 * @throws StatusError 400.
 */
export function settleIdentity(target: ObjectTarget, object: AnyObject): void {
  const meta = object.metadata ?? {};
  object.metadata = meta;
  if (!meta.name) {
    throw statusErrors.badRequest(
      `the name of the object (${target.name} based on URL) was undeterminable: name must be provided`,
    );
  }
  if (meta.name !== target.name) {
    throw statusErrors.badRequest(
      `the name of the object (${meta.name}) does not match the name on the URL (${target.name})`,
    );
  }
  if (target.namespace === undefined) delete meta.namespace;
  else if (meta.namespace === undefined || meta.namespace === '') meta.namespace = target.namespace;
  else if (meta.namespace !== target.namespace) {
    throw statusErrors.badRequest(
      `the namespace of the object (${meta.namespace}) does not match the namespace on the request (${target.namespace})`,
    );
  }
}
