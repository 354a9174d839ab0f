import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { httpRequest } from '../fixtures.ts';
import { cores, Spawned } from '../measure/spawned.ts';
import type { Measurement, Scenario, Stage } from '../scenarios/scenario.ts';

const fleetProgram = fileURLToPath(new URL('./fleet-server.js', import.meta.url));
const megabyte = 1_000_000;
/**
 * Of many pods that begin at once most of what is allocated is still in use when the young generation is full, and is
 * copied.
 */
const roomForMany = ['--max-semi-space-size=64'];

interface FleetState {
  readonly nodes: number;
  readonly running: number;
}

/** A process with fake nodes, on the core of the load. */
class Fleet {
  readonly process: Spawned;

  constructor(process: Spawned) {
    this.process = process;
  }

  static async start(
    server: Spawned,
    nodes: number,
    podsPerNode: number,
    folder: string,
    nodeWords: readonly string[],
  ): Promise<Fleet> {
    const words = [
      ...nodeWords,
      fleetProgram,
      `http://127.0.0.1:${server.port}`,
      String(nodes),
      String(podsPerNode),
      folder,
    ];
    return new Fleet(await Spawned.start(process.execPath, words, undefined, cores.load));
  }

  async ask<T>(path: string): Promise<T> {
    const answer = await fetch(`http://127.0.0.1:${this.process.port}${path}`);
    if (!answer.ok) throw new Error(`the fake nodes: ${await answer.text()}`);
    return (await answer.json()) as T;
  }

  async until(what: keyof FleetState, wanted: number, progress: (text: string) => void): Promise<void> {
    for (;;) {
      const { [what]: count } = await this.ask<FleetState>('/');
      if (count >= wanted) return;
      progress(`${count} of ${wanted} ${what}`);
      await sleep(100);
    }
  }
}

async function withFleet<T>(
  stage: Stage,
  nodes: number,
  podsPerNode: number,
  measure: (fleet: Fleet, server: Spawned) => Promise<T>,
  nodeWords: readonly string[] = [],
): Promise<T> {
  const server = await stage.start([]);
  const folder = await mkdtemp(join(tmpdir(), 'keelson-fleet-'));
  let fleet: Fleet | undefined;
  try {
    fleet = await Fleet.start(server, nodes, podsPerNode, folder, nodeWords);
    await fleet.until('nodes', nodes, stage.progress);
    return await measure(fleet, server);
  } finally {
    await fleet?.process.stop();
    await server.stop();
    await rm(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}

/** Writes of a server so far: each moves its revision by one. */
async function revision(server: Spawned): Promise<number> {
  const list = (await (await fetch(`http://127.0.0.1:${server.port}/api/v1/nodes?limit=1`)).json()) as {
    metadata: { resourceVersion: string };
  };
  return Number(list.metadata.resourceVersion);
}

const fleetNodes = 1000;
/** Each node writes its status and its lease once in this time. */
const beatPeriodMs = 10_000;

export const nodeHeartbeats: Scenario = {
  name: 'agent: 1000 fake nodes',
  what: `share of a core that a server uses for the heartbeats of ${fleetNodes} idle nodes (status and lease, each every ten seconds), beside a quarter of a core; the nodes are real agents on scripted runtimes in one process`,
  goal: { form: 'times', mark: 1 },
  everyAdapter: false,
  run: (stage) =>
    withFleet(
      stage,
      Math.min(fleetNodes, Math.ceil(stage.objects / 10)),
      110,
      async (fleet, server): Promise<Measurement> => {
        const rounds = [];
        const beats = [];
        const fleetShares = [];
        for (let round = 0; round <= Math.min(stage.rounds, 3); round += 1) {
          const before = [server.cpu(), fleet.process.cpu(), await revision(server)] as const;
          const at = performance.now();
          await sleep(Math.min(beatPeriodMs, stage.sliceMs * 15));
          const seconds = (performance.now() - at) / 1000;
          const share = (server.cpu() - before[0]) / seconds;
          stage.progress(`round ${round}`);
          if (round === 0) continue;
          rounds.push({ floor: 25, subject: share * 100 });
          fleetShares.push(((fleet.process.cpu() - before[1]) / seconds) * 100);
          beats.push(((await revision(server)) - before[2]) / seconds);
        }
        const mean = (values: readonly number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
        return {
          unit: '% of a core',
          rounds,
          leastRounds: 1,
          notes: {
            'heartbeats/s': mean(beats),
            'agents % of a core': mean(fleetShares),
            'agents MB': fleet.process.memory() / megabyte,
            'server MB': server.memory() / megabyte,
          },
        };
      },
    ),
};

const fakePods = 10_000;
const podNodes = 100;
const exitSamples = 300;
/** Fewer in a short run. */
const podsOf = (stage: Stage): number => Math.min(fakePods, stage.objects);
const nodesOf = (stage: Stage): number => Math.min(podNodes, Math.ceil(stage.objects / 100));

const podsPath = '/api/v1/namespaces/default/pods';

const boundPod = (node: number): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'pod-{n}', namespace: 'default', labels: { app: 'bench' } },
    spec: { nodeName: `node-${node}`, containers: [{ name: 'main', image: 'app:1', imagePullPolicy: 'IfNotPresent' }] },
  });

