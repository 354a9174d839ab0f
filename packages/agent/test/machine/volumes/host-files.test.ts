import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdir, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { temporaryDirectory } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { runProgram } from '../../../src/base/run-program.ts';
import { enteredHost, type HostAccess, localHost } from '../../../src/machine/host/host-access.ts';
import { writeAtomically } from '../../../src/machine/volumes/atomic-writer.ts';
import { prepareHostPath, provideEmptyDir } from '../../../src/machine/volumes/local-volumes.ts';
import { systemMounter } from '../../../src/machine/volumes/mounter.ts';
import { resolveSubPath } from '../../../src/machine/volumes/sub-path.ts';
import { VolumeProblem } from '../../../src/machine/volumes/volume-problem.ts';
import { mayMount, mountNamespace } from '../../support/mount-namespace.ts';

interface Place {
  readonly host: HostAccess;
  readonly dir: string;
}

const asRoot = mayMount || process.env['CI'] ? test : test.skip;

const places: readonly (readonly [string, (t: ExecutionContext) => Promise<Place>, typeof test | typeof test.skip])[] =
  [
    ['of this process', async (t) => ({ host: localHost, dir: await temporaryDirectory(t) }), test],
    [
      'of another mount namespace (--containerized)',
      async (t) => {
        const dir = await temporaryDirectory(t);
        return { host: enteredHost(runProgram, await mountNamespace(t, dir)), dir };
      },
      asRoot,
    ],
  ];

const { signal } = new AbortController();

for (const [name, open, run] of places) {
  run(`files ${name}: directories, files, links and their attributes`, async (t) => {
    const { host, dir } = await open(t);
    const { files } = host;
    const at = (...parts: string[]) => join(dir, ...parts);
    t.true(await files.makeDirectory(at('a b/c'), 0o750));
    t.false(await files.makeDirectory(at('a b/c'), 0o750));
    const content = randomBytes(3000);
    await files.write(at('a b/f'), content, 0o640);
    t.true((await files.read(at('a b/f'))).equals(content));
    await files.makeFile(at('a b/f'), 0o600);
    await files.makeFile(at('a b/-e'), 0o600);
    t.true((await files.read(at('a b/f'))).equals(content), 'a file that is there stays as it is');
    await files.makeLink('f', at('a b/l'));
    t.deepEqual(
      (await files.list(at('a b'))).map(({ name: of, isDirectory }) => `${of}${isDirectory ? '/' : ''}`).sort(),
      ['-e', 'c/', 'f', 'l'],
    );
    t.like(await files.info(at('a b/f'), 'show'), { type: 'file', mode: 0o640 });
    t.like(await files.info(at('a b/l'), 'show'), { type: 'link' });
    t.like(await files.info(at('a b/l'), 'follow'), { type: 'file' });
    t.like(await files.info('/dev/null', 'follow'), { type: 'charDevice' });
    t.is(await files.info(at('none'), 'follow'), undefined);
    t.is(await files.readLink(at('a b/l')), 'f');
    t.is(await files.readLink(at('a b/f')), undefined);
    t.is(await files.realPath(at('a b/l')), at('a b/f'));
    await t.throwsAsync(files.realPath(at('none')));
    await files.changeMode(at('a b/f'), 0o2755);
    t.is((await files.info(at('a b/f'), 'show'))?.mode, 0o2755);
    await files.rename(at('a b/f'), at('a b/c/g'));
    t.is(await files.info(at('a b/l'), 'follow'), undefined);
    await files.remove(at('a b'));
    await files.remove(at('a b'));
    t.deepEqual(await files.list(dir), []);
    await t.throwsAsync(files.list(at('none')), { message: /none/ });
    await t.throwsAsync(files.write(at('none/f'), content, 0o600), { message: /none/ });
  });

  run(`files ${name}: space is counted once per file and on one file system only`, async (t) => {
    const { host, dir } = await open(t);
    const { files, run: program } = host;
    await files.makeDirectory(join(dir, 'sub'), 0o755);
    const before = await files.treeUsage(dir, signal);
    await files.write(join(dir, 'sub/f'), randomBytes(100_000), 0o600);
    await program('ln', [join(dir, 'sub/f'), join(dir, 'again')]);
    const { bytes, inodes } = await files.treeUsage(dir, signal);
    t.is(inodes, before.inodes + 1);
    t.true(bytes - before.bytes >= 100_000 && bytes - before.bytes < 120_000, String(bytes));
    const disk = await files.diskUsage(dir);
    t.true(disk.capacityBytes >= disk.availableBytes && disk.availableBytes > 0 && disk.inodes >= disk.inodesFree);
  });

  run(`volumes ${name}: payloads, sub paths and host paths`, async (t) => {
    const { host, dir } = await open(t);
    const { files } = host;
    const volume = join(dir, 'v');
    const payload = (text: string) => new Map([['d/f', { content: Buffer.from(text), mode: 0o440 }]]);
    t.true(await writeAtomically(volume, payload('1'), undefined, files));
    t.false(await writeAtomically(volume, payload('1'), undefined, files));
    t.true(await writeAtomically(volume, payload('2'), undefined, files));
    t.is((await files.read(join(volume, 'd/f'))).toString(), '2');
    t.is((await files.list(volume)).length, 3);
    t.is(await resolveSubPath(dir, 'deep/er', files), join(dir, 'deep/er'));
    await files.makeLink('/etc', join(dir, 'out'));
    await t.throwsAsync(resolveSubPath(dir, 'out', files), { instanceOf: VolumeProblem });
    t.is(await prepareHostPath(join(dir, 'made'), 'DirectoryOrCreate', files), join(dir, 'made'));
    t.is(await prepareHostPath(join(dir, 'made/f'), 'FileOrCreate', files), join(dir, 'made/f'));
    await t.throwsAsync(prepareHostPath(join(dir, 'made/f'), 'Directory', files), { instanceOf: VolumeProblem });
    if (host !== localHost) t.deepEqual(await readdir(dir), [], 'nothing of it is seen from here');
  });

  asRoot(`files ${name}: a nested directory is created with its mode, and not through a link`, async (t) => {
    const { host, dir } = await open(t);
    const { files } = host;
    await files.makeDirectory(join(dir, 'v/real'), 0o755);
    await files.makeDirectory(join(dir, 'outside'), 0o755);
    await files.makeLink(join(dir, 'outside'), join(dir, 'v/link'));
    await files.makeWithin(join(dir, 'v/real'), 'new', 0o2777);
    t.is((await files.info(join(dir, 'v/real/new'), 'show'))?.mode, 0o2777);
    await files.makeWithin(join(dir, 'v/real'), 'new', 0o700);
    t.is((await files.info(join(dir, 'v/real/new'), 'show'))?.mode, 0o2777, 'what is there stays as it is');
    await t.throwsAsync(files.makeWithin(join(dir, 'v/link'), 'new', 0o777));
    t.deepEqual(await files.list(join(dir, 'outside')), []);
  });

  asRoot(`files ${name}: a group owns the whole tree, with set-group-ID directories`, async (t) => {
    const { host, dir } = await open(t);
    const { files } = host;
    await files.makeDirectory(join(dir, 'v/sub'), 0o700);
    await files.changeMode(join(dir, 'v/sub'), 0o700);
    await files.write(join(dir, 'v/sub/f'), Buffer.from('x'), 0o400);
    await files.write(join(dir, 'outside'), Buffer.from('x'), 0o600);
    await files.makeLink(join(dir, 'outside'), join(dir, 'v/link'));
    await files.giveToGroup(join(dir, 'v'), 4242);
    t.like(await files.info(join(dir, 'v/sub'), 'show'), { gid: 4242, mode: 0o2770 });
    t.like(await files.info(join(dir, 'v/sub/f'), 'show'), { gid: 4242, mode: 0o660 });
    t.like(await files.info(join(dir, 'outside'), 'show'), { mode: 0o600 });
    t.not((await files.info(join(dir, 'outside'), 'show'))?.gid, 4242, 'links lead nowhere');
  });
}

