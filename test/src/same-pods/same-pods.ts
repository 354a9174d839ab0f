import { mkdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ContainerEngine } from '@keelson/container-runtime';
import { isStatusError } from '@keelson/core';
import { ConfigMap, Pod, Secret } from '@keelson/kinds';
import { eventually, startTestPlane, type TestPlane } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { type AgentNode, scratchDirectory, startAgentNode } from '../agent-node.ts';
import { type Outcome, type PodCase, podCases } from './pod-cases.ts';

/** A runtime with an image that has a shell. */
export interface RuntimeUnderTest {
  readonly engine: ContainerEngine;
  readonly image: string;
  /** Called when all pods are removed. */
  close(): PromiseLike<void>;
}

export interface SamePodsOptions {
  /** Where the runtime does otherwise than the others, by the name of the pod. */
  readonly differences?: Readonly<Record<string, Partial<Outcome>>>;
  /** Pods that run side by side; fewer where each costs much. Default 20. */
  readonly atOnce?: number;
}

const nodeName = 'same';
/** Long, because a failure is the only thing that waits so long: engines are slow beside other suites. */
const waitMs = 180_000;

interface Stage extends RuntimeUnderTest {
  readonly plane: TestPlane;
  readonly node: AgentNode;
  readonly folder: string;
}

/**
 * Runs the same pods through a real agent on a runtime, and compares the outcome of each with its outcome on the
 * others.
 */
