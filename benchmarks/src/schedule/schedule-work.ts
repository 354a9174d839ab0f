import { createInProcessClient } from '@keelson/client';
import type { ApiClient, KubeObject } from '@keelson/core';
import { createCachedStorages, createContinueTokens, createResourceRegistry } from '@keelson/core/internal';
import { noMetrics, silentLogger, systemClock } from '@keelson/core/runtime';
import { builtinKinds, Event, Namespace, Node, Pod } from '@keelson/kinds';
import { Scheduler } from '@keelson/scheduler';
import { MemoryStore } from '@keelson/storage-memory';
import { nodeOf, podOf } from './schedule-objects.ts';

/**
 * Assigns pods in a process of its own: `schedule-work NODES PODS CASE`. Prints JSON with the CPU seconds of the
 * scheduler with its writes, and of the same writes alone: a binding and an event for each pod.
 */
const [nodeCount = '100', podCount = '5000', kind = 'plain'] = process.argv.slice(2);
const nodes = Number(nodeCount);
const pods = Number(podCount);

const podsPerTurn = 50;

async function openPlane(): Promise<{ readonly client: ApiClient; readonly close: () => Promise<void> }> {
  const clock = systemClock;
  const store = new MemoryStore({ clock });
  await store.ready();
  const storages = createCachedStorages({ store, clock });
  await storages.start();
  const tokens = createContinueTokens({ secret: Buffer.alloc(32, 7), fingerprint: 'bench', clock });
  const registry = createResourceRegistry({
    storages,
    tokens,
    clock,
    logger: silentLogger,
    admission: [],
    kinds: builtinKinds,
  });
  const client = createInProcessClient(registry, { clock });
  await client.resource(Namespace).create({ metadata: { name: 'default' } });
  for (let at = 0; at < nodes; at += 1) await client.resource(Node).create(nodeOf(at));
  for (let at = 0; at < pods; at += podsPerTurn)
    await Promise.all(
      Array.from({ length: Math.min(podsPerTurn, pods - at) }, (_, more) =>
        client
          .resource(Pod)
          .namespace('default')
          .create(podOf(at + more, kind === 'rules')),
      ),
    );
  return {
    client,
    close: async () => {
      await storages.stop();
      await store.close();
    },
  };
}

function cpuSeconds(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since);
  return (user + system) / 1e6;
}

/** Follows pods and events from now on; `done` resolves when all pods have nodes and all events are written. */
async function followed(client: ApiClient): Promise<{ readonly done: Promise<unknown> }> {
  const { resourceVersion = '' } = (await client.resource(Pod).list({ limit: 1 })).metadata;
  const isAssigned = (pod: KubeObject) => Boolean((pod as Pod).spec.nodeName);
  return {
    done: Promise.all([
      seen(client.resource(Pod).watch({ resourceVersion }), isAssigned),
      seen(client.resource(Event).watch({ resourceVersion }), () => true),
    ]),
  };
}

/** Resolves when as many objects as there are pods meet the condition. */
async function seen(
  changes: AsyncIterable<{ readonly type: string; readonly object: KubeObject }>,
  condition: (object: KubeObject) => boolean,
): Promise<void> {
  const names = new Set<string>();
  for await (const { type, object } of changes) {
    if (type !== 'BOOKMARK' && condition(object)) names.add(object.metadata?.name ?? '');
    if (names.size === pods) return;
  }
}

async function scheduled(): Promise<{ readonly cpu: number; readonly seconds: number; readonly heapBytes: number }> {
  const { client, close } = await openPlane();
  globalThis.gc?.();
  const heap = process.memoryUsage().heapUsed;
  const { done } = await followed(client);
  const scheduler = new Scheduler({ client, clock: systemClock, logger: silentLogger, metrics: noMetrics });
  const began = performance.now();
  const before = process.cpuUsage();
  await scheduler.start();
  await done;
  const cpu = cpuSeconds(before);
  const seconds = (performance.now() - began) / 1000;
  globalThis.gc?.();
  const heapBytes = process.memoryUsage().heapUsed - heap;
  await scheduler.stop();
  await close();
  return { cpu, seconds, heapBytes };
}

async function writesAlone(): Promise<number> {
  const { client, close } = await openPlane();
  const { done } = await followed(client);
  const before = process.cpuUsage();
  const all = client.resource(Pod).namespace('default');
  const events = client.resource(Event).namespace('default');
  const write = async (at: number) => {
    const name = `pod-${at}`;
    const target = { kind: 'Node', name: `node-${at % nodes}` };
    await all.createSubresource(name, 'binding', { metadata: { name }, target } as KubeObject);
    const involvedObject = { apiVersion: 'v1', kind: 'Pod', namespace: 'default', name };
    await events.create({ metadata: { name: `${name}.1` }, involvedObject, reason: 'Scheduled', message: name });
  };
  for (let at = 0; at < pods; at += podsPerTurn)
    await Promise.all(Array.from({ length: Math.min(podsPerTurn, pods - at) }, (_, more) => write(at + more)));
  await done;
  const cpu = cpuSeconds(before);
  await close();
  return cpu;
}

// Timers and watches of this process do not keep it alive.
const alive = setInterval(() => {}, 1_000);
const floor = await writesAlone();
process.stdout.write(`${JSON.stringify({ floor, ...(await scheduled()) })}\n`);
clearInterval(alive);
