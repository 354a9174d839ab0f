import { UsageError } from '@keelson/core/internal';
import test from 'ava';
import { connectionLimits, parseConnectionLimits } from '../../src/config/connection-limits.ts';

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
