import { execFile } from 'node:child_process';
import { delimiter } from 'node:path';

export interface CommandResult {
  /** Exit code. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * Actions of the agent on the machine. The program that embeds an agent decides whether and where they run: the command
 * uses the real machine, tests use a separate network namespace.
 */
export interface HostActions {
  /**
   * Runs a program and waits until it exits.
   *
   * @param timeoutMs time limit
   * @throws the system error when the program could not be started (`ENOENT`: it does not exist) or exceeded the limit
   */
  run(program: string, words: readonly string[], timeoutMs: number): Promise<CommandResult>;
}

/** Directories of system programs, which PATH often lacks. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/bin', '/bin'];

/**
 * Runs programs on this machine. `launch` precedes each program, such as `nsenter --net=...` to use another network
 * namespace.
 */
export function systemHost(launch: readonly string[] = []): HostActions {
  const path = [process.env['PATH'] ?? '', ...systemFolders].join(delimiter);
  return {
    run(program, words, timeoutMs) {
      const [first = program, ...rest] = [...launch, program, ...words];
      const options = { env: { ...process.env, PATH: path }, timeout: timeoutMs, killSignal: 'SIGKILL' as const };
      return new Promise((resolve, reject) => {
        execFile(first, rest, options, (error, stdout, stderr) => {
          if (error === null) resolve({ code: 0, stdout, stderr });
          else if (typeof error.code === 'number') resolve({ code: error.code, stdout, stderr });
          else reject(error);
        });
      });
    },
  };
}
