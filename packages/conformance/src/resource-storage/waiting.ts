import assert from 'node:assert/strict';
import { isStorageError, type StorageError, type StorageErrorCode } from '@keelson/core';
import type { ResourceStorage, ResourceWatch, WatchEvent } from '@keelson/core/internal';
import type { FakeClock } from '@keelson/core/runtime';
import type { Revision } from '@keelson/core/storage-adapter';
import { everything, podPrefix, textOf } from './objects.ts';

/** The cases of a suite run concurrently in one process, so a condition can take long on a loaded machine. */
const timeoutMs = 60_000;

/** Yields to other work of the process. */
export function turn(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}

export async function turns(count = 20): Promise<void> {
  for (let i = 0; i < count; i++) await turn();
}

/**
 * Resolves when the condition is true. It is checked after every turn of the event loop at first, for changes within
 * this process, and every 5 ms later, so that a database on the same machine gets processor time to answer.
 */
export async function until(condition: () => boolean | Promise<boolean>, what: string): Promise<void> {
  const end = Date.now() + timeoutMs;
  for (let checks = 0; !(await condition()); checks += 1) {
    if (Date.now() > end) assert.fail(`not reached: ${what}`);
    await (checks < 50 ? turn() : new Promise((resolve) => setTimeout(resolve, 5)));
  }
}

/**
 * Advances the clock by 100 ms every `everyMs` of real time until the promise settles. A call times out after three
 * seconds of this clock. With the default of 25 ms these take 750 ms of real time, enough for an answer over a network
 * on a busy machine.
 */
export async function withTime<T>(clock: FakeClock, promise: Promise<T>, everyMs = 25): Promise<T> {
  let settled = false;
  const done = () => {
    settled = true;
  };
  promise.then(done, done);
  const end = Date.now() + timeoutMs;
  while (!settled) {
    if (Date.now() > end) assert.fail('the promise did not settle');
    await new Promise((resolve) => setTimeout(resolve, everyMs));
    clock.advance(100);
  }
  return promise;
}

/** Advances the clock quickly until a call that is expected to time out has settled. */
export function untilTimeout<T>(clock: FakeClock, promise: Promise<T>): Promise<T> {
  return withTime(clock, promise, 2);
}

/** Asserts that the call fails with a StorageError of this code. */
export async function failsWith(
  code: StorageErrorCode,
  action: () => Promise<unknown> | unknown,
): Promise<StorageError> {
  try {
    await action();
  } catch (error) {
    assert.ok(isStorageError(error), `expected a StorageError ${code}, got ${String(error)}`);
    assert.equal(error.code, code, error.message);
    return error;
  }
  return assert.fail(`expected a failure with ${code}`);
}

/** Collects the events of a watch until it has reached the revision. */
export async function eventsUntil(watch: ResourceWatch, revision: Revision, maxEvents = 100): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  await until(
    () => {
      const piece = watch.read(maxEvents);
      assert.ok(piece.length <= maxEvents, 'no more events than asked for');
      events.push(...piece);
      return piece.length === 0 && watch.revision >= revision;
    },
    `the watch has come to revision ${revision}, it is at ${watch.revision} after ${describe(events).join(', ')}`,
  );
  return events;
}

/** Reads `count` events. */
export async function eventsOf(watch: ResourceWatch, count: number): Promise<WatchEvent[]> {
  const events: WatchEvent[] = [];
  await until(() => {
    if (events.length < count) events.push(...watch.read(count - events.length));
    return events.length >= count;
  }, `${count} events have come`);
  return events;
}

/** Reads a watch to its end and returns the error that ended it. */
export async function endOf(watch: ResourceWatch, seen: WatchEvent[] = []): Promise<StorageError> {
  let failure: unknown;
  await until(() => {
    try {
      seen.push(...watch.read(100));
      return false;
    } catch (error) {
      failure = error;
      return true;
    }
  }, 'the watch has ended');
  assert.ok(isStorageError(failure), String(failure));
  return failure;
}

/** Formats each event as `TYPE name text@revision`; bookmarks have neither name nor text. */
export function describe(events: readonly WatchEvent[]): string[] {
  return events.map(({ type, object, initialEventsEnd }) => {
    if (type === 'BOOKMARK') return `${type}${initialEventsEnd ? ' end' : ''} @${object.revision}`;
    const { key } = object;
    return `${type} ${key.slice(key.lastIndexOf('/') + 1)} ${textOf(object)}@${object.revision}`;
  });
}

/** Returns the events of a watch of all pods after a revision. */
export async function eventsAfter(pods: ResourceStorage, revision: Revision): Promise<string[]> {
  const watch = await pods.watch(podPrefix, { predicate: everything, from: { start: 'changesAfter', revision } });
  const events = await eventsUntil(watch, await pods.currentRevision());
  watch.close();
  return describe(events);
}
