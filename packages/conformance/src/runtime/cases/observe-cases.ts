import assert from 'node:assert/strict';
import type { ContainerId, RuntimeEvent } from '@keelson/container-runtime';
import { conditionTimeoutMs, type RuntimeCase, refused } from '../case-context.ts';

/** Collects events until one satisfies the condition, and returns all of them. */
async function eventsUntil(
  stream: AsyncIterable<RuntimeEvent>,
  last: (event: RuntimeEvent) => boolean,
): Promise<RuntimeEvent[]> {
  const seen: RuntimeEvent[] = [];
  const iterator = stream[Symbol.asyncIterator]();
  const timer = setTimeout(() => void iterator.return?.(), conditionTimeoutMs);
  try {
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) {
      seen.push(next.value);
      if (last(next.value)) return seen;
    }
  } finally {
    clearTimeout(timer);
    await iterator.return?.();
  }
  return assert.fail(`the stream ended after ${JSON.stringify(seen.map(({ type }) => type))}`);
}

const typesOf = (events: readonly RuntimeEvent[], id: ContainerId) =>
  events.flatMap((event) => ('containerId' in event && event.containerId === id ? [event.type] : []));

export const observeCases: readonly RuntimeCase[] = [
  {
    id: 'observe.capabilities',
    title: 'the runtime declares the capabilities of the harness, and has exactly those methods',
    async run({ runtime, harness }) {
      assert.deepEqual(runtime.capabilities, harness.capabilities);
      assert.equal(runtime.events !== undefined, runtime.capabilities.events);
      assert.equal(runtime.updateContainerResources !== undefined, runtime.capabilities.updateResources);
      for (const name of ['exec', 'attach', 'portForward'] as const) {
        assert.equal(runtime.streaming[name] !== undefined, runtime.capabilities[name], name);
      }
    },
  },
  {
    id: 'observe.version',
    title: 'the runtime reports its name and versions',
    async run({ runtime }) {
      const { runtimeName, runtimeVersion, runtimeApiVersion } = await runtime.version();
      for (const text of [runtimeName, runtimeVersion, runtimeApiVersion]) assert.match(text, /^\S+$/);
    },
  },
  {
    id: 'observe.status',
    title: 'the conditions RuntimeReady and NetworkReady are true',
    async run({ runtime }) {
      const { conditions } = await runtime.status();
      assert.deepEqual(conditions.map(({ type, status }) => `${type}=${status}`).sort(), [
        'NetworkReady=true',
        'RuntimeReady=true',
      ]);
    },
  },
  {
    id: 'observe.events-begin-with-resync',
    title: 'an event stream starts with resync, immediately',
    requires: ['events'],
    async run({ runtime }) {
      const events = await eventsUntil(runtime.events?.() ?? never(), () => true);
      assert.equal(events[0]?.type, 'resync');
    },
  },
  {
    id: 'observe.events-of-a-life',
    title: 'the events of a container are delivered in order, including its removal',
    requires: ['events'],
    async run({ runtime, sandbox, create, waitFor }) {
      const stream = runtime.events?.() ?? never();
      const id = await create(await sandbox(), { kind: 'exit', code: 0, afterMs: 50 });
      await runtime.startContainer(id);
      await waitFor(id, 'exited');
      await runtime.removeContainer(id);
      const events = await eventsUntil(
        stream,
        (event) => event.type === 'containerRemoved' && event.containerId === id,
      );
      assert.deepEqual(typesOf(events, id), [
        'containerCreated',
        'containerStarted',
        'containerExited',
        'containerRemoved',
      ]);
    },
  },
  {
    id: 'observe.event-then-truth',
    title: 'when an exit is reported, the status contains it',
    requires: ['events'],
    async run({ runtime, started }) {
      const stream = runtime.events?.() ?? never();
      const id = await started({ kind: 'exit', code: 6, afterMs: 20 });
      await eventsUntil(stream, (event) => event.type === 'containerExited' && event.containerId === id);
      const status = await runtime.containerStatus(id);
      assert.deepEqual([status.state, status.exitCode], ['exited', 6]);
    },
  },
  {
    id: 'observe.events-of-a-sandbox',
    title: 'the events of a sandbox are delivered',
    requires: ['events'],
    async run({ runtime, sandbox }) {
      const stream = runtime.events?.() ?? never();
      const id = await sandbox();
      await runtime.stopPodSandbox(id);
      await runtime.removePodSandbox(id);
      const events = await eventsUntil(stream, (event) => event.type === 'sandboxRemoved');
      assert.deepEqual(
        events.map(({ type }) => type),
        ['resync', 'sandboxReady', 'sandboxNotReady', 'sandboxRemoved'],
      );
    },
  },
  {
    id: 'observe.events-to-everybody',
    title: 'every event stream has every event, and one without a reader does not affect the others',
    requires: ['events'],
    async run({ runtime, started }) {
      const streams = [runtime.events?.() ?? never(), runtime.events?.() ?? never()];
      runtime.events?.();
      const id = await started({ kind: 'exit', code: 0 });
      for (const stream of streams) {
        const events = await eventsUntil(stream, (event) => event.type === 'containerExited');
        assert.deepEqual(typesOf(events, id).at(-1), 'containerExited');
      }
    },
  },
  {
    id: 'observe.events-end-with-the-signal',
    title: 'an event stream ends without an error when its signal is aborted',
    requires: ['events'],
    async run({ runtime }) {
      const controller = new AbortController();
      const stream = runtime.events?.({ signal: controller.signal }) ?? never();
      setTimeout(() => controller.abort(), 20);
      for await (const event of stream) assert.equal(event.type, 'resync');
    },
  },
  {
    id: 'observe.stats',
    title: 'running containers, and only those, have statistics, which grow',
    requires: ['stats'],
    isCommon: true,
    async run({ runtime, commonSandbox, create, started, until }) {
      const sandboxId = await commonSandbox();
      await create(sandboxId, { kind: 'run' });
      const id = await started({ kind: 'run' }, { labels: { app: 'x' } }, sandboxId);
      const [stats, ...others] = await runtime.listContainerStats();
      assert.deepEqual(others, []);
      assert.equal(stats?.id, id);
      assert.equal(stats?.sandboxId, sandboxId);
      assert((stats?.memory?.workingSetBytes ?? 0) > 0);
      assert.deepEqual(await runtime.listContainerStats({ labels: { app: 'y' } }), []);
      await until(
        'time passes',
        async () => ((await runtime.listContainerStats({ id }))[0]?.timestamp ?? 0) > (stats?.timestamp ?? 0),
      );
    },
  },
  {
    id: 'observe.stats-of-work',
    title: 'a busy container uses processor time, including that of its children',
    requires: ['stats', 'shell'],
    isCommon: true,
    async run({ runtime, started, script, until }) {
      const id = await started(script('while :; do :; done'));
      await until('processor time', async () => {
        const [stats] = await runtime.listContainerStats({ id });
        return (stats?.cpu?.usageCoreNanoseconds ?? 0n) > 100_000_000n;
      });
    },
  },
  {
    id: 'call.abandoned',
    title: 'a call with an aborted signal does nothing',
    async run({ runtime, podConfig }) {
      const signal = AbortSignal.abort();
      await refused(runtime.runPodSandbox(podConfig(), { signal }), 'Aborted');
      assert.deepEqual(await runtime.listPodSandboxes(), []);
    },
  },
  {
    id: 'call.abandoned-on-the-way',
    title: 'a call ends when its signal is aborted, and the container continues',
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'stubborn' });
      const controller = new AbortController();
      const stopping = runtime.stopContainer(id, { gracePeriodMs: 60_000 }, { signal: controller.signal });
      setTimeout(() => controller.abort(), 50);
      await refused(stopping, 'Aborted');
      assert.equal((await runtime.containerStatus(id)).state, 'running');
    },
  },
  {
    id: 'call.deadline',
    title: 'a call ends at its deadline',
    isCommon: true,
    async run({ runtime, started }) {
      const id = await started({ kind: 'stubborn' });
      const begin = performance.now();
      await refused(runtime.stopContainer(id, { gracePeriodMs: 60_000 }, { timeoutMs: 100 }), 'DeadlineExceeded');
      assert(performance.now() - begin < 15_000);
    },
  },
  {
    id: 'pod.port-forward',
    title: 'a connection to a port of a pod in the network of the host reaches the listener of that port',
    requires: ['portForward', 'sharesHostNetwork'],
    async run({ runtime, sandbox }) {
      const { createServer } = await import('node:net');
      const server = createServer((socket) => socket.end('hello'));
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      try {
        const address = server.address();
        assert(address !== null && typeof address === 'object');
        const stream = await runtime.streaming.portForward?.(await sandbox(), address.port);
        assert(stream);
        let text = '';
        for await (const chunk of stream) text += String(chunk);
        // The caller ends its direction: reading to the end leaves it open.
        stream.destroy();
        assert.equal(text, 'hello');
      } finally {
        await new Promise((resolve) => server.close(resolve));
      }
    },
  },
];

function never(): never {
  throw new Error('the case must require `events`');
}
