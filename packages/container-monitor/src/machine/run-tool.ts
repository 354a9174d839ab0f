import { execFile } from 'node:child_process';
import { tool, toolPath } from './tools.ts';

/** Runs a helper to its end; undefined when it succeeded, else what it said. */
export function tryTool(name: string, args: readonly string[], signal?: AbortSignal): Promise<string | undefined> {
  return new Promise((resolve) => {
    const options = { env: { PATH: toolPath, LC_ALL: 'C' }, maxBuffer: 1 << 20, ...(signal && { signal }) };
    execFile(tool(name), args, options, (error, _stdout, stderr) => {
      resolve(error === null ? undefined : stderr.trim().split('\n').at(-1) || error.message);
    });
  });
}
