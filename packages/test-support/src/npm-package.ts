import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** Tests that run as root start servers as another user, who cannot enter the home of root. */
const cacheFolder =
  process.getuid?.() === 0
    ? '/var/cache/keelson-test'
    : join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'keelson-test');

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
  const target = join(cacheFolder, `${name.replace(/[^a-z0-9]+/gi, '-')}-${version}`);
  if (existsSync(target)) return target;
  // Test files may unpack the same package at the same time, so that the complete folder is moved to its name.
  const unfinished = `${target}.${process.pid}-${Date.now()}`;
  mkdirSync(unfinished, { recursive: true });
  try {
    const archive = pack(`${name}@${version}`, unfinished);
    if (archive === undefined) return undefined;
    const digest = `sha512-${createHash('sha512').update(readFileSync(archive)).digest('base64')}`;
    if (digest !== integrity) throw new Error(`${name}@${version} has the digest ${digest} instead of ${integrity}`);
    execFileSync('tar', ['-xzf', archive, '-C', unfinished], { stdio: 'ignore' });
    const unpacked = join(unfinished, 'package');
    prepare(unpacked);
    if (!existsSync(target)) renameSync(unpacked, target);
    return target;
  } finally {
    rmSync(unfinished, { recursive: true, force: true });
  }
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
