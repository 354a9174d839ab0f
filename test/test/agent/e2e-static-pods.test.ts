import { mkdir, rename, rm, unlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createProcessRuntime } from '@keelson/runtime-process';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { type AgentNode, scratchDirectory, startAgentNode } from '../../src/agent-node.ts';

const waitMs = 30_000;
const onLinux = process.platform === 'linux' ? test : test.skip;

/** An agent without a server, on processes; `words` are its sources of pods, `end` removes the pods. */
async function machine(
  t: ExecutionContext,
  words: (dir: string) => readonly string[],
  end: (dir: string) => Promise<unknown>,
) {
  t.timeout(4 * waitMs);
  const { dir, remove } = await scratchDirectory();
  const engine = await createProcessRuntime({ stateDirectory: join(dir, 'runtime'), nodeIp: '127.0.0.1' });
  const node = await startAgentNode({ name: 'alone', engine, words: words(dir), dir });
  t.teardown(async () => {
    await end(dir);
    await eventually(async () => (await engine.runtime.listPodSandboxes()).length === 0, waitMs);
    await node.stop();
    await engine.runtime[Symbol.asyncDispose]();
    await remove();
  });
  /** Waits until exactly these pods run, and returns their UIDs by name. */
  const run = (...names: string[]) => runningPods(node, names);
  return { dir, run };
}

async function runningPods(node: AgentNode, names: readonly string[]): Promise<ReadonlyMap<string, string>> {
  const wanted = [...names].sort().join();
  let last = '';
  return eventually(async () => {
    const inRuntime = await node.agent.state.runningPods();
    const known = node.agent.state.pods();
    const found = inRuntime.map(
      ({ metadata }) => [metadata?.name?.replace(/-alone$/, '') ?? '', metadata?.uid ?? ''] as const,
    );
    last = found
      .map(([name]) => name)
      .sort()
      .join();
    const settled = known.length === names.length && known.every(({ status }) => status?.phase === 'Running');
    return last === wanted && settled ? new Map(found) : undefined;
  }, waitMs).catch((error: Error) => {
    throw new Error(`there are ${last}, not ${wanted}: ${error.message}`);
  });
}

const pod = (name: string, word = 'one') => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: {
    terminationGracePeriodSeconds: 1,
    containers: [
      {
        name: 'main',
        image: 'host',
        imagePullPolicy: 'Never',
        command: ['/bin/sh', '-c', `: ${word}; exec sleep 600`],
      },
    ],
  },
});
const json = (name: string, word?: string) => JSON.stringify(pod(name, word));
const yaml = (name: string, word = 'one') => `# ${name}
apiVersion: v1
kind: Pod
metadata:
  name: ${name}
spec:
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: host
    imagePullPolicy: Never
    command: [/bin/sh, -c, ": ${word}; exec sleep 600"]
`;

onLinux('static pods of a directory follow changes of its files', async (t) => {
  const words = (dir: string) => [`--pod-manifest-path=${dir}/manifests`, '--file-check-frequency=200ms'];
  const { dir, run } = await machine(t, words, (folder) =>
    rm(join(folder, 'manifests'), { recursive: true, force: true }),
  );
  const manifests = join(dir, 'manifests');
  const put = (name: string, text: string) => writeFile(join(manifests, name), text);
  await mkdir(join(manifests, 'sub'), { recursive: true });
  await run();
  await put('.hidden.yaml', yaml('hidden'));
  await put('sub/inner.yaml', yaml('inner'));
  await put('bad.yaml', 'kind: [Pod');
  await put('a.yaml', yaml('a'));
  await put('b.json', json('b'));
  await run('a', 'b');
  await rename(join(manifests, 'b.json'), join(dir, 'aside.json'));
  await run('a');
  await rename(join(dir, 'aside.json'), join(manifests, 'c.json'));
  const before = await run('a', 'b');
  await put('.new', yaml('a', 'two'));
  await rename(join(manifests, '.new'), join(manifests, 'a.yaml'));
  const renamed = await eventually(async () => {
    const found = await run('a', 'b');
    return found.get('a') !== before.get('a') ? found : undefined;
  }, waitMs);
  await put('a.yaml', yaml('a', 'three'));
  const rewritten = await eventually(async () => {
    const found = await run('a', 'b');
    return found.get('a') !== renamed.get('a') ? found : undefined;
  }, waitMs);
  t.is(rewritten.get('b'), before.get('b'), 'another pod is not affected');
  await put('z-same.yaml', yaml('b', 'other'));
  await put('z-z.yaml', yaml('d'));
  t.is((await run('a', 'b', 'd')).get('b'), before.get('b'), 'the first file of two with one pod name is used');
  await rm(manifests, { recursive: true });
  await run();
  await mkdir(manifests);
  await put('again.yaml', yaml('again'));
  await run('again');
});

onLinux('a static pod of one file starts when the file is created, and ends when it is removed', async (t) => {
  const words = (dir: string) => [`--pod-manifest-path=${dir}/pod.yaml`, '--file-check-frequency=200ms'];
  const { dir, run } = await machine(t, words, (folder) => rm(join(folder, 'pod.yaml'), { force: true }));
  await run();
  await writeFile(join(dir, 'pod.yaml'), yaml('single'));
  t.is((await run('single')).size, 1);
  await unlink(join(dir, 'pod.yaml'));
  await run();
});

onLinux(
  'static pods by URL: a list runs, errors of the server have no effect, an empty response ends it',
  async (t) => {
    const answer = {
      code: 200,
      body: JSON.stringify({ apiVersion: 'v1', kind: 'PodList', items: [pod('a'), pod('b')] }),
      given: 0,
    };
    const headers: string[][] = [];
    const server = createServer((request, response) => {
      headers.push(
        request.rawHeaders.flatMap((word, i, all) => (i % 2 === 0 && word === 'X-Pod' ? [all[i + 1] ?? ''] : [])),
      );
      answer.given += 1;
      response.statusCode = answer.code;
      response.end(answer.body);
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    // Ends after the agent, which sends requests until it ends.
    t.teardown(() => server.closeAllConnections());
    t.teardown(() => server.close());
    const { port } = server.address() as AddressInfo;
    const respond = async (code: number, body: string) => {
      Object.assign(answer, { code, body, given: 0 });
      // The first response may already be in transit.
      await eventually(() => answer.given >= 3, waitMs);
    };
    const words = () => [
      `--manifest-url=http://127.0.0.1:${port}/`,
      '--http-check-frequency=200ms',
      '--manifest-url-header=X-Pod:one,X-Pod:two',
    ];
    const { run } = await machine(t, words, async () => {
      await respond(200, '');
    });
    const first = await run('a', 'b');
    for (const [code, body] of [
      [500, 'broken'],
      [200, 'neither: [JSON'],
      [200, '{"apiVersion":"v1","kind":"Secret"}'],
    ] as const) {
      await respond(code, body);
      t.deepEqual(await run('a', 'b'), first, `${code} ${body}`);
    }
    await respond(200, '');
    await run();
    t.deepEqual(headers[0], ['one', 'two']);
    t.true(headers.every((found) => found.join() === 'one,two'));
  },
);
