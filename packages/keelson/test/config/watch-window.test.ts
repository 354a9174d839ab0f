import { UsageError } from '@keelson/core/internal';
import { ConfigMap } from '@keelson/kinds';
import test from 'ava';
import { parseWatchWindow } from '../../src/config/storage-choice.ts';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { createPromMetrics } from '../../src/observe/prom-metrics.ts';

test('watchWindow accepts any of its sizes and its age', (t) => {
  t.deepEqual(parseWatchWindow({}, 'watchWindow'), {});
  t.deepEqual(parseWatchWindow({ maxEvents: 5, maxBytes: 6, maxTotalBytes: 7, maxAge: '2m' }, 'watchWindow'), {
    ...{ maxEvents: 5, maxBytes: 6, maxTotalBytes: 7, maxAgeMs: 120_000 },
  });
  for (const [raw, message] of [
    [5, 'watchWindow must be an object with maxEvents, maxBytes, maxTotalBytes and maxAge'],
    [{ maxEvent: 1 }, 'watchWindow has no key maxEvent; did you mean maxEvents?'],
    [{ maxEvents: 0 }, 'watchWindow.maxEvents must be a whole number of at least 1, not 0'],
    [{ maxBytes: '1Mi' }, 'watchWindow.maxBytes must be a whole number of at least 1, not "1Mi"'],
    [{ maxAge: '-1s' }, 'watchWindow.maxAge must not be negative, but is -1s'],
  ] as const) {
    t.throws(() => parseWatchWindow(raw, 'watchWindow'), { instanceOf: UsageError, message });
  }
});

test('a watch that begins before the window is complete, and is counted', async (t) => {
  const metrics = createPromMetrics();
  await using plane = await createControlPlane({ watchWindow: { maxEvents: 2 }, metrics });
  const maps = plane.client(ConfigMap).namespace('default');
  const names = ['a', 'b', 'c', 'd', 'e'];
  const made = [];
  for (const name of names) made.push(await maps.create({ metadata: { name, namespace: 'default' } }));
  const seen: string[] = [];
  const counted = async () => /history_reads_total\{resource="configmaps"\} (\d+)/.exec(await metrics.text())?.[1];
  for (const from of [2, 0]) {
    const resourceVersion = made[from]?.metadata?.resourceVersion ?? '';
    const left = names.length - from - 1;
    const stop = new AbortController();
    for await (const event of maps.watch({ resourceVersion, signal: stop.signal })) {
      seen.push(`${event.type} ${event.object.metadata?.name}`);
      if (seen.length === left) break;
    }
    stop.abort();
    t.deepEqual(
      seen.splice(0),
      names.slice(from + 1).map((name) => `ADDED ${name}`),
    );
    t.is(await counted(), from === 0 ? '1' : undefined);
  }
});
