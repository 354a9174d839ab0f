import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as pause } from 'node:timers/promises';
import { parseArgs } from 'node:util';
import { createHttpClient } from '@keelson/client';
import type { ApiClient } from '@keelson/core';
import { type appsV1, Deployment, Namespace } from '@keelson/kinds';
import { cpuSeconds, residentBytes } from '../measure/cpu-time.ts';
import { endedWithParent } from '../measure/spawned.ts';
import {
  type Command,
  controllerManagerCommand,
  keelson,
  kubeSchedulerCommand,
  startServer,
  writeAccess,
} from './control-processes.ts';

/**
 * Deployments on fake nodes, from their creation until all replicas are available, and then their deletion. The
 * controllers and the scheduler are processes of their own, so that each request of theirs is one of the server's
 * metrics. Prints one line of JSON for Keelson and, when both binaries are given, one for Kubernetes:
 * `compare-workloads [--kube-scheduler FILE --kube-controller-manager FILE] [--deployments 100] [--replicas 50]`.
 */
const { values } = parseArgs({
  options: {
    'kube-scheduler': { type: 'string' },
    'kube-controller-manager': { type: 'string' },
    deployments: { type: 'string', default: '100' },
    replicas: { type: 'string', default: '50' },
    nodes: { type: 'string', default: '100' },
  },
});
const { 'kube-scheduler': kubeScheduler, 'kube-controller-manager': controllerManager } = values;
const deployments = Number(values.deployments);
const replicas = Number(values.replicas);
const pods = deployments * replicas;
const namespace = 'load';
const quietMs = 3_000;

/** Controllers of both sides, by the names of kube-controller-manager. */
const controllers = [
  ...['cronjob', 'daemonset', 'deployment', 'endpoints', 'endpointslice', 'endpointslice-mirroring', 'job'],
  ...['horizontal-pod-autoscaler', 'node-lifecycle', 'replicaset', 'replicationcontroller', 'statefulset'],
  ...['taint-eviction', 'ttl-after-finished'],
].map((name) => `${name}-controller`);

interface Programs {
  readonly name: string;
  commands(folder: string, kubeconfig: string): Promise<{ readonly controllers: Command; readonly scheduler: Command }>;
}

function ownCommand(kubeconfig: string, names: readonly string[]): Command {
  return [process.execPath, keelson, 'controllers', '--controllers', names.join(','), '--kubeconfig', kubeconfig];
}

const sides: readonly Programs[] = [
  {
    name: 'keelson',
    commands: async (_, kubeconfig) => ({
      controllers: ownCommand(kubeconfig, controllers),
      scheduler: ownCommand(kubeconfig, ['scheduler']),
    }),
  },
  ...(kubeScheduler === undefined || controllerManager === undefined
    ? []
    : [
        {
          name: 'kubernetes',
          commands: async (folder: string, kubeconfig: string) => ({
            controllers: controllerManagerCommand(controllerManager, kubeconfig, controllers),
            scheduler: await kubeSchedulerCommand(kubeScheduler, folder, kubeconfig),
          }),
        },
      ]),
];

/** Answered requests by verb and resource. */
async function requestsOf(url: string): Promise<Map<string, number>> {
  const text = await (await fetch(`${url}/metrics`)).text();
  const counts = new Map<string, number>();
  for (const [, labels = '', count] of text.matchAll(/^apiserver_request_total\{(.*)\} (\d+)$/gm)) {
    const value = (name: string) => new RegExp(`\\b${name}="([^"]*)"`).exec(labels)?.[1] ?? '';
    const key = `${value('verb')} ${value('resource')}`;
    counts.set(key, (counts.get(key) ?? 0) + Number(count));
  }
  return counts;
}

/** Requests between two readings, per pod; those below one in a hundred pods are left out. */
function requestsPerPod(before: Map<string, number>, after: Map<string, number>, own: Map<string, number>) {
  const rows = [...after].flatMap(([key, count]): [string, number][] => {
    const made = (count - (before.get(key) ?? 0) - (own.get(key) ?? 0)) / pods;
    return made < 0.01 ? [] : [[key, round(made)]];
  });
  const sorted = rows.sort(([, a], [, b]) => b - a);
  return { all: round(sorted.reduce((sum, [, count]) => sum + count, 0)), ...Object.fromEntries(sorted) };
}

