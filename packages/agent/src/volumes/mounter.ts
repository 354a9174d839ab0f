import { execFile } from 'node:child_process';
import { readFile } from 'node:fs/promises';
import { promisify } from 'node:util';

const run = promisify(execFile);

/** Mounts of the machine that volumes need. */
export interface Mounter {
  /** A RAM file system at an existing directory; harmless when there is one already. */
  tmpfs(path: string, sizeBytes: number | undefined): Promise<void>;
  /** Takes away every mount at or below a directory. */
  unmountBelow(path: string): Promise<void>;
}

/** Mounts by the programs of the system; `mountPath` is used in place of `mount`. */
export function systemMounter(mountPath = 'mount'): Mounter {
  const mountsBelow = async (path: string) => {
    const table = await readFile('/proc/self/mountinfo', 'utf8').catch(() => '');
    return table
      .split('\n')
      .map((line) => unescapeOctal(line.split(' ')[4] ?? ''))
      .filter((point) => point === path || point.startsWith(`${path}/`));
  };
  return {
    async tmpfs(path, sizeBytes) {
      if ((await mountsBelow(path)).includes(path)) return;
      await run(mountPath, [
        '-t',
        'tmpfs',
        '-o',
        sizeBytes === undefined ? 'mode=0777' : `mode=0777,size=${sizeBytes}`,
        'tmpfs',
        path,
      ]);
    },
    async unmountBelow(path) {
      // The innermost first.
      for (const point of (await mountsBelow(path)).sort((a, b) => b.length - a.length)) await run('umount', [point]);
    },
  };
}

/** For machines and tests where nothing may be mounted. */
export const noMounter: Mounter = {
  tmpfs: () => Promise.reject(new Error('this agent may not mount')),
  unmountBelow: () => Promise.resolve(),
};

function unescapeOctal(text: string): string {
  return text.replace(/\\([0-7]{3})/g, (_, digits: string) => String.fromCharCode(Number.parseInt(digits, 8)));
}
