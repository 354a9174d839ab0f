import { execFile } from 'node:child_process';

/** Environment of programs; independent of the environment of this process. */
export const toolEnvironment = { PATH: '/usr/bin:/bin:/usr/sbin:/sbin:/usr/local/bin:/usr/local/sbin', LC_ALL: 'C' };

/** Runs a program; undefined on success, otherwise its error output. */
export function tryTool(name: string, args: readonly string[], signal?: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { env: toolEnvironment, maxBuffer: 1 << 20, ...(signal && { signal }) };
    execFile(name, args, options, (error, _stdout, stderr) => {
      resolve(error === null ? undefined : stderr.trim().split('\n').at(-1) || error.message);
    });
  });
}
