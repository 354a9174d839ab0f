import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import { RuntimeCaseContext } from '@keelson/conformance';
import type { ExecutionContext } from 'ava';
import { type Bench, benchTest } from './support/bench.ts';
import { openOci } from './support/oci-harness.ts';

const test = benchTest();

let folders = 0;

function nextFolder(): number {
  folders += 1;
  return folders;
}

/** A folder of this test, whose mounts are shared as on most hosts. */
async function sharedFolder(t: ExecutionContext<Bench>): Promise<string> {
  const folder = await t.context.context.scratch();
  const shared = join(folder, `shared-${nextFolder()}`);
  mkdirSync(shared);
  execFileSync('mount', ['--bind', shared, shared]);
  execFileSync('mount', ['--make-shared', shared]);
  mkdirSync(join(shared, 'sub'));
  t.teardown(() => {
    execFileSync('umount', ['--recursive', '--lazy', shared]);
  });
  return shared;
}

function mountOn(path: string): void {
  execFileSync('mount', ['-t', 'tmpfs', 'tmpfs', path]);
  writeFileSync(join(path, 'late'), 'late\n');
}

test('later mounts of the host appear in a container only with mount propagation', async (t) => {
  const { context } = t.context;
  const hostPath = await sharedFolder(t);
  const sandboxId = await context.sandbox();
  const start = (propagation: 'private' | 'hostToContainer') =>
    context.started({ kind: 'run' }, { mounts: [{ hostPath, containerPath: '/mnt', propagation }] }, sandboxId);
  const [alone, follower] = [await start('private'), await start('hostToContainer')];
  mountOn(join(hostPath, 'sub'));
  t.is(await context.exec(follower, ['cat', '/mnt/sub/late']), 'late\n');
  t.is(await context.exec(alone, ['ls', '/mnt/sub']), '');
});

test('mounts of a container appear on the host with bidirectional propagation, its root file system does not', async (t) => {
  const { context, opened } = t.context;
  const hostPath = await sharedFolder(t);
  const securityContext = { privileged: true };
  const mounts = [{ hostPath, containerPath: '/mnt', propagation: 'bidirectional' as const }];
  const id = await context.started(
    { kind: 'run' },
    { mounts, securityContext },
    await context.sandbox({ securityContext }),
  );
  await context.exec(id, ['mount', '-t', 'tmpfs', 'tmpfs', '/mnt/sub']);
  await context.exec(id, ['touch', '/mnt/sub/made']);
  t.true(existsSync(join(hostPath, 'sub/made')));
  t.false(readFileSync('/proc/self/mounts', 'utf8').includes(join(opened.folder, 'state/containers')));
  await context.runtime.removeContainer(id);
  t.true(existsSync(join(hostPath, 'sub/made')), 'the mount remains on the host');
});

test('a mount of a missing path, or at a relative path, is rejected', async (t) => {
  const { context } = t.context;
  const sandboxId = await context.sandbox();
  const hostPath = await context.scratch();
  for (const mount of [
    { hostPath: `${hostPath}/none`, containerPath: '/mnt' },
    { hostPath, containerPath: 'mnt' },
    { hostPath: 'x', containerPath: '/mnt' },
  ])
    await t.throwsAsync(context.create(sandboxId, { kind: 'run' }, { mounts: [mount] }), { code: 'InvalidArgument' });
});

test('mounts of a pod are removed with it, also when other containers were started in the meantime', async (t) => {
  const { context, opened } = t.context;
  const sandboxId = await context.sandbox();
  for (const tty of [false, true]) await context.started({ kind: 'run' }, { tty });
  await context.runtime.removePodSandbox(sandboxId);
  const holders = () =>
    readdirSync('/proc').filter((pid) => {
      try {
        return (
          /^\d+$/.test(pid) &&
          readFileSync(`/proc/${pid}/mounts`, 'utf8').includes(`${opened.folder}/state/pods/${sandboxId}/`)
        );
      } catch {
        return false; // The process has ended.
      }
    });
  await context.until('no process has the mounts', async () => holders().length === 0);
  t.pass();
});

test('a state directory on a shared mount is removed completely, also with bidirectional mounts', async (t) => {
  const folder = await sharedFolder(t);
  const opened = await openOci(
    { ...t.context.opened.options, cgroups: { parent: `/${basename(t.context.opened.folder)}-shared` } },
    join(folder, 'runtime'),
  );
  const context = new RuntimeCaseContext(t.context.context.harness, opened, () => {});
  const securityContext = { privileged: true };
  const sandboxId = await context.sandbox({ securityContext });
  const mounts = [{ hostPath: folder, containerPath: '/mnt', propagation: 'bidirectional' as const }];
  const ids = [
    await context.started({ kind: 'run' }, { mounts, securityContext }, sandboxId),
    await context.started({ kind: 'run' }, {}, sandboxId),
  ];
  t.is(ids.length, 2);
  await opened.dispose();
  t.false(existsSync(join(folder, 'runtime')));
});