export function samePods(
  runtime: string,
  open: (folder: string) => Promise<RuntimeUnderTest>,
  { differences = {}, atOnce = 20 }: SamePodsOptions = {},
): void {
  let stage: Promise<Stage> | undefined;
  const clean: (() => PromiseLike<unknown>)[] = [];

  async function start(): Promise<Stage> {
    const { dir, remove } = await scratchDirectory();
    clean.unshift(remove);
    const opened = await open(dir);
    clean.unshift(() => opened.close());
    const plane = await startTestPlane();
    clean.unshift(() => plane.close());
    const node = await startAgentNode({ name: nodeName, engine: opened.engine, api: plane.api, dir });
    clean.unshift(() => node.stop());
    clean.unshift(async () => {
      for (const { metadata } of (await plane.client(Pod).list()).items) {
        await plane
          .client(Pod)
          .namespace('default')
          .delete(metadata?.name ?? '');
      }
      await eventually(async () => (await opened.engine.runtime.listPodSandboxes()).length === 0, waitMs);
    });
    await plane
      .client(ConfigMap)
      .namespace('default')
      .create({ metadata: { name: 'settings' }, data: { greeting: 'hello' } });
    await plane
      .client(Secret)
      .namespace('default')
      .create({ metadata: { name: 'secrets' }, data: { token: Buffer.from('s3cret').toString('base64') } });
    return { ...opened, plane, node, folder: dir };
  }

  const turns: (() => void)[] = [];
  let places = atOnce;
  const onStage = async (t: ExecutionContext): Promise<Stage> => {
    t.timeout(600_000);
    stage ??= start();
    if (places === 0) await new Promise<void>((resolve) => turns.push(resolve));
    else places -= 1;
    t.teardown(() => {
      const next = turns.shift();
      if (next === undefined) places += 1;
      else next();
    });
    return stage;
  };

  test.after.always('nothing is left', async () => {
    const failures: unknown[] = [];
    for (const step of clean) {
      try {
        await step();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  });

  for (const one of podCases) {
    test(`${runtime}: ${one.name}`, async (t) => {
      const here = await onStage(t);
      if (one.needs?.(here.engine.runtime.capabilities) === false) {
        t.pass('the runtime declares that it does not support this');
        return;
      }
      const wanted = { ...one.expected, ...differences[one.name] };
      const pod = await create(here, one);
      let last: Outcome | undefined;
      const found = await eventually(async () => {
        last = await outcomeOf(here, pod, wanted.log !== undefined);
        return last !== undefined && isAt(last, wanted) ? last : undefined;
      }, waitMs).catch(() => last);
      t.like(found, { ...wanted });
      await remove(here, one.name);
    });
  }

  test(`${runtime}: a deleted pod has its grace, and its hook before that`, async (t) => {
    const here = await onStage(t);
    const folder = join(here.folder, 'leaving');
    await mkdir(folder);
    const script = `trap 'cat ${folder}/hook > ${folder}/bye; exit 0' TERM; : > ${folder}/up; while :; do sleep 0.1; done`;
    const hook = { exec: { command: ['/bin/sh', '-c', `echo stopping > ${folder}/hook`] } };
    const pod = {
      name: 'leaving',
      spec: () => ({
        terminationGracePeriodSeconds: 30,
        containers: [
          {
            name: 'main',
            image: '',
            command: ['/bin/sh', '-c', script],
            lifecycle: { preStop: hook },
            volumeMounts: [{ name: 'folder', mountPath: folder }],
          },
        ],
        volumes: [{ name: 'folder', hostPath: { path: folder } }],
      }),
    };
    await create(here, pod);
    await eventually(() => readFile(join(folder, 'up'), 'utf8').then(() => true), waitMs);
    await remove(here, 'leaving');
    t.is(await readFile(join(folder, 'bye'), 'utf8'), 'stopping\n');
  });
}

const podsOf = ({ plane }: Stage) => plane.client(Pod).namespace('default');

async function create(stage: Stage, { name, spec }: Pick<PodCase, 'name' | 'spec'>): Promise<Pod> {
  const folder = join(stage.folder, name);
  await mkdir(folder, { recursive: true, mode: 0o777 });
  const wanted = spec(folder);
  const withImage = (containers: Pod['spec']['containers'] | undefined) =>
    containers?.map((container) => ({
      ...container,
      image: container.image || stage.image,
      imagePullPolicy: container.imagePullPolicy ?? 'IfNotPresent',
    }));
  const containers = withImage(wanted.containers) ?? [];
  const initContainers = withImage(wanted.initContainers);
  return podsOf(stage).create({
    metadata: { name, namespace: 'default', labels: { part: 'same' } },
    spec: {
      terminationGracePeriodSeconds: 1,
      ...wanted,
      nodeName,
      containers,
      ...(initContainers && { initContainers }),
    },
  });
}

async function remove(stage: Stage, name: string): Promise<void> {
  await podsOf(stage).delete(name);
  await eventually(
    () =>
      podsOf(stage)
        .get(name)
        .then(
          () => false,
          (error: unknown) => isStatusError(error, 'NotFound'),
        ),
    waitMs,
  );
}

/** True when the pod has reached the expected phase, or one from which it cannot reach it. */
function isAt(found: Outcome, wanted: Outcome): boolean {
  const main = wanted.main.startsWith('ended') ? found.main.startsWith('ended') : found.main === wanted.main;
  const settled = found.phase === wanted.phase && main && found.ready === wanted.ready;
  return settled && found.restarts >= wanted.restarts && (wanted.log === undefined || found.log === wanted.log);
}

async function outcomeOf(stage: Stage, { metadata }: Pod, withLog: boolean): Promise<Outcome | undefined> {
  const { status } = await podsOf(stage).get(metadata?.name ?? '');
  const container = status?.containerStatuses?.find(({ name }) => name === 'main');
  if (status?.phase === undefined || container === undefined) return undefined;
  const { running, waiting, terminated } = container.state ?? {};
  const main = running
    ? 'running'
    : terminated
      ? `ended ${terminated.reason} ${terminated.exitCode}`
      : `waiting ${waiting?.reason}`;
  return {
    phase: status.phase,
    ready: container.ready,
    main,
    restarts: container.restartCount,
    ...(terminated?.message === undefined ? {} : { message: terminated.message }),
    ...(withLog && terminated ? { log: await logOf(stage, metadata?.name ?? '') } : {}),
  };
}

async function logOf({ node }: Stage, pod: string): Promise<string> {
  const parts: Buffer[] = [];
  const request = {
    follow: false,
    previous: false,
    timestamps: false,
    tailLines: undefined,
    sinceMs: undefined,
    limitBytes: undefined,
  };
  const signal = AbortSignal.timeout(waitMs);
  for await (const part of await node.agent.state.logs({
    namespace: 'default',
    pod,
    container: 'main',
    ...request,
    signal,
  })) {
    parts.push(part);
  }
  // Runtimes may split a line that is written in pieces anywhere.
  return Buffer.concat(parts).toString().trimEnd().replaceAll('\n', '|');
}
