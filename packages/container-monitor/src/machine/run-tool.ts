import { execFile } from 'node:child_process';
import { tool, toolPath } from './tools.ts';

/** Runs a program of the machine; undefined on success, otherwise the last line of its error output. */
export function tryTool(name: string, args: readonly string[], signal?: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { env: { PATH: toolPath, LC_ALL: 'C' }, maxBuffer: 1 << 20, ...(signal && { signal }) };
    execFile(tool(name), args, options, (error, _stdout, stderr) => {
      resolve(error === null ? undefined : stderr.trim().split('\n').at(-1) || error.message);
    });
  });
}
