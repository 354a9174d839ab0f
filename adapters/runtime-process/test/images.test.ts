import { execFileSync } from 'node:child_process';
import {
  chownSync,
  existsSync,
  lstatSync,
  mkdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from 'node:fs';
import { mkdtemp, readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { joinLog, RuntimeCaseContext, readLog } from '@keelson/conformance';
import { buildRoot, dockerArchive, LoopbackRegistry, ociLayout, tarOf } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type OpenedProcess, openProcess, processHarness, shell } from './support/process-harness.ts';

const probe = await openProcess();
const chroot = probe.engine.runtime.capabilities.rootFilesystem === 'chroot';
await probe.dispose();
const withChroot = chroot ? test : test.skip;

/** A folder with a function `layer`, which creates a tar file of the files that its callback writes. */
async function workshop(t: ExecutionContext) {
  const folder = await mkdtemp('/tmp/keelson-images-');
  t.teardown(() => rmSync(folder, { recursive: true, force: true }));
  mkdirSync(join(folder, 'sources'));
  let number = 0;
  const layer = (fill: (root: string) => void, ...flags: string[]): string => {
    number += 1;
    const root = join(folder, `root-${number}`);
    mkdirSync(root);
    fill(root);
    tarOf(root, `${root}.tar`, ...flags);
    return `${root}.tar`;
  };
  return { folder, sources: join(folder, 'sources'), layer };
}

async function opened(t: ExecutionContext, sources: string): Promise<OpenedProcess> {
  const engine = await openProcess({ imageSources: [sources] });
  t.teardown(() => engine.dispose());
  return engine;
}

function contextOf(engine: OpenedProcess): RuntimeCaseContext {
  return new RuntimeCaseContext(processHarness('process', engine.engine.runtime.capabilities), engine, () => {});
}

withChroot('an OCI layout runs with the environment, user, directory and command of its configuration', async (t) => {
  t.timeout(60_000);
  const { sources, layer } = await workshop(t);
  const base = layer(buildRoot);
  const config = {
    Env: ['PATH=/bin', 'FROM_IMAGE=yes', 'BOTH=image'],
    Entrypoint: ['/bin/sh', '-c'],
    Cmd: ['echo $FROM_IMAGE $BOTH $HOME; pwd; id -u; id -g; id -G; cat /suite-file'],
    WorkingDir: '/tmp',
    User: 'app',
  };
  const id = ociLayout(join(sources, 'layout'), 'registry.test/app:2', [base], config);
  const context = contextOf(await opened(t, sources));
  t.is(await context.images.pullImage('registry.test/app:2'), id);
  t.is((await context.images.imageStatus(id))?.username, 'app');
  const result = await context.output(
    { image: 'registry.test/app:2' },
    { env: [{ name: 'BOTH', value: 'container' }] },
  );
  t.is(result.stdout, 'yes container /home/app\n/tmp\n4242\n4343\n4343\noriginal\n');
  const args = await context.output({ image: 'registry.test/app:2', args: ['echo other; exit 3'] });
  t.deepEqual([args.stdout, args.status.exitCode], ['other\n', 3]);
  const securityContext = { runAsUser: 0, supplementalGroups: [7] };
  const groups = await context.output({ image: 'registry.test/app:2', args: ['pwd; id -G'] }, { securityContext });
  t.is(groups.stdout, '/tmp\n0 7\n');
});

withChroot('mounts, commands and the environment of a container with an image are inside its root', async (t) => {
  t.timeout(60_000);
  const { folder, sources, layer } = await workshop(t);
  const base = layer((root) => {
    buildRoot(root);
    symlinkSync('/etc', join(root, 'link'));
  });
  dockerArchive(join(folder, 'scratch'), join(sources, 'app.tar'), 'app:1', [base]);
  const context = contextOf(await opened(t, sources));
  await context.images.pullImage('app:1');
  mkdirSync(join(folder, 'data'));
  writeFileSync(join(folder, 'data', 'f'), 'mounted\n');
  const mounts = [
    { hostPath: join(folder, 'data'), containerPath: '/data/deep' },
    { hostPath: join(folder, 'data', 'f'), containerPath: '/link/through', readonly: true },
  ];
  const logDirectory = join(folder, 'logs');
  const program = {
    image: 'app:1',
    command: ['sh', '-c', 'cat /data/deep/f /etc/through; echo x > /etc/through || echo kept; sleep 1000'],
  };
  const id = await context.started(program, { mounts, logPath: 'l' }, await context.sandbox({ logDirectory }));
  await context.until(
    'output',
    async () => joinLog(await readLog(join(logDirectory, 'l')), 'stdout').toString() === 'mounted\nmounted\nkept\n',
  );
  t.is(await context.exec(id, ['cat', '/data/deep/f', '/suite-file']), 'mounted\noriginal\n');
  t.false(existsSync('/etc/through'), 'the link led to the root of the image, not to that of the host');
  const touch = 'echo x > /tmp/own; echo x > /data/deep/own && echo written';
  const readonly = { mounts, securityContext: { readonlyRootfs: true } };
  const { stdout, stderr } = await context.output({ image: 'app:1', command: ['sh', '-c', touch] }, readonly);
  t.is(stdout, 'written\n');
  t.regex(stderr, /tmp\/own: Read-only file system/);
  const missing = await context.create(await context.sandbox(), { image: 'app:1', command: ['/usr/bin/env'] });
  await t.throwsAsync(context.runtime.startContainer(missing), { code: 'StartFailed' } as object);
});

withChroot('upper layers replace, remove and hide files of lower layers', async (t) => {
  t.timeout(60_000);
  const { folder, sources, layer } = await workshop(t);
  const write = (root: string, files: Record<string, string>) => {
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(root, path, '..'), { recursive: true });
      writeFileSync(join(root, path), text);
    }
  };
  const layers = [
    layer((root) => write(root, { kept: '1', gone: '1', 'dir/a': '1', 'opaque/old': '1', 'swap/x': '1', flat: '1' })),
    layer((root) =>
      write(root, {
        '.wh.gone': '',
        'dir/.wh.a': '',
        'dir/b': '2',
        'opaque/.wh..wh..opq': '',
        'opaque/new': '2',
        swap2: '2',
        'flat/deep': '2',
      }),
    ),
    layer((root) => {
      write(root, { '.wh...': '', '.wh.': '', '.wh..': '', kept2: '3' });
      symlinkSync('kept', join(root, 'swap'));
    }),
  ];
  dockerArchive(join(folder, 'scratch'), join(sources, 'app.tar'), 'app:1', layers);
  const engine = await opened(t, sources);
  const id = await engine.engine.images.pullImage('app:1');
  const root = join(engine.folder, 'state/images', id.slice('sha256:'.length), 'rootfs');
  t.deepEqual((await readdir(root)).sort(), ['dir', 'flat', 'kept', 'kept2', 'opaque', 'swap', 'swap2']);
  t.deepEqual(await readdir(join(root, 'dir')), ['b']);
  t.deepEqual(await readdir(join(root, 'opaque')), ['new']);
  t.true(lstatSync(join(root, 'swap')).isSymbolicLink());
  t.is(readFileSync(join(root, 'flat/deep'), 'utf8'), '2');
  await engine.engine.images.removeImage('app:1');
  t.false(existsSync(root));
});

