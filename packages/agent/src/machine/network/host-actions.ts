import { execFile } from 'node:child_process';
import { delimiter } from 'node:path';

export interface CommandResult {
  /** Exit code. */
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * What the agent does to the machine itself, in place of doing it: whoever runs an agent decides whether, and where,
 * that happens. The command has the real machine; tests have a network namespace of their own.
 */
export interface HostActions {
  /**
   * Runs a program to its end, at most `timeoutMs`.
   *
   * @throws the system's error when it could not be started (`ENOENT`: no such program) or did not end in time
   */
  run(program: string, words: readonly string[], timeoutMs: number): Promise<CommandResult>;
}

/** Where system programs stand, which PATH often lacks. */
const systemFolders = ['/usr/local/sbin', '/usr/sbin', '/sbin', '/usr/bin', '/bin'];

/**
 * Acts on this machine. `launch` are words before each program, such as `nsenter --net=...`, to act in another
 * namespace of it.
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
