import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { FakeClock } from '@keelson/core/runtime';
import type { Pod } from '@keelson/kinds';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { checkSwap } from '../../src/startup/check-swap.ts';
import { effectiveOptions } from '../../src/startup/effective-options.ts';
import { parseOptions } from '../../src/startup/options/parse-options.ts';
import { runOnce } from '../../src/startup/run-once.ts';

const podOf = (uid: string, phase: string): Pod => ({
  metadata: { name: uid, namespace: 'x', uid },
  spec: {} as Pod['spec'],
  status: { phase },
});

/** A clock that advances at once when a caller waits, and records the delays. */
class EagerClock extends FakeClock {
  readonly waits: number[] = [];

  override after(ms: number, callback: () => void): () => void {
    this.waits.push(ms);
    const cancel = super.after(ms, callback);
    queueMicrotask(() => this.advance(ms));
    return cancel;
  }
}

test('--runonce waits 1, 2, 4 … seconds, ten times, and then reports the pods that do not run', async (t) => {
  const clock = new EagerClock();
  const pods = [podOf('a', 'Pending'), podOf('b', 'Running')];
  const signal = new AbortController().signal;
  const seen = { pods: () => pods, seenAllSources: () => true };
  await t.throwsAsync(runOnce({ pods: seen, state: seen, clock, signal }), {
    message: '--runonce: pods do not run: x/a',
  });
  t.deepEqual(
    clock.waits,
    Array.from({ length: 10 }, (_, i) => 1000 * 2 ** i),
  );
});

test('--runonce waits one second for sources, and does not wait without pods', async (t) => {
  const clock = new EagerClock();
  const signal = new AbortController().signal;
  const none = { pods: () => [], seenAllSources: () => true };
  const unseen = { ...none, seenAllSources: () => false };
  await t.throwsAsync(runOnce({ pods: unseen, state: none, clock, signal }), { message: /not every source/ });
  t.is(clock.monotonic(), 1000);
  t.is(await runOnce({ pods: none, state: none, clock, signal }), 0);
  t.is(clock.monotonic(), 1000);
});

test('--fail-swap-on: a machine with swap is rejected, one without is not', async (t) => {
  const path = join(await temporaryDirectory(t), 'swaps');
  await writeFile(path, 'Filename\tType\tSize\tUsed\tPriority\n/dev/sda2 partition 1024 0 -2\n');
  await t.throwsAsync(checkSwap(path), { message: /^Running with swap on is not supported.*sda2/ });
  await writeFile(path, 'Filename\tType\tSize\tUsed\tPriority\n');
  await t.notThrowsAsync(checkSwap(path));
  await t.notThrowsAsync(checkSwap(join(path, '..', 'nowhere')));
});

test('the effective options are shown without values that may contain credentials', (t) => {
  const { values } = parseOptions([
    '--manifest-url=http://u:secret@h/',
    '--manifest-url-header=Authorization:secret',
    '--node-labels=a=b',
  ]);
  const shown = effectiveOptions(values, { PodPriority: true });
  t.false(JSON.stringify(shown).includes('secret'));
  t.like(shown, {
    'manifest-url': '(set)',
    'sync-frequency': '1m0s',
    'node-labels': { a: 'b' },
    'feature-gates': { PodPriority: true },
    port: 10_250,
  });
});
