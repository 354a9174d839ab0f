import { execFileSync } from 'node:child_process';
import {
  existsSync,
  lstatSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { join } from 'node:path';
import test from 'ava';
import { copyRoot } from '../src/index.ts';
import type { TarEntry } from './support/tar-bytes.ts';
import { tarBytes } from './support/tar-bytes.ts';
import { layerOf, openRegistry, openStore, rootOf } from './support/workshop.ts';

const asRoot = process.getuid?.() === 0 || process.env['CI'] ? test : test.skip;
const folder = (name: string, rest: Partial<TarEntry> = {}): TarEntry => ({ name, type: '5', ...rest });
const file = (name: string, content = 'x', rest: Partial<TarEntry> = {}): TarEntry => ({ name, content, ...rest });
const symlink = (name: string, linkName: string): TarEntry => ({ name, type: '2', linkName });
const hardLink = (name: string, linkName: string): TarEntry => ({ name, type: '1', linkName });
const text = (...path: string[]) => readFileSync(join(...path), 'utf8');

/** Everything below a folder, with a mark for what it is. */
function tree(root: string): string[] {
  // Not a recursive read, which follows links to folders in some versions of Node.
  const below = (path: string): string[] =>
    readdirSync(join(root, path), { withFileTypes: true }).flatMap((entry) =>
      entry.isDirectory() ? [`${path}${entry.name}/`, ...below(`${path}${entry.name}/`)] : [`${path}${entry.name}`],
    );
  return below('').sort();
}

test('whiteouts remove files of the layers below, wherever they are in their own layer', async (t) => {
  const root = await rootOf(
    t,
    [
      file('gone'),
      file('kept'),
      folder('dir/'),
      file('dir/gone'),
      file('dir/kept'),
      folder('old/'),
      file('old/in/deep'),
      file('again', '1'),
    ],
    [
      file('.wh.gone', ''),
      file('dir/.wh.gone', ''),
      file('.wh.old', ''),
      file('again', '2'),
      file('.wh.again', ''),
      file('.wh.absent', ''),
    ],
  );
  t.deepEqual(tree(root), ['again', 'dir/', 'dir/kept', 'kept']);
  t.is(text(root, 'again'), '2');
});

test('an opaque folder contains nothing from below, and everything from its own layer', async (t) => {
  const root = await rootOf(
    t,
    [folder('dir/'), file('dir/a'), file('dir/sub/b'), file('other')],
    [file('dir/first'), file('dir/.wh..wh..opq', ''), file('dir/last'), file('none/.wh..wh..opq', '')],
    [file('dir/above')],
  );
  t.deepEqual(tree(root), ['dir/', 'dir/above', 'dir/first', 'dir/last', 'other']);
});

test('whiteouts with names of dots, and reserved names, have no effect', async (t) => {
  const marks = ['.wh.', '.wh..', '.wh...', 'dir/.wh..', '.wh..wh.plnk', '.wh..wh.aufs/inner'].map((name) =>
    file(name, ''),
  );
  const root = await rootOf(t, [folder('dir/'), file('dir/kept'), file('kept')], marks);
  t.deepEqual(tree(root), ['dir/', 'dir/kept', 'kept']);
});

test('files, folders and links replace each other', async (t) => {
  const root = await rootOf(
    t,
    [file('a'), folder('b/'), file('b/x'), symlink('c', 'b'), file('d')],
    [folder('a/'), file('a/inner'), file('b', 'flat'), folder('c/'), file('c/own'), symlink('d', 'b')],
  );
  t.deepEqual(tree(root), ['a/', 'a/inner', 'b', 'c/', 'c/own', 'd']);
  t.is(readlinkSync(join(root, 'd')), 'b');
});

test('an implied parent folder neither replaces a link nor changes the folder below', async (t) => {
  const below = [
    folder('usr/'),
    folder('usr/lib/'),
    file('usr/lib/old'),
    symlink('lib', 'usr/lib'),
    symlink('abs', '/usr/lib'),
  ];
  const root = await rootOf(
    t,
    [...below, folder('tmp/', { mode: 0o1777 })],
    [file('lib/new'), file('abs/.wh.old', ''), file('abs/two'), file('tmp/file'), file('fresh/deep/file')],
  );
  t.deepEqual(readdirSync(join(root, 'usr/lib')).sort(), ['new', 'two']);
  t.true(lstatSync(join(root, 'lib')).isSymbolicLink() && lstatSync(join(root, 'abs')).isSymbolicLink());
  t.is(statSync(join(root, 'tmp')).mode & 0o7777, 0o1777);
  t.is(statSync(join(root, 'fresh/deep')).mode & 0o7777, 0o755);
});

test('whiteouts do not follow a link to a folder that their own layer replaces', async (t) => {
  const root = await rootOf(
    t,
    [folder('real/'), file('real/kept'), symlink('way', 'real')],
    [folder('way/'), file('way/.wh.kept', ''), file('way/.wh..wh..opq', '')],
  );
  t.deepEqual(tree(root), ['real/', 'real/kept', 'way/']);
});

test('hard links share a file within a layer and with layers below, also with files that the layer removes', async (t) => {
  const root = await rootOf(
    t,
    [
      file('one', 'same'),
      hardLink('two', 'one'),
      folder('usr/'),
      file('usr/x', 'below'),
      symlink('u', 'usr'),
      file('doomed', 'saved'),
    ],
    [
      hardLink('three', './two'),
      hardLink('four', '/three'),
      hardLink('five', 'u/x'),
      hardLink('rescued', 'doomed'),
      file('.wh.doomed', ''),
    ],
  );
  const inode = (name: string) => statSync(join(root, name)).ino;
  t.deepEqual(
    ['two', 'three', 'four'].map(inode),
    Array.from({ length: 3 }, () => inode('one')),
  );
  t.is(inode('five'), inode('usr/x'));
  t.is(text(root, 'rescued'), 'saved');
  t.false(existsSync(join(root, 'doomed')));
});

asRoot('owners, set-user-id bits and times are those of the layer', async (t) => {
  const root = await rootOf(
    t,
    [
      folder('home/', { uid: 5, gid: 6, mode: 0o2750 }),
      file('su', 'x', { uid: 0, gid: 7, mode: 0o6755, mtime: 1_234_567_890 }),
    ],
    [
      folder('home/', { uid: 8, gid: 9, mode: 0o711, mtime: 1_111_111_111 }),
      file('home/f', 'x', { uid: 123_456, gid: 65_534 }),
    ],
  );
  const { uid, gid, mode, mtimeMs } = statSync(join(root, 'home'));
  t.deepEqual([uid, gid, mode & 0o7777, mtimeMs], [8, 9, 0o711, 1_111_111_111_000]);
  t.deepEqual(
    [statSync(join(root, 'su')).mode & 0o7777, statSync(join(root, 'su')).mtimeMs],
    [0o6755, 1_234_567_890_000],
  );
  t.deepEqual([statSync(join(root, 'home/f')).uid, statSync(join(root, 'home/f')).gid], [123_456, 65_534]);
});

function mayMakeDevices(): boolean {
  if (process.getuid?.() !== 0) return false;
  const folder = mkdtempSync('/tmp/keelson-device-');
  try {
    execFileSync('mknod', [join(folder, 'null'), 'c', '1', '3'], { stdio: 'ignore' });
    return true;
  } catch {
    return false;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

(mayMakeDevices() || process.env['CI'] ? test : test.skip)('device nodes and named pipes are made', async (t) => {
  const devices: TarEntry[] = [
    { name: 'dev/null', type: '3', device: [1, 3], mode: 0o666 },
    { name: 'dev/loop', type: '4', device: [7, 0], mode: 0o660 },
    { name: 'dev/pipe', type: '6', mode: 0o600 },
  ];
  const root = await rootOf(t, devices, [file('.wh.none', ''), file('dev/.wh.loop', '')]);
  const node = lstatSync(join(root, 'dev/null'));
  t.deepEqual([node.isCharacterDevice(), node.rdev, node.mode & 0o777], [true, 0x103, 0o666]);
  t.true(lstatSync(join(root, 'dev/pipe')).isFIFO());
  t.false(existsSync(join(root, 'dev/loop')));
});

asRoot('a copy has the owners, modes, links, pipes and names of the image', async (t) => {
  const root = await rootOf(t, [
    file('su', 'x', { uid: 5, gid: 6, mode: 0o4755 }),
    hardLink('again', 'su'),
    symlink('out', '/etc/passwd'),
    { name: 'pipe', type: '6', mode: 0o600 },
    file('caf\xe9'),
    folder('closed/', { uid: 7, mode: 0o700 }),
  ]);
  const target = `${mkdtempSync('/tmp/keelson-copy-')}/root`;
  t.teardown(() => rmSync(join(target, '..'), { recursive: true, force: true }));
  await copyRoot(root, target);
  const facts = (folder: string) =>
    readdirSync(Buffer.from(folder), { encoding: 'latin1' }).map((name) => {
      const entry = lstatSync(Buffer.from(`${folder}/${name}`, 'latin1'));
      return [name, entry.mode, entry.uid, entry.gid, entry.nlink, entry.mtimeMs];
    });
  t.deepEqual(facts(target).sort(), facts(root).sort());
  t.is(readlinkSync(join(target, 'out')), '/etc/passwd');
  t.is(statSync(join(target, 'su')).ino, statSync(join(target, 'again')).ino);
  await t.throwsAsync(copyRoot(join(root, 'none'), `${target}2`), { code: 'Internal' });
});

asRoot('extended attributes are kept', async (t) => {
  const capability = Buffer.from('0100000200200000000000000000000000000000', 'hex').toString('latin1');
  const root = await rootOf(t, [
    file('ping', 'x', { mode: 0o755, pax: { 'SCHILY.xattr.security.capability': capability } }),
  ]);
  const again = execFileSync('tar', ['--xattrs', '--xattrs-include=*', '-cf', '-', '-C', root, 'ping']);
  t.true(again.includes('SCHILY.xattr.security.capability'));
});

test('long names, names in other encodings and long links are extracted from headers of both formats', async (t) => {
  const long = `${'d'.repeat(120)}/${'n'.repeat(200)}`;
  const target = 't'.repeat(300);
  const root = await rootOf(
    t,
    [
      file('short', 'pax', { pax: { path: `pax-${long}` } }),
      { name: '././@LongLink', type: 'L', content: `gnu-${long}\0` },
      file('short2', 'gnu'),
      { name: '././@LongLink', type: 'K', content: `${target}\0` },
      symlink('link', 'cut'),
      { name: 'global', type: 'g', content: '18 comment=nothing' },
      file('caf\xe9', 'latin1'),
      file('caf\xe9-gone', 'latin1'),
    ],
    [file('.wh.caf\xe9-gone', ''), file('caf\xe9', 'again')],
  );
  t.is(text(root, `pax-${long}`), 'pax');
  t.is(text(root, `gnu-${long}`), 'gnu');
  t.is(readlinkSync(join(root, 'link')), target);
  const names = readdirSync(Buffer.from(root), { encoding: 'latin1' }).filter((name) => name.startsWith('caf'));
  t.deepEqual(names, ['caf\xe9']);
  t.is(readFileSync(Buffer.from(`${root}/caf\xe9`, 'latin1'), 'utf8'), 'again');
});

/** Layers of which the last wants to get at the file `victim` of a folder outside, by its absolute path. */
const attacks: Record<string, (outside: string) => TarEntry[][]> = {
  'a name with dots': () => [[file('../../victim', 'bad')]],
  'a name with dots within': () => [[file('a/../../../victim', 'bad')]],
  'an absolute name': (outside) => [[file(`${outside}/victim`, 'bad')]],
  'a link of the same layer': (outside) => [[symlink('out', outside), file('out/victim', 'bad')]],
  'a relative link of the same layer': (outside) => [
    [symlink('out', `../../../../../../../..${outside}`), file('out/victim', 'bad')],
  ],
  'a link of the layer below': (outside) => [[symlink('out', outside)], [file('out/victim', 'bad')]],
  'a link to the file itself': (outside) => [[symlink('f', `${outside}/victim`)], [file('f', 'bad')]],
  'a mark of removal behind a link': (outside) => [[symlink('out', outside)], [file('out/.wh.victim', '')]],
  'an opaque mark behind a link': (outside) => [[symlink('out', outside)], [file('out/.wh..wh..opq', '')]],
  'a mark of removal with dots': () => [[file('a/.wh...', ''), file('../.wh.victim', '')]],
  'a hard link out': (outside) => [[hardLink('own', `../../../../../../..${outside}/victim`), file('own', 'bad')]],
  'an absolute hard link': (outside) => [[hardLink('own', `${outside}/victim`)], [file('own', 'bad')]],
  'a hard link through a link': (outside) => [
    [symlink('out', outside)],
    [hardLink('own', 'out/victim'), file('own', 'bad')],
  ],
  'a hard link through a link of the same layer': (outside) => [
    [symlink('out', outside), hardLink('own', 'out/victim')],
  ],
  'a hard link placed behind a link': (outside) => [
    [file('evil', 'bad'), symlink('out', outside)],
    [hardLink('out/victim', 'evil')],
  ],
  'a folder behind a link': (outside) => [
    [symlink('out', outside)],
    [folder('out/sub/'), folder('out/', { mode: 0o777 })],
  ],
  'a name that is hidden from the header': () => [[file('innocent', 'bad', { pax: { path: '../../../victim' } })]],
  'a root that is a link': (outside) => [[symlink('./', outside)], [file('victim', 'bad')]],
};

for (const [name, layersOf] of Object.entries(attacks)) {
  test(`layers cannot write outside the root: ${name}`, async (t) => {
    const registry = await openRegistry(t);
    const store = await openStore(t);
    const outside = mkdtempSync('/tmp/keelson-outside-');
    t.teardown(() => rmSync(outside, { recursive: true, force: true }));
    writeFileSync(join(outside, 'victim'), 'safe', { mode: 0o640 });
    const before = statSync(outside);
    registry.add('app:1', { layers: layersOf(outside).map(layerOf) });
    const reference = `${registry.host}/app:1`;
    await store.pullImage(reference).then(
      () => {
        const image = store.find(reference);
        // Whatever was made of it, nothing in the image shares a file with what is outside.
        const inode = statSync(join(outside, 'victim')).ino;
        const root = image === undefined ? '' : store.rootOf(image);
        t.deepEqual(
          tree(root).filter((path) => lstatSync(join(root, path)).ino === inode),
          [],
        );
      },
      (error: { code?: string }) => t.is(error.code, 'PullFailed'),
    );
    t.deepEqual(readdirSync(outside), ['victim']);
    t.is(text(outside, 'victim'), 'safe');
    const after = statSync(outside);
    t.deepEqual(
      [after.mode, after.uid, after.nlink, after.mtimeMs],
      [before.mode, before.uid, before.nlink, before.mtimeMs],
    );
    t.is(statSync(join(outside, 'victim')).nlink, 1);
  });
}

const damaged: Record<string, Buffer> = {
  'a cut archive': tarBytes([file('a', 'x'.repeat(5000))]).subarray(0, 2000),
  'no archive': Buffer.from('x'.repeat(2048)),
  'a damaged header': Buffer.from(tarBytes([file('a')]).map((byte, position) => (position === 3 ? byte ^ 1 : byte))),
  'a hard link without a target': tarBytes([hardLink('a', 'nowhere')]),
  'an endless name': tarBytes([{ name: 'x', type: 'L', content: Buffer.alloc(2 << 20, 'a') }]),
};

for (const [name, bytes] of Object.entries(damaged)) {
  test(`an invalid layer is rejected and leaves no files: ${name}`, async (t) => {
    const registry = await openRegistry(t);
    registry.add('app:1', { layers: [layerOf(bytes)] });
    const store = await openStore(t);
    await t.throwsAsync(store.pullImage(`${registry.host}/app:1`), { code: 'PullFailed', message: /unpack a layer/ });
    t.deepEqual(await store.listImages(), []);
  });
}

test('a layer that exceeds the size limit when it is unpacked is rejected', async (t) => {
  const registry = await openRegistry(t);
  const folder = mkdtempSync('/tmp/keelson-bomb-');
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, 'bomb.tar'), tarBytes([{ name: 'zeros', content: Buffer.alloc(20 << 20) }]));
  registry.add('app:1', { layers: [join(folder, 'bomb.tar')] });
  const store = await openStore(t, { maxImageBytes: 1 << 20 });
  await t.throwsAsync(store.pullImage(`${registry.host}/app:1`), {
    code: 'PullFailed',
    message: /larger than 1048576 bytes/,
  });
});
