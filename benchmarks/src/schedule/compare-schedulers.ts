import { spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createHttpClient } from '@keelson/client';
import { Node, Pod } from '@keelson/kinds';
import { cpuSeconds, residentBytes } from '../measure/cpu-time.ts';
import { endedWithParent } from '../measure/spawned.ts';
import { keelson, kubeSchedulerCommand, startServer, writeAccess } from './control-processes.ts';
import { nodeOf, podOf } from './schedule-objects.ts';

/**
 * The same pods on the same server, assigned by kube-scheduler and by Keelson:
 * `compare-schedulers KUBE_SCHEDULER [PODS] [NODES]`. Prints one line of JSON for each scheduler and kind of pods.
 * KUBE_SCHEDULER is a binary of version 1.34.
 */
const [kubeScheduler = '', podCount = '5000', nodeCount = '100'] = process.argv.slice(2);
if (kubeScheduler === '') throw new Error('usage: compare-schedulers KUBE_SCHEDULER [PODS] [NODES]');
const pods = Number(podCount);
const podsPerTurn = 50;

async function measure(isKube: boolean, rules: boolean): Promise<object> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-schedulers-'));
  const server = await startServer(folder, ['serve', '--controllers', 'false']);
  const client = createHttpClient({ server: server.url, maxConnections: 64 });
  const all = client.resource(Pod).namespace('default');
  for (let at = 0; at < Number(nodeCount); at += 1) await client.resource(Node).create(nodeOf(at));
  for (let at = 0; at < pods; at += podsPerTurn)
    await Promise.all(
      Array.from({ length: Math.min(podsPerTurn, pods - at) }, (_, more) => all.create(podOf(at + more, rules))),
    );
  const { resourceVersion = '' } = (await all.list({ limit: 1 })).metadata;
  const kubeconfig = await writeAccess(folder, server.url);
  const [program, ...words] = isKube
    ? await kubeSchedulerCommand(kubeScheduler, folder, kubeconfig)
    : [process.execPath, keelson, 'controllers', '--controllers', 'scheduler', '--kubeconfig', kubeconfig];
  const began = performance.now();
  const serverBefore = cpuSeconds(server.child.pid ?? 0);
  const scheduler = endedWithParent(spawn(program, words, { stdio: 'ignore' }));
  const assigned = new Map<string, string>();
  for await (const { type, object } of all.watch({ resourceVersion })) {
    const { spec, metadata } = object as Pod;
    if (type !== 'BOOKMARK' && spec.nodeName) assigned.set(metadata?.name ?? '', spec.nodeName);
    if (assigned.size === pods) break;
  }
  const perNode = new Map<string, number>();
  for (const node of assigned.values()) perNode.set(node, (perNode.get(node) ?? 0) + 1);
  const result = {
    scheduler: isKube ? 'kube-scheduler' : 'keelson',
    rules,
    pods,
    seconds: (performance.now() - began) / 1000,
    schedulerCpu: cpuSeconds(scheduler.pid ?? 0),
    serverCpu: cpuSeconds(server.child.pid ?? 0) - serverBefore,
    residentBytes: residentBytes(scheduler.pid ?? 0),
    podsPerNode: [Math.min(...perNode.values()), Math.max(...perNode.values())],
  };
  for (const child of [scheduler, server.child]) {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  }
  await rm(folder, { recursive: true, force: true });
  return result;
}

for (const rules of [false, true])
  for (const isKube of [true, false]) process.stdout.write(`${JSON.stringify(await measure(isKube, rules))}\n`);
process.exit(0);
