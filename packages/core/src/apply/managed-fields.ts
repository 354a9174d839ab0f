import { isJsonObject, type JsonObject } from '../json/json.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import { formatTime } from '../meta/time.ts';
import type { AnyObject, ManagedFieldsEntry } from '../meta/types.ts';
import { FieldSet, FieldSetError, type PathElement, pathText } from './field-set.ts';

/** How a manager wrote: by applies, which state what it wants, or by all other writes. */
export type Operation = 'Apply' | 'Update';

/** The fields that one manager owns through one kind of operation. */
export interface Owned {
  readonly manager: string;
  readonly operation: Operation;
  readonly apiVersion: string;
  readonly subresource?: string;
  readonly time?: string;
  readonly set: FieldSet;
  /** The set in the FieldsV1 format of the stored object; absent when the set has changed since it was read. */
  readonly fieldsV1?: Record<string, unknown>;
}

/** A copy of the owner with another set of fields. */
export function withSet({ fieldsV1, ...owned }: Owned, set: FieldSet): Owned {
  const isSame = set === owned.set && fieldsV1 !== undefined;
  return { ...owned, set, ...(isSame ? { fieldsV1 } : {}) };
}

/** The owners of the fields of an object, by {@link ownerId}. */
export type Owners = ReadonlyMap<string, Owned>;

/**
 * Identifies an owner. An applier has one entry whatever its version is, because each apply states all its fields. The
 * text orders owners as Kubernetes does.
 */
export function ownerId({ manager, operation, apiVersion, subresource }: Omit<Owned, 'set'>): string {
  return JSON.stringify({
    manager,
    operation,
    ...(operation === 'Update' ? { apiVersion } : {}),
    ...(subresource ? { subresource } : {}),
  });
}

export const noOwners: Owners = new Map();

/**
 * The owners in `metadata.managedFields`, or undefined when they cannot be read: an entry of an unknown operation or
 * format, without a version, or with malformed fields.
 */
export function readOwners(entries: readonly ManagedFieldsEntry[] | undefined): Owners | undefined {
  const owners = new Map<string, Owned>();
  for (const entry of entries ?? []) {
    const { manager = '', operation, apiVersion, fieldsType, fieldsV1, subresource, time } = entry;
    if ((operation !== 'Apply' && operation !== 'Update') || !apiVersion || fieldsType !== 'FieldsV1') return undefined;
    let set: FieldSet;
    try {
      set = FieldSet.fromFieldsV1(fieldsV1 ?? {});
    } catch (error) {
      if (error instanceof FieldSetError) return undefined;
      throw error;
    }
    const owned: Owned = {
      manager,
      operation,
      apiVersion,
      set,
      ...(fieldsV1 === undefined ? {} : { fieldsV1 }),
      ...(subresource ? { subresource } : {}),
      ...(time === undefined ? {} : { time }),
    };
    owners.set(ownerId(owned), owned);
  }
  return owners;
}

function seconds(time: string | undefined): number {
  const ms = time === undefined ? Number.NaN : Date.parse(time);
  return Number.isNaN(ms) ? 0 : Math.floor(ms / 1000);
}

function order(a: string | undefined, b: string | undefined): number {
  return (a ?? '') === (b ?? '') ? 0 : (a ?? '') < (b ?? '') ? -1 : 1;
}

/** `metadata.managedFields`, or undefined without owners. Appliers come first, older entries before newer. */
export function writeOwners(owners: Owners): ManagedFieldsEntry[] | undefined {
  if (owners.size === 0) return undefined;
  const sorted = [...owners.values()].sort(
    (a, b) =>
      order(a.operation, b.operation) ||
      seconds(a.time) - seconds(b.time) ||
      order(a.manager, b.manager) ||
      order(a.apiVersion, b.apiVersion) ||
      order(a.subresource, b.subresource),
  );
  return sorted.map(({ manager, operation, apiVersion, time, set, fieldsV1, subresource }) => ({
    manager,
    operation,
    apiVersion,
    ...(time === undefined ? {} : { time }),
    fieldsType: 'FieldsV1',
    fieldsV1: fieldsV1 ?? set.toFieldsV1(),
    ...(subresource === undefined ? {} : { subresource }),
  }));
}

export function timeText(nowMs: number): string {
  return formatTime(new Date(nowMs));
}

/** Whether a client asks that the owners be forgotten: with an empty list, or one empty entry. */
export function isReset(entries: readonly ManagedFieldsEntry[] | undefined): boolean {
  if (entries === undefined) return false;
  const [first] = entries;
  return first === undefined || (entries.length === 1 && Object.keys(first).length === 0);
}

/** Greatest length of a manager and of a subresource. */
const maxManager = 128;
const maxSubresource = 256;

const printable = /^[\p{L}\p{M}\p{N}\p{P}\p{S} ]*$/u;