asRoot(
  'an in-memory emptyDir is a file system of its size with the group of the pod, and is unmounted with nested mounts',
  async (t) => {
    const dir = await temporaryDirectory(t);
    const host = enteredHost(runProgram, await mountNamespace(t, dir));
    const mounter = systemMounter(undefined, host);
    const volume = join(dir, 'pod/vol ume');
    for (let i = 0; i < 2; i += 1) {
      await provideEmptyDir(volume, { medium: 'Memory', sizeLimit: '1Mi' }, 77, host.files, mounter);
      t.is((await host.files.diskUsage(volume)).capacityBytes, 2 ** 20);
      t.like(await host.files.info(volume, 'show'), { gid: 77, mode: 0o2777 });
      await host.files.write(join(volume, 'kept'), Buffer.from('x'), 0o600);
    }
    t.true(await mounter.isMounted(volume));
    await provideEmptyDir(join(volume, 'inner'), { medium: 'Memory' }, undefined, host.files, mounter);
    await mounter.unmountBelow(join(dir, 'pod'));
    t.false(await mounter.isMounted(volume));
    t.deepEqual(await host.files.list(volume), []);
    await t.throwsAsync(provideEmptyDir(volume, { medium: 'HugePages' }, undefined, host.files, mounter), {
      instanceOf: VolumeProblem,
      message: /medium HugePages/,
    });
    await mkdir(join(dir, 'here'));
    t.false(
      execFileSync('cat', ['/proc/self/mountinfo'], { encoding: 'utf8' }).includes(dir),
      'this namespace is left alone',
    );
  },
);

asRoot('the error of a failed mount contains its reason', async (t) => {
  const dir = await temporaryDirectory(t);
  const host = enteredHost(runProgram, await mountNamespace(t, dir));
  await host.files.makeDirectory(join(dir, 'sub'), 0o755);
  const mount = systemMounter(undefined, host).mount({
    type: 'no-such-fs',
    source: 'x',
    target: join(dir, 'sub'),
    options: [],
  });
  await t.throwsAsync(mount, { message: /mount: .*sub: / });
});
