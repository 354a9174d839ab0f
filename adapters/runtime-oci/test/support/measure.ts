import { readFileSync, statSync } from 'node:fs';
import type { ContainerRuntime } from '@keelson/container-runtime';
import { processesWith } from '@keelson/test-support';
import { createOciRuntime } from '../../src/index.ts';
import { buildImages } from './busybox-image.ts';
import { openOci, shell } from './oci-harness.ts';

/**
 * Prints the figures of the README. Arguments: number of pods, then how many are created concurrently.
 * `node adapters/runtime-oci/dist/test/support/measure.js 50 1`
 */
const [, , pods = '50', atOnce = '1'] = process.argv;
const count = Number(pods);
const images = buildImages();
const opened = await openOci({ imageSources: [images.sources] });
const { runtime } = opened.engine;
const round = (ms: number) => Math.round(ms * 10) / 10;

function summary(times: number[]): { median: number; p99: number } {
  const sorted = [...times].sort((a, b) => a - b);
  const at = (part: number) => round(sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0);
  return { median: at(0.5), p99: at(0.99) };
}

async function timed<T>(times: number[], task: () => Promise<T>): Promise<T> {
  const begin = performance.now();
  const result = await task();
  times.push(performance.now() - begin);
  return result;
}

/** Processor seconds of a process so far. */
function processorSeconds(pid: number): number {
  const fields = readFileSync(`/proc/${pid}/stat`, 'latin1')
    .replace(/^.*\) /, '')
    .split(' ');
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

/** Memory of a process that is not shared, in KiB. */
function privateKib(pid: number): number {
  const text = readFileSync(`/proc/${pid}/smaps_rollup`, 'latin1');
  return [...text.matchAll(/^Private_\w+:\s+(\d+) kB/gm)].reduce((sum, [, kib]) => sum + Number(kib), 0);
}

const times = { sandbox: [] as number[], create: [] as number[], start: [] as number[], all: [] as number[] };
async function pod(target: ContainerRuntime, number: number): Promise<void> {
  await timed(times.all, async () => {
    const metadata = { name: `pod-${number}`, namespace: 'm', uid: `uid-${number}`, attempt: 0 };
    const sandboxId = await timed(times.sandbox, () => target.runPodSandbox({ metadata }));
    const config = {
      metadata: { name: 'c', attempt: 0 },
      ...shell('trap "exit 0" TERM; while :; do sleep 100000 & wait; done'),
    };
    const id = await timed(times.create, () => target.createContainer(sandboxId, config));
    await timed(times.start, () => target.startContainer(id));
  });
}

const numbers = Array.from({ length: count }, (_, index) => index);
const begin = performance.now();
await Promise.all(
  Array.from({ length: Number(atOnce) }, async () => {
    for (let next = numbers.shift(); next !== undefined; next = numbers.shift()) await pod(runtime, next);
  }),
);
const total = performance.now() - begin;
const print = (name: string, value: unknown) => process.stdout.write(`${name}: ${JSON.stringify(value)}\n`);
for (const [name, list] of Object.entries(times)) print(`${name} (ms)`, summary(list));
print('all pods (ms)', round(total));

const execs: number[] = [];
const [first] = await runtime.listContainers();
for (let index = 0; index < 20; index += 1)
  await timed(execs, () => runtime.execSync(first?.id ?? '', { command: ['true'] }));
print('execSync (ms)', summary(execs));
const stats: number[] = [];
for (let index = 0; index < 10; index += 1) await timed(stats, () => runtime.listContainerStats());
print('stats of all (ms)', summary(stats));

const pidsOf = (text: string) => processesWith([text]).map((line) => Number.parseInt(line, 10));
const state = `${opened.folder}/state`;
const monitors = pidsOf(`${state}/monitor.sh`);
const reapers = pidsOf(`${state}/programs/reaper`).filter((pid) => !monitors.includes(pid));
const keepers = pidsOf('log-keeper.js').filter((pid) => readFileSync(`/proc/${pid}/cmdline`, 'latin1').includes(state));
print('private memory (KiB): monitor', summary(monitors.map(privateKib)));
print('private memory (KiB): reaper', summary(reapers.map(privateKib)));
print('private memory (KiB): keeper', keepers.map(privateKib));
print('size of the reaper (bytes)', statSync(`${state}/programs/reaper`).size);

const beside = [...monitors, ...reapers, ...keepers];
const before = { own: processorSeconds(process.pid), beside: beside.map(processorSeconds) };
const idleMs = 20_000;
await new Promise((resolve) => setTimeout(resolve, idleMs));
print('idle: runtime (% of a core)', round(((processorSeconds(process.pid) - before.own) / idleMs) * 100_000));
const sum = (list: readonly number[]) => list.reduce((total, value) => total + value, 0);
print(
  'idle: all beside it (% of a core)',
  round(((sum(beside.map(processorSeconds)) - sum(before.beside)) / idleMs) * 100_000),
);

await runtime[Symbol.asyncDispose]();
const adoption: number[] = [];
const again = await timed(adoption, () => createOciRuntime(opened.options));
print('adoption (ms)', round(adoption[0] ?? 0));
const running = (await again.runtime.listContainers({ state: 'running' })).length;
print('running after adoption', running);
const removal: number[] = [];
for (const { id } of await again.runtime.listPodSandboxes())
  await timed(removal, () => again.runtime.removePodSandbox(id));
print('removal (ms)', summary(removal));
await again.runtime[Symbol.asyncDispose]();
await (await openOci(opened.options, opened.folder, false)).dispose();
images.remove();
process.exit(0);