/** Waits until no further requests arrive: events are sent after what they report. */
async function settled(url: string): Promise<Map<string, number>> {
  const written = (counts: Map<string, number>) =>
    [...counts].reduce((sum, [key, count]) => sum + (/^(create|patch|update) (?!leases)/.test(key) ? count : 0), 0);
  for (let before = await requestsOf(url); ; ) {
    await pause(quietMs);
    const now = await requestsOf(url);
    if (written(now) === written(before)) return now;
    before = now;
  }
}

const round = (value: number): number => Math.round(value * 100) / 100;

function deploymentOf(name: string): appsV1.Deployment {
  const labels = { app: name };
  const resources = { requests: { cpu: '100m', memory: '100Mi' } };
  return {
    metadata: { name },
    spec: {
      replicas,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, spec: { containers: [{ name: 'main', image: 'app:1', resources }] } },
    },
  };
}

/** Waits for a condition, which is checked twice a second. */
async function until(condition: () => Promise<boolean>): Promise<void> {
  while (!(await condition())) await pause(500);
}

async function measure({ name, commands }: Programs): Promise<object> {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-workloads-'));
  const nodes = [
    'up',
    '--agent=false',
    '--fake-nodes',
    values.nodes,
    '--controllers',
    'api',
    '--ingress-listen',
    'off',
  ];
  const server = await startServer(folder, [...nodes, '--service-proxy=false']);
  const started: ChildProcess[] = [server.child];
  try {
    const client = createHttpClient({ server: server.url, maxConnections: 8 });
    const kubeconfig = await writeAccess(folder, server.url);
    await client.resource(Namespace).create({ metadata: { name: namespace } });
    const programs = await commands(folder, kubeconfig);
    const run = ([program, ...words]: Command) => {
      const stderr = process.env['VERBOSE'] ? 'inherit' : 'ignore';
      const child = endedWithParent(spawn(program, words, { stdio: ['ignore', 'ignore', stderr] }));
      started.push(child);
      return child;
    };
    const manager = run(programs.controllers);
    const scheduler = run(programs.scheduler);
    const parts = { server: server.child, controllers: manager, scheduler };
    // The first deployment shows that all parts run, and is not measured.
    await rollOut(client, ['first']);
    const cpuOf = () => Object.entries(parts).map(([part, { pid = 0 }]) => [part, cpuSeconds(pid)] as const);
    const requests = await settled(server.url);
    const before = new Map(cpuOf());
    const began = performance.now();
    const own = await rollOut(
      client,
      Array.from({ length: deployments }, (_, at) => `web-${at}`),
    );
    const seconds = round((performance.now() - began) / 1000);
    const after = await settled(server.url);
    const cpu = Object.fromEntries(cpuOf().map(([part, used]) => [part, round(used - (before.get(part) ?? 0))]));
    const memory = ({ pid = 0 }: ChildProcess) => Math.round(residentBytes(pid) / 2 ** 20);
    return {
      programs: name,
      ...{ pods, seconds, cpuSeconds: cpu },
      decisionsPerCpuSecond: Math.round(pods / (cpu['scheduler'] ?? Number.NaN)),
      requestsPerPod: requestsPerPod(requests, after, own),
      residentMiB: Object.fromEntries(Object.entries(parts).map(([part, child]) => [part, memory(child)])),
    };
  } finally {
    await Promise.all(started.map(ended));
    await rm(folder, { recursive: true, force: true });
  }
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await exit;
}

/** Creates deployments and waits until they are available. Returns the requests that this made. */
async function rollOut(client: ApiClient, names: readonly string[]): Promise<Map<string, number>> {
  const all = client.resource(Deployment).namespace(namespace);
  for (const name of names) await all.create(deploymentOf(name));
  let lists = 0;
  await until(async () => {
    lists += 1;
    const { items } = await all.list();
    return items.every(({ status }) => status?.availableReplicas === replicas);
  });
  return new Map([
    ['create deployments', names.length],
    ['list deployments', lists],
  ]);
}

for (const side of sides) process.stdout.write(`${JSON.stringify(await measure(side))}\n`);
process.exit(0);
