import {
  type FieldError,
  internalContext,
  type KindDefinition,
  type KubeObject,
  type StrategyContext,
  systemUser,
  type UserInfo,
} from '@keelson/core';
import { decoderOf } from '@keelson/core/internal';

/** The instant at which all writes of these tests happen. */
export const now = new Date('2026-01-02T12:00:00Z');

/** What hooks see of a write by a user. */
export function contextOf(user: UserInfo): StrategyContext {
  return { request: internalContext({ user }), now, warn: () => {} };
}

const context = contextOf(systemUser);

/** The result of a write: the object that would be stored, and the causes of its rejection. */
export interface Written<T> {
  readonly object: T;
  readonly causes: readonly string[];
  /** `field: message` of each refusal: what users read of an error. */
  readonly messages: readonly string[];
}

function written<T>(object: T, errors: readonly FieldError[]): Written<T> {
  return { object, causes: causesOf(errors), messages: errors.map(({ field, message }) => `${field}: ${message}`) };
}

/** `field reason` of each refusal: what programs read of an error. */
export function causesOf(errors: readonly FieldError[]): string[] {
  return errors.map(({ field, reason }) => `${field} ${reason.replace('FieldValue', '')}`);
}

function decode<T extends KubeObject>(
  kind: KindDefinition<T>,
  manifest: unknown,
): { object: T; errors: readonly FieldError[] } {
  const { value, errors } = decoderOf(kind.schema)(structuredClone(manifest));
  return { object: value, errors };
}

/** Decoding and defaults, without what only a create does. */
export function defaulted<T extends KubeObject>(kind: KindDefinition<T>, manifest: unknown): T {
  const { object } = decode(kind, manifest);
  kind.strategy.default?.(object);
  return object;
}

/** A create, in the order of the registry: decode, default, clear status, prepare, validate. */
export function create<T extends KubeObject>(kind: KindDefinition<T>, manifest: unknown): Written<T> {
  const { object, errors } = decode(kind, manifest);
  if (errors.length > 0) return written(object, errors);
  kind.strategy.default?.(object);
  if (kind.strategy.statusSubresource && !kind.strategy.keepsStatusOnCreate)
    delete (object as { status?: unknown }).status;
  kind.strategy.prepareForCreate?.(object, context);
  return written(object, [
    ...(kind.strategy.validate?.(object) ?? []),
    ...(kind.strategy.validateCreate?.(object) ?? []),
  ]);
}

/** A main write: `change` edits a copy of the stored object, status is restored. */
export function update<T extends KubeObject>(kind: KindDefinition<T>, old: T, change: (object: T) => void): Written<T> {
  const body = structuredClone(old);
  change(body);
  const { object, errors } = decode(kind, body);
  if (errors.length > 0) return written(object, errors);
  kind.strategy.default?.(object);
  if (kind.strategy.statusSubresource) (object as { status?: unknown }).status = (old as { status?: unknown }).status;
  kind.strategy.prepareForUpdate?.(object, old, context);
  return written(object, [
    ...(kind.strategy.validate?.(object) ?? []),
    ...(kind.strategy.validateUpdate?.(object, old) ?? []),
  ]);
}

/** A write of the status: everything but status and metadata is restored. */
export function updateStatus<T extends KubeObject>(
  kind: KindDefinition<T>,
  old: T,
  change: (object: T) => void,
): Written<T> {
  const body = structuredClone(old);
  change(body);
  const { object: decoded, errors } = decode(kind, body);
  if (errors.length > 0) return written(decoded, errors);
  kind.strategy.default?.(decoded);
  const { metadata, status } = decoded as T & { status?: unknown };
  const object = { ...structuredClone(old), metadata, status } as T;
  kind.strategy.prepareForStatusUpdate?.(object, old, context);
  return written(object, kind.strategy.validateStatusUpdate?.(object, old) ?? []);
}

/** The cells of an object's table row by column name, wide ones included. */
export function row<T extends KubeObject>(kind: KindDefinition<T>, object: T): Record<string, unknown> {
  return Object.fromEntries(kind.columns.map((column) => [column.name, column.value(object, { now })]));
}
