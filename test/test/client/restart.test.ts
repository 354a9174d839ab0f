import { createHttpClient, Informer, keyOf } from '@keelson/client';
import type { KubeObject, ListOptions } from '@keelson/core';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { ConfigMap } from '@keelson/kinds';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { type KeelsonProcess, removeDirectory, startKeelson, temporaryDirectory } from '../../src/keelson-process.ts';

/** A server that can be restarted at the same address. */
async function restartable(t: ExecutionContext, storage: readonly string[]) {
  t.timeout(120_000);
  const data = await temporaryDirectory();
  t.teardown(() => removeDirectory(data));
  const first = await startKeelson(data, ['--insecure', ...storage]);
  let running: KeelsonProcess = first;
  t.teardown(async () => {
    await running.kill();
  });
  return {
    url: first.url,
    kill: () => running.kill(),
    stop: () => running.stop(),
    start: async () => {
      running = await startKeelson(data, ['--insecure', '--listen', new URL(first.url).host, ...storage]);
    },
  };
}

function followed(t: ExecutionContext, server: string) {
  const client = createHttpClient({ server });
  const maps = client.resource(ConfigMap).namespace('default');
  const notified: string[] = [];
  let lists = 0;
  const counted = new Proxy(maps, {
    get: (target, name) => {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== 'function') return member;
      if (name !== 'list') return member.bind(target);
      return (options: ListOptions) => {
        // A list of one object only asks for the current revision.
        if (options.limit !== 1) lists += 1;
        return target.list(options);
      };
    },
  });
  const informer = new Informer<KubeObject>({
    client: counted as never,
    keep: (object) => object,
    clock: systemClock,
    logger: silentLogger,
    handlers: {
      added: (_object, key) => notified.push(`+${key}`),
      updated: (_object, _before, key) => notified.push(`~${key}`),
      deleted: (_object, key) => notified.push(`-${key}`),
    },
  });
  t.teardown(async () => {
    await informer.stop();
    client.close();
  });
  return { client, maps, informer, notified, lists: () => lists };
}

test('an informer resumes after a crash of the server: each change is delivered once, without another list', async (t) => {
  const server = await restartable(t, []);
  const { maps, informer, notified, lists } = followed(t, server.url);
  await maps.create({ metadata: { name: 'before' } } as never);
  await informer.start();
  for (let at = 0; at < 5; at += 1) await maps.create({ metadata: { name: `live-${at}` } } as never);
  await eventually(() => informer.size === 6);
  // These are stored, but may not have been delivered before the crash.
  await Promise.all([0, 1, 2].map((at) => maps.create({ metadata: { name: `late-${at}` } } as never)));
  await server.kill();
  await server.start();
  await eventually(() => maps.create({ metadata: { name: 'after' } } as never).then(() => true));
  await maps.delete('before');
  await eventually(() => informer.size === 9 && informer.get('default/after') !== undefined);
  t.deepEqual(notified.toSorted(), [
    '+default/after',
    '+default/before',
    ...[0, 1, 2].map((at) => `+default/late-${at}`),
    ...[0, 1, 2, 3, 4].map((at) => `+default/live-${at}`),
    '-default/before',
  ]);
  t.is(lists(), 1);
  t.deepEqual((await maps.list()).items.map(keyOf), [...informer.values()].map(keyOf).toSorted());
});

test('an informer of a server that was restarted without its data shows the current state', async (t) => {
  const server = await restartable(t, ['--storage', 'memory:']);
  const { maps, informer, notified } = followed(t, server.url);
  for (let at = 0; at < 30; at += 1) await maps.create({ metadata: { name: `lost-${at}` } } as never);
  await informer.start();
  t.is(informer.size, 30);
  notified.length = 0;
  await server.stop();
  await server.start();
  await eventually(() => maps.create({ metadata: { name: 'new' } } as never).then(() => true));
  await eventually(() => informer.size === 1 && informer.get('default/new') !== undefined, 20_000);
  t.is(notified.filter((line) => line.startsWith('-default/lost-')).length, 30);
});