/** Creates all pods at once, and waits until the API says that they run. */
async function runPods(stage: Stage, fleet: Fleet, server: Spawned): Promise<number> {
  const wanted = podsOf(stage);
  const batch = Math.ceil(wanted / 10);
  const requests = Array.from({ length: nodesOf(stage) }, (_, node) => httpRequest('POST', podsPath, boundPod(node)));
  const at = performance.now();
  for (let made = 0; made < wanted; made += batch) {
    await stage.load.requests({ port: server.port, connections: 32, count: Math.min(batch, wanted - made), requests });
    stage.progress(`${Math.min(made + batch, wanted)} of ${wanted} pods created`);
  }
  await fleet.until('running', wanted, stage.progress);
  return (performance.now() - at) / 1000;
}

export const podsToRunning: Scenario = {
  name: 'agent: 10000 pods to Running',
  what: `seconds from the first create of ${fakePods} pods, bound to ${podNodes} nodes with scripted runtimes, until the API tells that all run, beside the 60 s that kwok allows itself; counted as the CPU time of the busier process, server or nodes, each of which has a core, because the wall clock shows the neighbours; events are not sent`,
  goal: { form: 'times', mark: 0.2 },
  everyAdapter: false,
  run: (stage) =>
    withFleet(
      stage,
      nodesOf(stage),
      Math.ceil(podsOf(stage) / nodesOf(stage)) + 10,
      async (fleet, server): Promise<Measurement> => {
        const before = [server.cpu(), fleet.process.cpu()] as const;
        const seconds = await runPods(stage, fleet, server);
        const serverSeconds = server.cpu() - before[0];
        const agentSeconds = fleet.process.cpu() - before[1];
        return {
          unit: 'CPU s',
          rounds: [{ floor: 60, subject: Math.max(serverSeconds, agentSeconds) }],
          leastRounds: 1,
          notes: {
            'server CPU s': serverSeconds,
            'agents CPU s': agentSeconds,
            'wall s': seconds,
            'agents MB': fleet.process.memory() / megabyte,
          },
        };
      },
      roomForMany,
    ),
};

export const exitToStatus: Scenario = {
  name: 'agent: exit to status',
  what: `p99 ms from the end of a container until a watcher of the API sees it in the pod's status, on ${podNodes} nodes with ${fakePods} pods, beside the second that a relist may take to notice`,
  goal: { form: 'times', mark: 0.1 },
  everyAdapter: false,
  run: (stage) =>
    withFleet(
      stage,
      nodesOf(stage),
      Math.ceil(podsOf(stage) / nodesOf(stage)) + 10,
      async (fleet, server): Promise<Measurement> => {
        await runPods(stage, fleet, server);
        const rounds = [];
        let p50 = 0;
        for (let round = 0; round < Math.min(stage.rounds, 3); round += 1) {
          const times = await fleet.ask<{ p50: number; p99: number }>(
            `/exits?count=${Math.min(exitSamples, podsOf(stage))}`,
          );
          rounds.push({ floor: 1000, subject: times.p99 });
          p50 = times.p50;
          stage.progress(`round ${round + 1}`);
        }
        return { unit: 'ms', rounds, leastRounds: 1, notes: { 'p50 ms': p50 } };
      },
      roomForMany,
    ),
};
