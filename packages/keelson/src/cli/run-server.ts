import { UsageError } from '@keelson/core/internal';
import { systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import { settledWithin } from '../base/settled-within.ts';
import { loadOptions } from '../config/load-options.ts';
import type { ServerOptions } from '../config/options.ts';
import { routeLibraryOutput } from '../observe/library-output.ts';
import type { Credentials } from '../tls/credentials.ts';
import type { CommandIo } from './main.ts';
import { recordProcess } from './running-process.ts';
import { startServer } from './serve.ts';
import { claimServiceRange } from './service-range.ts';
import { type NodeCounts, startNodes } from './start-node.ts';
import { startServices } from './start-services.ts';
import { startVolumes } from './start-volumes.ts';
import { welcome } from './welcome.ts';

/** Timeout for stopping a server: 5 s for running requests, the rest for controllers and stores. */
const stopMs = 20_000;

/** Runs `keelson up`. @throws UsageError */
export async function up(args: readonly string[], io: CommandIo): Promise<void> {
  const options = await loadOptions(args, io.env);
  if (options.workers > 0)
    throw new UsageError('--workers is an option of keelson serve; keelson up serves in its main thread');
  const { agent = true, nodes = 1, fakeNodes = 0, controllers = ['*'] } = options;
  await runServer({ ...options, controllers }, { nodes: agent ? nodes : 0, fakeNodes }, io);
}

/** Runs `keelson serve`. @throws UsageError */
export async function serve(args: readonly string[], io: CommandIo): Promise<void> {
  const options = await loadOptions(args, io.env);
  for (const [name, value] of Object.entries({
    '--agent': options.agent,
    '--nodes': options.nodes,
    '--fake-nodes': options.fakeNodes,
    '--service-proxy': options.serviceProxy,
    '--ingress-listen': options.ingressListen,
    '--cluster-dns-listen': options.clusterDnsListen,
  }))
    if (value !== undefined && value !== false && value !== 0)
      throw new UsageError(`${name} is an option of keelson up; keelson serve runs no node`);
  await runServer(options, undefined, io);
}

/** Serves until the process is terminated, which is possible at any point of the start. */
export async function runServer(
  options: ServerOptions,
  nodes: NodeCounts | undefined,
  io: CommandIo,
  credentials?: Credentials,
): Promise<void> {
  const restoreOutput = routeLibraryOutput(createPinoLogger(options.logLevel), systemClock);
  try {
    await serveUntilTerminated(options, nodes, io, credentials);
  } finally {
    restoreOutput();
  }
}

async function serveUntilTerminated(
  given: ServerOptions,
  counts: NodeCounts | undefined,
  io: CommandIo,
  credentials: Credentials | undefined,
): Promise<void> {
  const starting = new AbortController();
  const terminated = io.terminated.then(() => {
    starting.abort();
    return undefined;
  });
  const forgetProcess = counts && (await recordProcess(given.data));
  const withAgent = counts !== undefined && counts.nodes > 0;
  const range = counts && (await claimServiceRange(given, createPinoLogger(given.logLevel)));
  const options = range ? { ...given, serviceClusterIpRange: range.serviceClusterIpRange } : given;
  const server = await startServer(options, withAgent, starting.signal, credentials).catch((error: unknown) => {
    if (!starting.signal.aborted) throw error;
    return undefined;
  });
  if (server === undefined) return;
  io.stdout(`keelson: serving on ${server.url}\n`);
  const services = counts && (await startServices(options, server));
  if (counts !== undefined && options.logLevel !== 'silent')
    io.stderr(welcome(server, options.data, services?.ingressUrl));
  const volumes = counts && (await startVolumes(options, counts, server));
  const nodes = counts && startNodes(options, counts, server, services?.dns);
  const failure = await Promise.race([terminated, server.failed]);
  await nodes?.then(({ stop }) => stop());
  await volumes?.stop();
  await services?.stop();
  const stopped = await settledWithin(stopMs, server.stop());
  range?.release();
  await forgetProcess?.();
  if (failure !== undefined) throw failure;
  if (!stopped) throw new Error(`the server did not stop within ${stopMs / 1000} s; the process exits`);
}
