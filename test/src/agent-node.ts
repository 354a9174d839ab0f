import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  type Agent,
  createAgent,
  createSources,
  type EventRecorder,
  type Mounter,
  type NodeUsage,
  noEvents,
  noMounter,
  parseOptions,
  readMachine,
  resolveConfig,
} from '@keelson/agent';
import type { ApiClient } from '@keelson/core';
import { type Clock, silentLogger, systemClock } from '@keelson/core/runtime';

type Engine = Pick<Parameters<typeof createAgent>[1], 'runtime' | 'images'>;

export interface AgentNodeOptions {
  readonly name: string;
  readonly engine: Engine;
  /** Absent: it runs alone. */
  readonly api?: ApiClient;
  /** Options of the command line. */
  readonly words?: readonly string[];
  /** Receives the events of pods. */
  readonly events?: EventRecorder;
  /** Default: nothing may be mounted. */
  readonly mounter?: Mounter;
  /** Default: that of the system. */
  readonly clock?: Clock;
  /** Default: that of this machine. */
  readonly nodeUsage?: NodeUsage;
}

/** A node agent in this process, with short periods. */
export interface AgentNode {
  readonly agent: Agent;
  readonly dir: string;
  stop(): Promise<void>;
}

/** A directory of its own, and how to take it away. */
export async function scratchDirectory(): Promise<{ readonly dir: string; readonly remove: () => Promise<void> }> {
  const dir = await mkdtemp(join(tmpdir(), 'keelson-node-'));
  return { dir, remove: () => rm(dir, { recursive: true, force: true, maxRetries: 5 }) };
}

/** Starts an agent with its sources. */
export async function startAgentNode(options: AgentNodeOptions & { readonly dir: string }): Promise<AgentNode> {
  const { name, engine, api, words = [], dir, events, mounter = noMounter, clock = systemClock, nodeUsage } = options;
  // How full this machine is decides nothing.
  const own = ['--eviction-hard=', '--resolv-conf=', '--enable-server=false'];
  const common = [`--hostname-override=${name}`, `--root-dir=${join(dir, 'agent')}`, ...own];
  const { config } = resolveConfig(parseOptions([...common, '--node-status-update-frequency=1s', ...words]), {
    hostname: () => name,
    fileExists: () => false,
  });
  const logger = silentLogger;
  const sources = createSources({ config, client: api, events: noEvents, clock, logger });
  const machine = { ...(await readMachine()), addresses: ['192.0.2.1'] };
  const agent = createAgent(config, {
    ...engine,
    ...(api && { api }),
    ...(events && { events }),
    pods: sources.config,
    machine,
    clock,
    logger,
    logRoot: join(dir, 'log'),
    mounter,
    ...(nodeUsage && { nodeUsage }),
    periods: { eviction: 200, relist: 200, housekeeping: 200, runtimeStatus: 500, objectTtl: 200 },
  });
  await agent.start();
  await sources.start();
  return {
    agent,
    dir,
    async stop() {
      await sources.stop();
      await agent.stop();
    },
  };
}
