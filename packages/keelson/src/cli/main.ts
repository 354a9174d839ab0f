import { flagsHelp, UsageError } from '@keelson/core/internal';
import { systemClock } from '@keelson/core/runtime';
import { createPinoLogger } from '@keelson/pino-logger';
import { settledWithin } from '../base/settled-within.ts';
import { keelsonVersion } from '../base/version.ts';
import { loadOptions } from '../config/load-options.ts';
import { optionTable, type ServerOptions } from '../config/options.ts';
import { routeLibraryOutput } from '../observe/library-output.ts';
import type { Credentials } from '../tls/credentials.ts';
import { recordProcess } from './running-process.ts';
import { startServer } from './serve.ts';
import { claimServiceRange } from './service-range.ts';
import { type NodeCounts, startNodes } from './start-node.ts';
import { startServices } from './start-services.ts';
import { startVolumes } from './start-volumes.ts';
import { welcome } from './welcome.ts';

/** Environment and streams of a command. */
export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Resolves when the process has received SIGTERM or SIGINT. */
  readonly terminated: Promise<void>;
}

export const ExitCode = { Ok: 0, Failed: 1, Usage: 2 } as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

/** Timeout for stopping a server: 5 s for running requests, the rest for controllers and stores. */
const stopMs = 20_000;

const helpArguments = ['help', '--help', '-h'];

/** Runs one command. Usage errors are one sentence on stderr and exit code 2, without a stack trace. */
export async function main(words: readonly string[], io: CommandIo): Promise<ExitCode> {
  const [command, ...rest] = words;
  try {
    // Loaded on demand: a server does not need the commands that are clients.
    if (command === 'user') {
      const { userCommand } = await import('./user.ts');
      await userCommand(rest, io.env, io.stdout);
      return ExitCode.Ok;
    }
    if (command === 'can-i') {
      const { canICommand } = await import('./can-i.ts');
      return (await canICommand(rest, io.env, io.stdout, io.stderr)) ? ExitCode.Ok : ExitCode.Failed;
    }
    if (command === 'kinds') {
      await (await import('./kinds.ts')).kindsCommand(rest, io);
      return ExitCode.Ok;
    }
    if (command === 'proxy') {
      await (await import('./proxy.ts')).proxyCommand(rest, io);
      return ExitCode.Ok;
    }
    if (command === 'controllers') {
      await (await import('./controllers.ts')).controllersCommand(rest, io);
      return ExitCode.Ok;
    }
    if (command === 'down') {
      await (await import('./down.ts')).downCommand(rest, io.env, io.stdout);
      return ExitCode.Ok;
    }
    if (command === 'audit') {
      const { searchAudit } = await import('./audit.ts');
      return (await searchAudit(rest, io.env, io.stdout)) ? ExitCode.Ok : ExitCode.Failed;
    }
    if (command === 'envtest') {
      const server = await (await import('./envtest.ts')).envtestCommand(rest, io);
      return server === undefined ? ExitCode.Ok : await serve(server.options, undefined, io, server.credentials);
    }
    if (command === 'bench') {
      const { benchCommand } = await import('@keelson/bench');
      const serve = [process.execPath, process.argv[1] ?? ''] as const;
      return (await benchCommand(rest, { ...io, serve })) ? ExitCode.Ok : ExitCode.Failed;
    }
    if (command === 'encrypt') {
      const { encrypt } = await import('./encrypt.ts');
      return (await encrypt(rest, io.env, io.stdout)) ? ExitCode.Ok : ExitCode.Failed;
    }
    if (command === undefined || words.some((word) => helpArguments.includes(word))) {
      io.stdout(helpText());
      return command === undefined ? ExitCode.Usage : ExitCode.Ok;
    }
    if (command === 'version' || command === '--version') {
      io.stdout(`keelson ${keelsonVersion}\n`);
      return ExitCode.Ok;
    }
    if (command === 'token' || command === 'cert') {
      // Loaded on demand, because only these commands require them.
      if (command === 'token') await (await import('./token.ts')).tokenCommand(rest, io.stdout);
      else await (await import('./certificates.ts')).certificatesCommand(rest, io.stdout);
      return ExitCode.Ok;
    }
    if (command !== 'serve' && command !== 'up' && command !== 'verify')
      throw new UsageError(
        `unknown command ${JSON.stringify(command)}; use up, down, serve, controllers, proxy, kinds, envtest, bench, verify, audit, encrypt, user, can-i, token, cert, version or help`,
      );
    const options = await loadOptions(rest, io.env);
    if (command === 'verify') {
      // Loaded on demand, because only this command requires it.
      const { verifyStores } = await import('./verify.ts');
      return (await verifyStores(options, io.stdout)) ? ExitCode.Ok : ExitCode.Failed;
    }
    if (command === 'up') {
      if (options.workers > 0)
        throw new UsageError('--workers is an option of keelson serve; keelson up serves in its main thread');
      const { agent = true, nodes = 1, fakeNodes = 0, controllers = ['*'] } = options;
      return await serve({ ...options, controllers }, { nodes: agent ? nodes : 0, fakeNodes }, io);
    }
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
    return await serve(options, undefined, io);
  } catch (error) {
    io.stderr(`keelson: ${describe(error)}\n`);
    return error instanceof UsageError ? ExitCode.Usage : ExitCode.Failed;
  }
}

