import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { dockerArchive, tarOf } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { scratchDirectory } from '../../src/agent-node.ts';

const child = fileURLToPath(new URL('../../src/full-disk-node.js', import.meta.url));
const asRoot = (process.platform === 'linux' && process.getuid?.() === 0) || process.env['CI'] ? test : test.skip;

interface Found {
  readonly before: number;
  readonly after: number;
  readonly left: readonly string[];
  readonly events: readonly string[];
}

/** Archives of three images of 6 MB. */
async function imageSource(dir: string): Promise<string> {
  const source = join(dir, 'source');
  await mkdir(source);
  for (const name of ['first', 'second', 'used']) {
    const root = join(dir, `${name}-root`);
    await mkdir(root);
    await writeFile(join(root, 'content'), randomBytes(6 << 20));
    tarOf(root, join(dir, `${name}-layer.tar`));
    dockerArchive(join(dir, `${name}-scratch`), join(source, `${name}.tar`), `test.local/${name}:1`, [
      join(dir, `${name}-layer.tar`),
    ]);
    await rm(root, { recursive: true });
  }
  return source;
}

/**
 * Runs an agent whose directory is a disk of 36 MB in a mount namespace of its own, until so many of its images are
 * left.
 */
async function onSmallDisk(t: ExecutionContext, left: number, words: readonly string[]): Promise<Found> {
  t.timeout(60_000);
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const source = await imageSource(dir);
  const disk = join(dir, 'disk');
  await mkdir(disk);
  const script = 'disk=$1; shift; mount -t tmpfs -o size=36m tmpfs "$disk" && exec "$@"';
  const command = [process.execPath, child, disk, source, String(left), ...words];
  const process_ = spawn(
    'unshare',
    ['--mount', '--propagation', 'private', 'sh', '-c', script, 'sh', disk, ...command],
    {
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  t.teardown(() => process_.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  process_.stdout.on('data', (chunk) => (stdout += String(chunk)));
  process_.stderr.on('data', (chunk) => (stderr += String(chunk)));
  const [code] = await once(process_, 'close');
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
  return JSON.parse(stdout) as Found;
}

asRoot(
  '--image-gc-high-threshold: on a half full disk the oldest unused image is removed until --image-gc-low-threshold',
  async (t) => {
    const { before, after, left, events } = await onSmallDisk(t, 2, [
      '--image-gc-high-threshold=40',
      '--image-gc-low-threshold=39',
      '--minimum-image-ttl-duration=0',
    ]);
    t.true(before >= 50, String(before));
    t.true(after < 39, String(after));
    t.deepEqual(left, ['test.local/second:1', 'test.local/used:1']);
    t.deepEqual(events, []);
  },
);

asRoot('an image in use is kept on a full disk, which is reported by an event', async (t) => {
  const { after, left, events } = await onSmallDisk(t, 0, [
    '--image-gc-high-threshold=10',
    '--image-gc-low-threshold=5',
    '--minimum-image-ttl-duration=0',
  ]);
  t.deepEqual(left, ['test.local/used:1']);
  t.true(after >= 16, String(after));
  t.is(events[0], 'Warning FreeDiskSpaceFailed');
});
