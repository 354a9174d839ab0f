import { execFile } from 'node:child_process';

/** Environment of helpers, whatever the caller's is. */
export const toolEnvironment = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin', LC_ALL: 'C' };

/** Runs a program of the machine to its end; undefined when it succeeded, else what it said. */
export function tryTool(name: string, args: readonly string[], signal?: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { env: toolEnvironment, maxBuffer: 1 << 20, ...(signal && { signal }) };
    execFile(name, args, options, (error, _stdout, stderr) => {
      resolve(error === null ? undefined : stderr.trim().split('\n').at(-1) || error.message);
    });
  });
}
