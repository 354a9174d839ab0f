import type { KindDefinition } from '../kind/kind-definition.ts';
import type { Status } from '../meta/status.ts';
import type { KubeObject } from '../meta/types.ts';
import type { StoredObject } from '../storage/stored-object.ts';
import type { Answer } from './resource-service.ts';

/** A private parse of a stored object in the version of `kind`, which may be another than the stored one. */
export function servedValue(kind: KindDefinition, stored: StoredObject): KubeObject {
  const value = stored.value();
  return kind.storage ? kind.storage.fromStorage(value) : value;
}

/** {@link servedValue} with kind, apiVersion and metadata alone. */
export function servedHead(kind: KindDefinition, stored: StoredObject): KubeObject {
  if (kind.storage === undefined) return stored.head();
  const { metadata } = kind.storage.fromStorage(stored.value());
  return { kind: kind.kind, apiVersion: kind.apiVersion, ...(metadata === undefined ? {} : { metadata }) };
}

/** What tells whose the object is; see {@link StoredObject.ownership}. */
export function servedOwnership(kind: KindDefinition, stored: StoredObject): KubeObject {
  if (kind.storage !== undefined) return servedHead(kind, stored);
  const { metadata = {} } = stored.ownership();
  return { kind: kind.kind, apiVersion: kind.apiVersion, metadata };
}

/** The object (or Status) of an answer; it belongs to the caller. */
export function answerValue(answer: Answer): KubeObject | Status {
  return 'stored' in answer ? servedValue(answer.kind, answer.stored) : answer.object;
}
