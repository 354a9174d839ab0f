import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdirSync, readdirSync, readFileSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { findProgram } from './debian-packages.ts';

const toolsFolder = fileURLToPath(new URL('../../../../test/tools', import.meta.url));
const cacheFolder = join(process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache'), 'keelson-test');

/** Digest of the sources of a tool: changed sources make another program. */
function digestOf(folder: string): string {
  const hash = createHash('sha256');
  for (const name of readdirSync(folder).sort()) hash.update(name).update(readFileSync(join(folder, name)));
  return hash.digest('hex').slice(0, 12);
}

/**
 * Compiles `test/tools/{name}` from its sources and the published Go modules that it names, once per machine and state
 * of the sources.
 *
 * @param main the package of the program, when it is one of the modules instead of the sources here
 * @returns the path of the program; undefined where there is no Go, or where it cannot be built.
 */
export function buildGoTool(name: string, main = '.'): string | undefined {
  return compile(name, ['build'], main);
}

/** Compiles the Go test in `test/tools/{name}` to a program that runs its tests. Otherwise as {@link buildGoTool}. */
export function buildGoTest(name: string): string | undefined {
  return compile(name, ['test', '-c'], '.');
}

function compile(name: string, command: readonly string[], main: string): string | undefined {
  const folder = join(toolsFolder, name);
  const target = join(cacheFolder, `${name}-${digestOf(folder)}`);
  if (existsSync(target)) return target;
  if (spawnSync('go', ['version'], { stdio: 'ignore' }).status !== 0) return undefined;
  mkdirSync(cacheFolder, { recursive: true });
  // A program with this name is complete at any time: it may be in use by another process.
  const unfinished = `${target}.${process.pid}-${Date.now()}`;
  const go = ['go', ...command, '-o', unfinished, main];
  const [program = '', ...args] = findProgram('flock') === undefined ? go : oneAtATime(target, go);
  const built = spawnSync(program, args, { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'], timeout: 900_000 });
  if (built.status === 0 && existsSync(unfinished)) renameSync(unfinished, target);
  rmSync(unfinished, { force: true });
  return existsSync(target) ? target : undefined;
}

/**
 * One build uses all cores, and the next one finds what both have in common in Go's cache. A build waits for a running
 * one and then checks again, since that may have created the same program.
 */
function oneAtATime(target: string, go: readonly string[]): readonly string[] {
  return ['flock', join(cacheFolder, 'lock'), 'sh', '-c', 'test -e "$0" || exec "$@"', target, ...go];
}