/** Serves until the process is terminated, which is possible at any point of the start. */
async function serve(
  options: ServerOptions,
  nodes: NodeCounts | undefined,
  io: CommandIo,
  credentials?: Credentials,
): Promise<ExitCode> {
  const restoreOutput = routeLibraryOutput(createPinoLogger(options.logLevel), systemClock);
  try {
    return await serveUntilTerminated(options, nodes, io, credentials);
  } finally {
    restoreOutput();
  }
}

async function serveUntilTerminated(
  given: ServerOptions,
  counts: NodeCounts | undefined,
  io: CommandIo,
  credentials: Credentials | undefined,
): Promise<ExitCode> {
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
  if (server === undefined) return ExitCode.Ok;
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
  return ExitCode.Ok;
}

function describe(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, address, port } = error as NodeJS.ErrnoException & { address?: string; port?: number };
  if (code === 'EADDRINUSE')
    return `${address}:${port} is in use; stop the other process or choose another address with --listen`;
  if (code === 'EACCES') return `no permission: ${error.message}`;
  return error.message;
}

const usage = `Keelson, a control plane for Node.

  keelson up     [options]   run a small cluster in one process: an API server, all controllers and one node
  keelson serve  [options]   run an API server and the controllers that it needs on the configured storage
  keelson down   [--data DIR] stop everything that keelson up has started: the server, its nodes and their pods
  keelson controllers [options]
                             run controllers and the scheduler as clients of a running server; see --help
  keelson kinds export MODULE...  write kinds of modules as CustomResourceDefinitions; import FILE... does the reverse
  keelson proxy [options]    serve services on a node as a client of a running server; see --help
  keelson verify [options]   check every object in the storage; exit code 1 when an object is damaged.
                             No server may use the storage at the same time
  keelson envtest [DIR]      write executables with which Go suites that use envtest run on Keelson
  keelson bench  [options]   measure storages and running servers side by side; see keelson bench --help
  keelson audit  [filters]   search the audit log: who did what; keelson audit --help lists the filters
  keelson encrypt status     report how the objects of a running server are encrypted; encrypt rotate rewrites them
  keelson user add NAME      create a kubeconfig for a user, and grant a role; see keelson user --help
  keelson can-i VERB WHAT    check a permission and name the rule that grants it; see keelson can-i --help
  keelson token create [--ttl DURATION] [--description TEXT] [--data DIR]
  keelson token list | delete ID [--data DIR]
                             bootstrap tokens, with which nodes join a running server
  keelson cert list [--data DIR]
                             certificates of a data directory with their names, purposes and ends
  keelson version
  keelson help

Options (command line > KEELSON_* > config file > default):
`;

/** The text of `keelson help`, generated from the option table. */
export function helpText(): string {
  return usage + flagsHelp(optionTable);
}