/** Errors in entries that a client has written. Source: `apimachinery/pkg/apis/meta/v1/validation/validation.go`. */
export function managedFieldsErrors(entries: readonly ManagedFieldsEntry[] | undefined): FieldError[] {
  if (entries === undefined || isReset(entries)) return [];
  return entries.flatMap(({ manager = '', operation, fieldsType, subresource = '' }, index) => {
    const at = `metadata.managedFields[${index}]`;
    const errors: FieldError[] = [];
    if (operation !== 'Apply' && operation !== 'Update')
      errors.push(fieldError.invalid(`${at}.operation`, operation ?? '', 'must be `Apply` or `Update`'));
    if (fieldsType && fieldsType !== 'FieldsV1')
      errors.push(fieldError.invalid(`${at}.fieldsType`, fieldsType, 'must be `FieldsV1`'));
    if (Buffer.byteLength(manager) > maxManager) errors.push(fieldError.tooLong(`${at}.manager`, maxManager));
    if (!printable.test(manager))
      errors.push(fieldError.invalid(`${at}.manager`, manager, 'should only contain printable characters'));
    if (subresource.length > maxSubresource) errors.push(fieldError.tooLong(`${at}.subresource`, maxSubresource));
    return errors;
  });
}

/** Maximum number of Update entries; when there are more, the oldest ones are joined. */
const maxUpdaters = 10;
const oldUpdates = 'ancient-changes';

/** Joins the oldest Update entries of each version until there are ten, so that an object has few owners. */
export function capUpdaters(owners: Owners): Owners {
  const updaters = [...owners].filter(([, { operation }]) => operation === 'Update');
  if (updaters.length <= maxUpdaters) return owners;
  updaters.sort(([idA, a], [idB, b]) => seconds(a.time) - seconds(b.time) || order(idA, idB));
  const result = new Map(owners);
  const firstOfVersion = new Map<string, string>();
  let count = updaters.length;
  for (const [id, owned] of updaters) {
    if (count <= maxUpdaters) break;
    const { apiVersion, time } = owned;
    const first = firstOfVersion.get(apiVersion);
    if (first === undefined) {
      firstOfVersion.set(apiVersion, id);
      continue;
    }
    const bucket = { manager: oldUpdates, operation: 'Update' as const, apiVersion };
    const bucketId = ownerId(bucket);
    const joined = result.get(bucketId) ?? result.get(first);
    if (!result.has(bucketId)) result.delete(first);
    result.delete(id);
    const set = joined === undefined ? owned.set : owned.set.union(joined.set);
    result.set(bucketId, { ...bucket, set, ...(time === undefined ? {} : { time }) });
    count--;
  }
  return result;
}

/** The entries without their times, for comparison. */
export function withoutTimes(entries: readonly ManagedFieldsEntry[]): unknown {
  return entries.map((entry) => (isJsonObject(entry) ? { ...entry, time: undefined } : entry));
}

/** The object without `metadata.managedFields`, a field that has no owners. */
export function content(object: AnyObject): JsonObject {
  const { metadata } = object;
  if (metadata?.managedFields === undefined) return object;
  const { managedFields: _, ...rest } = metadata;
  return { ...object, metadata: rest };
}

/** A field that an apply would change although another manager owns it. */
export interface FieldConflict {
  readonly owner: Owned;
  readonly path: readonly PathElement[];
}

function ownerText({ manager, operation, apiVersion, subresource }: Owned): string {
  const name = JSON.stringify(manager) + (subresource ? ` with subresource ${JSON.stringify(subresource)}` : '');
  return operation === 'Update' ? `${name} using ${apiVersion}` : name;
}

/** The message and the causes of the 409 response for conflicts. */
export function conflictTexts(conflicts: readonly FieldConflict[]): {
  readonly message: string;
  readonly causes: readonly { readonly message: string; readonly field: string }[];
} {
  const ordered = conflicts
    .map(({ owner, path }) => ({ id: ownerId(owner), owner: ownerText(owner), path: pathText(path) }))
    .sort((a, b) => (a.id === b.id ? 0 : a.id < b.id ? -1 : 1));
  const causes = ordered.map(({ owner, path }) => ({ message: `conflict with ${owner}`, field: path }));
  const [first] = ordered;
  if (first !== undefined && ordered.length === 1) {
    return { message: `Apply failed with 1 conflict: conflict with ${first.owner}: ${first.path}`, causes };
  }
  const lines: string[] = [];
  for (const [i, { id, owner, path }] of ordered.entries()) {
    if (ordered[i - 1]?.id !== id) lines.push(`conflicts with ${owner}:`);
    lines.push(`- ${path}`);
  }
  return { message: `Apply failed with ${ordered.length} conflicts: ${lines.join('\n')}`, causes };
}
