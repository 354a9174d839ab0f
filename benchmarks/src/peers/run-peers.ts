import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { median } from '../measure/statistics.ts';
import type { BenchOptions } from '../options.ts';
import { missingServer } from '../stores/database.ts';
import { isWanted } from '../wanted.ts';
import { fillPeer, type PeerRun, type PeerScenario, peerScenarios } from './peer-scenarios.ts';
import { missingProgram, type PeerServer, peerEtcd, peerKinds, startPeer } from './start-peer.ts';

/** One slice: CPU microseconds of an operation, and latencies of requests. */
export interface PeerSlice {
  readonly server: number;
  readonly store: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** A scenario on a server. */
export interface PeerRow {
  readonly scenario: string;
  readonly what: string;
  readonly peer: string;
  /** Slices that count, in their order. */
  readonly slices: readonly PeerSlice[];
  /** Medians; NaN when the scenario failed. */
  readonly server: number;
  readonly store: number;
  readonly failed?: string;
}

export interface PeerFigures {
  readonly rows: readonly PeerRow[];
  /** Resident memory at the end, in bytes. */
  readonly memory: Readonly<Record<string, { readonly server: number; readonly store: number }>>;
  /** Why servers were not measured. */
  readonly missing: Readonly<Record<string, string>>;
}

const names = peerScenarios.map(({ name }) => name);
/** Before its first slice a server has compiled its code: so many requests, or as many as it answers in some slices. */
const warmUpRequests = 2_000;
const warmUpSlices = 6;

/** @throws Error when a name is not one of a scenario */
export function wantedPeerScenarios({ scenarios }: BenchOptions): readonly PeerScenario[] {
  const wanted = peerScenarios.filter(({ name }) => isWanted(scenarios, name, names));
  if (wanted.length === 0) throw new Error(`--scenarios with --peers knows ${names.join(', ')}`);
  return wanted;
}

async function measured(server: PeerServer, run: PeerRun): Promise<PeerSlice> {
  const before = server.cpu();
  const { requests, p50Ms, p99Ms } = await run.slice();
  const after = server.cpu();
  const micros = (of: 'server' | 'store') => ((after[of] - before[of]) * 1e6) / requests;
  return { server: micros('server'), store: micros('store'), p50Ms, p99Ms };
}

/** One scenario: in each round every server has its turn, so that a disturbance affects all of them. */
async function runScenario(
  scenario: PeerScenario,
  servers: readonly PeerServer[],
  options: BenchOptions,
  say: (text: string) => void,
): Promise<PeerRow[]> {
  const turns = servers.map((server) => ({
    server,
    slices: [] as PeerSlice[],
    run: undefined as PeerRun | undefined,
    failed: '',
  }));
  const attempt = async (turn: (typeof turns)[number], work: () => Promise<void>) => {
    if (turn.failed !== '') return;
    try {
      await work();
    } catch (error) {
      turn.failed = (error as Error).message;
      say(`${turn.server.name} failed: ${turn.failed}`);
    }
  };
  for (const turn of turns)
    await attempt(turn, async () => {
      turn.run = await scenario.open(turn.server, options);
      const until = performance.now() + warmUpSlices * options.sliceMs;
      for (let done = 0; done < warmUpRequests && performance.now() < until; )
        done += (await turn.run.slice()).requests;
    });
  // The first round fills caches that others have displaced, and is not counted.
  for (let round = 0; round <= options.rounds; round += 1) {
    for (const turn of turns)
      await attempt(turn, async () => {
        const slice = await measured(turn.server, turn.run as PeerRun);
        if (round > 0) turn.slices.push(slice);
      });
    if (round > 0) say(`round ${round} of ${options.rounds}`);
  }
  for (const { run } of turns) await run?.close?.();
  return turns.map(({ server, slices, failed }) => ({
    scenario: scenario.name,
    what: scenario.what,
    peer: server.name,
    slices,
    server: median(slices.map((slice) => slice.server)),
    store: median(slices.map((slice) => slice.store)),
    ...(failed === '' ? {} : { failed }),
  }));
}

/** Starts every server that this machine can run, and asks all of them the same. */
export async function runPeers(options: BenchOptions, progress: (text: string) => void): Promise<PeerFigures> {
  const wanted = wantedPeerScenarios(options);
  const folder = await mkdtemp(join(tmpdir(), 'keelson-peers-'));
  const servers: PeerServer[] = [];
  const missing: Record<string, string> = {};
  try {
    for (const kind of peerKinds.filter(({ adapter }) => options.adapters.includes(adapter))) {
      progress(`${kind.name}: building what is missing, starting`);
      const reason = missingProgram(kind) ?? (await missingServer(kind.adapter, peerEtcd));
      if (reason !== undefined) {
        missing[kind.name] = reason;
        progress(`${kind.name}: not measured: ${reason}`);
        continue;
      }
      const server = await startPeer(kind, join(folder, String(servers.length)));
      servers.push(server);
      progress(`${kind.name}: creating ${options.objects} objects`);
      await fillPeer(server, options.objects);
    }
    const rows: PeerRow[] = [];
    for (const scenario of wanted)
      rows.push(...(await runScenario(scenario, servers, options, (text) => progress(`${scenario.name}: ${text}`))));
    return { rows, memory: Object.fromEntries(servers.map(({ name, memory }) => [name, memory()])), missing };
  } finally {
    for (const server of servers) await server.stop();
    await rm(folder, { recursive: true, force: true });
  }
}
