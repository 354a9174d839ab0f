import { loadOptions } from '../config/load-options.ts';
import { UsageError } from '../config/usage-error.ts';
import { keelsonVersion } from '../version.ts';
import { helpText } from './help.ts';
import { startServer } from './serve.ts';
import { startNode } from './start-node.ts';

/** Where a command reads and writes; a test gives its own. */
export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly stdout: (text: string) => void;
  readonly stderr: (text: string) => void;
  /** Resolves when the process is told to end. */
  readonly terminated: Promise<void>;
}

export const ExitCode = { Ok: 0, Failed: 1, Usage: 2 } as const;
export type ExitCode = (typeof ExitCode)[keyof typeof ExitCode];

const helpWords = ['help', '--help', '-h'];

/** Runs one command to its end. Mistakes of the caller are one sentence on stderr and exit code 2, never a stack trace. */
export async function main(words: readonly string[], io: CommandIo): Promise<ExitCode> {
  const [command, ...rest] = words;
  try {
    if (command === undefined || words.some((word) => helpWords.includes(word))) {
      io.stdout(helpText());
      return command === undefined ? ExitCode.Usage : ExitCode.Ok;
    }
    if (command === 'version' || command === '--version') {
      io.stdout(`keelson ${keelsonVersion}\n`);
      return ExitCode.Ok;
    }
    if (command !== 'serve' && command !== 'up')
      throw new UsageError(`unknown command ${JSON.stringify(command)}; use serve, up, version or help`);
    const options = await loadOptions(rest, io.env);
    if (command === 'serve' && options.agent === true) throw new UsageError('--agent is for keelson up; serve runs no node');
    const withAgent = command === 'up' && options.agent !== false;
    const server = await startServer(options, withAgent);
    io.stdout(`keelson: serving on ${server.url}\n`);
    const node = withAgent ? startNode(options, server) : undefined;
    await io.terminated;
    await node?.then(({ stop }) => stop());
    await server.stop();
    return ExitCode.Ok;
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