withChroot('layers cannot write outside of their root', async (t) => {
  t.timeout(60_000);
  const { folder, sources, layer } = await workshop(t);
  const outside = join(folder, 'outside');
  mkdirSync(outside);
  writeFileSync(join(outside, 'victim'), 'safe');
  const layers = [
    layer((root) => {
      symlinkSync(outside, join(root, 'out'));
      writeFileSync(join(root, 'plain'), 'x');
    }),
    layer((root) => {
      mkdirSync(join(root, 'out'));
      writeFileSync(join(root, 'out', 'victim'), 'overwritten');
      writeFileSync(join(root, 'out', '.wh.victim'), '');
    }),
    layer((root) => writeFileSync(join(root, 'plain'), 'x'), '--transform=s,plain,../../../escaped,', '-P'),
  ];
  dockerArchive(join(folder, 'scratch'), join(sources, 'app.tar'), 'app:1', layers);
  const engine = await opened(t, sources);
  await engine.engine.images.pullImage('app:1').catch(() => {});
  t.is(readFileSync(join(outside, 'victim'), 'utf8'), 'safe');
  t.deepEqual(await readdir(outside), ['victim']);
  t.false(existsSync(join(engine.folder, 'state', 'escaped')) || existsSync(join(engine.folder, 'escaped')));
});

