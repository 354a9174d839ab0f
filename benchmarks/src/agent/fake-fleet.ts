import { join } from 'node:path';
import {
  createAgent,
  createSources,
  noEvents,
  noMounter,
  parseOptions,
  readMachine,
  resolveConfig,
} from '@keelson/agent';
import type { ApiClient } from '@keelson/core';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { createFakeRuntime, FakeWorld } from '@keelson/runtime-fake';

/** Nodes whose containers are scripted, in this process; the agents are the real ones. */
export interface FakeFleet {
  readonly worlds: readonly FakeWorld[];
  stop(): Promise<void>;
}

/** Nodes that begin at once would beat at once for ever; they begin spread over this time. */
const spreadMs = 10_000;

/** Starts so many agents, `node-0` and on, with their files in a folder that the caller puts away. */
export async function startFakeFleet(
  api: ApiClient,
  nodes: number,
  podsPerNode: number,
  folder: string,
): Promise<FakeFleet> {
  const machine = await readMachine();
  const common = { clock: systemClock, logger: silentLogger };
  const one = async (index: number) => {
    const name = `node-${index}`;
    const words = [
      `--hostname-override=${name}`,
      `--root-dir=${join(folder, name)}`,
      `--max-pods=${podsPerNode}`,
      '--resolv-conf=',
      '--enable-server=false',
      '--make-iptables-util-chains=false',
      '--eviction-hard=',
    ];
    const { config } = resolveConfig(parseOptions(words), { hostname: () => name, fileExists: () => false });
    const world = new FakeWorld({ images: ['app:1'], podIp: (pod) => `10.${index >> 8}.${index & 255}.${pod & 255}` });
    const sources = createSources({ config, client: api, events: noEvents, ...common });
    const agent = createAgent(config, {
      ...createFakeRuntime(world, { deadlines: false }),
      ...common,
      api,
      pods: sources.config,
      machine: { ...machine, addresses: [`192.0.2.${index & 255}`] },
      logRoot: join(folder, name, 'log'),
      mounter: noMounter,
    });
    await agent.start();
    await sources.start();
    const stop = async () => {
      await sources.stop();
      await agent.stop();
    };
    return { world, stop };
  };
  const pauseMs = Math.min(20, spreadMs / nodes);
  const started: Awaited<ReturnType<typeof one>>[] = [];
  for (let index = 0; index < nodes; index += 1) {
    started.push(await one(index));
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
  return {
    worlds: started.map(({ world }) => world),
    async stop() {
      await Promise.all(started.map(({ stop }) => stop()));
    },
  };
}
