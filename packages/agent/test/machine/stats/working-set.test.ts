import { mkdir, writeFile } from 'node:fs/promises';
import { totalmem } from 'node:os';
import { dirname, join } from 'node:path';
import { temporaryDirectory } from '@keelson/test-support';
import test from 'ava';
import { localFiles } from '../../../src/machine/host/local-files.ts';
import { machineUsage, workingSetBytes } from '../../../src/machine/stats/node-usage.ts';

const meminfo =
  'MemTotal:        1000 kB\nMemFree:          300 kB\nInactive:         200 kB\nInactive(file):   150 kB\n';
const cases: readonly (readonly [title: string, files: Readonly<Record<string, string>>, bytes: number])[] = [
  [
    'cgroup v1: usage less total_inactive_file, which counts those below too',
    {
      'cgroup/memory/memory.usage_in_bytes': '5000\n',
      'cgroup/memory/memory.stat': 'inactive_file 7\ntotal_cache 9\ntotal_inactive_file 1500\n',
    },
    3500,
  ],
  [
    'cgroup v2 of a container: memory.current less inactive_file',
    { 'cgroup/memory.current': '5000\n', 'cgroup/memory.stat': 'anon 3\ninactive_file 2000\n' },
    3000,
  ],
  [
    'the topmost cgroup v2, which has no usage: what is not free, less inactive_file',
    { 'cgroup/memory.stat': 'anon 3\ninactive_file 102400\n', meminfo },
    600 * 1024,
  ],
  ['without cgroups of memory: that of /proc/meminfo', { meminfo }, 550 * 1024],
  ['never less than nothing', { 'cgroup/memory.current': '5\n', 'cgroup/memory.stat': 'inactive_file 2000\n' }, 0],
];
for (const [title, files, bytes] of cases) {
  test(`working set: ${title}`, async (t) => {
    const root = await temporaryDirectory(t);
    for (const [path, text] of Object.entries(files)) {
      await mkdir(dirname(join(root, path)), { recursive: true });
      await writeFile(join(root, path), text);
    }
    t.is(await workingSetBytes({ cgroups: join(root, 'cgroup'), meminfo: join(root, 'meminfo') }), bytes);
  });
}

test('missing memory information is an error', async (t) => {
  const root = await temporaryDirectory(t);
  await t.throwsAsync(workingSetBytes({ cgroups: root, meminfo: join(root, 'meminfo') }), { code: 'ENOENT' });
});

test('this machine has a working set, and disks that are identified by device', async (t) => {
  const usage = machineUsage(localFiles);
  if (process.platform === 'linux') {
    const bytes = await usage.workingSetBytes();
    t.true(bytes > 0 && bytes <= totalmem(), String(bytes));
  }
  const [one, same] = [await usage.disk(await temporaryDirectory(t)), await usage.disk(await temporaryDirectory(t))];
  t.true(one.capacityBytes > 0);
  t.is(one.device, same.device);
});
