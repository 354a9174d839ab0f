import { deepEqual, equal, fail, ok } from 'node:assert/strict';
import { type ClientWatchEvent, isStatusError, type KubeObject, type Status } from '@keelson/core';

/** Asserts that a call fails with a Status; `code` and `reason` are compared. */
export async function refused(call: () => Promise<unknown>, code: number, reason: string): Promise<Status> {
  try {
    await call();
  } catch (error) {
    if (!isStatusError(error)) throw error;
    deepEqual([error.code, error.reason], [code, reason], error.message);
    equal(error.status.kind, 'Status');
    equal(error.status.status, 'Failure');
    return error.status;
  }
  return fail(`expected ${code} ${reason}, but the call succeeded`);
}

/** Returns the names of objects with their namespaces, in the given order. */
export function namesOf(objects: readonly KubeObject[]): string[] {
  return objects.map(
    ({ metadata = {} }) => (metadata.namespace === undefined ? '' : `${metadata.namespace}/`) + metadata.name,
  );
}

/** Formats an event as `ADDED a`. */
export function shown(event: ClientWatchEvent<KubeObject>): string {
  return `${event.type} ${event.object.metadata?.name ?? ''}`.trimEnd();
}

/** Reads the first `count` events of a watch and closes it. */
export async function take<T extends KubeObject>(
  watch: AsyncIterable<ClientWatchEvent<T>>,
  count: number,
): Promise<ClientWatchEvent<T>[]> {
  const events: ClientWatchEvent<T>[] = [];
  for await (const event of watch) {
    events.push(event);
    if (events.length === count) return events;
  }
  return fail(`the watch ended after ${events.length} events of ${count}`);
}

/** Returns the resourceVersion of an object as a number; it must be present. */
export function versionOf(object: KubeObject): number {
  const text = object.metadata?.resourceVersion ?? '';
  ok(/^[1-9]\d*$/.test(text), `not a resourceVersion: ${JSON.stringify(text)}`);
  return Number(text);
}

/** Returns a promise that is awaited later; its rejection is ignored when the case fails earlier. */
export function started<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => {});
  return promise;
}
