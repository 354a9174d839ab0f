// Removes everything that a build makes, so that no output of a deleted source remains.
import { existsSync, readdirSync, rmSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

export function cleanOutput(root) {
  const groups = ['packages', 'adapters', 'examples'].filter((group) => existsSync(`${root}${group}`));
  const workspaces = groups.flatMap((group) =>
    readdirSync(`${root}${group}`, { withFileTypes: true })
      .filter((entry) => entry.isDirectory())
      .map(({ name }) => `${group}/${name}`),
  );
  for (const workspace of [...workspaces, 'benchmarks', 'site', 'test']) {
    rmSync(`${root}${workspace}/dist`, { recursive: true, force: true });
  }
}

if (process.argv[1] === fileURLToPath(import.meta.url)) cleanOutput(fileURLToPath(new URL('..', import.meta.url)));
