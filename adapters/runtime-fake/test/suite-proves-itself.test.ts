import { runRuntimeCase, runtimeCases } from '@keelson/conformance';
import type { ContainerEngine, ContainerRuntime, ContainerStatus, ImageService } from '@keelson/container-runtime';
import test from 'ava';
import { fakeHarness } from './support/fake-harness.ts';

/** A runtime with some methods replaced. */
function changed(
  engine: ContainerEngine,
  change: (runtime: ContainerRuntime, images: ImageService) => object,
): ContainerEngine {
  return { ...engine, runtime: { ...engine.runtime, ...change(engine.runtime, engine.images) } };
}

const forget = { startedAt: undefined, finishedAt: undefined };

/** Faults of runtimes, and a case that must detect it. */
const faults: readonly [string, string, (runtime: ContainerRuntime, images: ImageService) => object][] = [
  [
    'stop of a missing container fails',
    'stop.is-idempotent',
    (r) => ({ stopContainer: (id: string, q: never) => r.containerStatus(id).then(() => r.stopContainer(id, q)) }),
  ],
  [
    'removal of a missing sandbox fails',
    'sandbox.remove-is-idempotent',
    (r) => ({ removePodSandbox: (id: string) => r.podSandboxStatus(id).then(() => r.removePodSandbox(id)) }),
  ],
  [
    'a removed sandbox keeps its containers listed',
    'sandbox.remove-removes-its-containers',
    (r) => {
      const all = new Map<string, object>();
      return {
        listContainers: async (filter: never) => {
          for (const container of await r.listContainers(filter)) all.set(container.id, container);
          return [...all.values()];
        },
        removePodSandbox: async (id: string) => {
          for (const container of await r.listContainers()) all.set(container.id, container);
          await r.removePodSandbox(id);
        },
      };
    },
  ],
  ['stopping a sandbox leaves it ready', 'sandbox.stop-keeps-it-listed', () => ({ stopPodSandbox: async () => {} })],
  [
    'labels are lost',
    'container.status-tells-what-was-configured',
    (r) => ({ containerStatus: async (id: string) => ({ ...(await r.containerStatus(id)), labels: {} }) }),
  ],
  [
    'label filters are ignored',
    'container.list-filters',
    (r) => ({ listContainers: ({ labels: _, ...filter }: { labels?: object } = {}) => r.listContainers(filter) }),
  ],
  [
    'lists are oldest first',
    'container.list-filters',
    (r) => ({ listContainers: async (filter: never) => [...(await r.listContainers(filter))].reverse() }),
  ],
  [
    'exit codes are clipped',
    'container.exit-codes',
    (r) => ({ containerStatus: async (id: string) => clip(await r.containerStatus(id)) }),
  ],
  [
    'times are missing',
    'container.exit-of-success',
    (r) => ({ containerStatus: async (id: string) => ({ ...(await r.containerStatus(id)), ...forget }) }),
  ],
  [
    'a second start succeeds',
    'container.starts-once',
    (r) => ({ startContainer: (id: string) => r.startContainer(id).catch(() => {}) }),
  ],
  [
    'a failed start is silent',
    'container.cannot-start',
    (r) => ({ startContainer: (id: string) => r.startContainer(id).catch(() => {}) }),
  ],
  [
    'the grace period is ignored',
    'stop.kills-after-the-grace-period',
    (r) => ({ stopContainer: (id: string) => r.stopContainer(id, { gracePeriodMs: 0 }) }),
  ],
  [
    'stop does not wait',
    'stop.graceful',
    (r) => ({ stopContainer: async (id: string, q: never) => void setTimeout(() => void r.stopContainer(id, q), 100) }),
  ],
  [
    'the deadline is ignored',
    'call.deadline',
    (r) => ({ stopContainer: (id: string) => r.stopContainer(id, { gracePeriodMs: 2000 }) }),
  ],
  ['signals are ignored', 'call.abandoned', (r) => ({ runPodSandbox: (config: never) => r.runPodSandbox(config) })],
  [
    'streams do not begin with resync',
    'observe.events-begin-with-resync',
    (r) => ({ events: () => skipFirst(r.events!()) }),
  ],
  [
    'exits are reported too early',
    'observe.event-then-truth',
    (r) => ({ containerStatus: async (id: string) => ({ ...(await r.containerStatus(id)), state: 'running' }) }),
  ],
  [
    'missing capabilities are declared',
    'observe.capabilities',
    (r) => ({ capabilities: { ...r.capabilities, tty: true } }),
  ],
  ['methods are missing', 'observe.capabilities', () => ({ updateContainerResources: undefined })],
  ['statistics of ended containers', 'container.remove-is-final', () => ({ listContainerStats: async () => [{}] })],
  [
    'the same sandbox twice',
    'sandbox.same-metadata-is-refused',
    (r) => ({
      runPodSandbox: (config: { metadata: object }) =>
        r.runPodSandbox({ ...config, metadata: { ...config.metadata, uid: String(Math.random()) } } as never),
    }),
  ],
];

function clip(status: ContainerStatus): ContainerStatus {
  return status.exitCode === undefined ? status : { ...status, exitCode: status.exitCode & 0x7f };
}

async function* skipFirst<T>(stream: AsyncIterable<T>): AsyncIterable<T> {
  let first = true;
  for await (const event of stream) {
    if (!first) yield event;
    first = false;
    if (!first) return;
  }
}

for (const [fault, id, change] of faults) {
  test(`the suite detects: ${fault} (${id})`, async (t) => {
    const found = runtimeCases.find((entry) => entry.id === id);
    t.truthy(found);
    const broken = fakeHarness('broken', (engine) => changed(engine, change));
    await t.throwsAsync(runRuntimeCase(broken, found!), { message: new RegExp(id.replace('.', '\\.')) });
    await t.notThrowsAsync(runRuntimeCase(fakeHarness(), found!));
  });
}
