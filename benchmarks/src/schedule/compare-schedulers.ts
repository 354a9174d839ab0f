import { spawn } from 'node:child_process';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { createHttpClient } from '@keelson/client';
import { Node, Pod } from '@keelson/kinds';
import { cpuSeconds, residentBytes } from '../measure/cpu-time.ts';
import { nodeOf, podOf } from './schedule-objects.ts';

/**
 * The same pods on the same server, assigned by kube-scheduler and by Keelson:
 * `compare-schedulers KUBE_SCHEDULER [PODS] [NODES]`. Prints one line of JSON for each scheduler and kind of pods.
 * KUBE_SCHEDULER is a binary of version 1.34.
 */
const [kubeScheduler = '', podCount = '5000', nodeCount = '100'] = process.argv.slice(2);
if (kubeScheduler === '') throw new Error('usage: compare-schedulers KUBE_SCHEDULER [PODS] [NODES]');
const pods = Number(podCount);
const keelson = fileURLToPath(new URL('../../../../packages/keelson/dist/bundle/keelson.js', import.meta.url));
const podsPerTurn = 50;

/** Plugins of kube-scheduler that need kinds which the server does not have. */
const disabled = ['VolumeBinding', 'VolumeZone', 'NodeVolumeLimits', 'VolumeRestrictions', 'DynamicResources'];

async function startServer(folder: string) {
  const words = ['serve', '--insecure', '--listen', '127.0.0.1:0', '--storage', 'memory:', '--controllers', 'false'];
  const child = spawn(process.execPath, [keelson, ...words, '--data', join(folder, 'data')], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const url = await new Promise<string>((resolve, reject) => {
    child.once('exit', (code) => reject(new Error(`the server ended with ${code}`)));
    let text = '';
    child.stdout.on('data', (piece: Buffer) => {
      text += piece.toString();
      const found = /serving on (\S+)/.exec(text)?.[1];
      if (found !== undefined) resolve(found);
    });
  });
  return { child, url };
}

async function commandOf(folder: string, url: string, isKube: boolean): Promise<[string, ...string[]]> {
  const kubeconfig = join(folder, 'kubeconfig');
  const contexts = [{ name: 'c', context: { cluster: 'k', user: 'u' } }];
  const clusters = [{ name: 'k', cluster: { server: url } }];
  const users = [{ name: 'u', user: {} }];
  const access = { apiVersion: 'v1', kind: 'Config', clusters, users, contexts, 'current-context': 'c' };
  await writeFile(kubeconfig, JSON.stringify(access));
  if (!isKube)
    return [process.execPath, keelson, 'controllers', '--controllers', 'scheduler', '--kubeconfig', kubeconfig];
  const config = join(folder, 'scheduler.json');
  const multiPoint = { disabled: disabled.map((name) => ({ name })) };
  const settings = {
    apiVersion: 'kubescheduler.config.k8s.io/v1',
    kind: 'KubeSchedulerConfiguration',
    leaderElection: { leaderElect: false },
    clientConnection: { kubeconfig, qps: 5000, burst: 5000 },
    profiles: [{ schedulerName: 'default-scheduler', plugins: { multiPoint } }],
  };
  await writeFile(config, JSON.stringify(settings));
  const gates = ['--feature-gates', 'DynamicResourceAllocation=false'];
  return [kubeScheduler, '--config', config, '--secure-port', '0', ...gates];
}

async function measure(isKube: boolean, rules: boolean): Promise<object> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-schedulers-'));
  const server = await startServer(folder);
  const client = createHttpClient({ server: server.url, maxConnections: 64 });
  const all = client.resource(Pod).namespace('default');
  for (let at = 0; at < Number(nodeCount); at += 1) await client.resource(Node).create(nodeOf(at));
  for (let at = 0; at < pods; at += podsPerTurn)
    await Promise.all(
      Array.from({ length: Math.min(podsPerTurn, pods - at) }, (_, more) => all.create(podOf(at + more, rules))),
    );
  const { resourceVersion = '' } = (await all.list({ limit: 1 })).metadata;
  const [program, ...words] = await commandOf(folder, server.url, isKube);
  const began = performance.now();
  const serverBefore = cpuSeconds(server.child.pid ?? 0);
  const scheduler = spawn(program, words, { stdio: 'ignore' });
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