withChroot('damaged sources are rejected and leave nothing behind; intact ones beside them are found', async (t) => {
  t.timeout(60_000);
  const { folder, sources, layer } = await workshop(t);
  const base = layer((root) => writeFileSync(join(root, 'f'), 'x'.repeat(10_000)));
  ociLayout(join(sources, 'damaged'), 'bad:1', [base]);
  const blobs = join(sources, 'damaged/blobs/sha256');
  const sizes = (await readdir(blobs)).map((name) => ({ name, size: lstatSync(join(blobs, name)).size }));
  for (const { name } of sizes)
    if (
      readFileSync(join(blobs, name))
        .subarray(0, 2)
        .equals(Buffer.from([0x1f, 0x8b]))
    )
      truncateSync(join(blobs, name), 20);
  mkdirSync(join(folder, 'linked'));
  symlinkSync('/etc/passwd', join(folder, 'linked', 'config.json'));
  writeFileSync(
    join(folder, 'linked', 'manifest.json'),
    JSON.stringify([{ Config: 'config.json', RepoTags: ['linked:1'], Layers: [] }]),
  );
  tarOf(join(folder, 'linked'), join(sources, 'linked.tar'));
  writeFileSync(join(sources, 'noise.tar'), 'this is no archive');
  dockerArchive(join(folder, 'scratch'), join(sources, 'zgood.tar'), 'good:1', [base]);
  const engine = await opened(t, sources);
  const { images } = engine.engine;
  await t.throwsAsync(images.pullImage('bad:1'), { code: 'PullFailed' } as object);
  await t.throwsAsync(images.pullImage('linked:1'), { code: 'PullFailed' } as object);
  await t.throwsAsync(images.pullImage('none:1'), { code: 'ImageNotFound' } as object);
  await images.pullImage('good:1');
  const kept = (await readdir(join(engine.folder, 'state/images'))).filter(
    (name) => !['names.json', 'blobs'].includes(name),
  );
  t.is(kept.length, 1);
});

withChroot('an image of a registry runs, and remains after the runtime that pulled it ends', async (t) => {
  t.timeout(60_000);
  const { layer } = await workshop(t);
  await using registry = await LoopbackRegistry.open({ auth: { kind: 'token', username: 'u', password: 'p' } });
  const config = { Env: ['PATH=/bin'], Cmd: ['cat', '/suite-file', '/added'] };
  const upper = layer((root) => writeFileSync(join(root, 'added'), 'above\n'));
  const { id } = registry.add('team/app:1', { layers: [layer(buildRoot), upper], config });
  const reference = `${registry.host}/team/app:1`;
  const engine = await openProcess({ registries: {} });
  t.true(engine.engine.runtime.capabilities.pull);
  await t.throwsAsync(engine.engine.images.pullImage(reference), { code: 'PullFailed' } as object);
  await engine.engine.images.pullImage(reference, { auth: { username: 'u', password: 'p' } });
  await engine.engine.runtime[Symbol.asyncDispose]();
  const again = await openProcess(engine.options, engine.folder);
  t.teardown(() => again.dispose());
  const context = contextOf(again);
  t.is((await context.images.imageStatus(reference))?.id, id);
  t.is((await context.output({ image: reference })).stdout, 'original\nabove\n');
});

withChroot(
  'where overlays are not supported, a container has a copy of its image with the owners of its files',
  async (t) => {
    t.timeout(60_000);
    const { folder, sources, layer } = await workshop(t);
    const base = layer((root) => {
      buildRoot(root);
      writeFileSync(join(root, 'owned'), 'x');
      chownSync(join(root, 'owned'), 4242, 4343);
    });
    execFileSync('tar', ['--numeric-owner', '-cf', base, '-C', base.replace(/\.tar$/, ''), '.']);
    dockerArchive(join(folder, 'scratch'), join(sources, 'app.tar'), 'app:1', [base], { Env: ['PATH=/bin'] });
    // Options of overlay mounts are separated by commas.
    const place = join(folder, 'a,b');
    mkdirSync(place);
    const engine = await openProcess({ imageSources: [sources] }, place);
    t.teardown(() => engine.dispose());
    await engine.engine.images.pullImage('app:1');
    const { stdout } = await contextOf(engine).output(
      { image: 'app:1', command: ['sh', '-c', 'ls -ln /owned; echo x > /owned || echo kept'] },
      { securityContext: { readonlyRootfs: true } },
    );
    t.regex(stdout, /^-rw-r--r-- 1 4242 4343 .*\nkept\n$/);
  },
);

test('without an image source, other images and a read-only root of the host are rejected with the reason', async (t) => {
  const engine = await openProcess();
  t.teardown(() => engine.dispose());
  await t.throwsAsync(engine.engine.images.pullImage('registry.test/app:1'), {
    code: 'Unsupported',
    message: /only|may not chroot/,
  } as object);
  await t.throwsAsync(contextOf(engine).output(shell('true'), { securityContext: { readonlyRootfs: true } }), {
    code: 'Unsupported',
    message: 'the process runtime cannot make the root file system of the machine read-only',
  } as object);
});
