import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import test, { type ExecutionContext } from 'ava';
import { scratchDirectory } from '../../src/agent-node.ts';

const child = fileURLToPath(new URL('../../src/short-node.js', import.meta.url));
const asRoot = (process.platform === 'linux' && process.getuid?.() === 0) || process.env['CI'] ? test : test.skip;

interface Found {
  readonly evicted: readonly { readonly pod: string; readonly message: string }[];
  readonly phases: Readonly<Record<string, string>>;
}

const manifest = (name: string, script: string): string =>
  JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: {
      hostNetwork: true,
      hostPID: true,
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: [
        {
          ...{ name: 'main', image: 'host', imagePullPolicy: 'Never', command: ['/bin/sh', '-c', script] },
          volumeMounts: [{ name: 'data', mountPath: '/mnt' }],
        },
      ],
    },
  });

/**
 * Runs an agent with these two pods, whose directory is a disk of 64 MB with few inodes in a mount namespace of its
 * own.
 */
async function onSmallDisk(
  t: ExecutionContext,
  scripts: Readonly<Record<string, string>>,
  words: readonly string[],
): Promise<Found> {
  t.timeout(90_000);
  const { dir, remove } = await scratchDirectory();
  t.teardown(remove);
  const [disk, manifests] = [join(dir, 'disk'), join(dir, 'manifests')];
  await Promise.all([mkdir(disk), mkdir(manifests)]);
  for (const [name, script] of Object.entries(scripts))
    await writeFile(join(manifests, `${name}.json`), manifest(name, script));
  const mount = 'disk=$1; shift; mount -t tmpfs -o size=64m,nr_inodes=2000 tmpfs "$disk" && exec "$@"';
  const command = [process.execPath, child, disk, manifests, ...words];
  const agent = spawn('unshare', ['--mount', '--propagation', 'private', 'sh', '-c', mount, 'sh', disk, ...command], {
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.teardown(() => agent.kill('SIGKILL'));
  let stdout = '';
  let stderr = '';
  agent.stdout.on('data', (text) => (stdout += String(text)));
  agent.stderr.on('data', (text) => (stderr += String(text)));
  const [code] = await once(agent, 'close');
  if (code !== 0) throw new Error(`exit code ${code}: ${stderr}`);
  return JSON.parse(stdout) as Found;
}

const quiet = 'exec sleep 600';

for (const { title, script, words, message } of [
  {
    title: 'a process that fills the disk is evicted and its files are removed; other pods remain',
    script: 'head -c 40000000 /dev/zero > /mnt/file; exec sleep 600',
    words: ['--eviction-hard=nodefs.available<50%'],
    message: /^The node was low on resource: nodefs\. Threshold quantity: 32Mi, available: /,
  },
  {
    title: 'a process that creates too many files is evicted and its files are removed; other pods remain',
    script: 'i=0; while [ $i -lt 1500 ]; do : > /mnt/$i; i=$((i+1)); done; exec sleep 600',
    words: ['--eviction-hard=nodefs.inodesFree<30%'],
    message: /^The node was low on resource: nodefsInodes\. Threshold quantity: 600, available: /,
  },
  {
    title: 'a process that uses more memory than is available is evicted; other pods remain',
    script: `x=$(head -c 30000000 /dev/zero | tr '\\0' x); sleep 600`,
    // Whatever else the machine has to do.
    words: ['--enforce-node-allocatable=pods', `--system-reserved=memory=${totalmem() - 24 * 2 ** 20}`],
    message:
      /^The node was low on resource: memory\. Threshold quantity: 0, available: -.* Container main was using .*, request is 0, /,
  },
]) {
  asRoot(title, async (t) => {
    const { evicted, phases } = await onSmallDisk(t, { quiet, writer: script.replaceAll('$', '$$$$') }, words);
    t.deepEqual(phases, { 'quiet-short': 'Running', 'writer-short': 'Failed' });
    t.deepEqual(
      evicted.map(({ pod }) => pod),
      ['writer-short'],
    );
    t.regex(evicted[0]?.message ?? '', message);
  });
}
