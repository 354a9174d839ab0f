import { FakeClock } from '@keelson/core/runtime';
import test from 'ava';
import { RuntimeVersionCache } from '../../src/runtime-view/runtime-health.ts';

test('the version of a runtime is requested once in five minutes, and again at once after a failure', async (t) => {
  const clock = new FakeClock();
  let asked = 0;
  let down = true;
  const version = async () => {
    asked += 1;
    if (down) throw new Error('away');
    return { runtimeName: 'r', runtimeVersion: String(asked), runtimeApiVersion: 'v1' };
  };
  const known = new RuntimeVersionCache({ version }, clock, 1000);
  t.is(await known.get(), undefined);
  down = false;
  t.is((await known.get())?.runtimeVersion, '2');
  clock.advance(299_000);
  t.is((await known.get())?.runtimeVersion, '2');
  clock.advance(2_000);
  t.is((await known.get())?.runtimeVersion, '3', 'an updated runtime is reported');
  down = true;
  clock.advance(301_000);
  t.is((await known.get())?.runtimeVersion, '3', 'a runtime that is away has the version it had');
});
