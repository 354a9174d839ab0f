import { mkdir, readdir, readFile, rm, symlink, writeFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import { join } from 'node:path';
import type { Pod } from '@keelson/kinds';
import { createProcessRuntime } from '@keelson/runtime-process';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { scratchDirectory, startAgentNode } from '../../src/agent-node.ts';

const waitMs = 30_000;
const onLinux = process.platform === 'linux' ? test : test.skip;

/** An agent without a server, on processes, with an empty folder of manifests. */
async function machine(t: ExecutionContext) {
  t.timeout(90_000);
  const { dir, remove } = await scratchDirectory();
  const manifests = join(dir, 'manifests');
  await mkdir(manifests);
  const engine = await createProcessRuntime({ stateDirectory: join(dir, 'runtime'), nodeIp: '127.0.0.1' });
  const words = [`--pod-manifest-path=${manifests}`, '--file-check-frequency=200ms'];
  const node = await startAgentNode({ name: 'alone', engine, words, dir });
  t.teardown(async () => {
    for (const name of await readdir(manifests)) await rm(join(manifests, name));
    await eventually(async () => (await engine.runtime.listPodSandboxes()).length === 0, waitMs);
    await node.stop();
    await engine.runtime[Symbol.asyncDispose]();
    await remove();
  });
  const running = (name: string) =>
    eventually(
      () =>
        node.agent.state
          .pods()
          .find(({ metadata, status }) => metadata?.name === `${name}-alone` && status?.phase === 'Running'),
      waitMs,
    );
  return { dir, manifests, node, running };
}

function manifest(name: string, main: Partial<Pod['spec']['containers'][number]> = {}): string {
  const command = ['/bin/sh', '-c', 'echo here; exec sleep 600'];
  const containers = [{ name: 'main', image: 'host', imagePullPolicy: 'Never', command, ...main }];
  return JSON.stringify({
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name },
    spec: { terminationGracePeriodSeconds: 2, containers },
  });
}

onLinux('a symbolic link to a manifest runs, and its log is at the path of log collectors', async (t) => {
  const { dir, manifests, running } = await machine(t);
  await writeFile(join(dir, 'elsewhere.json'), manifest('web'));
  await symlink(join(dir, 'elsewhere.json'), join(manifests, 'web.json'));
  const { metadata, status } = await running('web');
  const file = join(dir, 'log', 'pods', metadata?.uid ?? '', 'main_0.log');
  const text = await eventually(async () => (await readFile(file, 'utf8')) || undefined, waitMs);
  t.regex(text, /^\d{4}-\d\d-\d\dT[\d:.]+Z stdout F here\n$/);
  const id = status?.containerStatuses?.[0]?.containerID?.replace(/^.*:\/\//, '') ?? '';
  const link = join(dir, 'log', 'containers', `web-alone_default_main-${id}.log`);
  t.is(await readFile(link, 'utf8'), text);
});

onLinux('HTTP hooks are called after the start and before the end', async (t) => {
  const { manifests, running } = await machine(t);
  const requested: string[] = [];
  const server = createServer((request, answer) => {
    requested.push(request.url ?? '');
    answer.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.close());
  const { port } = server.address() as { port: number };
  const httpGet = (path: string) => ({ httpGet: { host: '127.0.0.1', port, path } });
  await writeFile(
    join(manifests, 'web.json'),
    manifest('web', { lifecycle: { postStart: httpGet('/hello'), preStop: httpGet('/bye') } }),
  );
  await running('web');
  await eventually(() => requested.includes('/hello'), waitMs);
  t.false(requested.includes('/bye'));
  await rm(join(manifests, 'web.json'));
  await eventually(() => requested.includes('/bye'), waitMs);
  t.deepEqual(requested, ['/hello', '/bye']);
});
