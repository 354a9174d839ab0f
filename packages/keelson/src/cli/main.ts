import { flagsHelp, UsageError } from '@keelson/core/internal';

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

interface Command {
  /** Whether the command has a help text of its own. */
  readonly hasOwnHelp?: boolean;
  /** Resolves to false for exit code 1 without an error, as when a permission is denied or an object is damaged. */
  run(args: readonly string[], io: CommandIo): Promise<boolean | void>;
}

/** Each command loads what it needs: most of them do not need the server. */
const commands: Readonly<Record<string, Command>> = {
  up: { run: async (args, io) => (await import('./run-server.ts')).up(args, io) },
  down: {
    hasOwnHelp: true,
    run: async (args, { env, stdout }) => (await import('./down.ts')).downCommand(args, env, stdout),
  },
  serve: { run: async (args, io) => (await import('./run-server.ts')).serve(args, io) },
  controllers: {
    hasOwnHelp: true,
    run: async (args, io) => (await import('./controllers.ts')).controllersCommand(args, io),
  },
  proxy: { hasOwnHelp: true, run: async (args, io) => (await import('./proxy.ts')).proxyCommand(args, io) },
  kinds: { hasOwnHelp: true, run: async (args, io) => (await import('./kinds.ts')).kindsCommand(args, io) },
  envtest: {
    hasOwnHelp: true,
    run: async (args, io) => {
      const server = await (await import('./envtest.ts')).envtestCommand(args, io);
      if (server === undefined) return;
      await (await import('./run-server.ts')).runServer(server.options, undefined, io, server.credentials);
    },
  },
  bench: {
    hasOwnHelp: true,
    run: async (args, io) => {
      const serve = [process.execPath, process.argv[1] ?? ''] as const;
      return (await import('@keelson/bench')).benchCommand(args, { ...io, serve });
    },
  },
  verify: {
    run: async (args, { env, stdout }) => {
      const { loadOptions } = await import('../config/load-options.ts');
      return (await import('./verify.ts')).verifyStores(await loadOptions(args, env), stdout);
    },
  },
  audit: {
    hasOwnHelp: true,
    run: async (args, { env, stdout }) => (await import('./audit.ts')).searchAudit(args, env, stdout),
  },
  encrypt: {
    hasOwnHelp: true,
    run: async (args, { env, stdout }) => (await import('./encrypt.ts')).encrypt(args, env, stdout),
  },
  user: {
    hasOwnHelp: true,
    run: async (args, { env, stdout }) => (await import('./user.ts')).userCommand(args, env, stdout),
  },
  'can-i': {
    hasOwnHelp: true,
    run: async (args, { env, stdout, stderr }) => (await import('./can-i.ts')).canICommand(args, env, stdout, stderr),
  },
  token: { run: async (args, { stdout }) => (await import('./token.ts')).tokenCommand(args, stdout) },
  cert: { run: async (args, { stdout }) => (await import('./certificates.ts')).certificatesCommand(args, stdout) },
  version: {
    run: async (_, { stdout }) => stdout(`keelson ${(await import('../base/version.ts')).keelsonVersion}\n`),
  },
};

const helpArguments = ['help', '--help', '-h'];

/** Runs one command. Usage errors are one sentence on stderr and exit code 2, without a stack trace. */
export async function main(words: readonly string[], io: CommandIo): Promise<ExitCode> {
  const [given, ...args] = words;
  const name = given === '--version' ? 'version' : given;
  const command = name !== undefined && Object.hasOwn(commands, name) ? commands[name] : undefined;
  try {
    if (name === undefined || (!command?.hasOwnHelp && words.some((word) => helpArguments.includes(word)))) {
      io.stdout(await helpText());
      return name === undefined ? ExitCode.Usage : ExitCode.Ok;
    }
    if (command === undefined)
      throw new UsageError(`unknown command ${JSON.stringify(name)}; use ${Object.keys(commands).join(', ')} or help`);
    return (await command.run(args, io)) === false ? ExitCode.Failed : ExitCode.Ok;
  } catch (error) {
    io.stderr(`keelson: ${describe(error)}\n`);
    return error instanceof UsageError ? ExitCode.Usage : ExitCode.Failed;
  }
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
async function helpText(): Promise<string> {
  const { optionTable } = await import('../config/options.ts');
  return usage + flagsHelp(optionTable);
}
