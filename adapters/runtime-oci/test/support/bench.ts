import assert from 'node:assert/strict';
import { join } from 'node:path';
import { joinLog, RuntimeCaseContext, readLog } from '@keelson/conformance';
import type { ContainerConfig, PodSandboxConfig } from '@keelson/container-runtime';
import anyTest, { type TestFn } from 'ava';
import type { OciRuntimeOptions } from '../../src/index.ts';
import { buildImages, image, missing, userImage } from './busybox-image.ts';
import { type OpenedOci, ociHarness, openOci } from './oci-harness.ts';

/** One engine for the tests of a file, with functions for their common operations. */
export interface Bench {
  readonly context: RuntimeCaseContext;
  readonly opened: OpenedOci;
  /** Runs a script to its end, in a pod of its own: its trimmed output and its exit code. */
  run(
    script: string,
    config?: Partial<ContainerConfig>,
    pod?: Partial<PodSandboxConfig>,
  ): Promise<{ text: string; exitCode: number }>;
}

let names = 0;

async function openBench(options: Partial<OciRuntimeOptions>): Promise<Bench> {
  const opened = await openOci(options);
  await opened.engine.images.pullImage(userImage);
  const context = new RuntimeCaseContext(
    ociHarness('oci', opened.engine.runtime.capabilities, options),
    opened,
    () => {},
  );
  const run: Bench['run'] = async (script, config = {}, pod = {}) => {
    names += 1;
    const logDirectory = join(opened.folder, `logs-${names}`);
    const sandboxId = await context.sandbox({ logDirectory, ...pod });
    const program = { image, command: ['/bin/sh', '-c', script] };
    const id = await context.create(sandboxId, { ...program, ...config }, { logPath: 'out.log', ...config });
    await context.runtime.startContainer(id);
    const { exitCode } = await context.waitFor(id, 'exited');
    assert(exitCode !== undefined);
    const lines = await readLog(join(logDirectory, 'out.log'));
    await context.runtime.removePodSandbox(sandboxId);
    return {
      text: Buffer.concat([joinLog(lines, 'stdout'), joinLog(lines, 'stderr')])
        .toString()
        .trim(),
      exitCode,
    };
  };
  return { context, opened, run };
}

/**
 * A test function whose tests get the bench of their file, which is disposed of in the end: anything left on the host
 * then is a failure. Without the programs it takes, tests are skipped visibly.
 */
export function benchTest(options: Partial<OciRuntimeOptions> = {}): TestFn<Bench> {
  const test = anyTest as TestFn<Bench>;
  if (missing.length > 0) return Object.assign(test.skip, test) as unknown as TestFn<Bench>;
  const images = buildImages();
  let bench: Bench | undefined;
  test.before(async () => {
    bench = await openBench({ imageSources: [images.sources], ...options });
  });
  test.beforeEach((t) => {
    t.timeout(60_000);
    assert(bench);
    t.context = bench;
  });
  test.after.always('the host is clean', async () => {
    await bench?.opened.dispose();
    images.remove();
  });
  return test;
}
