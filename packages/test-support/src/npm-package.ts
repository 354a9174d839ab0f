import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { cachedFolder } from './cached-folder.ts';

/**
 * Downloads a package of the npm registry once per machine and unpacks it, without its dependencies and without running
 * its scripts.
 *
 * @param integrity digest of the archive as in a lock file (`sha512-...`)
 * @param prepare called with the unpacked folder before it can be found by anybody
 * @returns the folder; undefined where the package cannot be had
 * @throws Error when the archive is not the one that was expected
 */
export function unpackNpmPackage(
  name: string,
  version: string,
  integrity: string,
  prepare: (folder: string) => void = () => {},
): string | undefined {
  return cachedFolder(`${name.replace(/[^a-z0-9]+/gi, '-')}-${version}`, (folder) => {
    const archive = pack(`${name}@${version}`, folder);
    if (archive === undefined) return false;
    const digest = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
    if (digest !== integrity) throw new Error(`${name}@${version} has the digest ${digest} instead of ${integrity}`);
    execFileSync('tar', ['-xzf', archive, '-C', folder, '--strip-components=1'], { stdio: 'ignore' });
    rmSync(archive);
    prepare(folder);
    return true;
  });
}

function pack(spec: string, folder: string): string | undefined {
  try {
    const args = ['pack', spec, '--pack-destination', folder, '--silent'];
    const options = {
      cwd: folder,
      timeout: 240_000,
      stdio: ['ignore', 'pipe', 'ignore'] as ['ignore', 'pipe', 'ignore'],
    };
    return join(folder, execFileSync('npm', args, options).toString().trim().split('\n').at(-1) ?? '');
  } catch {
    return undefined;
  }
}
