import { mkdir, mkdtemp, rename, rm, symlink, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { RuntimeCaseContext } from '@keelson/conformance';
import test, { type ExecutionContext } from 'ava';
import { openProcess, processHarness, shell } from './support/process-harness.ts';

const probe = await openProcess();
const { mounts } = probe.engine.runtime.capabilities;
await probe.dispose();
const whereMounted = mounts || process.env['CI'] ? test : test.skip;

async function bench(t: ExecutionContext): Promise<{ context: RuntimeCaseContext; folder: string }> {
  const folder = await mkdtemp('/tmp/keelson-mounts-');
  const opened = await openProcess();
  t.teardown(async () => {
    await opened.dispose();
    await rm(folder, { recursive: true, force: true });
  });
  await mkdir(join(folder, "vol'ume/in"), { recursive: true });
  await writeFile(join(folder, "vol'ume/in/f"), 'inside\n');
  await mkdir(join(folder, 'outside'));
  await writeFile(join(folder, 'outside/f'), 'outside\n');
  const context = new RuntimeCaseContext(
    processHarness('process', opened.engine.runtime.capabilities),
    opened,
    () => {},
  );
  return { context, folder };
}

whereMounted('exact mounts have directories and files at the requested paths', async (t) => {
  const { context, folder } = await bench(t);
  const place = join(folder, 'place');
  const exact = [
    { hostPath: join(folder, "vol'ume/in"), containerPath: place, exact: true, readonly: true },
    { hostPath: join(folder, 'outside/f'), containerPath: join(folder, 'file'), exact: true },
  ];
  const script = `cat ${place}/f ${folder}/file; echo x > ${place}/f || echo read-only`;
  const { stdout } = await context.output(shell(script), { mounts: exact });
  t.is(stdout, 'inside\noutside\nread-only\n');
});

whereMounted(
  'a container fails to start when the source of an exact mount has become a symbolic link since its creation',
  async (t) => {
    const { context, folder } = await bench(t);
    const volume = join(folder, "vol'ume");
    for (const [source, replaced] of [
      [join(volume, 'in'), join(volume, 'in')],
      [join(volume, 'in/f'), join(volume, 'in')],
    ] as const) {
      const mounts = [{ hostPath: source, containerPath: join(folder, 'place'), exact: true }];
      const id = await context.create(await context.sandbox(), shell('sleep 1000'), { mounts });
      await rename(replaced, join(folder, 'kept'));
      await symlink(join(folder, 'outside'), replaced);
      await t.throwsAsync(context.runtime.startContainer(id), {
        code: 'StartFailed',
        message: 'cannot mount: the source was replaced',
      } as object);
      await rm(replaced);
      await rename(join(folder, 'kept'), replaced);
    }
  },
);
