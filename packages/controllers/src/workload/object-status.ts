import type { ReconcileRun } from '@keelson/controller-kit';
import { formatTime, type KindDefinition, type KubeObject } from '@keelson/core';
import { sameJson } from './template.ts';

/** An object with a status. */
type WithStatus<S> = KubeObject & { status?: S };

/**
 * Writes the status and any given annotations, unless nothing has changed. The write fails with a conflict when the
 * object has changed since it was read, so that the status never describes a state that the controller has not seen.
 */
export async function writeStatus<S extends object, T extends WithStatus<S>>(
  run: ReconcileRun,
  kind: KindDefinition<T>,
  object: T,
  status: S,
  annotations?: Record<string, string>,
): Promise<void> {
  const { name = '', namespace = '' } = object.metadata ?? {};
  const sameAnnotations = annotations === undefined || sameJson(annotations, object.metadata?.annotations ?? {});
  if (sameAnnotations && sameJson(status, object.status ?? {})) return;
  const metadata = { ...object.metadata, ...(annotations === undefined ? {} : { annotations }) };
  const body = { ...object, metadata, status };
  await run.client.resource(kind).namespace(namespace).updateSubresource(name, 'status', body);
}

/** True when the controller of an object has reported the state of its present spec. */
export function isObserved({ metadata, status }: WithStatus<{ observedGeneration?: number }>): boolean {
  return (status?.observedGeneration ?? 0) >= (metadata?.generation ?? 0);
}

/** The present time as text for conditions. */
export function timeOf(run: ReconcileRun): string {
  return formatTime(new Date(run.clock.now()));
}
