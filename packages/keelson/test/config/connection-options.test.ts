import { UsageError } from '@keelson/core/internal';
import test from 'ava';
import { connectionLimits, parseConnectionLimits } from '../../src/config/connection-limits.ts';
import { parseFlowControl } from '../../src/config/flow-control.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';

test('connectionLimits accepts any of its numbers and durations', (t) => {
  t.deepEqual(parseConnectionLimits({}, 'connectionLimits'), {});
  const given = parseConnectionLimits(
    { connections: 1000, idle: '2m', handshake: '5s', streamResetBurst: 9 },
    'connectionLimits',
  );
  t.deepEqual(given, { connections: 1000, idleMs: 120_000, handshakeMs: 5000, streamResetBurst: 9 });
  t.like(connectionLimits(given), { connections: 1000, connectionsPerAddress: 750, idleMs: 120_000, streams: 100 });
  for (const [raw, message] of [
    [{ idel: '2m' }, 'connectionLimits has no key idel; did you mean idle?'],
    [{ connections: 0 }, 'connectionLimits.connections must be a whole number of at least 1, not 0'],
    [{ idle: 5 }, 'connectionLimits.idle must be a duration such as 10s, not 5'],
  ] as const) {
    t.throws(() => parseConnectionLimits(raw, 'connectionLimits'), { instanceOf: UsageError, message });
  }
});

test('flowControl has limits, levels and schemas; mistakes name their place', (t) => {
  t.deepEqual(
    parseFlowControl(
      {
        requestsInFlight: 100,
        queueWait: '2s',
        requestTimeout: '2m',
        watchTimeout: '1h',
        levels: [{ name: 'batch', shares: 3 }],
        schemas: [{ name: 'reports', level: 'batch', groups: ['reporting'], distinguisher: 'namespace' }],
      },
      'f',
    ),
    {
      requestsInFlight: 100,
      queueWaitMs: 2_000,
      requestTimeoutMs: 120_000,
      watchTimeoutMs: 3_600_000,
      levels: [{ name: 'batch', shares: 3 }],
      schemas: [{ name: 'reports', level: 'batch', groups: ['reporting'], distinguisher: 'namespace' }],
    },
  );
  for (const [raw, message] of [
    [[], /^f must be an object with some of requestsInFlight, /],
    [{ requests: 1 }, /^f has no key requests/],
    [{ watches: 0 }, /^f\.watches /],
    [{ requestTimeout: '0s' }, /^f\.requestTimeout must be a duration above 0, not "0s"$/],
    [{ watchTimeout: '-1s' }, /^f\.watchTimeout must not be negative/],
    [{ watchTimeout: 60 }, /^f\.watchTimeout /],
    [{ levels: [{ name: 'a', shares: 0 }] }, /^f\.levels\[0\]\.shares /],
    [{ levels: [{ name: 'exempt', shares: 1 }] }, /^f\.levels\[0\]\.name must not be exempt/],
    [{ levels: {} }, /^f\.levels must be a list of objects/],
    [{ schemas: [{ name: 'a', level: 'none' }] }, /^f\.schemas\[0\]\.level must be one of exempt, .*, not none$/],
    [{ schemas: [{ name: 'a', level: 'system', users: 'jane' }] }, /^f\.schemas\[0\]\.users must be a list of texts/],
    [
      { schemas: [{ name: 'a', level: 'system', distinguisher: 'verb' }] },
      /^f\.schemas\[0\]\.distinguisher must be user or namespace/,
    ],
  ] as const) {
    t.throws(() => parseFlowControl(raw, 'f'), { instanceOf: UsageError, message });
  }
});

test('a watch without timeoutSeconds ends after the watch timeout of the server', async (t) => {
  const plane = await createControlPlane({ storage: 'memory:', controllers: false });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ flowControl: { watchTimeoutMs: 20 } });
  const watch = await fetch(`${url}/api/v1/configmaps?watch=1`);
  t.is(await watch.text(), '', 'the stream ends without an error');
});
