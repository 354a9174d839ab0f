import { execFile } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { ConfigMap } from '@keelson/kinds';
import { eventually, startTestPlane } from '@keelson/testing';
import test from 'ava';
import { Rollout, Site } from '../src/rollout.ts';
import { RolloutController } from '../src/rollout-controller.ts';

test('settings reach the selected sites, and a site that does not respond is reported and updated later', async (t) => {
  const controller = new RolloutController();
  await using hub = await startTestPlane({ kinds: [Site, Rollout], controllers: ['api', controller] });
  await using north = await startTestPlane();
  await using south = await startTestPlane();
  t.teardown(() => controller.close());
  const add = async (name: string, server: string, zone: string) =>
    hub.client(Site).create({ metadata: { name, labels: { zone } }, spec: { server } });
  await add('north', (await north.listen()).url, 'a');
  await add('gone', 'http://127.0.0.1:9', 'a');
  await add('south', (await south.listen()).url, 'b');
  const rollouts = hub.client(Rollout);
  await rollouts.create({ metadata: { name: 'hours' }, spec: { siteLabels: { zone: 'a' }, data: { monday: '9' } } });
  const statusOf = async (ready: number, sites: number) => {
    const { status } = await rollouts.get('hours');
    return status?.ready === ready && status.sites === sites && status;
  };
  const status = await eventually(() => statusOf(1, 2));
  t.regex(status.failed?.[0] ?? '', /^gone: /);
  const dataAt = async (site: typeof north) => (await site.client(ConfigMap).namespace('default').get('hours')).data;
  t.deepEqual(await dataAt(north), { monday: '9' });
  t.is((await south.client(ConfigMap).namespace('default').list()).items.length, 0);

  await hub.client(Site).delete('gone');
  await eventually(() => statusOf(1, 1));
  await rollouts.patch('hours', 'merge', { spec: { siteLabels: null, data: { monday: '10' } } });
  await eventually(() => statusOf(2, 2));
  t.deepEqual([await dataAt(north), await dataAt(south)], [{ monday: '10' }, { monday: '10' }]);
});

test('the program prints the settings of both sites', async (t) => {
  const main = fileURLToPath(new URL('../src/main.js', import.meta.url));
  const { stdout } = await promisify(execFile)(process.execPath, [main], { timeout: 80_000 });
  t.is(stdout, "{ monday: '9-17' }\n{ monday: '9-17' }\n");
});
