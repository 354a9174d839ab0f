import test from 'ava';
import type { StatusError } from '../../src/index.ts';
import {
  getPoint,
  type ListPointParameters,
  listPoint,
  parseResourceVersion,
  type WatchPointParameters,
  watchPoint,
} from '../../src/registry/read-operations.ts';

/** What a call gives: its value, or code and causes of the StatusError it throws. */
function outcome(run: () => unknown): unknown {
  try {
    return run();
  } catch (error) {
    const { code, details } = (error as StatusError).status;
    return code === 400
      ? 400
      : [code, details?.kind, ...(details?.causes ?? []).map((cause) => `${cause.field} ${cause.reason}`)];
  }
}

const forbiddenMatch = [422, 'ListOptions', 'resourceVersionMatch FieldValueForbidden'];
const latest = { at: 'latest' };
const any = { at: 'any' };
const atLeast7 = { at: 'notOlderThan', revision: 7 };
const exactly7 = { at: 'exact', revision: 7 };

const lists: [Partial<ListPointParameters>, unknown][] = [
  [{}, latest],
  [{ resourceVersion: '0' }, any],
  [{ resourceVersion: '7' }, atLeast7],
  [{ limit: 5 }, latest],
  [{ limit: 5, resourceVersion: '0' }, any],
  [{ limit: 5, resourceVersion: '7' }, exactly7],
  [{ limit: 0, resourceVersion: '7' }, atLeast7],
  [{ resourceVersionMatch: 'NotOlderThan' }, forbiddenMatch],
  [{ resourceVersionMatch: 'NotOlderThan', resourceVersion: '0' }, any],
  [{ resourceVersionMatch: 'NotOlderThan', resourceVersion: '7' }, atLeast7],
  [{ resourceVersionMatch: 'NotOlderThan', resourceVersion: '7', limit: 5 }, atLeast7],
  [{ resourceVersionMatch: 'Exact' }, forbiddenMatch],
  [{ resourceVersionMatch: 'Exact', resourceVersion: '0' }, forbiddenMatch],
  [{ resourceVersionMatch: 'Exact', resourceVersion: '7' }, exactly7],
  [{ resourceVersionMatch: 'Exact', resourceVersion: '7', limit: 5 }, exactly7],
  [
    { resourceVersionMatch: 'Sometimes', resourceVersion: '7' },
    [422, 'ListOptions', 'resourceVersionMatch FieldValueNotSupported'],
  ],
  [{ continue: 'x' }, 'token'],
  [{ continue: 'x', limit: 5 }, 'token'],
  [{ continue: 'x', resourceVersion: '0' }, 'token'],
  [{ continue: 'x', resourceVersion: '7' }, 400],
  [{ continue: 'x', resourceVersion: '7', resourceVersionMatch: 'Exact' }, forbiddenMatch],
  [{ continue: 'x', resourceVersion: '0', resourceVersionMatch: 'NotOlderThan' }, forbiddenMatch],
  [{ continue: 'x', resourceVersionMatch: 'Exact' }, [...forbiddenMatch, 'resourceVersionMatch FieldValueForbidden']],
  [{ sendInitialEvents: true }, [422, 'ListOptions', 'sendInitialEvents FieldValueForbidden']],
  [{ sendInitialEvents: false }, [422, 'ListOptions', 'sendInitialEvents FieldValueForbidden']],
];

for (const [parameters, expected] of lists) {
  test(`list of ${JSON.stringify(parameters)} is ${JSON.stringify(expected)}`, (t) => {
    t.deepEqual(
      outcome(() => listPoint({ resourceVersion: '', ...parameters })),
      expected,
    );
  });
}

const watches: [Partial<WatchPointParameters>, unknown][] = [
  [{}, { start: 'state', fresh: true }],
  [{ resourceVersion: '0' }, { start: 'state', fresh: false }],
  [{ resourceVersion: '7' }, { start: 'changesAfter', revision: 7 }],
  [{ resourceVersion: 'x' }, 400],
  [{ resourceVersion: '7', resourceVersionMatch: 'NotOlderThan' }, forbiddenMatch],
  [{ sendInitialEvents: true }, forbiddenMatch],
  [{ sendInitialEvents: false }, forbiddenMatch],
  [
    { sendInitialEvents: true, resourceVersionMatch: 'Exact' },
    [...forbiddenMatch, 'resourceVersionMatch FieldValueNotSupported'],
  ],
  [
    { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan' },
    { start: 'state', fresh: true },
  ],
  [
    { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', allowWatchBookmarks: true },
    { start: 'state', fresh: true, endBookmark: true },
  ],
  [
    { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', resourceVersion: '7', allowWatchBookmarks: true },
    { start: 'state', fresh: false, notOlderThan: 7, endBookmark: true },
  ],
  [
    { sendInitialEvents: true, resourceVersionMatch: 'NotOlderThan', resourceVersion: '0' },
    { start: 'state', fresh: false },
  ],
  [{ sendInitialEvents: false, resourceVersionMatch: 'NotOlderThan' }, 'now'],
  [
    { sendInitialEvents: false, resourceVersionMatch: 'NotOlderThan', resourceVersion: '7' },
    { start: 'changesAfter', revision: 7 },
  ],
];

for (const [parameters, expected] of watches) {
  test(`watch of ${JSON.stringify(parameters)} is ${JSON.stringify(expected)}`, (t) => {
    t.deepEqual(
      outcome(() => watchPoint({ resourceVersion: '', ...parameters })),
      expected,
    );
  });
}

test('get: unset is the latest state, 0 any, N not older than N', (t) => {
  t.deepEqual([getPoint(''), getPoint('0'), getPoint('7')], [latest, any, atLeast7]);
});

test('resourceVersion: decimal numbers of 64 bits and nothing else', (t) => {
  for (const bad of ['-1', '+1', '1.5', '0x10', '1e3', ' 1', '', '١', '18446744073709551616', '1'.repeat(1000)]) {
    t.is(
      outcome(() => parseResourceVersion(bad)),
      400,
      bad,
    );
  }
  t.is(parseResourceVersion('9007199254740983'), 9007199254740983);
  t.is(parseResourceVersion('18446744073709551615'), Number.MAX_SAFE_INTEGER);
});
