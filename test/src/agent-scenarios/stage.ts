import { mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { systemMounter } from '@keelson/agent';
import type { ContainerEngine } from '@keelson/container-runtime';
import { Pod } from '@keelson/kinds';
import { installPrograms } from '@keelson/test-support';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test from 'ava';
import { type AgentNode, scratchDirectory, startAgentNode } from '../agent-node.ts';
import { type BusyboxImage, buildBusyboxImages } from '../busybox-image.ts';
import type { OpenedEngine } from '../real-engines.ts';

/** Long, because only a failure waits so long. */
export const waitMs = 60_000;
export const nodeName = 'stage';
export const image = 'registry.test/busybox:1';

export interface Stage {
  readonly plane: TestPlane;
  readonly node: AgentNode;
  readonly engine: ContainerEngine;
  readonly folder: string;
  readonly events: readonly { readonly pod: string; readonly reason: string; readonly message: string }[];
  create(name: string, spec: Partial<Pod['spec']>, metadata?: Pod['metadata']): Promise<Pod>;
  get(name: string): Promise<Pod>;
  /** Waits for a phase; the error of a timeout contains the status of the pod. */
  reaches(name: string, phase: string): Promise<Pod>;
  /** Waits until a condition holds for a pod. */
  until(name: string, isSo: (pod: Pod) => boolean): Promise<Pod>;
  /** Runs a script in a container of a pod, `main` by default, and returns its output. @throws when the script fails */
  inside(name: string, script: string, container?: string): Promise<string>;
  log(name: string, container?: string): Promise<string>;
}

export interface StageOptions {
  /** Options of the agent's command line. */
  readonly words?: readonly string[];
  /** Further images than the one with a shell. */
  readonly images?: readonly BusyboxImage[];
  /** Programs and Debian packages that the runtime needs beside busybox. */
  readonly programs?: readonly string[];
  readonly packages?: readonly string[];
  open(folder: string, sources: string): Promise<OpenedEngine>;
}

/**
 * A control plane and an agent on a runtime, which the tests of a file share; they begin with the first test and end
 * with the last.
 *
 * @returns undefined where they cannot run: the file then has a skipped test that names what is missing
 */
export function sharedStage(title: string, options: StageOptions): (() => Promise<Stage>) | undefined {
  const root = process.platform === 'linux' && process.getuid?.() === 0;
  const programs = ['busybox', ...(options.programs ?? [])];
  const lacking = root ? installPrograms(programs, ['busybox-static', ...(options.packages ?? [])]) : ['root on Linux'];
  if (!root && process.env['CI']) throw new Error(`${title}: needs root on Linux`);
  if (lacking.length > 0) {
    test.skip(`${title} [not run, there is no ${lacking.join(', ')}]`, () => {});
    return undefined;
  }
  const clean: (() => PromiseLike<unknown>)[] = [];
  let stage: Promise<Stage> | undefined;
  test.after.always('the host is clean', async () => {
    const failures: unknown[] = [];
    for (const step of clean) await Promise.resolve(step()).catch((error: unknown) => failures.push(error));
    if (failures.length > 0) throw failures[0];
  });
  return () => {
    stage ??= openStage(options, (step) => clean.unshift(step));
    return stage;
  };
}

async function openStage(options: StageOptions, onClose: (step: () => PromiseLike<unknown>) => void): Promise<Stage> {
  const { dir, remove } = await scratchDirectory();
  onClose(remove);
  const sources = join(dir, 'sources');
  buildBusyboxImages(join(dir, 'image'), sources, [{ reference: image }, ...(options.images ?? [])]);
  const { engine, close } = await options.open(dir, sources);
  onClose(close);
  const plane = await startTestPlane();
  onClose(() => plane.close());
  const events: { pod: string; reason: string; message: string }[] = [];
  const node = await startAgentNode({
    name: nodeName,
    engine,
    api: plane.api,
    words: ['--sync-frequency=300ms', ...(options.words ?? [])],
    dir,
    // Mounts are below the folder of this test, and are removed with its pods.
    mounter: systemMounter(),
    events: { record: ({ name }, _type, reason, message) => void events.push({ pod: name, reason, message }) },
  });
  onClose(() => node.stop());
  const pods = plane.client(Pod).namespace('default');
  onClose(async () => {
    for (const { metadata } of (await pods.list()).items)
      await pods.delete(metadata?.name ?? '', { gracePeriodSeconds: 0 }).catch(() => undefined);
    await eventually(async () => (await engine.runtime.listPodSandboxes()).length === 0, waitMs);
  });
  await mkdir(join(dir, 'shared'), { mode: 0o777 });
  const until = (name: string, isSo: (pod: Pod) => boolean): Promise<Pod> =>
    eventually(async () => {
      const pod = await pods.get(name);
      return isSo(pod) ? pod : undefined;
    }, waitMs).catch(async (error: Error) => {
      throw new Error(`${name}: ${error.message}: ${JSON.stringify((await pods.get(name)).status)}`);
    });
  return {
    plane,
    node,
    engine,
    folder: dir,
    events,
    create: (name, spec, metadata = {}) =>
      pods.create({
        metadata: { ...metadata, name, namespace: 'default' },
        spec: { terminationGracePeriodSeconds: 0, ...spec, nodeName, containers: spec.containers ?? [] },
      }),
    get: (name) => pods.get(name),
    until,
    reaches: (name, phase) => until(name, ({ status }) => status?.phase === phase),
    async inside(name, script, container = 'main') {
      const pod = await pods.get(name);
      const found = pod.status?.containerStatuses?.find((one) => one.name === container);
      const id = found?.containerID?.replace(/^.*:\/\//, '') ?? '';
      const { exitCode, stdout, stderr } = await engine.runtime.execSync(id, {
        command: ['/bin/sh', '-c', script],
        execTimeoutMs: waitMs,
      });
      if (exitCode !== 0) throw new Error(`${script}: exit code ${exitCode}: ${Buffer.from(stderr).toString()}`);
      return Buffer.from(stdout).toString();
    },
    async log(name, container = 'main') {
      const parts: Buffer[] = [];
      const all = { follow: false, previous: false, timestamps: false, tailLines: undefined, sinceMs: undefined };
      const request = { namespace: 'default', pod: name, container, ...all, limitBytes: undefined };
      for await (const part of await node.agent.state.logs({ ...request, signal: AbortSignal.timeout(waitMs) }))
        parts.push(part);
      return Buffer.concat(parts).toString();
    },
  };
}

/** A container with a shell, called `main` by default. In commands of pods `$$` stands for one `$`. */
export const shell = (
  script: string,
  more: Partial<Pod['spec']['containers'][number]> = {},
): Pod['spec']['containers'][number] => ({
  name: 'main',
  image,
  imagePullPolicy: 'IfNotPresent',
  command: ['/bin/sh', '-c', script],
  ...more,
});

/** A script of a container that stays. */
export const stay = 'while :; do sleep 1000; done';
